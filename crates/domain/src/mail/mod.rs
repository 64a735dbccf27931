//! Mails to members: what one is, and the port that sends it. The code that makes a change decides who gets a
//! mail about it.

use std::fmt;

use crate::email_address::EmailAddress;
use crate::ids::OrganisationId;

/// A mail of plain text to one person. `Debug` prints nothing of it: it may hold a link that signs its reader in.
#[derive(Clone, PartialEq, Eq)]
pub struct Mail {
    /// The organisation that causes it, of whose mails a limited number can wait.
    pub organisation: OrganisationId,
    /// Who gets it.
    pub to: EmailAddress,
    /// Subject, in one line.
    pub subject: String,
    /// Text of the mail.
    pub text: String,
    /// End of every mail of this kind.
    pub footer: String,
}

impl fmt::Debug for Mail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mail(…)")
    }
}

/// Sends mails.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait Mailer: Send + Sync {
    /// Takes a mail and returns at once: it is sent as soon as the mail server takes it, and tried again until then.
    fn send(&self, mail: Mail);
}
