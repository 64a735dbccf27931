complete -c intake-import -l url -d 'The address of the service, which begins with `https://`' -r
complete -c intake-import -l key-file -d 'A file that holds an API key and nothing else' -r -F
complete -c intake-import -l map -d 'Which field a column holds, where its header is not the field\'s name; "HEADER=" leaves the column out' -r
complete -c intake-import -l date-format -d 'How the file writes dates, for example DD/MM/YYYY or D.M.YYYY' -r
complete -c intake-import -l delimiter -d 'What stands between the cells of a .csv file' -r
complete -c intake-import -l report -d 'Where to write, as CSV, which rows were created, with their ids, and which were refused, and why' -r -F
complete -c intake-import -l run -d 'Rows that were created under this name are not created again; choose another to create the same rows once more' -r
complete -c intake-import -l in-flight -d 'How many requests are under way at a time' -r
complete -c intake-import -l cacert -d 'Trust only the certificate authorities in this PEM file, for example .intake/tls/ca.pem in development' -r -F
complete -c intake-import -l check -d 'Check all rows and send nothing'
complete -c intake-import -l australian-phones -d 'Rewrite Australian phone numbers, such as (02) 5550 1234, as +61255501234; the report says where'
complete -c intake-import -l key-replaced -d 'The report was written with another key of the same organisation'
complete -c intake-import -s h -l help -d 'Print help'
complete -c intake-import -s V -l version -d 'Print version'
