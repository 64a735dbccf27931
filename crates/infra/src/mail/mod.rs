//! Mails, sent over SMTP.

mod queue;
mod sender;
mod smtp_mailer;
mod smtp_url;

pub use sender::{MailSender, MailSenderError};
pub use smtp_mailer::SmtpMailer;
pub use smtp_url::{SmtpUrl, SmtpUrlError};
