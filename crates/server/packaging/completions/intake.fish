# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_intake_global_optspecs
    string join \n environment= database-url= database-url-file= migration-database-url= migration-database-url-file= data-dir= https-addr= tls-cert= tls-key= http-addr= trusted-proxies= admin-addr= key-prefix= rate-limit= deadline= drain-delay= public-url= smtp-url= mail-from= log= durability= writers= postgres-bin= h/help V/version
end

function __fish_intake_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_intake_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_intake_using_subcommand
    set -l cmd (__fish_intake_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c intake -n "__fish_intake_needs_command" -l environment -d 'development takes _demo_ keys, production takes _live_ keys. A database belongs to the environment it was first used in [variable: INTAKE_ENVIRONMENT] [default: development]' -r
complete -c intake -n "__fish_intake_needs_command" -l database-url -d 'The service\'s connection. Without it, in development: an embedded PostgreSQL [variable: DATABASE_URL] [default: none]' -r
complete -c intake -n "__fish_intake_needs_command" -l database-url-file -d 'A file that holds the service\'s connection, instead of DATABASE_URL; read once, at the start [variable: DATABASE_URL_FILE] [default: none]' -r
complete -c intake -n "__fish_intake_needs_command" -l migration-database-url -d 'The owner\'s connection, for migrations [variable: INTAKE_MIGRATION_DATABASE_URL] [default: DATABASE_URL]' -r
complete -c intake -n "__fish_intake_needs_command" -l migration-database-url-file -d 'A file that holds the owner\'s connection, instead of INTAKE_MIGRATION_DATABASE_URL [variable: INTAKE_MIGRATION_DATABASE_URL_FILE] [default: none]' -r
complete -c intake -n "__fish_intake_needs_command" -l data-dir -d 'Embedded database, development certificates [variable: INTAKE_DATA_DIR] [default: .intake]' -r
complete -c intake -n "__fish_intake_needs_command" -l https-addr -d 'Where to serve HTTPS: TLS 1.2 and 1.3, HTTP/1.1 [variable: INTAKE_HTTPS_ADDR] [default: 127.0.0.1:8443]' -r
complete -c intake -n "__fish_intake_needs_command" -l tls-cert -d 'Certificate chain, a PEM file, read again when it changes [variable: INTAKE_TLS_CERT] [default: in development, made by a local authority]' -r
complete -c intake -n "__fish_intake_needs_command" -l tls-key -d 'Private key of the certificate, a PEM file, read again when it changes [variable: INTAKE_TLS_KEY] [default: in development, made by a local authority]' -r
complete -c intake -n "__fish_intake_needs_command" -l http-addr -d 'Where to take plain HTTP, or off. It answers 426, except to trusted proxies [variable: INTAKE_HTTP_ADDR] [default: 127.0.0.1:8080; in production off]' -r
complete -c intake -n "__fish_intake_needs_command" -l trusted-proxies -d 'Networks of proxies in front, a CIDR list: only their X-Forwarded-Proto: https is believed, on the plain listener [variable: INTAKE_TRUSTED_PROXIES] [default: none]' -r
complete -c intake -n "__fish_intake_needs_command" -l admin-addr -d 'Where to serve /livez, /readyz and /metrics, over plain HTTP [variable: INTAKE_ADMIN_ADDR] [default: 127.0.0.1:9464]' -r
complete -c intake -n "__fish_intake_needs_command" -l key-prefix -d 'What keys begin with. Keys with another prefix are refused from then on [variable: INTAKE_KEY_PREFIX] [default: intake]' -r
complete -c intake -n "__fish_intake_needs_command" -l rate-limit -d 'Requests a second in the long run / at once, for each key and instance; or off [variable: INTAKE_RATE_LIMIT] [default: 100/1000]' -r
complete -c intake -n "__fish_intake_needs_command" -l deadline -d 'How long a request may wait for the database, and a password for its turn to be checked, before 503 (500ms, 5s, 1m) [variable: INTAKE_DEADLINE] [default: 5s]' -r
complete -c intake -n "__fish_intake_needs_command" -l drain-delay -d 'How long a service that stops still takes connections, while /readyz already says that it is draining: longer than a load balancer needs to notice [variable: INTAKE_DRAIN_DELAY] [default: 0s; in production 5s]' -r
complete -c intake -n "__fish_intake_needs_command" -l public-url -d 'The base of links that are printed and shown [variable: INTAKE_PUBLIC_URL] [default: https://localhost:8443, or the port that HTTPS is served on]' -r
complete -c intake -n "__fish_intake_needs_command" -l smtp-url -d 'The mail server for mails to members: smtps://USER:PASSWORD@HOST, or smtp://HOST, which begins unencrypted [variable: INTAKE_SMTP_URL] [default: none: links are shown instead]' -r
complete -c intake -n "__fish_intake_needs_command" -l mail-from -d 'Whom mails name as their sender, such as Patient register <noreply@clinic.example> [variable: INTAKE_MAIL_FROM] [default: intake@ and the host of INTAKE_PUBLIC_URL]' -r
complete -c intake -n "__fish_intake_needs_command" -l log -d 'A level, or levels by module (info,intake_infra=debug, and info,intake::requests=info for a line for each request); text on a terminal, JSON lines elsewhere [variable: INTAKE_LOG] [default: info]' -r
complete -c intake -n "__fish_intake_needs_command" -l durability -d 'none lets a database lose what it has acknowledged: for tests; production refuses it [variable: INTAKE_DURABILITY] [default: full]' -r
complete -c intake -n "__fish_intake_needs_command" -l writers -d 'Connections that store patients; more make smaller batches [variable: INTAKE_WRITERS] [default: one for each four cores, at most 4]' -r
complete -c intake -n "__fish_intake_needs_command" -l postgres-bin -d 'The folder of PostgreSQL\'s programs, for the embedded database [variable: INTAKE_POSTGRES_BIN] [default: looked for in the usual places]' -r
complete -c intake -n "__fish_intake_needs_command" -s h -l help -d 'Print help'
complete -c intake -n "__fish_intake_needs_command" -s V -l version -d 'Print version'
complete -c intake -n "__fish_intake_needs_command" -f -a "serve" -d 'Serves (the default); in development it migrates first'
complete -c intake -n "__fish_intake_needs_command" -f -a "migrate" -d 'Brings the database\'s schema up to date, as its owner'
complete -c intake -n "__fish_intake_needs_command" -f -a "spread" -d 'Spreads a migrated database over the nodes of a Citus cluster'
complete -c intake -n "__fish_intake_needs_command" -f -a "organisation" -d 'Makes and lists organisations'
complete -c intake -n "__fish_intake_needs_command" -f -a "key" -d 'Makes, lists and revokes API keys'
complete -c intake -n "__fish_intake_needs_command" -f -a "member" -d 'Invites people to an organisation\'s dashboard'
complete -c intake -n "__fish_intake_needs_command" -f -a "export" -d 'Writes an organisation\'s patients, or what was committed since an earlier export, as a reader'
complete -c intake -n "__fish_intake_needs_command" -f -a "restored" -d 'Says that a database which was restored or moved is the register from here on, and tells what to look at'
complete -c intake -n "__fish_intake_needs_command" -f -a "patient" -d 'Shows or erases what is held of a patient, as the owner of the database'
complete -c intake -n "__fish_intake_needs_command" -f -a "openapi" -d 'Prints the OpenAPI 3.1 document of the interface'
complete -c intake -n "__fish_intake_using_subcommand serve" -s h -l help -d 'Print help'
complete -c intake -n "__fish_intake_using_subcommand migrate" -l service-role -d 'Lets this role do what the service needs, and nothing else' -r
complete -c intake -n "__fish_intake_using_subcommand migrate" -l reader-role -d 'Lets this role read patients through the view `patients_v1`, and nothing else' -r
complete -c intake -n "__fish_intake_using_subcommand migrate" -l organisation -d 'Lets the reader\'s role read this organisation\'s patients only' -r
complete -c intake -n "__fish_intake_using_subcommand migrate" -l check -d 'Says what would be done, and changes nothing'
complete -c intake -n "__fish_intake_using_subcommand migrate" -l all-organisations -d 'Lets the reader\'s role read the patients of every organisation, if it was limited to one before'
complete -c intake -n "__fish_intake_using_subcommand migrate" -l json -d 'Prints one JSON value instead of text for people'
complete -c intake -n "__fish_intake_using_subcommand migrate" -s h -l help -d 'Print help'
complete -c intake -n "__fish_intake_using_subcommand spread" -l shards -d 'Into how many parts the tables that grow are divided [default: two for each node]' -r
complete -c intake -n "__fish_intake_using_subcommand spread" -l json -d 'Prints one JSON value instead of text for people'
complete -c intake -n "__fish_intake_using_subcommand spread" -s h -l help -d 'Print help'
complete -c intake -n "__fish_intake_using_subcommand organisation; and not __fish_seen_subcommand_from create list" -s h -l help -d 'Print help'
complete -c intake -n "__fish_intake_using_subcommand organisation; and not __fish_seen_subcommand_from create list" -f -a "create" -d 'Makes an organisation'
complete -c intake -n "__fish_intake_using_subcommand organisation; and not __fish_seen_subcommand_from create list" -f -a "list" -d 'Lists all organisations, the oldest first'
complete -c intake -n "__fish_intake_using_subcommand organisation; and __fish_seen_subcommand_from create" -l name -d '1 to 100 characters' -r
complete -c intake -n "__fish_intake_using_subcommand organisation; and __fish_seen_subcommand_from create" -l json -d 'Prints one JSON value instead of text for people'
complete -c intake -n "__fish_intake_using_subcommand organisation; and __fish_seen_subcommand_from create" -s h -l help -d 'Print help'
complete -c intake -n "__fish_intake_using_subcommand organisation; and __fish_seen_subcommand_from list" -l json -d 'Prints one JSON value instead of text for people'
complete -c intake -n "__fish_intake_using_subcommand organisation; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c intake -n "__fish_intake_using_subcommand key; and not __fish_seen_subcommand_from create list clear-sent-in-clear revoke" -s h -l help -d 'Print help'
complete -c intake -n "__fish_intake_using_subcommand key; and not __fish_seen_subcommand_from create list clear-sent-in-clear revoke" -f -a "create" -d 'Makes an API key and prints it, this once'
complete -c intake -n "__fish_intake_using_subcommand key; and not __fish_seen_subcommand_from create list clear-sent-in-clear revoke" -f -a "list" -d 'Lists an organisation\'s keys, the oldest first'
complete -c intake -n "__fish_intake_using_subcommand key; and not __fish_seen_subcommand_from create list clear-sent-in-clear revoke" -f -a "clear-sent-in-clear" -d 'Clears a key\'s mark that it was sent over plain HTTP'
complete -c intake -n "__fish_intake_using_subcommand key; and not __fish_seen_subcommand_from create list clear-sent-in-clear revoke" -f -a "revoke" -d 'Revokes a key at once and for good'
complete -c intake -n "__fish_intake_using_subcommand key; and __fish_seen_subcommand_from create" -l organisation -d 'The organisation it belongs to' -r
complete -c intake -n "__fish_intake_using_subcommand key; and __fish_seen_subcommand_from create" -l name -d '1 to 100 characters, to tell it from other keys' -r
complete -c intake -n "__fish_intake_using_subcommand key; and __fish_seen_subcommand_from create" -l expires -d 'When it expires: RFC 3339, or YYYY-MM-DD for 00:00 UTC of that day' -r
complete -c intake -n "__fish_intake_using_subcommand key; and __fish_seen_subcommand_from create" -l json -d 'Prints one JSON value instead of text for people'
complete -c intake -n "__fish_intake_using_subcommand key; and __fish_seen_subcommand_from create" -s h -l help -d 'Print help'
complete -c intake -n "__fish_intake_using_subcommand key; and __fish_seen_subcommand_from list" -l organisation -d 'The organisation' -r
complete -c intake -n "__fish_intake_using_subcommand key; and __fish_seen_subcommand_from list" -l json -d 'Prints one JSON value instead of text for people'
complete -c intake -n "__fish_intake_using_subcommand key; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c intake -n "__fish_intake_using_subcommand key; and __fish_seen_subcommand_from clear-sent-in-clear" -l json -d 'Prints one JSON value instead of text for people'
complete -c intake -n "__fish_intake_using_subcommand key; and __fish_seen_subcommand_from clear-sent-in-clear" -s h -l help -d 'Print help'
complete -c intake -n "__fish_intake_using_subcommand key; and __fish_seen_subcommand_from revoke" -l json -d 'Prints one JSON value instead of text for people'
complete -c intake -n "__fish_intake_using_subcommand key; and __fish_seen_subcommand_from revoke" -s h -l help -d 'Print help'
complete -c intake -n "__fish_intake_using_subcommand member; and not __fish_seen_subcommand_from invite reset-password reset-second-factor" -s h -l help -d 'Print help'
complete -c intake -n "__fish_intake_using_subcommand member; and not __fish_seen_subcommand_from invite reset-password reset-second-factor" -f -a "invite" -d 'Prints a one-time link for a new member'
complete -c intake -n "__fish_intake_using_subcommand member; and not __fish_seen_subcommand_from invite reset-password reset-second-factor" -f -a "reset-password" -d 'Prints a one-time link for a member who forgot the password'
complete -c intake -n "__fish_intake_using_subcommand member; and not __fish_seen_subcommand_from invite reset-password reset-second-factor" -f -a "reset-second-factor" -d 'Turns off two-step sign-in, and removes the passkeys, of a member who has lost them'
complete -c intake -n "__fish_intake_using_subcommand member; and __fish_seen_subcommand_from invite" -l organisation -d 'The member\'s organisation' -r
complete -c intake -n "__fish_intake_using_subcommand member; and __fish_seen_subcommand_from invite" -l email -d 'The address with which the member signs in' -r
complete -c intake -n "__fish_intake_using_subcommand member; and __fish_seen_subcommand_from invite" -l role -d 'What the member may do: administrators look after members and keys, key managers after keys only' -r
complete -c intake -n "__fish_intake_using_subcommand member; and __fish_seen_subcommand_from invite" -l json -d 'Prints one JSON value instead of text for people'
complete -c intake -n "__fish_intake_using_subcommand member; and __fish_seen_subcommand_from invite" -s h -l help -d 'Print help'
complete -c intake -n "__fish_intake_using_subcommand member; and __fish_seen_subcommand_from reset-password" -l organisation -d 'The member\'s organisation' -r
complete -c intake -n "__fish_intake_using_subcommand member; and __fish_seen_subcommand_from reset-password" -l email -d 'The address with which the member signs in' -r
complete -c intake -n "__fish_intake_using_subcommand member; and __fish_seen_subcommand_from reset-password" -l json -d 'Prints one JSON value instead of text for people'
complete -c intake -n "__fish_intake_using_subcommand member; and __fish_seen_subcommand_from reset-password" -s h -l help -d 'Print help'
complete -c intake -n "__fish_intake_using_subcommand member; and __fish_seen_subcommand_from reset-second-factor" -l organisation -d 'The member\'s organisation' -r
complete -c intake -n "__fish_intake_using_subcommand member; and __fish_seen_subcommand_from reset-second-factor" -l email -d 'The address with which the member signs in' -r
complete -c intake -n "__fish_intake_using_subcommand member; and __fish_seen_subcommand_from reset-second-factor" -l json -d 'Prints one JSON value instead of text for people'
complete -c intake -n "__fish_intake_using_subcommand member; and __fish_seen_subcommand_from reset-second-factor" -s h -l help -d 'Print help'
complete -c intake -n "__fish_intake_using_subcommand export" -l organisation -d 'The organisation whose patients are exported' -r
complete -c intake -n "__fish_intake_using_subcommand export" -l format -d 'The form of the output' -r -f -a "jsonl\t'A JSON object in each line, as the API returned it'
csv\t'A table that spreadsheets open safely and intake-import reads back'
fhir\t'FHIR R4 Patient resources, one in each line'"
complete -c intake -n "__fish_intake_using_subcommand export" -l since -d 'Only what was committed since the run that told this token' -r
complete -c intake -n "__fish_intake_using_subcommand export" -l output -d 'The file to write instead of standard output (-); it appears when it is complete' -r -F
complete -c intake -n "__fish_intake_using_subcommand export" -l key -d 'Only patients that this API key created' -r
complete -c intake -n "__fish_intake_using_subcommand export" -l follow -d 'Goes on with whatever is committed, until SIGTERM or Ctrl-C'
complete -c intake -n "__fish_intake_using_subcommand export" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c intake -n "__fish_intake_using_subcommand restored" -l audit -d 'A copy of the table `audit_entries` of the database that was lost, as CSV with a head' -r -F
complete -c intake -n "__fish_intake_using_subcommand restored" -l revoke-keys -d 'Revokes every key that is in the database'
complete -c intake -n "__fish_intake_using_subcommand restored" -l json -d 'Prints one JSON value instead of text for people'
complete -c intake -n "__fish_intake_using_subcommand restored" -s h -l help -d 'Print help'
complete -c intake -n "__fish_intake_using_subcommand patient; and not __fish_seen_subcommand_from show erase" -s h -l help -d 'Print help'
complete -c intake -n "__fish_intake_using_subcommand patient; and not __fish_seen_subcommand_from show erase" -f -a "show" -d 'Prints everything that is held of a patient'
complete -c intake -n "__fish_intake_using_subcommand patient; and not __fish_seen_subcommand_from show erase" -f -a "erase" -d 'Erases a patient for good'
complete -c intake -n "__fish_intake_using_subcommand patient; and __fish_seen_subcommand_from show" -l organisation -d 'The patient\'s organisation' -r
complete -c intake -n "__fish_intake_using_subcommand patient; and __fish_seen_subcommand_from show" -l patient -d 'The patient' -r
complete -c intake -n "__fish_intake_using_subcommand patient; and __fish_seen_subcommand_from show" -l json -d 'Prints one JSON value instead of text for people'
complete -c intake -n "__fish_intake_using_subcommand patient; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c intake -n "__fish_intake_using_subcommand patient; and __fish_seen_subcommand_from erase" -l organisation -d 'The patient\'s organisation' -r
complete -c intake -n "__fish_intake_using_subcommand patient; and __fish_seen_subcommand_from erase" -l patient -d 'The patient' -r
complete -c intake -n "__fish_intake_using_subcommand patient; and __fish_seen_subcommand_from erase" -l json -d 'Prints one JSON value instead of text for people'
complete -c intake -n "__fish_intake_using_subcommand patient; and __fish_seen_subcommand_from erase" -s h -l help -d 'Print help'
complete -c intake -n "__fish_intake_using_subcommand openapi" -l json -d 'Prints one JSON value instead of text for people'
complete -c intake -n "__fish_intake_using_subcommand openapi" -s h -l help -d 'Print help'
