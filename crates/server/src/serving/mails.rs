//! Mails, where there is a mail server: what sends them, and the look for keys that members should know of.

use std::sync::Arc;
use std::time::Duration;

use intake_dashboard::Mails;
use intake_domain::{Environment, Mailer};
use intake_infra::{PostgresKeyStore, PostgresMembers, SmtpMailer};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::settings::configuration::{Configuration, MailSettings};

/// Between two looks for keys that expire soon or whose use is unusual, which nobody needs to know to the minute.
const LOOK_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// A service that has just started has other things to do.
const FIRST_LOOK_AFTER: Duration = Duration::from_secs(2);

/// Time that a look which has begun may take to end when the service stops.
const LOOK_TIMEOUT: Duration = Duration::from_secs(3);
/// Time that mails that wait may take to be sent: a mail server that is there takes them in less.
const MAILS_TIMEOUT: Duration = Duration::from_secs(3);

/// Sends mails, and is to be finished before the program ends.
pub(crate) struct Sending {
    mails: Mails,
    mailer: Arc<SmtpMailer>,
    look: JoinHandle<()>,
    /// No look begins after this is gone.
    looks_may_begin: oneshot::Sender<()>,
}

impl Sending {
    /// Sends what waits. A key is marked before its mail is handed in, and is then never told of again, so a look that
    /// has begun is waited for.
    pub(crate) async fn finish(self) {
        drop(self.looks_may_begin);
        let _ = tokio::time::timeout(LOOK_TIMEOUT, self.look).await;
        self.mails.finish();
        let mailer = self.mailer;
        let _ = tokio::task::spawn_blocking(move || mailer.finish(MAILS_TIMEOUT)).await;
    }
}

/// Starts what sends mails. Without a mail server nothing is sent.
pub(crate) fn start(
    configuration: &Configuration,
    base: &str,
    keys: &Arc<PostgresKeyStore>,
    members: &Arc<PostgresMembers>,
) -> anyhow::Result<(Mails, Option<Sending>)> {
    let new = |mailer| Mails::new(mailer, base.to_owned(), configuration.passwords(), configuration.contact.clone());
    let Some(MailSettings { server, from }) = &configuration.mail else { return Ok((new(None), None)) };
    let mailer = Arc::new(SmtpMailer::start(server, from.clone())?);
    let mails = new(Some(Arc::clone(&mailer) as Arc<dyn Mailer>));
    let environment = configuration.environment;
    let (looks_may_begin, end) = oneshot::channel();
    let look = tell_of_keys(mails.clone(), Arc::clone(keys), Arc::clone(members), environment, end);
    let look = actix_web::rt::spawn(look);
    Ok((mails.clone(), Some(Sending { mails, mailer, look, looks_may_begin })))
}

/// Tells members of their keys, until the end.
async fn tell_of_keys(
    mails: Mails,
    keys: Arc<PostgresKeyStore>,
    members: Arc<PostgresMembers>,
    environment: Environment,
    mut end: oneshot::Receiver<()>,
) {
    let mut pause = FIRST_LOOK_AFTER;
    while tokio::time::timeout(pause, &mut end).await.is_err() {
        if let Err(error) = mails.tell_of_expiring_keys(keys.as_ref(), members.as_ref()).await {
            tracing::warn!(%error, "keys that expire soon could not be looked for; the next look comes in an hour");
        }
        if let Err(error) = mails.tell_of_unusual_keys(keys.as_ref(), members.as_ref(), environment).await {
            tracing::warn!(%error, "keys whose use is unusual could not be looked for; the next look comes in an hour");
        }
        pause = LOOK_INTERVAL;
    }
}
