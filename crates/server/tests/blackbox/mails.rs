//! Mails to members, taken by a real mail server on this machine: links to themselves, and news of keys. A mail server that is
//! away keeps nothing else from working.

use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use diesel::connection::SimpleConnection;
use intake_infra::embedded::Packages;
use intake_test_support::{Prerequisite, ServiceBuilder, TestDatabase, free_port, leave_out, wait_for};
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
struct MailServer {
    child: Child,
    port: u16,
    folder: TempDir,
}

impl MailServer {
    /// None, where there is none: the test is left out then; under CI it fails.
    fn start() -> Option<Self> {
        Self::start_at(free_port())
    }

    fn start_at(port: u16) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("aiosmtpd");
        command.args(["--nosetuid", "--listen", &format!("127.0.0.1:{port}"), "--class", "aiosmtpd.handlers.Mailbox"]);
        command.arg(folder.path().join("mails")).stdout(Stdio::null()).stderr(Stdio::null());
        let Ok(child) = command.spawn() else {
            leave_out(&AIOSMTPD);
            return None;
        };
        wait_for("the mail server", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Some(Self { child, port, folder })
    }

    fn url(&self) -> String {
        format!("smtp://127.0.0.1:{}", self.port)
    }

    /// The mails that came so far, decoded, in no order.
    fn mails(&self) -> Vec<String> {
        let Ok(found) = fs::read_dir(self.folder.path().join("mails/new")) else { return Vec::new() };
        found.map(|entry| decoded(&entry.unwrap().path())).collect()
    }

    /// Waits for a mail to this person with this subject; gives it.
    fn wait_for_mail(&self, to: &str, subject: &str) -> String {
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

/// A mail as its reader sees it.
fn decoded(path: &Path) -> String {
    let script = "import email, email.policy, sys\n\
                  mail = email.message_from_binary_file(open(sys.argv[1], 'rb'), policy=email.policy.default)\n\
                  print(''.join(f'\\n{name}: {value}' for name, value in mail.items()), mail.get_content(), sep='\\n\\n')";
    let output = Command::new("python3").args(["-c", script]).arg(path).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn with_mails(builder: ServiceBuilder, url: &str) -> ServiceBuilder {
    builder.setting("INTAKE_SMTP_URL", url).setting("INTAKE_MAIL_FROM", "Patient register <noreply@clinic.example>")
}

fn app_with(url: &str) -> TestApp {
    TestApp::start_with(|builder| with_mails(builder, url))
}

#[test]
fn members_get_their_links_and_news_of_keys_by_mail() {
    let Some(server) = MailServer::start() else { return };
    let app = app_with(&server.url());
    let ada = app.member("ada@example.com");

    // Whoever is invited gets the link that the page shows.
    let invitation = ada.invite("grace@example.com");
    let mail = server.wait_for_mail("grace@example.com", "Invitation to Test Clinic");
    assert!(mail.contains("\nFrom: Patient register <noreply@clinic.example>\n"), "{mail}");
    assert!(mail.contains("\nAuto-Submitted: auto-generated\n"), "{mail}");
    // Without these, strict programs show the link cut off, and filters take the mail for spam.
    assert!(mail.contains("\nMIME-Version: 1.0\n") && mail.contains("@clinic.example>\n"), "{mail}");
    assert!(mail.contains("\nMessage-ID: <"), "{mail}");
    assert!(mail.contains(&invitation) && mail.contains("Ada invites you"), "{mail}");
    let _grace = Member::join(app.service.client(), &invitation, "Grace");
    // The others hear of a new administrator.
    let mail = server.wait_for_mail("ada@example.com", "Test Clinic has a new administrator");
    assert!(mail.contains("Grace (grace@example.com) is an administrator"), "{mail}");

    // Whoever forgot the password gets a link, too.
    let list = ada.get("/settings/members").text();
    let grace = list.split("id=\"member-").skip(1).find(|row| row.contains("grace@example.com")).unwrap();
    let path = format!("/settings/members/{}/reset-password", &grace[..36]);
    let page = ada.post(&path, &password_field(PASSWORD)).text();
    assert!(page.contains("We are sending this link to grace@example.com by email."), "{page}");
    let link = between(&page, "id=\"link\" value=\"", "\"");
    let mail = server.wait_for_mail("grace@example.com", "Choose a new password");
    assert!(mail.contains(&link), "{mail}");

    // The others hear that a key was revoked, and everybody that one will expire.
    let (id, _) = app.clinic.key();
    ada.post(&format!("/settings/api-keys/{id}/revoke"), "");
    let mail = server.wait_for_mail("grace@example.com", "API key “Test key” was revoked");
    assert!(mail.contains("Ada has revoked the API key “Test key”"), "{mail}");
    let all = server.mails();
    assert!(!all.iter().any(|mail| mail.contains("was revoked") && mail.contains("\nTo: ada@")), "who did it knows");
    let logged = app.service.output();
    assert!(!logged.contains(&link) && !logged.contains("grace@example.com"), "{logged}");
}

#[test]
fn everybody_is_told_once_that_a_key_will_expire() {
    let Some(server) = MailServer::start() else { return };
    let mut app = app_with(&server.url());
    drop(app.member("ada@example.com"));
    let (id, _) = app.clinic.key();
    // A key that is made for a few days is not news.
    let (short, _) = app.clinic.key_until(Some(intake_http::edge::now() + time::Duration::days(3)));
    let soon = format!(
        "UPDATE api_keys SET created_at = now() - interval '90 days', expires_at = now() + interval '6 days' WHERE id = '{id}';
         UPDATE api_keys SET created_at = now() WHERE id = '{short}'"
    );
    app.database.connect().batch_execute(&soon).unwrap();
    for _ in 0..2 {
        app.service.stop();
        app.service = with_mails(service(&app.database), &server.url()).start();
        let mail = server.wait_for_mail("ada@example.com", "API key “Test key” expires soon");
        assert!(mail.contains("of Test Clinic expires on ") && mail.contains("/settings/api-keys"), "{mail}");
    }
    // Time for another mail, if there were one.
    std::thread::sleep(std::time::Duration::from_secs(4));
    assert_eq!(server.mails().len(), 1, "{:?}", server.mails());
    let told = format!("api_keys WHERE id = '{short}' AND expiry_told_at IS NOT NULL");
    assert_eq!(app.database.count(&told), 0);
}

#[test]
fn a_mail_server_that_is_away_keeps_nobody_waiting_and_gets_the_mail_later() {
    let port = free_port();
    let app = app_with(&format!("smtp://127.0.0.1:{port}"));
    let ada = app.member("ada@example.com");
    // The page does not wait for the mail, which nobody takes yet.
    let invitation = ada.invite("grace@example.com");
    wait_for("a line in the log", || app.service.output().contains("a mail could not be sent; it is tried again"));
    let Some(server) = MailServer::start_at(port) else { return };
    let mail = server.wait_for_mail("grace@example.com", "Invitation to Test Clinic");
    assert!(mail.contains(&invitation), "{mail}");
    assert!(!app.service.output().contains("grace@example.com"), "the log names nobody");
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
