import json, sqlite3, subprocess, sys

copy = sqlite3.connect("patients.db")
copy.execute("CREATE TABLE IF NOT EXISTS patients (id TEXT PRIMARY KEY, patient TEXT)")
copy.execute("CREATE TABLE IF NOT EXISTS token (next TEXT)")
command = ["intake", "export", "--organisation", sys.argv[1], "--format", "jsonl", "--follow"]
for (token,) in copy.execute("SELECT next FROM token"):
    command += ["--since", token]
with subprocess.Popen(command, stdout=subprocess.PIPE) as export:
    for line in export.stdout:
        change = json.loads(line)
        if "next" in change:  # the end of a batch
            copy.execute("DELETE FROM token")
            copy.execute("INSERT INTO token VALUES (?)", [change["next"]])
            copy.commit()
        elif "erasedAt" in change:
            copy.execute("DELETE FROM patients WHERE id = ?", [change["id"]])
        else:
            copy.execute("REPLACE INTO patients VALUES (?, ?)", [change["id"], line.decode()])
