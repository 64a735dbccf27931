//! The sender of mails.

use std::str::FromStr;

use lettre::message::Mailbox;

/// An address, with a name or without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailSender(pub(crate) Mailbox);

impl MailSender {
    /// The service itself, at this host. None: mails cannot come from there.
    #[must_use]
    pub fn at(host: &str) -> Option<Self> {
        format!("intake <intake@{host}>").parse().ok()
    }
}

impl FromStr for MailSender {
    type Err = MailSenderError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self).map_err(|_| MailSenderError)
    }
}

/// The text is no sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write an address, or a name and an address: Patient register <noreply@clinic.example>")]
pub struct MailSenderError;
