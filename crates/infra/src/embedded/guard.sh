# Stops the database of the folder $1 when its last user is gone, however it went: kill -9 included.
# Runs apart from every user. Its standard input holds the lock by which users know that it lives.
trap '' HUP INT TERM
cd "$1" || exit 1

# Whether $1 is the process of this folder's server, and not another one that was given its number.
is_server() {
    arguments=$(tr '\0' ' ' <"/proc/$1/cmdline" 2>/dev/null || ps -p "$1" -o args= 2>/dev/null)
    case $arguments in *"$2/data"*) return 0 ;; *) return 1 ;; esac
}

# Whether the process $1 lives. One that has ended and waits for its parent to notice does not.
lives() {
    kill -0 "$1" 2>/dev/null || return 1
    [ -r "/proc/$1/status" ] || return 0
    while read -r name value; do
        [ "$name" = State: ] || continue
        case $value in Z* | X*) return 1 ;; *) return 0 ;; esac
    done <"/proc/$1/status"
}

while sleep 0.5; do
    for user in users/*; do
        [ -e "$user" ] || continue
        lives "${user#users/}" || rm -f "$user"
    done
    # Only an empty folder can be removed, so nobody can have come in the meantime. Users that find no folder wait until
    # the server is gone.
    if rmdir users 2>/dev/null; then
        server=$(head -n 1 data/postmaster.pid 2>/dev/null)
        if [ -n "$server" ] && is_server "$server" "$1"; then
            kill -INT "$server"
        fi
    fi
    [ -d users ] || exit 0
done
