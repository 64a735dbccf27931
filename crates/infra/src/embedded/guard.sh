# Stops the database of the folder $1 when its last user has ended, even by kill -9. A process of its own, under the account of
# the database; its standard input holds the lock by which users know that it is running.
trap '' HUP INT TERM
cd "$1" || exit 1

# Whether $1 is the process of this folder's server or of the program that makes its data, and not another one that was given
# its number.
is_server() {
    arguments=$(tr '\0' ' ' <"/proc/$1/cmdline" 2>/dev/null || ps -p "$1" -o args= 2>/dev/null)
    case $arguments in *"$2/data "* | *"$2/data.unfinished "*) return 0 ;; *) return 1 ;; esac
}

# Whether the process that the file $1 is named after lives, and is the one that wrote it: the file holds the moment at
# which it started, where the system tells it. A process that has ended and waits to be noticed does not live.
lives() {
    process=${1#users/}
    # A process of another account cannot be sent a signal, but has its folder. Where that is hidden, or there is none, the
    # reason why the signal cannot be sent tells.
    [ -d "/proc/$process" ] || case $(kill -0 "$process" 2>&1) in '' | *ermitted*) ;; *) return 1 ;; esac
    read -r noted <"$1" || return 0
    read -r status 2>/dev/null <"/proc/$process/stat" || return 0
    # What follows the name: the state, and as the twentieth the start.
    set -- ${status##*) }
    [ "$1" != Z ] && [ "$1" != X ] && [ "${20}" = "$noted" ]
}

# Prints the server of the folder $1, found among all processes.
find_server() {
    for process in /proc/[0-9]*; do
        is_server "${process#/proc/}" "$1" && echo "${process#/proc/}" && return
    done
}

server=
while sleep 0.5; do
    for user in users/*; do
        [ -e "$user" ] || continue
        lives "$user" || rm -f "$user"
    done
    # Read before the folder of users goes: a user who comes after that stops this server and starts another.
    read -r noted 2>/dev/null <data/postmaster.pid && server=$noted
    # Only an empty folder can be removed, so no user can have come in the meantime. The folder is also gone if everything was deleted.
    if rmdir users 2>/dev/null || [ ! -d users ]; then
        [ -n "$server" ] || server=$(find_server "$1")
        # A user who has come since has made the folder first.
        if [ ! -d users ] && [ -n "$server" ] && is_server "$server" "$1"; then
            kill -INT "$server"
            # A stopped process gets the signal only when it continues.
            kill -CONT "$server" $(cat "/proc/$server/task/$server/children" 2>/dev/null)
            # One that was recovering just then may never end by that: it is ended at once after 20 seconds, and the next one
            # recovers. Apart from the guard, whose lock must be free for another one.
            (
                tenths=0
                while is_server "$server" "$1" && [ ! -d users ]; do
                    [ "$tenths" -lt 200 ] || case $arguments in
                        *"/data.unfinished "*) kill -KILL "$server" ;;
                        *) kill -QUIT "$server" ;;
                    esac
                    tenths=$((tenths + 2))
                    sleep 0.2
                done
            ) </dev/null &
        fi
        exit 0
    fi
done
