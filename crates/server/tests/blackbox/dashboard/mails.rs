//! Mails to members, taken by a real mail server on this machine: links to themselves, and news of keys. A mail server
//! that is away keeps nothing else from working.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

use diesel::connection::SimpleConnection;
use intake_infra::embedded::Packages;
use intake_test_support::{Prerequisite, ServiceBuilder, TestDatabase, free_port, leave_out, request, wait_for};
use tempfile::TempDir;

use crate::complaint;
use crate::fixtures::{Member, PASSWORD, TestApp, between, password_field, service};

const AIOSMTPD: Prerequisite = Prerequisite {
    subject: "mails",
    need: "the mail server aiosmtpd",
    packages: Packages {
        apt: "apt-get install python3-aiosmtpd",
        dnf: "dnf install python3-aiosmtpd",
        brew: "brew install aiosmtpd",
    },
};

/// A mail server that keeps what it is sent, killed when dropped.
pub(crate) struct MailServer {
    child: Child,
    port: u16,
    folder: TempDir,
    /// Each mail, by its file.
    decoded: Mutex<BTreeMap<PathBuf, String>>,
}

impl MailServer {
    /// None, where there is none: the test is left out then; under CI it fails.
    pub(crate) fn start() -> Option<Self> {
        Self::start_at(free_port())
    }

    pub(crate) fn start_at(port: u16) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("aiosmtpd");
        command.args(["--nosetuid", "--listen", &format!("127.0.0.1:{port}"), "--class", "aiosmtpd.handlers.Mailbox"]);
        command.arg(folder.path().join("mails")).stdout(Stdio::null()).stderr(Stdio::null());
        let Ok(child) = command.spawn() else {
            leave_out(&AIOSMTPD);
            return None;
        };
        wait_for("the mail server", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Some(Self { child, port, folder, decoded: Mutex::default() })
    }

    pub(crate) fn url(&self) -> String {
        format!("smtp://127.0.0.1:{}", self.port)
    }

    /// The mails that came so far, decoded, in no order.
    pub(crate) fn mails(&self) -> Vec<String> {
        let Ok(found) = fs::read_dir(self.folder.path().join("mails/new")) else { return Vec::new() };
        let mut decoded = self.decoded.lock().unwrap();
        let new = found.map(|entry| entry.unwrap().path()).filter(|path| !decoded.contains_key(path));
        let new: Vec<_> = new.collect();
        for (path, mail) in decode(new) {
            for part in ["\n\nYou get this email because ", ". It comes from intake, ", "\nQuestions? Ask "] {
                assert_eq!(mail.matches(part).count(), 1, "{part}: {mail}");
            }
            decoded.insert(path, mail);
        }
        decoded.values().cloned().collect()
    }

    /// Waits for a mail to this person with this subject; gives it.
    pub(crate) fn wait_for_mail(&self, to: &str, subject: &str) -> String {
        let mut found = None;
        wait_for(&format!("a mail to {to}: {subject}"), || {
            let is_it = |mail: &String| {
                mail.contains(&format!("\nTo: {to}\n")) && mail.contains(&format!("\nSubject: {subject}\n"))
            };
            found = self.mails().into_iter().find(is_it);
            found.is_some()
        });
        found.unwrap()
    }
}

impl Drop for MailServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// These mails as their readers see them.
fn decode(paths: Vec<PathBuf>) -> Vec<(PathBuf, String)> {
    if paths.is_empty() {
        return Vec::new();
    }
    let script = "import email, email.policy, sys\n\
                  for path in sys.argv[1:]:\n \
                   mail = email.message_from_binary_file(open(path, 'rb'), policy=email.policy.default)\n \
                   print(''.join(f'\\n{name}: {value}' for name, value in mail.items()), mail.get_content(), sep='\\n\\n', end='\\0')";
    let output = Command::new("python3").args(["-c", script]).args(&paths).output().unwrap();
    let mails = String::from_utf8(output.stdout).unwrap();
    let mails: Vec<_> = mails.split_terminator('\0').map(str::to_owned).collect();
    assert_eq!(mails.len(), paths.len(), "{}", String::from_utf8_lossy(&output.stderr));
    paths.into_iter().zip(mails).collect()
}

pub(crate) fn with_mails(builder: ServiceBuilder, url: &str) -> ServiceBuilder {
    builder.setting("INTAKE_SMTP_URL", url).setting("INTAKE_MAIL_FROM", "Patient register <noreply@clinic.example>")
}

fn app_with(url: &str) -> TestApp {
    TestApp::start_with(|builder| with_mails(builder, url))
}

/// Invites a person on the page, which shows no link, and returns the mailed link.
fn invite(server: &MailServer, by: &Member, email: &str) -> String {
    let page =
        by.post("/settings/members/invite", &format!("email={}&role=administrator", email.replace('@', "%40"))).text();
    assert!(page.contains(&format!("We are sending an invitation to {email} by email.")), "{page}");
    assert!(!page.contains("id=\"link\""), "the link proves that its user reads the mailbox: {page}");
    let mail = server.wait_for_mail(email, "Invitation to Test Clinic");
    format!("/invitations/{}", between(&mail, "/invitations/", "\n"))
}

/// Waits until each of these members got mails with these subjects, and no others.
fn expect_mails(server: &MailServer, expected: &[(&str, &[&str])]) {
    let subjects = |to: &str| {
        let mails = server.mails().into_iter().filter(|mail| mail.contains(&format!("\nTo: {to}\n")));
        let mut subjects: Vec<_> = mails.map(|mail| between(&mail, "\nSubject: ", "\n")).collect();
        subjects.sort();
        subjects
    };
    for (to, expected) in expected {
        let mut expected: Vec<_> = expected.iter().map(|subject| (*subject).to_owned()).collect();
        expected.sort();
        wait_for(&format!("mails to {to}"), || subjects(to).len() >= expected.len());
        assert_eq!(subjects(to), expected, "{to}");
    }
}

#[test]
fn members_get_their_links_and_news_of_keys_by_mail() {
    let Some(server) = MailServer::start() else { return };
    let app = app_with(&server.url());
    let ada = app.member("ada@example.com");

    let invitation = invite(&server, &ada, "grace@example.com");
    let mail = server.wait_for_mail("grace@example.com", "Invitation to Test Clinic");
    assert!(mail.contains("\nFrom: Patient register <noreply@clinic.example>\n"), "{mail}");
    assert!(mail.contains("\nAuto-Submitted: auto-generated\n"), "{mail}");
    // Without these, strict programs show the link cut off, and filters take the mail for spam.
    assert!(mail.contains("\nMIME-Version: 1.0\n") && mail.contains("@clinic.example>\n"), "{mail}");
    assert!(mail.contains("\nMessage-ID: <"), "{mail}");
    let invited = "\n\nAda (ada@example.com) invited you to help manage how Test Clinic receives patients from booking";
    assert!(mail.contains(invited), "who, and what for, before the link: {mail}");
    let _grace = Member::join(app.service.client(), &invitation, "Grace");
    // The others hear of a new administrator.
    let mail = server.wait_for_mail("ada@example.com", "Test Clinic has a new administrator");
    assert!(mail.contains("Grace (grace@example.com) is now an administrator"), "{mail}");

    // A colleague's reset link is mailed to its member alone.
    let list = ada.get("/settings/members").text();
    let grace = list.split("id=\"member-").skip(1).find(|row| row.contains("grace@example.com")).unwrap();
    let path = format!("/settings/members/{}/reset-password", &grace[..36]);
    let page = ada.confirm(&path).text();
    assert!(page.contains("We are sending a reset link to grace@example.com by email."), "{page}");
    assert!(!page.contains("/reset-password/"), "{page}");
    let mail = server.wait_for_mail("grace@example.com", "Choose a new password");
    assert!(mail.contains("Ada sent you a link") && mail.contains("/reset-password/"), "{mail}");

    // Keys that are limited or revoked within a minute are one mail to the others.
    for _ in 0..3 {
        let (id, _) = app.clinic.key();
        let limited = ada.post(&format!("/settings/api-keys/{id}/networks"), "networks=203.0.113.0/24");
        assert_eq!(limited.status, 303);
        assert_eq!(ada.post(&format!("/settings/api-keys/{id}/revoke"), "").status, 303);
    }
    let mail = server.wait_for_mail("grace@example.com", "API keys of Test Clinic were changed");
    for line in ["has revoked the API key “Test key”", "Requests using it are accepted only from 203.0.113.0/24."] {
        assert_eq!(mail.matches(line).count(), 3, "{line}: {mail}");
    }
    let all = server.mails();
    assert!(!all.iter().any(|mail| mail.contains("revoked") && mail.contains("\nTo: ada@")), "who did it knows");
    let logged = app.service.output();
    assert!(!logged.contains("/reset-password/") && !logged.contains("grace@example.com"), "{logged}");
    assert!(crate::service::metrics::value(&app.service, "intake_mails_sent_total") >= 4.0);
}

#[test]
fn a_change_of_a_key_that_is_sent_twice_at_once_is_mailed_once() {
    let Some(server) = MailServer::start() else { return };
    let mut app = app_with(&server.url());
    let ada = app.member("ada@example.com");
    let invitation = invite(&server, &ada, "grace@example.com");
    drop(Member::join(app.service.client(), &invitation, "Grace"));
    let (id, _) = app.clinic.key();
    for change in ["pause", "resume", "revoke"] {
        let mut lock = app.database.connect();
        lock.batch_execute("BEGIN; SELECT FROM api_keys FOR UPDATE").unwrap();
        std::thread::scope(|scope| {
            let send = || assert_eq!(ada.post(&format!("/settings/api-keys/{id}/{change}"), "").status, 303);
            let sent = [scope.spawn(send), scope.spawn(send)];
            let waiting = "pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
            wait_for("both to have read the key", || app.database.count(waiting) == 2);
            lock.batch_execute("COMMIT").unwrap();
            sent.into_iter().for_each(|sent| sent.join().unwrap());
        });
    }
    assert_eq!(app.service.stop().code(), Some(0), "{}", app.service.output());
    let mails: String = server.mails().into_iter().filter(|mail| mail.contains("\nTo: grace@example.com\n")).collect();
    for done in ["paused", "resumed", "revoked"] {
        assert_eq!(mails.matches(&format!("has {done} the API key")).count(), 1, "{done}: {mails}");
    }
}

#[test]
fn news_that_waits_for_its_minute_is_sent_when_the_service_stops() {
    let Some(server) = MailServer::start() else { return };
    let mut app = app_with(&server.url());
    let ada = app.member("ada@example.com");
    let invitation = invite(&server, &ada, "grace@example.com");
    drop(Member::join(app.service.client(), &invitation, "Grace"));
    let (id, _) = app.clinic.key();
    assert_eq!(ada.post(&format!("/settings/api-keys/{id}/revoke"), "").status, 303);
    let has_news = || server.mails().iter().any(|mail| mail.contains("Subject: API key “Test key” was revoked"));
    assert!(!has_news());
    assert_eq!(app.service.stop().code(), Some(0), "{}", app.service.output());
    assert!(has_news(), "{}", app.service.output());
}

#[test]
fn members_hear_by_mail_what_is_done_to_their_account() {
    let Some(server) = MailServer::start() else { return };
    let app = app_with(&server.url());
    let ada = app.member("ada@example.com");
    app.database.connect().batch_execute("UPDATE organisations SET time_zone = 'Australia/Sydney'").unwrap();
    let client = app.service.client();
    let sign_in = |email: &str, browser: &str, password: &str| {
        let form = format!("email={}&{}", email.replace('@', "%40"), password_field(password));
        crate::fixtures::post(&client, "/sign-in", &[("User-Agent", browser)], &form)
    };
    let firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0";
    for _ in 0..2 {
        assert_eq!(sign_in("ada@example.com", firefox, PASSWORD).status, 303);
        let mail = server.wait_for_mail("ada@example.com", "New sign-in to your account");
        assert!(between(&mail, "\nTime: ", "\n").ends_with(" Sydney time"), "{mail}");
    }
    let other = "another long password";
    let change = format!("new_password={}", other.replace(' ', "+"));
    assert_eq!(ada.post("/settings/account/password", &change).status, 303);
    // A new address counts once its mailbox was reached.
    let asked = ada.post("/settings/account/email", "email=ada%40clinic.example");
    assert!(asked.text().contains("We are sending a link to ada@clinic.example."), "{}", asked.text());
    assert_eq!(sign_in("ada@clinic.example", firefox, other).status, 401, "not yet");
    let mail = server.wait_for_mail("ada@clinic.example", "Confirm your email address");
    let link = format!("/confirm-email/{}", between(&mail, "/confirm-email/", "\n"));
    let page = client.send(&request("GET", &link, &[], b""));
    assert!(page.status == 200 && page.text().contains("ada@clinic.example"), "{}", page.text());
    assert_eq!(sign_in("ada@clinic.example", firefox, other).status, 401, "looking changes nothing");
    assert_eq!(crate::fixtures::post(&client, &link, &[], "").status, 303);
    assert_eq!(crate::fixtures::post(&client, &link, &[], "").status, 404, "once");
    assert_eq!(ada.get("/settings/account").status, 303, "signed out");
    assert_eq!(sign_in("ada@clinic.example", firefox, other).status, 303);
    let mail = server.wait_for_mail("ada@example.com", "Your email address was changed");
    assert!(mail.contains("Account: ada@clinic.example") && mail.contains("\nIP address: 127.0.0.1\n"), "{mail}");
    let at_the_old_one = [
        "New sign-in to your account",
        "Your password was changed",
        "Someone asked to change your email address",
        "Your email address was changed",
    ];
    let at_the_new_one = ["Confirm your email address", "Your email address was changed"];
    expect_mails(&server, &[("ada@example.com", &at_the_old_one), ("ada@clinic.example", &at_the_new_one)]);
}

#[test]
fn a_member_hears_that_an_administrator_reset_the_second_factors_or_ended_the_sessions() {
    let Some(server) = MailServer::start() else { return };
    let app = app_with(&server.url());
    let ada = app.member("ada@example.com");
    let invitation = invite(&server, &ada, "grace@example.com");
    let grace = Member::join(app.service.client(), &invitation, "Grace");
    grace.turn_on_second_factor();
    server.wait_for_mail("grace@example.com", "Two-step sign-in is on");
    assert_eq!(ada.confirm(&ada.page_about("Grace", "reset-second-factor")).status, 303);
    let mail = server.wait_for_mail("grace@example.com", "Two-step sign-in is off");
    assert!(mail.contains("An administrator of your organisation turned off two-step sign-in"), "{mail}");
    assert!(mail.contains("Account: grace@example.com") && mail.contains("/forgotten-password"), "{mail}");
    assert_eq!(ada.confirm(&ada.page_about("Grace", "end-sessions")).status, 303);
    let mail = server.wait_for_mail("grace@example.com", "Your sessions were ended");
    assert!(mail.contains("An administrator of your organisation signed you out of it everywhere."), "{mail}");
}

#[test]
fn a_change_of_an_address_reveals_no_other_account_and_ends_with_the_password() {
    let Some(server) = MailServer::start() else { return };
    let app = app_with(&server.url());
    let ada = app.member("ada@example.com");
    let elsewhere = app.other_clinic();
    drop(app.member_of(&elsewhere, "eve@example.com"));
    let ask = |email: &str| {
        let form = format!("email={}", email.replace('@', "%40"));
        let answer = ada.post("/settings/account/email", &form);
        let mail = server.wait_for_mail(email, "Confirm your email address");
        // Beside the day and the minute, which may be the next one.
        let printed = between(&answer.text(), "<p class=\"printed\">", "</p>");
        let text = answer.text().replace(email, "EMAIL").replace(&printed, "PRINTED");
        (answer.status, text, format!("/confirm-email/{}", between(&mail, "/confirm-email/", "\n")))
    };
    let free = ask("free@example.com");
    let taken = ask("eve@example.com");
    assert_eq!((free.0, &free.1), (taken.0, &taken.1));
    let client = app.service.client();
    assert_eq!(crate::fixtures::post(&client, &free.2, &[], "").status, 404, "replaced by the later one");
    let refused = crate::fixtures::post(&client, &taken.2, &[], "");
    assert!(refused.status == 409 && refused.text().contains("already in use"), "{}", refused.text());
    let (_, _, link) = ask("thief@example.com");
    assert_eq!(ada.post("/settings/account/password", "new_password=another+long+password").status, 303);
    assert_eq!(crate::fixtures::post(&client, &link, &[], "").status, 404, "a new password stops the change");
}

#[test]
fn a_guest_who_proved_an_address_with_an_account_has_to_type_its_password() {
    let Some(server) = MailServer::start() else { return };
    let app = app_with(&server.url());
    let [eve, bob] = ["eve@example.com", "bob@example.com"].map(|email| app.member_of(&app.other_clinic(), email));
    let invitation = invite(&server, &eve, "ada@example.com");
    assert_eq!(bob.post("/settings/members/invite", "email=ada%40example.com").status, 200);
    let links = || server.mails().into_iter().filter(|mail| mail.contains("/invitations/")).collect::<Vec<_>>();
    wait_for("the second invitation", || links().len() == 2);
    let mut links = links().into_iter().map(|mail| format!("/invitations/{}", between(&mail, "/invitations/", "\n")));
    drop(Member::join(app.service.client(), &links.find(|link| *link != invitation).unwrap(), "Ada"));
    let form = format!("name=Mallory&{}", password_field("another long password"));
    let join = || crate::fixtures::post(&app.service.client(), &invitation, &[], &form);
    let wrong = join();
    assert!(wrong.status == 401 && wrong.text().contains("Enter its password"), "{}", wrong.text());
    wait_for("a record of the failure", || {
        app.database.count("audit_entries WHERE action = 'sign_in_failed' AND subject = 'ada@example.com'") == 1
    });
    let statuses: Vec<_> = (0..11).map(|_| join().status).collect();
    assert_eq!((statuses[0], statuses[10]), (401, 429), "guesses have to wait: {statuses:?}");
    assert_eq!(app.database.count("memberships"), 3);
}

#[test]
fn each_account_with_an_address_gets_a_link_of_its_own() {
    let Some(server) = MailServer::start() else { return };
    let app = app_with(&server.url());
    drop(app.member("ada@example.com"));
    // Made while there was no mail server.
    let second = format!(
        "INSERT INTO members (id, email, email_folded, name, password_hash)
             SELECT gen_random_uuid(), email, email_folded, 'Other', password_hash FROM members;
         INSERT INTO memberships SELECT '{}', id, 'administrator', now() FROM members WHERE name = 'Other'",
        app.other_clinic().organisation
    );
    app.database.connect().batch_execute(&second).unwrap();
    let asked = crate::fixtures::post(&app.service.client(), "/forgotten-password", &[], "email=ada%40example.com");
    assert_eq!(asked.status, 200);
    let links = || server.mails().iter().filter(|mail| mail.contains("Subject: Choose a new password")).count();
    wait_for("two links", || links() == 2);
    assert_eq!(app.database.count("password_resets"), 2);
}

#[test]
fn a_forgotten_password_is_reset_by_mail_without_saying_who_is_a_member() {
    let Some(server) = MailServer::start() else { return };
    let app = app_with(&server.url());
    drop(app.member("ada@example.com"));
    app.database.connect().batch_execute("UPDATE organisations SET time_zone = 'Australia/Perth'").unwrap();
    let client = app.service.client();
    assert!(client.send(&request("GET", "/sign-in", &[], b"")).text().contains("href=\"/forgotten-password\""));
    let ask = |email: &str| {
        let form = format!("email={}", email.replace('@', "%40"));
        crate::fixtures::post(&client, "/forgotten-password", &[], &form)
    };
    let [known, unknown] = ["ada@example.com", "eve@example.com"].map(|email| {
        let answer = ask(email);
        (answer.status, answer.text().replace(email, "EMAIL"))
    });
    assert_eq!(known, unknown);
    assert!(known.0 == 200 && known.1.contains("If EMAIL is a member, we have sent a link"), "{known:?}");
    let mail = server.wait_for_mail("ada@example.com", "Choose a new password");
    assert!(mail.contains(" Perth time. Your current password"), "{mail}");
    let link = format!("/reset-password/{}", between(&mail, "/reset-password/", "\n"));
    let form = password_field("another long password");
    assert_eq!(crate::fixtures::post(&client, &link, &[], &form).status, 303);
    server.wait_for_mail("ada@example.com", "Your password was changed");
    // More than a member needs are not mailed, and the answer stays the same.
    for _ in 0..6 {
        assert_eq!(ask("ada@example.com").status, 200);
    }
    let asked = "audit_entries WHERE action = 'password_reset_requested' AND subject = 'ada@example.com'";
    wait_for("as many links as there may be", || app.database.count(asked) == 5);
    // One network can ask for a few only.
    let refused = (0..5).map(|_| ask("eve@example.com").status).filter(|status| *status == 429).count();
    assert!(refused > 0);
    assert_eq!(app.database.count(asked), 5);
    assert!(!server.mails().iter().any(|mail| mail.contains("eve@example.com")));
}

#[test]
fn without_a_mail_server_there_is_no_form_for_a_forgotten_password() {
    let app = TestApp::start();
    let get = |path: &str| app.service.client().send(&request("GET", path, &[], b""));
    assert!(!get("/sign-in").text().contains("/forgotten-password"));
    assert_eq!(get("/forgotten-password").status, 404);
}

#[test]
fn invitations_are_limited_per_organisation() {
    let app = TestApp::start();
    let ada = app.member("ada@example.com");
    let invite = |email: &str| {
        ada.post("/settings/members/invite", &format!("email={}&role=administrator", email.replace('@', "%40"))).status
    };
    let to_one = [(); 4].map(|()| invite("grace@example.com"));
    assert_eq!(to_one, [200, 200, 200, 429], "to one address");
    assert_eq!(invite("GRACE@example.com"), 429, "which has no case");
    let to_many: Vec<_> = (0..18).map(|number| invite(&format!("guest{number}@example.com"))).collect();
    assert_eq!(to_many.iter().filter(|status| **status == 200).count(), 17, "of one organisation: {to_many:?}");
    assert_eq!(to_many.last(), Some(&429));
    let elsewhere = app.other_clinic();
    let eve = app.member_of(&elsewhere, "eve@example.com");
    drop(eve.invite("grace@example.com"));
    drop(app.invite("another@example.com"));
}

#[test]
fn links_to_new_addresses_are_limited_per_member() {
    let app = app_with(&format!("smtp://127.0.0.1:{}", free_port()));
    let ada = app.member("ada@example.com");
    let ask = |member: &Member, number| {
        member.post("/settings/account/email", &format!("email=stranger{number}%40example.com")).status
    };
    let statuses: Vec<_> = std::thread::scope(|threads| {
        let (ask, ada) = (&ask, &ada);
        let asked: Vec<_> = (0..8).map(|number| threads.spawn(move || ask(ada, number))).collect();
        asked.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 5, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 429).count(), 3, "{statuses:?}");
    let others: Vec<_> = (0..4).map(|number| app.member(&format!("m{number}@example.com"))).collect();
    let of_others: Vec<_> = others.iter().flat_map(|member| (0..5).map(move |number| ask(member, number))).collect();
    assert_eq!(of_others.iter().filter(|status| **status == 200).count(), 15, "of one organisation: {of_others:?}");
    assert_eq!(app.database.count("audit_entries WHERE action = 'email_change_requested'"), 20);
    let eve = app.member_of(&app.other_clinic(), "eve@example.com");
    assert_eq!(ask(&eve, 1), 200);
}

#[test]
fn reset_links_to_a_colleague_are_limited() {
    let app = TestApp::start();
    let ada = app.member("ada@example.com");
    drop(app.member("grace@example.com"));
    let path = ada.page_about("Grace", "reset-password");
    let statuses = [(); 6].map(|()| ada.confirm(&path).status);
    assert_eq!(statuses, [200, 200, 200, 200, 200, 409]);
    assert!(ada.confirm(&path).text().contains("got five links within a day"));
    drop(app.reset_password("grace@example.com"));
}

/// Half a year later nothing is known of the browsers: that is when nobody looks.
#[test]
fn a_sign_in_after_a_long_time_is_reported_and_many_of_a_minute_are_two_mails() {
    let Some(server) = MailServer::start() else { return };
    let mut app = app_with(&server.url());
    drop(app.member("ada@example.com"));
    wait_for("the first browser", || app.database.count("known_browsers") == 1);
    let long_ago = "DELETE FROM known_browsers; UPDATE memberships SET joined_at = now() - interval '1 year'";
    app.database.connect().batch_execute(long_ago).unwrap();
    let client = app.service.client();
    let form = format!("email=ada%40example.com&{}", password_field(PASSWORD));
    for (number, browser) in ["Firefox/145.0", "Chrome/142.0", "Edg/142.0"].into_iter().enumerate() {
        assert_eq!(crate::fixtures::post(&client, "/sign-in", &[("User-Agent", browser)], &form).status, 303);
        wait_for("the browser", || app.database.count("known_browsers") == i64::try_from(number).unwrap() + 1);
    }
    let first = server.wait_for_mail("ada@example.com", "New sign-in to your account");
    assert!(first.contains("Browser: Firefox") && !first.contains("Browser: Chrome"), "at once: {first}");
    assert_eq!(app.service.stop().code(), Some(0), "{}", app.service.output());
    let later: Vec<_> = server.mails().into_iter().filter(|mail| *mail != first).collect();
    assert_eq!(later.len(), 1, "{later:?}");
    assert!(later[0].contains("Browser: Chrome") && later[0].contains("Browser: Edge"), "{later:?}");
    assert_eq!(later[0].matches("If this wasn't you").count(), 1, "{later:?}");
}

#[test]
fn members_who_can_replace_a_key_get_one_mail_before_it_expires() {
    let Some(server) = MailServer::start() else { return };
    let mut app = app_with(&server.url());
    drop(app.member("ada@example.com"));
    drop(app.member("mary@example.com"));
    let audits = "UPDATE memberships SET role = 'auditor' FROM members WHERE id = member_id AND name = 'Mary'";
    app.database.connect().batch_execute(audits).unwrap();
    let (id, _) = app.clinic.key();
    // A key that is made for a few days is not news.
    let (short, _) = app.clinic.key_until(Some(intake_edge::now() + time::Duration::days(3)));
    // Nobody needs to replace a key that is paused or has a replacement.
    let [(paused, _), (replaced, _), (new, _)] = [app.clinic.key(), app.clinic.key(), app.clinic.key()];
    let soon = format!(
        "UPDATE organisations SET time_zone = 'Australia/Sydney';
         UPDATE api_keys SET created_at = now() - interval '90 days',
             expires_at = (date_trunc('day', now() AT TIME ZONE 'Australia/Sydney') + interval '6 days') AT TIME ZONE 'Australia/Sydney'
             WHERE id IN ('{id}', '{paused}', '{replaced}');
         UPDATE api_keys SET created_at = now() WHERE id = '{short}';
         UPDATE api_keys SET paused_at = now() WHERE id = '{paused}';
         UPDATE api_keys SET replaces = '{replaced}', replaced_ends_after = '0' WHERE id = '{new}'"
    );
    // Changed while no service looks, which would take the key as it is half way.
    let look_after = |app: &mut TestApp, change: &str| {
        app.service.stop();
        app.database.connect().batch_execute(change).unwrap();
        app.service = with_mails(service(&app.database), &server.url()).start();
    };
    for change in [soon.as_str(), "SELECT"] {
        look_after(&mut app, change);
        let mail = server.wait_for_mail("ada@example.com", "API key “Test key” expires soon");
        assert!(mail.contains("these API keys of Test Clinic in time. All times are Sydney time."), "{mail}");
        assert!(mail.contains("works until the end of "), "{mail}");
        assert!(mail.contains(&format!("/settings/api-keys/{id}/replace")), "{mail}");
    }
    // Time for another mail, if there were one.
    std::thread::sleep(std::time::Duration::from_secs(4));
    let about_keys = || server.mails().into_iter().filter(|mail| mail.contains("/replace")).count();
    assert_eq!(about_keys(), 1, "{:?}", server.mails());

    // A replacement that is refused is none. It and two others are one mail, on the next day.
    let (others, day) = ([app.clinic.key().0, app.clinic.key().0], "interval '25 hours'");
    let [other, last] = others;
    let more = format!(
        "UPDATE api_keys SET paused_at = now() WHERE id = '{new}';
         UPDATE api_keys SET created_at = now() - interval '90 days', expires_at = now() + interval '6 days'
             WHERE id IN ('{other}', '{last}')"
    );
    look_after(&mut app, &more);
    std::thread::sleep(std::time::Duration::from_secs(4));
    assert_eq!(about_keys(), 1, "one a day: {:?}", server.mails());
    let tomorrow = format!("UPDATE api_keys SET expiry_announced_at = expiry_announced_at - {day}");
    look_after(&mut app, &tomorrow);
    let mail = server.wait_for_mail("ada@example.com", "3 API keys of Test Clinic expire soon");
    for id in [replaced, other, last] {
        assert!(mail.contains(&format!("/settings/api-keys/{id}/replace")), "{mail}");
    }
    let announced = format!("api_keys WHERE id = '{short}' AND expiry_announced_at IS NOT NULL");
    assert_eq!(app.database.count(&announced), 0);
}

/// A key is marked before its mail is handed in. Stopped between, the service would never tell of it again.
#[test]
fn a_look_at_keys_that_has_begun_is_finished_before_the_service_stops() {
    let Some(server) = MailServer::start() else { return };
    let mut app = app_with(&server.url());
    drop(app.member("ada@example.com"));
    let (id, _) = app.clinic.key();
    app.service.stop();
    let mut database = app.database.connect();
    let soon = "UPDATE api_keys SET created_at = now() - interval '90 days', expires_at = now() + interval '6 days'";
    database.batch_execute(soon).unwrap();
    app.service = with_mails(service(&app.database), &server.url()).start();
    database.batch_execute("BEGIN; LOCK TABLE memberships IN ACCESS EXCLUSIVE MODE").unwrap();
    wait_for("a look", || app.database.count("api_keys WHERE expiry_announced_at IS NOT NULL") == 1);
    app.service.signal("TERM");
    wait_for("the stop", || app.service.output().contains("stopping"));
    // Long enough for all else that a stop waits for.
    database.batch_execute("SELECT pg_sleep(1); COMMIT").unwrap();
    assert_eq!(app.service.wait().code(), Some(0), "{}", app.service.output());
    let mail = server.wait_for_mail("ada@example.com", "API key “Test key” expires soon");
    assert!(mail.contains(&id.to_string()), "{mail}");
}

#[test]
fn a_mail_server_that_is_away_keeps_nobody_waiting_and_gets_the_mail_later() {
    let port = free_port();
    let app = app_with(&format!("smtp://127.0.0.1:{port}"));
    let ada = app.member("ada@example.com");
    // The page does not wait for the mail, which nobody takes yet.
    let page = ada.post("/settings/members/invite", "email=grace%40example.com");
    assert_eq!(page.status, 200);
    wait_for("a line in the log", || app.service.output().contains("an email could not be sent; it is tried again"));
    let Some(server) = MailServer::start_at(port) else { return };
    let mail = server.wait_for_mail("grace@example.com", "Invitation to Test Clinic");
    assert!(mail.contains("/invitations/"), "{mail}");
    assert!(!app.service.output().contains("grace@example.com"), "the log names nobody");
}

#[test]
fn mails_help_and_the_page_of_an_error_name_the_contact_of_the_operator() {
    let Some(server) = MailServer::start() else { return };
    let contact = "the IT desk, it@clinic.example";
    let app = TestApp::start_with(|builder| with_mails(builder, &server.url()).setting("INTAKE_SUPPORT", contact));
    let ada = app.member("ada@example.com");
    drop(invite(&server, &ada, "grace@example.com"));
    let mail = server.wait_for_mail("grace@example.com", "Invitation to Test Clinic");
    assert!(mail.contains("because Ada asked us to invite you."), "{mail}");
    assert!(mail.ends_with("Questions? Ask the IT desk, it@clinic.example.\n"), "{mail:?}");
    assert!(ada.get("/help").text().contains("</strong> Ask the IT desk, it@clinic.example.</p>"));
    app.database.connect().batch_execute("UPDATE members SET name = ''").unwrap();
    let failed = ada.get("/settings/account");
    assert_eq!(failed.status, 500);
    assert!(failed.text().contains("give the IT desk, it@clinic.example the time and this"), "{}", failed.text());
    let said = complaint(service(&app.database).setting("INTAKE_SUPPORT", "ada\nmary"));
    assert!(said.contains("INTAKE_SUPPORT is wrong: must be one line"), "{said}");
}

#[test]
fn a_wrong_address_of_a_mail_server_stops_the_start_and_is_not_repeated() {
    for (name, value, reason) in [
        ("INTAKE_SMTP_URL", "http://user:secret@mail.example", "INTAKE_SMTP_URL is wrong: write smtps://"),
        ("INTAKE_MAIL_FROM", "nobody", "INTAKE_MAIL_FROM is wrong: write an address"),
    ] {
        let database = TestDatabase::new();
        let said = complaint(service(&database).setting(name, value));
        assert!(said.contains(reason) && !said.contains("secret"), "{said}");
    }
    let flag = service(&TestDatabase::new()).argument("--smtp-url").argument("smtps://user:secret@mail.example");
    let said = complaint(flag);
    assert!(said.contains("a password in a flag can be read") && !said.contains("secret"), "{said}");
}
