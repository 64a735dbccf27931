//! Mails to members, taken by a real mail server on this machine: links to themselves, and news of keys. A mail server that is
//! away keeps nothing else from working.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use intake_infra::embedded::Packages;
use intake_test_support::{Prerequisite, leave_out, wait_for};
use tempfile::TempDir;

use crate::fixtures::{Member, TestApp, between};

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
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Self::start_at(port)
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

fn app_with(url: &str) -> TestApp {
    TestApp::start_with(|builder| {
        builder.setting("INTAKE_SMTP_URL", url).setting("INTAKE_MAIL_FROM", "Patient register <noreply@clinic.example>")
    })
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
    assert!(mail.contains(&invitation) && mail.contains("Ada invites you"), "{mail}");
    Member::join(app.service.client(), &invitation, "Grace");
    // The others hear of a new administrator.
    server.wait_for_mail("ada@example.com", "Test Clinic has a new administrator");
}
