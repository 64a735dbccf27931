//! Each row becomes one patient, whatever happens on the way.

use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fs, io, thread};

use diesel::connection::SimpleConnection;
use intake_test_support::{ServiceBuilder, full_disk, wait_for};

use crate::import::{HEADER, Import, complaint, many, service_program};

#[test]
fn each_row_becomes_one_patient_however_often_it_is_run() {
    let import = Import::start();
    // A byte order mark, quotation marks, a line feed within a cell, twins of the file, and two rows that are refused.
    import.write(
        "patients.csv",
        format!(
            "\u{feff}{HEADER}\r\n\
             Ada,Lovelace,+61491570006,1985-12-10,ada@example.com,\"Carlton, North\"\r\n\
             Grace,Hopper,0491 570 156,1986-12-09,,\r\n\
             \"Zoë \"\"Z\"\"\",O'Neill,+61491570157,1990-02-28,,\"\"\r\n\
             Ada,Lovelace,+61491570006,1985-12-10,ada@example.com,\"Carlton, North\"\r\n\
             Alan,,+61491570158,1882-06-31,nobody,\r\n"
        ),
    );

    let (said, errors) = import.fail("patients.csv", &["--check"]);
    assert_eq!(
        said,
        "5 rows: 3 valid, 2 refused; nothing was sent\n\
         1 row is the same as an earlier one in every field: twins, or entered twice?\n"
    );
    let refused = "row 3: phoneNumber: E.164 format is required, for example +61491570006\n\
                   row 6: lastName: is required; dateOfBirth: must be a real date; \
                   email: must be a valid email address\n";
    assert_eq!(errors, refused);
    assert_eq!(import.patients(), 0, "a check sends nothing");

    let (said, errors) = import.fail("patients.csv", &["--report", "report.csv"]);
    assert!(said.starts_with("5 rows: 3 created, 0 created before, 2 refused\n"), "{said}");
    assert_eq!(errors, "", "the report has them");
    assert_eq!(import.texts("first_name"), ["Ada", "Ada", "Zoë \"Z\""]);
    assert_eq!(import.texts("suburb"), ["Carlton, North", "Carlton, North", "null"]);
    let report = import.report();
    let ids = import.texts("id");
    let mut created: Vec<_> = report.iter().filter(|row| row[1] == "created").collect();
    created.sort_by_key(|row| row[0].parse::<u32>().unwrap());
    assert_eq!(created.iter().map(|row| row[0].as_str()).collect::<Vec<_>>(), ["2", "4", "5"]);
    assert!(created.iter().all(|row| ids.contains(&row[2])), "{created:?} {ids:?}");
    assert!(created[2][4].starts_with("the same as an earlier row in every field; look at it: "));
    let text = fs::read_to_string(import.path("report.csv")).unwrap();
    assert!(!text.contains("Lovelace") && !text.contains("ada@"), "no values: {text}");

    // With its report it asks nothing again but once; without it the service knows the rows by their keys.
    for more in [&["--report", "report.csv"][..], &[]] {
        let (said, _) = import.fail("patients.csv", more);
        assert!(said.starts_with("5 rows: 0 created, 3 created before, 2 refused\n"), "{said}");
    }
    assert_eq!((import.patients(), import.report().len()), (3, 5));

    // The rows that were refused are mended; nothing else is created.
    let mended = fs::read_to_string(import.path("patients.csv")).unwrap().replace("0491 570 156", "+61491570156");
    import.write("patients.csv", mended);
    let (said, _) = import.fail("patients.csv", &["--report", "report.csv"]);
    assert!(said.starts_with("5 rows: 1 created, 3 created before, 1 refused\n"), "{said}");
    assert_eq!(import.patients(), 4);

    // Another run creates them once more, on purpose.
    let (said, _) = import.fail("patients.csv", &["--run", "second"]);
    assert!(said.starts_with("5 rows: 4 created, 0 created before, 1 refused\n"), "{said}");
}

#[test]
fn columns_dates_and_phone_numbers_are_read_as_configured_and_never_guessed() {
    let import = Import::start();
    import.write(
        "old.csv",
        "Given name;Surname;Mobile;Born;Notes\n\
         Ada;Lovelace;0491 570 006;10/12/1985;likes engines\n\
         Grace;Hopper;+61491570156;9/12/1986;\n\
         Alan;Turing;0191 570 157;23/06/1982;\n",
    );
    let named = ["Given name=firstName", "Surname=lastName", "Mobile=phoneNumber", "Born=dateOfBirth", "Notes="];
    let maps: Vec<_> = named.iter().flat_map(|map| ["--map", map]).collect();
    let with = |maps: &[&'static str], more: &[&'static str]| [&["--delimiter", ";"], maps, more].concat();

    let (_, errors) = import.fail("old.csv", &with(&maps[..8], &[]));
    assert_eq!(
        errors,
        "intake-import: old.csv: the header does not fit:\n  \
         the column \"Notes\" is not a field of a patient\n  \
         to begin with: --map Notes=\n"
    );
    let (_, errors) = import.fail("old.csv", &with(&maps, &["--date-format", "DD/MM/YYYY"]));
    assert_eq!(
        errors,
        "refused, by reason:\n  \
         2 phoneNumber: E.164 format is required, for example +61491570006 (rows 2, 4)\n\
         row 2: phoneNumber: E.164 format is required, for example +61491570006\n\
         row 3: dateOfBirth is not written as DD/MM/YYYY\n\
         row 4: phoneNumber: E.164 format is required, for example +61491570006\n"
    );
    let more = ["--date-format", "D/M/YYYY", "--australian-phones", "--report", "report.csv"];
    let (said, _) = import.fail("old.csv", &with(&maps, &more));
    assert_eq!(
        said,
        "3 rows: 2 created, 0 created before, 1 refused\n\
         columns left out: \"Notes\"\n\
         changed as the options say:\n  \
         2 dateOfBirth: rewritten as YYYY-MM-DD (rows 2, 3)\n  \
         1 phoneNumber: rewritten as E.164 (row 2)\n"
    );
    assert_eq!(import.texts("phone_number"), ["+61491570006", "+61491570156"]);
    assert_eq!(import.texts("date_of_birth"), ["1985-12-10", "1986-12-09"]);
    let notes = import.messages();
    let note = notes.iter().find(|(row, ..)| row == "2").unwrap();
    assert_eq!(note.2, "phoneNumber: rewritten as E.164; dateOfBirth: rewritten as YYYY-MM-DD");
}

#[test]
fn a_row_whose_quotes_are_out_of_place_is_refused_and_its_neighbours_are_not() {
    let import = Import::start();
    let rest = "+61491570006,1985-12-10,,";
    import.write(
        "patients.csv",
        format!(
            "{HEADER}\n\n\n\
             Jo,\"O\"Neil\"\",{rest}\n\
             Ada,Lovelace,{rest}\n\n\
             \"Big999,\"Row, 999\",{rest}\n\
             \"Ann\"Maree,Hopper,{rest}\n\
             Ann \"Annie\",Hopper,{rest}\n\
             \"Zoë \"\"Z\"\"\",\"O'Neill\",{rest}\n\
             Alan\n\
             Alan,\"Turing,{rest}\nAlan,\"Turing\",{rest}\n\
             Grace,\"Hopper,{rest}\nGrace,Hopper,{rest}\n"
        ),
    );
    let refused = "refused, by reason:\n  \
                   2 cell 1 continues after its closing quote: a quote within a cell must be doubled (rows 7, 8)\n\
                   row 4: cell 2 continues after its closing quote: a quote within a cell must be doubled\n\
                   row 7: cell 1 continues after its closing quote: a quote within a cell must be doubled\n\
                   row 8: cell 1 continues after its closing quote: a quote within a cell must be doubled\n\
                   row 9: cell 1 has a quote in it, so it must be quoted as a whole and the quote doubled\n\
                   row 11: has 1 cell, and the header has 6\n\
                   row 12: cell 2 continues after its closing quote: a quote within a cell must be doubled \
                   (lines 12 to 13 of the file were read as this row)\n\
                   row 13: a quote is never closed: it opens cell 2 on line 14, and the file ends within it\n";
    let (said, errors) = import.fail("patients.csv", &["--check"]);
    assert_eq!((said.as_str(), errors.as_str()), ("9 rows: 2 valid, 7 refused; nothing was sent\n", refused));
    let (said, errors) = import.fail("patients.csv", &[]);
    assert_eq!((said.as_str(), errors.as_str()), ("9 rows: 2 created, 0 created before, 7 refused\n", refused));
    assert_eq!(import.texts("first_name"), ["Ada", "Zoë \"Z\""]);
    assert_eq!(import.texts("last_name"), ["Lovelace", "O'Neill"]);
}

#[test]
fn a_file_of_excel_is_read_and_an_old_encoding_is_named() {
    let import = Import::start();
    let rest = "+61491570006,1985-12-10,,";
    let mut text = format!("sep=,\r\n{HEADER}\r\nAda,Lovelace,{rest}\r\nJos").into_bytes();
    text.extend(b"\xe9");
    text.extend(format!(",Garcia,{rest}\r\n").into_bytes());
    import.write("patients.csv", text);
    let (said, errors) = import.fail("patients.csv", &[]);
    assert_eq!(said, "2 rows: 1 created, 0 created before, 1 refused\n");
    assert_eq!(errors, "row 3: firstName is not UTF-8: save the file as UTF-8\n");
    assert_eq!(import.texts("first_name"), ["Ada"]);
}

#[test]
fn keys_are_made_with_a_secret_that_stays_beside_file_and_report() {
    let import = Import::start();
    import.write("patients.csv", many(20));
    import.run("patients.csv", &["--check"]);
    assert!(!import.path("intake-import.secret").exists(), "a check needs none");
    let counted = |more: &[&str], created: u32| {
        let said = import.run("patients.csv", more);
        assert_eq!(said, format!("20 rows: {created} created, {} created before, 0 refused\n", 20 - created));
    };
    // Whichever way it is run first or later, and with whichever key of the organisation.
    counted(&[], 20);
    counted(&["--report", "report.csv"], 0);
    import.write_key(&import.clinic.key().1);
    counted(&[], 0);
    fs::remove_file(import.path("report.csv")).unwrap();
    counted(&["--report", "report.csv"], 0);
    for name in ["intake-import.secret", "report.csv", "report.csv.secret"] {
        let mode = fs::metadata(import.path(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    // Lost beside the file, or the file moved: the report's copy is taken.
    fs::remove_file(import.path("intake-import.secret")).unwrap();
    counted(&["--report", "report.csv"], 0);
    counted(&[], 0);
    // Killed when the file was made, and nothing was in it yet.
    import.write("report.csv.secret", "");
    fs::remove_file(import.path("report.csv")).unwrap();
    counted(&["--report", "report.csv"], 0);
    // Equal rows of another folder have other keys: nobody can compute them.
    let keys = || import.database.texts("SELECT idempotency_key FROM patients ORDER BY 1");
    let before = keys();
    fs::create_dir(import.path("other")).unwrap();
    import.write("other/patients.csv", many(20));
    assert_eq!(import.run("other/patients.csv", &[]), "20 rows: 20 created, 0 created before, 0 refused\n");
    let after = keys();
    assert_eq!((after.len(), after.iter().filter(|key| before.contains(key)).count()), (40, 20));

    let refusal = |file: &str| {
        let (said, errors) = import.fail(file, &["--report", "report.csv"]);
        assert_eq!(said, "");
        errors
    };
    let errors = refusal("other/patients.csv");
    assert!(errors.contains("created with another secret than that in"), "{errors}");
    fs::remove_file(import.path("report.csv.secret")).unwrap();
    let errors = refusal("patients.csv");
    assert!(errors.contains("created is lost: report.csv.secret: bring it back"), "{errors}");
    let secret = import.path("other/intake-import.secret");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o644)).unwrap();
    let (_, errors) = import.fail("other/patients.csv", &[]);
    assert!(errors.contains("intake-import.secret: other accounts may read it: chmod 600"), "{errors}");
    fs::remove_file(&secret).unwrap();
    fs::create_dir(&secret).unwrap();
    let (_, errors) = import.fail("other/patients.csv", &[]);
    assert!(errors.contains("the import's secret") && errors.contains("Is a directory"), "{errors}");
    assert_eq!(import.patients(), 40);
}

#[test]
fn rows_that_a_restored_register_lost_are_sent_again() {
    let import = Import::start();
    import.write("patients.csv", many(900));
    let report = ["--report", "report.csv"];
    import.run("patients.csv", &report);
    // Whatever of the last commits is lost: the last one, half, or all.
    let last = "created_in = (SELECT max(created_in) FROM patients)";
    let half = "created_in > (SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY created_in) FROM patients)";
    let mut is_noticed = true;
    for lost in [last, half, "true"] {
        import.database.connect().batch_execute(&format!("DELETE FROM patients WHERE {lost}")).unwrap();
        let left = import.patients();
        assert!(left < 900);
        let output = import.command("patients.csv", &report).output().unwrap();
        let said = format!("900 rows: {} created, {left} created before, 0 refused\n", 900 - left);
        let errors = "the register has lost rows that the report lists as created, as it does when it is restored from a backup: \
                    all of them are sent again\n";
        assert_eq!(import.facts(&output), said);
        let expected = if is_noticed || left == 0 { errors } else { "" };
        assert_eq!(complaint(&output), expected);
        // A single row that is lost was created to find this out, ahead of rows that the report lists before it. So the
        // next run cannot learn from it what else is lost, and sends everything again without a word.
        is_noticed = 900 - left > 1;
        assert_eq!(import.patients(), 900);
        let mut reported: Vec<_> = import.report().into_iter().map(|row| row[2].clone()).collect();
        reported.sort();
        assert_eq!(reported, import.texts("id"), "the report lists what is there");
    }
    // Where nothing is lost, a few rows show it.
    let answers = || {
        let metrics = import.service.probe("/metrics").text();
        let line = metrics.lines().find(|line| line.starts_with("intake_answers_total{status=\"201\"}"));
        line.unwrap().rsplit(' ').next().unwrap().parse::<u32>().unwrap()
    };
    let before = answers();
    assert_eq!(import.run("patients.csv", &report), "900 rows: 0 created, 900 created before, 0 refused\n");
    let sent = answers() - before;
    assert!((1..=900).contains(&sent), "{sent}");
    let before = answers();
    import.run("patients.csv", &report);
    assert!(answers() - before <= 257, "{}", answers() - before);
}

#[test]
fn json_lines_move_in_too_and_what_is_no_field_is_refused() {
    let import = Import::start();
    let mut text = String::from(
        "{\"id\":\"0\",\"createdAt\":\"x\",\"firstName\":\"Ada\",\"lastName\":\"Lovelace\",\"phoneNumber\":\"+61491570006\",\"dateOfBirth\":\"1985-12-10\",\"suburb\":\"\"}\n\
         \n\
         {\"id\":\"1\",\"erasedAt\":\"2026-01-01T00:00:00.000Z\"}\n\
         {\"firstName\":\"Ada\",\"emial\":\"ada@example.com\"}\n\
         {\"firstName\":1}\n",
    );
    text.push_str(&format!("{{\"firstName\":\"{}\"}}\n{{\"firstName\":", "x".repeat(1 << 20)));
    import.write("patients.jsonl", text);
    let (said, errors) = import.fail("patients.jsonl", &[]);
    assert_eq!(said, "5 rows: 1 created, 0 created before, 4 refused\n");
    assert_eq!(
        errors,
        "row 4: \"emial\" is not a field of a patient: did you mean email?\n\
         row 5: firstName: must be a string\n\
         row 6: the line is longer than 1 MiB\n\
         row 7: is not valid JSON: error at character 13\n"
    );
    assert_eq!(import.texts("suburb"), [""], "an empty text is a text");
}

#[test]
fn killed_at_any_moment_and_started_again_every_row_is_there_once() {
    let import = Import::start();
    let rows = 3000;
    import.write("patients.csv", many(rows));
    let mut kills = 0;
    for goal in [100, 900, 1700] {
        let mut command = import.command("patients.csv", &["--report", "report.csv"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        wait_for("some rows", || import.patients() > goal || child.try_wait().unwrap().is_some());
        kills += i32::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(kills > 0, "it was killed on its way at least once");
    let said = import.run("patients.csv", &["--report", "report.csv"]);
    assert!(said.starts_with("3000 rows: "), "{said}");
    assert_eq!(import.patients(), 3000);
    assert_eq!(import.texts("last_name").len(), 3000);
    let mut lines: Vec<u32> = import.report().iter().map(|row| row[0].parse().unwrap()).collect();
    lines.sort_unstable();
    assert_eq!(lines, (2..=3001).collect::<Vec<_>>(), "the report has each row once");
}

#[test]
fn the_rate_of_a_key_is_kept_to() {
    let import = Import::start_with("100/100");
    import.write("patients.csv", many(250));
    let began = std::time::Instant::now();
    // The second run finds the burst used up, and has more senders than requests are left.
    for (created, more) in [(250, &["--in-flight", "16"][..]), (500, &["--in-flight", "64", "--run", "second"])] {
        let output = import.command("patients.csv", more).output().unwrap();
        let said = "250 rows: 250 created, 0 created before, 0 refused\n";
        assert_eq!((import.facts(&output).as_str(), complaint(&output).as_str()), (said, ""));
        assert_eq!(import.patients(), created);
    }
    // The burst at once, the rest at the rate.
    assert!(began.elapsed().as_millis() >= 3_900, "{:?}", began.elapsed());
    let metrics = import.service.probe("/metrics").text();
    assert!(metrics.contains("intake_answers_total{status=\"201\"} 500\n"), "{metrics}");
    assert!(!metrics.contains("intake_answers_total{status=\"429\"}"), "a run alone never meets the limit: {metrics}");
}

#[test]
fn connections_are_kept_while_requests_wait_for_the_rate() {
    // Beyond its rate, all but one are idle.
    let import = Import::start_with("200/50");
    import.write("patients.csv", many(400));
    let (port, opened) = count_connections(import.service.https.unwrap());
    let mut command = Command::new(env!("CARGO_BIN_EXE_intake-import"));
    command.current_dir(&import.folder).args(["patients.csv", "--key-file", "key", "--cacert"]);
    command.arg(import.service.data_dir().join("tls/ca.pem")).arg("--url").arg(format!("https://localhost:{port}"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", complaint(&output));
    assert_eq!(import.patients(), 400);
    let opened = opened.load(Ordering::SeqCst);
    assert!((1..=17).contains(&opened), "16 and one for the greeting: {opened}");
}

/// Hands connections on to the service, and counts them.
fn count_connections(service: SocketAddr) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, opened) = (listener.local_addr().unwrap().port(), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&opened);
    thread::spawn(move || {
        for client in listener.incoming() {
            count.fetch_add(1, Ordering::SeqCst);
            let (client, service) = (client.unwrap(), TcpStream::connect(service).unwrap());
            for (mut from, mut to) in [(client.try_clone().unwrap(), service.try_clone().unwrap()), (service, client)] {
                thread::spawn(move || {
                    let _ = io::copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Write);
                });
            }
        }
    });
    (port, opened)
}

#[test]
fn a_service_that_goes_away_is_waited_for() {
    let mut import = Import::start();
    import.write("patients.csv", many(2000));
    let mut child = import.command("patients.csv", &[]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for("some rows", || import.patients() > 50);
    let address = import.service.https.unwrap().to_string();
    let folder = import.service.data_dir().to_owned();
    import.service.stop();
    thread::sleep(std::time::Duration::from_secs(1));
    let builder = ServiceBuilder::in_folder(service_program().to_str().unwrap(), &folder).database(&import.database);
    let _again = builder.setting("INTAKE_HTTPS_ADDR", address).setting("INTAKE_RATE_LIMIT", "off").start();
    assert!(child.wait().unwrap().success());
    assert_eq!(import.patients(), 2000);
}

#[test]
fn a_fault_of_every_row_ends_the_run_at_once() {
    let import = Import::start();
    import.write("patients.csv", many(100));
    let (id, key) = import.clinic.key();
    import.clinic.revoke(id);
    import.write_key(&key);
    let (_, errors) = import.fail("patients.csv", &[]);
    assert_eq!(errors, "intake-import: the service refuses the key: The API key was revoked\n");
    import.write("key", "nonsense key\n");
    let (_, errors) = import.fail("patients.csv", &[]);
    assert_eq!(errors, "intake-import: --key-file key: the file must hold an API key and nothing else\n");

    let mut command = import.command("patients.csv", &[]);
    import.write_key(&import.clinic.key().1);
    let output = command.args(["--url", "http://localhost"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "an option given twice is wrong usage: {}", complaint(&output));

    let url = import.service.https.unwrap();
    let mut plain = Command::new(env!("CARGO_BIN_EXE_intake-import"));
    plain.current_dir(&import.folder).args(["patients.csv", "--key-file", "key", "--url", &format!("https://{url}")]);
    plain.args(["--report", "report.csv"]);
    let output = plain.output().unwrap();
    let errors = complaint(&output);
    assert!(
        errors.contains("--cacert") && errors.starts_with(&format!("intake-import: {url} cannot be reached: ")),
        "{errors}"
    );

    import.write("wrong.csv", "firstName,lastName,phone,dateOfBirth\n");
    let (_, errors) = import.fail("wrong.csv", &[]);
    assert!(
        errors.starts_with(
            "intake-import: wrong.csv: the header does not fit:\n  the column \"phone\" is not a field of a patient"
        ),
        "{errors}"
    );
    for (name, text, reason) in [
        ("utf16.csv", &b"\xff\xfef\0i\0"[..], "it is UTF-16: save it as UTF-8"),
        ("empty.csv", b"", "the file is empty"),
        ("blank.csv", b"\xef\xbb\xbf\n\r\n", "the file is empty"),
        (
            "semicolons.csv",
            b"firstName;lastName",
            "the header has one cell: if semicolons stand between the cells, say so with --delimiter ';'",
        ),
        (
            "tabs.csv",
            b"firstName\tlastName\n",
            "the header has one cell: if tabs stand between the cells, say so with --delimiter '\\t'",
        ),
        (
            "quoted.csv",
            b"\"firstName\";\"lastName\"\n",
            "the header cannot be read: if semicolons stand between the cells, say so with --delimiter ';'",
        ),
        (
            "header.csv",
            b"firstName,\"last\"Name,\n",
            "the header cannot be read: cell 2 continues after its closing quote: a quote within a cell must be doubled",
        ),
        (
            "needed.csv",
            b"Given name,Surname,Born,Ring me on,Your mail\n",
            "the header does not fit:\n  the column \"Given name\" is not a field of a patient: did you mean firstName?\n  \
             the column \"Surname\" is not a field of a patient: did you mean lastName?\n  \
             the column \"Born\" is not a field of a patient: did you mean dateOfBirth?\n  \
             the column \"Ring me on\" is not a field of a patient\n  \
             the column \"Your mail\" is not a field of a patient\n  \
             no column holds firstName: name it with --map \"HEADER=firstName\"\n  \
             no column holds lastName: name it with --map \"HEADER=lastName\"\n  \
             no column holds phoneNumber: name it with --map \"HEADER=phoneNumber\"\n  \
             no column holds dateOfBirth: name it with --map \"HEADER=dateOfBirth\"\n  \
             to begin with: --map 'Given name=firstName' --map Surname=lastName --map Born=dateOfBirth \
             --map 'Your mail=email'\n  one of these may hold phoneNumber: \"Ring me on\"",
        ),
        (
            "title.csv",
            b"Bayside Physio: bookings,,\n",
            "the header does not fit:\n  the column \"Bayside Physio: bookings\" is not a field of a patient\n  \
             the column \"\" is not a field of a patient\n  the column \"\" is not a field of a patient\n  \
             no column holds firstName: name it with --map \"HEADER=firstName\"\n  \
             no column holds lastName: name it with --map \"HEADER=lastName\"\n  \
             no column holds phoneNumber: name it with --map \"HEADER=phoneNumber\"\n  \
             no column holds dateOfBirth: name it with --map \"HEADER=dateOfBirth\"\n  \
             if the header is further down, name its row with --header-row",
        ),
        (
            "headers.csv",
            b"lastName,phoneNumber,dateOfBirth,given,lastName",
            "the header does not fit:\n  the column \"given\" is not a field of a patient: \
             did you mean firstName?\n  \
             no column holds firstName: name it with --map \"HEADER=firstName\"\n  \
             two columns hold lastName: leave one out with --map\n  to begin with: --map given=firstName",
        ),
        ("utf16le.csv", b"f\0i\0r\0", "it is UTF-16: save it as UTF-8"),
        ("utf16be.csv", b"\0f\0i\0r", "it is UTF-16: save it as UTF-8"),
        (
            "excel.csv",
            b"sep=;\r\nfirstName;lastName\r\n",
            "its first line names another separator: if semicolons stand between the cells, say so with --delimiter ';'",
        ),
        ("patients.txt", b"PK", "its name must end in .csv, .xlsx, .ods or .jsonl"),
    ] {
        import.write(name, text);
        let (_, errors) = import.fail(name, &[]);
        assert_eq!(errors, format!("intake-import: {name}: {reason}\n"));
    }
    let mut unending = many(1);
    unending.push('"');
    unending.push_str(&many(40_000));
    import.write("quote.csv", unending);
    let (said, errors) = import.fail("quote.csv", &["--check"]);
    assert_eq!(said, "2 rows: 1 valid, 1 refused; nothing was sent\n");
    assert_eq!(errors, "row 3: a quote is never closed: it opens cell 1 on line 3, and the file ends within it\n");
    let (_, errors) = import.fail("patients.csv", &["--report", "quote.csv"]);
    assert_eq!(errors, "intake-import: --report quote.csv: it is another kind of file, and is not written over\n");
    assert_eq!(import.patients(), 0);

    // The variable that other programs heed too.
    let mut names: Vec<_> = fs::read_dir(&import.folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.retain(|name| name.to_string_lossy().contains("report") || name.to_string_lossy().contains("secret"));
    assert!(names.is_empty(), "a run that never began leaves nothing behind: {names:?}");
    plain.env("SSL_CERT_FILE", import.service.data_dir().join("tls/ca.pem"));
    assert!(plain.output().unwrap().status.success());
    assert_eq!(import.patients(), 100);
}

#[test]
fn a_report_of_another_organisation_is_noticed_before_anything_is_created() {
    let import = Import::start();
    // The row before those that the report knows would be created first.
    let refused = format!("{HEADER}\nAda,,+61491570006,1985-12-10,,\n");
    let rows = many(20).replace(&format!("{HEADER}\n"), "");
    import.write("patients.csv", format!("{refused}{rows}"));
    let (said, _) = import.fail("patients.csv", &["--report", "report.csv"]);
    assert_eq!(said, "21 rows: 20 created, 0 created before, 1 refused\n");
    import.write("patients.csv", format!("{refused}{rows}").replace("Ada,,", "Ada,Lovelace,"));
    let report = fs::read_to_string(import.path("report.csv")).unwrap();

    let (first, other) = (fs::read_to_string(import.path("key")).unwrap(), import.other_clinic());
    let (said, errors) = import.fail("patients.csv", &["--report", "report.csv"]);
    let end = |key: &str| key.trim()[key.trim().len() - 4..].to_owned();
    assert_eq!(
        (said.as_str(), errors),
        (
            "",
            format!(
                "intake-import: --report report.csv: it was written with the API key that ends in {}, and this one ends in {}: \
                 if both are of the same organisation, say so with --key-replaced, else choose another --report\n",
                end(&first),
                end(&fs::read_to_string(import.path("key")).unwrap())
            )
        )
    );
    assert_eq!(import.patients(), 20, "nothing was sent");
    assert_eq!(fs::read_to_string(import.path("report.csv")).unwrap(), report, "and nothing is lost");

    // Who says so in error hears of the one patient that this has cost, and how to be rid of it.
    let (_, errors) = import.fail("patients.csv", &["--report", "report.csv", "--key-replaced"]);
    let organisation = other.organisation.to_string();
    let id = import.database.texts(&format!("SELECT id::text FROM patients WHERE organisation_id = '{organisation}'"));
    let command = format!("intake patient erase --organisation {organisation} --patient {}", id[0]);
    let expected = |found: &str| {
        format!(
            "intake-import: --report report.csv: it was written for another organisation: choose another --report; {found} in \
             organisation {organisation}: if the patient does not belong there, run {command}\n"
        )
    };
    assert_eq!(errors, expected("to find this out, row 3 was created"));
    assert_eq!((import.patients(), id.len()), (21, 1));
    let (_, errors) = import.fail("patients.csv", &["--report", "report.csv", "--key-replaced"]);
    assert_eq!(errors, expected("an earlier run has created row 3"));
    import.as_owner(&command.split(' ').skip(1).collect::<Vec<_>>());
    assert_eq!(import.patients(), 20);

    // A key of the same organisation goes on with the report, and is known to it from then on.
    import.write_key(&import.clinic.key().1);
    let said = import.run("patients.csv", &["--report", "report.csv", "--key-replaced"]);
    assert_eq!(said, "21 rows: 1 created, 20 created before, 0 refused\n");
    let said = import.run("patients.csv", &["--report", "report.csv"]);
    assert_eq!(said, "21 rows: 0 created, 21 created before, 0 refused\n");
    assert_eq!(import.patients(), 21);
}

#[test]
fn two_imports_do_not_write_one_report() {
    let import = Import::start_with("20/20");
    import.write("patients.csv", many(200));
    let mut first = import.command("patients.csv", &["--report", "report.csv"]).stdout(Stdio::null()).spawn().unwrap();
    wait_for("some rows", || import.patients() > 2);
    for more in [&["--check"][..], &[]] {
        let (said, errors) = import.fail("patients.csv", &[&["--report", "report.csv"], more].concat());
        let expected = "intake-import: --report report.csv: another import is writing it\n";
        assert_eq!((said.as_str(), errors.as_str()), ("", expected));
    }
    assert!(first.try_wait().unwrap().is_none(), "the first one goes on");
    first.kill().unwrap();
    first.wait().unwrap();
    // What was killed holds nothing back.
    import.run("patients.csv", &["--report", "report.csv", "--check"]);
    let (_, errors) = import.fail("patients.csv", &["--report", "nowhere/report.csv"]);
    assert_eq!(errors, "intake-import: --report nowhere/report.csv: No such file or directory (os error 2)\n");
}

#[test]
fn a_run_that_is_cut_off_says_what_it_has_created() {
    let import = Import::start_with("50/50");
    import.write("patients.csv", many(1000));
    let (id, key) = import.clinic.key();
    import.write_key(&key);
    let mut child = import.command("patients.csv", &[]);
    let child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for("some rows", || import.patients() > 20);
    import.clinic.revoke(id);
    let output = child.wait_with_output().unwrap();
    let created = import.patients();
    assert_eq!(
        (import.facts(&output), complaint(&output).as_str()),
        (
            format!("stopped after {created} rows: {created} created, 0 created before, 0 refused\n"),
            "intake-import: the service refuses the key: The API key was revoked\n"
        )
    );
}

#[test]
fn a_full_disk_ends_the_run_with_its_count_and_loses_nothing() {
    let import = Import::start();
    import.write("patients.csv", many(400));
    let command = import.command("patients.csv", &["--report", "report.csv"]);
    // No file may be longer than 8 KiB, which fails like a full disk.
    let mut limited = Command::new("sh");
    limited.current_dir(&import.folder).args(["-c", "trap '' XFSZ; ulimit -f 16; exec \"$@\"", "sh"]);
    limited.arg(command.get_program()).args(command.get_args());
    let output = limited.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let created = import.patients();
    assert!((1..400).contains(&created), "{created}");
    assert_eq!(
        (import.facts(&output), complaint(&output).as_str()),
        (
            format!("stopped after {created} rows: {created} created, 0 created before, 0 refused\n"),
            "intake-import: --report report.csv: File too large (os error 27)\n"
        )
    );
    // The count cannot be printed there either.
    let said = complaint(&limited.stdout(full_disk()).output().unwrap());
    assert!(
        said.starts_with("intake-import: stopped after ") && said.contains(" created before, 0 refused: "),
        "{said}"
    );
    assert!(said.ends_with(": --report report.csv: File too large (os error 27)\n"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    let created = import.patients();
    let said = import.run("patients.csv", &["--report", "report.csv"]);
    assert_eq!(said, format!("400 rows: {} created, {created} created before, 0 refused\n", 400 - created));
    assert_eq!((import.patients(), import.report().len()), (400, 400));
}

/// A million rows, which take longer than a test should, need less than 64 MiB: of each row and of its
/// phone number, eight bytes are remembered.
#[test]
fn many_rows_need_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("patients.csv"), many(200_000)).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_intake-import"));
    let command = command.current_dir(&folder).args(["patients.csv", "--check"]).stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    let status_file = format!("/proc/{}/status", child.id());
    let mut most = 0;
    let status = loop {
        let status = fs::read_to_string(&status_file).unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
        most = peak.map_or(most, |peak| peak.parse().unwrap());
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None => thread::sleep(std::time::Duration::from_millis(20)),
        }
    };
    assert!(status.success());
    assert!((1_000..24 * 1024).contains(&most), "{most} kB");
}

#[test]
fn an_export_can_be_imported_into_another_organisation_unchanged() {
    let import = Import::start();
    let key = import.clinic.key().1;
    for last_name in ["Lovelace", "'t Hooft", "=1+1", "O'Neill, \"Z\"", "-"] {
        let mut patient = intake_test_support::patient();
        patient["lastName"] = last_name.into();
        patient["suburb"] = "".into();
        assert_eq!(import.service.create(&key, &patient).status, 201);
    }
    let values = |import: &Import| {
        let columns = "concat_ws('|', first_name, last_name, phone_number, date_of_birth, email, suburb, state)";
        import.database.texts(&format!("SELECT {columns} FROM patients ORDER BY 1"))
    };
    let before = values(&import);
    for (format, file) in [("csv", "patients.csv"), ("jsonl", "patients.jsonl")] {
        let (output, organisation) = (import.path(file), import.clinic.organisation.to_string());
        import.as_owner(&[
            "export",
            "--organisation",
            &organisation,
            "--format",
            format,
            "--output",
            output.to_str().unwrap(),
        ]);
    }
    import.other_clinic();
    for (file, outcome) in [("patients.csv", "5 created, 0"), ("patients.jsonl", "0 created, 5")] {
        let said = import.run(file, &[]);
        assert!(said.starts_with(&format!("5 rows: {outcome} created before, 0 refused\n")), "the same rows: {said}");
        assert!(
            import.doubts().contains("\n  1 with a placeholder as a name, such as N/A, - or Test. Ask for the name")
        );
    }
    let mut twice = [before.clone(), before].concat();
    twice.sort();
    let mut after = values(&import);
    after.sort();
    assert_eq!(after, twice);
}
