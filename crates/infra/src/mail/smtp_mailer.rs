//! The thread that sends mails. Whoever has one sent never waits for the mail server, and a server that is away keeps
//! nothing else from working.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use intake_domain::{Mail, Mailer};
use lettre::message::header::{ContentType, HeaderName, HeaderValue, MIME_VERSION_1_0};
use lettre::message::{Mailbox, Message};
use lettre::transport::smtp::Error as SmtpError;
use lettre::{SmtpTransport, Transport};
use ring::rand::{Random, SystemRandom, generate};
use uuid::Uuid;

use crate::mail::sender::MailSender;
use crate::mail::smtp_url::SmtpUrl;

/// How long the mail server may take for one step.
pub(super) const TIMEOUT: Duration = Duration::from_secs(20);
/// Mails that wait; more are dropped, because somebody is making mails faster than a server takes them.
const QUEUE_MAX: usize = 1_000;
/// After so long a mail is of no use: links are made anew.
const GIVE_UP_AFTER: Duration = Duration::from_secs(24 * 60 * 60);
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const PAUSE_MAX: Duration = Duration::from_secs(15 * 60);
/// The port [`Mailer`] over SMTP.
pub struct SmtpMailer {
    queue: SyncSender<Mail>,
}

/// A mail that could not be sent yet.
struct Waiting {
    mail: Mail,
    /// By which programs know that two tries are one mail.
    id: Uuid,
    since: Instant,
    pause: Duration,
    due_at: Instant,
}

struct Sending {
    transport: SmtpTransport,
    from: Mailbox,
    waiting: VecDeque<Waiting>,
}

impl SmtpMailer {
    /// Starts the thread.
    pub fn start(url: &SmtpUrl, from: MailSender) -> anyhow::Result<Self> {
        let sending = Sending { transport: url.transport()?, from: from.0, waiting: VecDeque::new() };
        let (queue, mails) = sync_channel(QUEUE_MAX);
        std::thread::Builder::new().name("mail".into()).spawn(move || sending.work(&mails))?;
        Ok(Self { queue })
    }
}

impl Mailer for SmtpMailer {
    fn send(&self, mail: Mail) {
        if self.queue.try_send(mail).is_err() {
            tracing::error!("a mail is dropped: {QUEUE_MAX} are waiting for the mail server");
        }
    }
}

impl Sending {
    /// Sends mails until nobody can hand in any more.
    fn work(mut self, mails: &Receiver<Mail>) {
        loop {
            let pause =
                self.waiting.iter().map(|waiting| waiting.due_at.saturating_duration_since(Instant::now())).min();
            match mails.recv_timeout(pause.unwrap_or(PAUSE_MAX)) {
                Ok(mail) => {
                    let now = Instant::now();
                    self.try_one(Waiting { mail, id: random_id(), since: now, pause: FIRST_PAUSE, due_at: now });
                }
                Err(RecvTimeoutError::Timeout) => self.try_those_due(),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn try_those_due(&mut self) {
        for _ in 0..self.waiting.len() {
            let Some(waiting) = self.waiting.pop_front() else { return };
            if waiting.due_at <= Instant::now() {
                self.try_one(waiting);
            } else {
                self.waiting.push_back(waiting);
            }
        }
    }

    /// What the log says names neither the receiver nor anything of the mail.
    fn try_one(&mut self, waiting: Waiting) {
        let error = match self.send(&waiting.mail, waiting.id) {
            Ok(()) => return,
            Err(error) => error,
        };
        let is_hopeless = error.downcast_ref::<SmtpError>().is_none_or(SmtpError::is_permanent);
        let reason = reason(&error);
        if is_hopeless || waiting.since.elapsed() > GIVE_UP_AFTER || self.waiting.len() >= QUEUE_MAX {
            tracing::error!(reason, "a mail could not be sent, and is not tried again");
            return;
        }
        tracing::warn!(reason, "a mail could not be sent; it is tried again");
        let Waiting { mail, id, since, pause, .. } = waiting;
        self.waiting.push_back(Waiting {
            mail,
            id,
            since,
            pause: (pause * 2).min(PAUSE_MAX),
            due_at: Instant::now() + pause,
        });
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
            .body(mail.text.clone())?;
        self.transport.send(&message)?;
        Ok(())
    }
}

/// Without random numbers it is the same for all mails, which are sent nevertheless.
fn random_id() -> Uuid {
    let bytes: Result<Random<[u8; 16]>, _> = generate(&SystemRandom::new());
    bytes.map_or(Uuid::nil(), |bytes| Uuid::from_bytes(bytes.expose()))
}

/// What went wrong, without the words of the mail server, which may repeat the address.
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
