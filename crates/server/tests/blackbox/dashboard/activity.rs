//! The audit log on its page and as a file: searched by kind, person and day, read in both directions, harmless in a
//! spreadsheet, and nobody else's.

use diesel::connection::SimpleConnection;
use intake_test_support::{Browser, wait_for};

use crate::commands::organisations::run;
use crate::fixtures::{Member, TestApp, accept, between, choose_action, create_key, in_each_browser, service};

/// Returns what a page shows as done, entry by entry.
fn shown(page: &str) -> Vec<String> {
    let subjects = page.split("<strong>").skip(1).map(|rest| rest.split("</strong>").next().unwrap().to_owned());
    subjects.collect()
}

fn see(member: &Member, query: &str) -> Vec<String> {
    let page = member.get(&format!("/settings/activity?{query}"));
    assert_eq!(page.status, 200, "{query}");
    let page = page.text();
    if page.contains("No activity found.") { vec![] } else { shown(&page) }
}

/// Puts entries into the log of the test's organisation, one for each minute before a day's end.
fn add(app: &TestApp, day: &str, action: &str, actor: &str, count: u32) {
    let id = app.clinic.organisation;
    let insert = format!(
        "INSERT INTO audit_entries (organisation_id, id, recorded_in, at, action, actor, subject)
         SELECT '{id}', gen_random_uuid(), 0, timestamptz '{day} 23:59:30+00' - n * interval '1 minute', '{action}',
             nullif('{actor}', ''), '{action} ' || n FROM generate_series(0, {count} - 1) AS n"
    );
    app.database.connect().batch_execute(&insert).unwrap();
}

#[test]
fn the_log_is_searched_by_kind_person_and_day() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    add(&app, "2025-03-01", "key_created", "Grace 100%_sure", 2);
    add(&app, "2025-03-02", "signed_in", "Mary", 1);
    add(&app, "2025-03-02", "key_lent", "Mary", 1);
    assert_eq!(see(&ada, "kind=keys"), ["key_created 0", "key_created 1"]);
    assert_eq!(see(&ada, "kind=sign-ins&person=mary"), ["signed_in 0"]);
    assert_eq!(see(&ada, "person=MARY").len(), 2, "what a newer program wrote is found by everything but its kind");
    assert_eq!(see(&ada, "person=ada%40clinic").len(), 2, "the subject: invited and joined");
    for (literal, found) in [("100%25_sure", 2), ("%25", 2), ("_", 4), ("100%25sure", 0), ("%5C", 0)] {
        assert_eq!(see(&ada, &format!("person={literal}")).len(), found, "{literal}");
    }
    assert_eq!(see(&ada, "from=2025-03-01&until=2025-03-01").len(), 2);
    assert_eq!(see(&ada, "from=2025-03-02&until=2025-03-02").len(), 2);
    assert_eq!(see(&ada, "until=2025-03-01&kind=keys&person=grace").len(), 2);
    // In Sydney, eleven hours ahead, 23:59 UTC is the next day.
    let in_sydney = "UPDATE organisations SET time_zone = 'Australia/Sydney'";
    app.database.connect().batch_execute(in_sydney).unwrap();
    assert_eq!(see(&ada, "from=2025-03-01&until=2025-03-01"), [""; 0]);
    assert_eq!(see(&ada, "from=2025-03-02&until=2025-03-02").len(), 2);
    let wrong = ada.get("/settings/activity?from=1.3.2025");
    assert!(wrong.status == 422 && wrong.text().contains("Enter a date, for example 31/12/2026."));
    assert!(wrong.text().contains("value=\"1.3.2025\""));
}

#[test]
fn the_log_says_with_which_role_a_person_was_invited_and_joined() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    drop(Member::join(app.service.client(), &ada.invite_as("rajiv@vendor.example", "auditor"), "Rajiv"));
    let log = ada.get("/settings/activity").text();
    for expected in [
        "invited <strong>rajiv@vendor.example</strong> as an auditor",
        "joined as <strong>rajiv@vendor.example</strong>, an auditor",
        "invited <strong>ada@clinic.example</strong> as an administrator",
        "joined as <strong>ada@clinic.example</strong>, an administrator",
    ] {
        assert!(log.contains(expected), "{expected}: {log}");
    }
    let file = ada.get("/settings/activity.csv").text();
    assert!(file.contains("\"invited as an auditor\",\"rajiv@vendor.example\""), "{file}");
    assert!(file.contains("\"joined as an auditor with\",\"rajiv@vendor.example\""), "{file}");
    let recorded = run(&app, &["audit", "--json"]);
    assert_eq!(String::from_utf8_lossy(&recorded.stdout).matches("\"role\":\"auditor\"").count(), 2, "{recorded:?}");
}

#[test]
fn the_log_is_read_in_both_directions_without_a_gap() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    add(&app, "2025-03-01", "key_created", "Grace", 120);
    let link = |page: &str, name: &str| {
        page.split("<a href=\"").skip(1).find_map(|rest| {
            let (address, rest) = rest.split_once('"')?;
            let text = rest.split_once('>')?.1.split("</a>").next()?;
            (text == name).then(|| address.replace("&#38;", "&"))
        })
    };
    let open = |path: &str| ada.get(path).text();
    let first = open("/settings/activity?kind=keys&person=grace");
    assert_eq!((shown(&first).len(), link(&first, "Newer")), (50, None));
    let second = open(&link(&first, "Older").unwrap());
    let third = open(&link(&second, "Older").unwrap());
    let all: Vec<_> = [&first, &second, &third].into_iter().flat_map(|page| shown(page)).collect();
    assert_eq!(all, (0..120).map(|number| format!("key_created {number}")).collect::<Vec<_>>());
    assert_eq!(link(&third, "Older"), None);
    assert_eq!(shown(&open(&link(&third, "Newer").unwrap())), shown(&second));
    let back = ada.get(&link(&second, "Newer").unwrap());
    assert_eq!((back.status, back.header("location")), (303, Some("/settings/activity?kind=keys&person=grace")));
    for nowhere in ["before=018f0000-0000-7000-8000-000000000000", "before=x", "after=x"] {
        let page = ada.get(&format!("/settings/activity?{nowhere}"));
        assert!(page.status == 404 || page.text().contains("No activity found."), "{nowhere}");
    }
}

#[test]
fn the_file_holds_all_that_fits_and_nothing_that_a_spreadsheet_would_run() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let eve = app.member_of(&app.other_clinic(), "eve@elsewhere.example");
    add(&app, "2025-03-01", "key_created", "=HYPERLINK(\"https://evil.example\")", 2_500);
    add(&app, "2025-03-02", "key_revoked", "Zoë, \"Z\"\n2", 1);
    let file = ada.get("/settings/activity.csv?kind=keys");
    assert_eq!(file.header("content-type"), Some("text/csv; charset=utf-8; header=present"));
    let disposition = file.header("content-disposition").unwrap();
    assert!(
        disposition.starts_with("attachment; filename=\"activity-test-clinic-20") && disposition.ends_with(".csv\"")
    );
    assert_eq!(file.header("cache-control"), Some("no-store"));
    let text = file.text();
    let text = text.strip_prefix('\u{FEFF}').unwrap();
    assert!(
        text.starts_with(
            "\"Time (UTC)\",\"Who\",\"Email\",\"What\",\"To what\",\"IP address\",\"Reason\",\"Key ID\",\"Member ID\",\"Entry ID\"\r\n"
        ),
        "{}",
        &text[..200]
    );
    assert!(text.contains(
        "\"2025-03-02T23:59:30.000Z\",\"Zoë, \"\"Z\"\"\n2\",\"\",\"revoked the key\",\"key_revoked 0\",\"\",\"\",\"\",\"\",\""
    ));
    assert_eq!(text.matches("\"'=HYPERLINK(").count(), 2_500);
    assert_eq!(text.matches("\r\n").count(), 1 + 2_501);
    assert!(!text.contains("\"=") && !text.contains("member_joined"));
    assert!(text.contains("\"key_created 2499\"") && !text.contains("This file stops at"));
    let foreign = eve.get("/settings/activity.csv").text();
    assert!(foreign.contains("eve@elsewhere.example") && !foreign.contains("HYPERLINK"));
    let empty = ada.get("/settings/activity.csv?person=nobody").text();
    assert_eq!(empty.lines().count(), 1, "{empty}");
    assert_eq!(ada.get("/settings/activity.csv?from=x").status, 404);

    add(&app, "2025-02-01", "key_created", "Grace", 7_500);
    let full = ada.get("/settings/activity.csv?kind=keys").text();
    assert_eq!(full.matches("\r\n").count(), 1 + 10_000 + 1);
    assert!(full.contains("\"This file stops at 10,000 entries. Choose fewer days to get the older ones.\""));
    assert!(ada.get("/settings/activity").text().contains("(newest 10,000)"));
    let fewer = ada.get("/settings/activity.csv?kind=keys&until=2025-02-15").text();
    assert_eq!(fewer.matches("\r\n").count(), 1 + 7_500);
}

#[test]
fn a_browser_searches_the_log_and_keeps_what_it_downloads() {
    in_each_browser(|app, browser| {
        let folder = tempfile::tempdir().unwrap();
        browser.download_into(folder.path());
        add(app, "2025-03-01", "key_created", "Grace", 60);
        browser.press("Activity");
        browser.fill("Person", "grace");
        browser.press("Apply");
        browser.wait_for("Show everything");
        assert!(!browser.text().contains("joined as"));
        assert_eq!(browser.value("Person"), "grace");
        browser.press("Older");
        browser.wait_for("key_created 59");
        browser.press("Newer");
        browser.wait_for("key_created 0");
        browser.press("Download CSV");
        let file = || {
            let mut files = folder.path().read_dir().unwrap().map(|file| file.unwrap().path());
            files.find(|file| file.extension().is_some_and(|extension| extension == "csv"))
        };
        wait_for("the file", || file().is_some());
        wait_for("all of it", || std::fs::read_to_string(file().unwrap()).unwrap().lines().count() == 61);
        assert!(browser.text().contains("Show everything"), "the page is still there");
    });
}

#[test]
fn the_page_says_what_it_was_asked_for() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let page = ada.get("/settings/activity?kind=members&from=2025-03-01").text();
    assert!(page.contains("<option value=\"members\" selected>Members</option>"), "{page}");
    assert_eq!(between(&page, "name=\"from\" type=\"date\" value=\"", "\""), "2025-03-01");
}

#[test]
fn an_entry_names_the_member_by_id_and_address_not_by_name_alone() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let grace = app.member("grace@clinic.example");
    assert_eq!(grace.post("/settings/account/name", "name=Hopper").status, 303);
    let id = between(&grace.get("/settings/api-keys/new").text(), "name=\"id\" value=\"", "\"");
    assert_eq!(grace.post("/settings/api-keys", &format!("id={id}&name=Booking")).status, 200);
    assert_eq!(grace.post("/settings/account/name", "name=Murray").status, 303);
    // By the name of today, by the name of that time and by the address.
    for person in ["murray", "hopper", "grace%40clinic"] {
        assert!(see(&ada, &format!("person={person}&kind=keys")).contains(&"Booking".to_owned()), "{person}");
    }
    assert_eq!(see(&ada, "person=ada%40clinic&kind=keys"), [""; 0]);
    let page = ada.get("/settings/activity?kind=keys").text();
    assert!(page.contains(">Hopper <small>grace@clinic.example</small></td>"), "{page}");
    let file = ada.get("/settings/activity.csv?kind=keys").text();
    assert!(file.contains("\"Hopper\",\"grace@clinic.example\",\"created the key\",\"Booking\""), "{file}");
    let with_id = "audit_entries JOIN members ON members.id = actor_id AND members.email = actor_email
        WHERE action = 'key_created' AND actor = 'Hopper' AND members.name = 'Murray'";
    assert_eq!(app.database.count(with_id), 1);
}

#[test]
fn no_member_takes_the_name_of_another_or_of_the_logs_own_words() {
    let app = TestApp::start();
    app.member("ada@clinic.example");
    let grace = app.member("grace@clinic.example");
    for (name, why) in [
        ("ADA", "is another member&#39;s"),
        ("a-da+.", "is another member&#39;s"),
        ("An+Operator", "the audit log uses for others"),
        ("SOMEONE", "the audit log uses for others"),
    ] {
        let refused = grace.post("/settings/account/name", &format!("name={name}"));
        assert!(refused.status == 422 && refused.text().contains(why), "{name}: {}", refused.text());
        let joining = accept(&app.service.client(), &app.invite("eve@clinic.example"), name);
        assert!(joining.status == 422 && joining.text().contains(why), "{name}: {}", joining.text());
    }
    assert_eq!(app.database.count("audit_entries WHERE action = 'name_changed'"), 0);
    // One's own name, written in another way, and a name that is another organisation's.
    assert_eq!(grace.post("/settings/account/name", "name=GRACE").status, 303);
    app.member_of(&app.other_clinic(), "ada@elsewhere.example");
}

#[test]
fn one_of_several_members_who_take_a_name_at_once_gets_it() {
    let app = TestApp::start();
    let members: Vec<_> = (0..4).map(|number| app.member(&format!("m{number}@clinic.example"))).collect();
    let change = |member: &Member| member.post("/settings/account/name", "name=Admiral").status;
    let guests: Vec<_> = (0..4).map(|number| app.invite(&format!("g{number}@clinic.example"))).collect();
    let join = |invitation: &str| accept(&app.service.client(), invitation, "Admiral").status;
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let changes: Vec<_> = members.iter().map(|member| scope.spawn(move || change(member))).collect();
        let joins: Vec<_> = guests.iter().map(|guest| scope.spawn(|| join(guest))).collect();
        changes.into_iter().chain(joins).map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 303).count(), 1, "{statuses:?}");
    assert_eq!(app.database.count("members WHERE name = 'Admiral'"), 1);
}

#[test]
fn a_command_records_who_ran_it_and_why() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let id = app.clinic.organisation.to_string();
    let make = |name: &str, variables: &[(&str, &str)], arguments: &[&str]| {
        let all = [&["key", "create", "--organisation", &id, "--name", name], arguments].concat();
        let command = all.iter().fold(service(&app.database), |command, argument| command.argument(argument));
        let command = variables.iter().fold(command, |command, (name, value)| command.setting(name, *value));
        let output = command.run();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    make("one", &[("SUDO_USER", "jo"), ("USER", "root")], &[]);
    make("two", &[("SUDO_USER", ""), ("USER", "root")], &["--reason", "Ticket 12: =lost phone"]);
    make("three", &[("USER", "root")], &["--as", "Jo Byrne"]);
    make("four", &[("SUDO_USER", ""), ("USER", "")], &[]);
    let page = ada.get("/settings/activity?kind=keys").text();
    for (key, who) in [("one", " (jo)"), ("two", " (root)"), ("three", " (Jo Byrne)"), ("four", "")] {
        let row = format!(">An operator{who}</td><td data-label=\"What\">created the key <strong>{key}</strong>");
        assert!(page.contains(&row), "{key}: {page}");
    }
    assert!(page.contains(")</span> <small>Reason: Ticket 12: =lost phone</small>"), "{page}");
    let file = ada.get("/settings/activity.csv?person=root").text();
    assert!(
        file.contains("\"An operator (root)\",\"\",\"created the key\",\"two\",\"\",\"Ticket 12: =lost phone\",\""),
        "{file}"
    );
    assert_eq!(see(&ada, "person=byrne"), ["three"]);
}

#[test]
fn a_search_looks_at_ten_thousand_entries_and_goes_on_from_there() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let many = "INSERT INTO audit_entries (organisation_id, id, recorded_in, at, action, actor, subject)
        SELECT id, gen_random_uuid(), 0, now() - n * interval '1 minute', 'key_created', 'Grace',
            CASE WHEN n = 25000 THEN 'the oldest key' ELSE 'a key' END
        FROM organisations, generate_series(1, 25000) AS n";
    app.database.connect().batch_execute(many).unwrap();
    let mut path = "/settings/activity?person=oldest".to_owned();
    let mut pages = 0;
    let page = loop {
        let page = ada.get(&path).text();
        pages += 1;
        let Some((_, rest)) = page.split_once("Searched 10,000 entries. <a href=\"") else { break page };
        assert!(!page.contains("the oldest key"));
        path = rest.split('"').next().unwrap().replace("&#38;", "&");
    };
    assert!(pages == 3 && page.contains("the oldest key"), "{pages}: {page}");
    let newest = ada.get("/settings/activity?kind=keys").text();
    assert!(!newest.contains("Searched 10,000 entries") && newest.contains(">Older<"), "enough was found");
    let file = ada.get("/settings/activity.csv?person=oldest").text();
    assert!(file.contains("the oldest key") && file.lines().count() == 2, "a file is complete: {file}");
}

#[test]
fn any_search_of_a_hundred_thousand_entries_reads_few_of_them() {
    let mut app = TestApp::on_one_server(|builder| builder);
    let ada = app.member("ada@clinic.example");
    let (key, _) = app.clinic.key();
    let many = format!(
        "INSERT INTO audit_entries (organisation_id, id, recorded_in, at, action, actor, subject, key_id, key_hint)
        SELECT id, gen_random_uuid(), 0, timestamptz '2025-06-01' - n * interval '1 minute',
            CASE WHEN n % 3 = 0 THEN 'key_noted' ELSE 'signed_in' END, 'Grace', 'Front desk',
            CASE WHEN n % 1000 = 0 THEN uuid '{key}' END, CASE WHEN n % 1000 = 0 THEN 'aB3x' END
        FROM organisations, generate_series(1, 100000) AS n;
        ANALYZE audit_entries;"
    );
    app.database.connect().batch_execute(&many).unwrap();
    let of_key = format!("key={key}");
    let of_key_by_nobody = format!("key={key}&person=nobody");
    let filters = [
        "",
        "kind=keys",
        "kind=patients",
        "person=nobody",
        "person=grace",
        "person=nobody&kind=members",
        "from=2025-04-01&until=2025-04-02",
        "person=nobody&until=2025-04-02",
        &of_key,
        &of_key_by_nobody,
    ];
    for filter in filters {
        see(&ada, filter);
    }
    // A connection that ends has counted all that it read.
    assert!(app.service.stop().success());
    let read = || {
        let read = app.database.texts(
            "SELECT (sum(idx_tup_read) + max(seq_tup_read))::text FROM pg_stat_user_indexes
             JOIN pg_stat_user_tables USING (relid) WHERE pg_stat_user_tables.relname = 'audit_entries'",
        );
        read[0].parse::<i64>().unwrap()
    };
    wait_for("the counts", || read() > 50_000);
    let read = read();
    // What fits is looked for among the newest 10,000, whose last one is looked up first.
    let most = 21_000 * i64::try_from(filters.len()).unwrap();
    assert!(read < most, "{read} rows for {} pages", filters.len());
}

#[test]
fn the_page_of_a_key_leads_to_what_was_done_to_it() {
    let Some(browser) = Browser::start() else { return };
    let app = TestApp::start();
    app.join(&browser, "Ada", "ada@clinic.example");
    create_key(&browser, "Front desk");
    browser.press("Done");
    let (other, _) = app.clinic.key();
    browser.press("Front desk");
    browser.wait_for("Requests in the last 30 days");
    choose_action(&browser, "Front desk", "Add note");
    browser.fill("Note", "Call Dana");
    browser.press("Save note");
    browser.wait_for("Note saved.");
    browser.press("Activity of this key");
    browser.wait_for("changed the note about the key Front desk");
    assert!(browser.text().contains("created the key Front desk"));
    assert!(!browser.text().contains("Test key") && !browser.text().contains("joined as"), "{}", browser.text());
    browser.fill("Person", "nobody");
    browser.press("Apply");
    browser.wait_for("No activity found.");
    assert!(browser.text().contains("Only activity about the key Front desk"));
    browser.press("Front desk");
    browser.wait_for("Requests in the last 30 days");

    let ada = app.member("grace@clinic.example");
    let query = format!("key={other}&kind=keys");
    assert_eq!(see(&ada, &query), ["Test key"]);
    let file = ada.get(&format!("/settings/activity.csv?key={other}")).text();
    assert!(file.lines().count() == 2 && file.contains(&format!("\"{other}\",\"\",\"")), "{file}");
    let with_ids = app
        .database
        .texts("SELECT concat_ws('\",\"', key_id, actor_id, id) FROM audit_entries WHERE action = 'key_noted'");
    let file = ada.get("/settings/activity.csv?kind=keys").text();
    assert!(file.contains(&format!("\"{}\"\r\n", with_ids[0])), "{file}");
    let (foreign, _) = app.other_clinic().key();
    for wrong in ["x".to_owned(), foreign.to_string()] {
        assert_eq!(ada.get(&format!("/settings/activity?key={wrong}")).status, 404, "{wrong}");
    }
    assert_eq!(ada.get("/settings/activity.csv?key=x").status, 404);
    let empty = ada.get(&format!("/settings/activity.csv?key={foreign}")).text();
    assert_eq!(empty.lines().count(), 1, "nothing of another organisation");
}
