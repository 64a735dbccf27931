//! The thread that sends mails. Requests never wait for the mail server, and a server that is away keeps
//! nothing else from working.

use std::sync::Arc;
use std::time::{Duration, Instant};

use intake_domain::{Mail, Mailer};
use lettre::message::header::{ContentType, HeaderName, HeaderValue, MIME_VERSION_1_0};
use lettre::message::{Mailbox, Message};
use lettre::transport::smtp::Error as SmtpError;
use lettre::{SmtpTransport, Transport};
use ring::rand::{Random, SystemRandom, generate};
use uuid::Uuid;

use crate::mail::queue::{MailQueue, QueuedMail};
use crate::mail::sender::MailSender;
use crate::mail::smtp_url::SmtpUrl;
use crate::metrics::{MAILS_DROPPED, MAILS_SENT};

/// After so long a mail is of no use: links are made anew.
const GIVE_UP_AFTER: Duration = Duration::from_secs(24 * 60 * 60);
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const PAUSE_MAX: Duration = Duration::from_secs(15 * 60);
/// The port [`Mailer`] over SMTP.
pub struct SmtpMailer(Arc<MailQueue>);

struct Sending {
    transport: SmtpTransport,
    from: Mailbox,
    queue: Arc<MailQueue>,
}

impl SmtpMailer {
    /// Starts the thread.
    pub fn start(url: &SmtpUrl, from: MailSender) -> anyhow::Result<Self> {
        let queue = Arc::<MailQueue>::default();
        let sending = Sending { transport: url.transport()?, from: from.0, queue: Arc::clone(&queue) };
        std::thread::Builder::new().name("mail".into()).spawn(move || sending.work())?;
        Ok(Self(queue))
    }

    /// Sends what waits, without waiting for another try, and for no longer than this.
    pub fn finish(&self, limit: Duration) {
        self.0.close();
        let left = self.0.wait_until_done(limit);
        if left > 0 {
            tracing::warn!(left, "emails are lost: the mail server did not accept them before the service stopped");
        }
    }
}

impl Mailer for SmtpMailer {
    fn send(&self, mail: Mail) {
        let now = Instant::now();
        self.0.add(QueuedMail { mail, id: random_id(), since: now, pause: FIRST_PAUSE, due_at: now });
    }
}

impl Drop for SmtpMailer {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Sending {
    /// Sends mails until nobody can hand in any more.
    fn work(self) {
        while let Some(waiting) = self.queue.take() {
            self.try_one(waiting);
        }
        self.queue.end();
    }

    /// Sends one. The log names neither the receiver nor anything of the mail.
    fn try_one(&self, waiting: QueuedMail) {
        let error = match self.send(&waiting.mail, waiting.id) {
            Ok(()) => return MAILS_SENT.add_one(),
            Err(error) => error,
        };
        let is_hopeless = error.downcast_ref::<SmtpError>().is_none_or(SmtpError::is_permanent);
        let reason = reason(&error);
        if is_hopeless || waiting.since.elapsed() > GIVE_UP_AFTER {
            MAILS_DROPPED.add_one();
            tracing::error!(reason, "an email could not be sent, and is not tried again");
            return;
        }
        tracing::warn!(reason, "an email could not be sent; it is tried again");
        let pause = (waiting.pause * 2).min(PAUSE_MAX);
        self.queue.add(QueuedMail { due_at: Instant::now() + waiting.pause, pause, ..waiting });
    }

    fn send(&self, mail: &Mail, id: Uuid) -> anyhow::Result<()> {
        let message = Message::builder()
            .from(self.from.clone())
            .to(Mailbox::new(None, mail.to.as_str().parse()?))
            .subject(&mail.subject)
            .message_id(Some(format!("<{id}@{}>", self.from.email.domain())))
            .header(MIME_VERSION_1_0)
            // Nobody answers it, least of all with a note of absence.
            .raw_header(HeaderValue::new(HeaderName::new_from_ascii_str("Auto-Submitted"), "auto-generated".to_owned()))
            .header(ContentType::TEXT_PLAIN)
            .body(format!("{}\n\n{}", mail.text, mail.footer))?;
        self.transport.send(&message)?;
        Ok(())
    }
}

/// Without random numbers it is the same for all mails, which are sent nevertheless.
fn random_id() -> Uuid {
    let bytes: Result<Random<[u8; 16]>, _> = generate(&SystemRandom::new());
    bytes.map_or(Uuid::nil(), |bytes| Uuid::from_bytes(bytes.expose()))
}

/// Returns what went wrong, without the words of the mail server, which may repeat the address.
fn reason(error: &anyhow::Error) -> String {
    match error.downcast_ref::<SmtpError>() {
        Some(error) => match error.status() {
            Some(code) => format!("the mail server answers {code}"),
            None if error.is_tls() => format!("no encryption: {error}"),
            None if error.is_timeout() => "the mail server does not answer in time".to_owned(),
            None => format!("the mail server cannot be reached: {error:#}"),
        },
        None => "the address cannot be written to".to_owned(),
    }
}
