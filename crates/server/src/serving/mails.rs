//! Mails, where there is a mail server: what sends them, and the look for keys that members should know of.

use std::sync::Arc;
use std::time::Duration;

use intake_dashboard::Mails;
use intake_domain::{Environment, Mailer};
use intake_infra::{PostgresKeyStore, PostgresMembers, SmtpMailer};

use crate::settings::configuration::{Configuration, MailSettings};

/// Between two looks for keys that expire soon or whose use is unusual, which nobody needs to know to the minute.
const LOOK_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// A service that has just started has other things to do.
const FIRST_LOOK_AFTER: Duration = Duration::from_secs(2);

/// Starts what sends mails, and is to be finished before the program ends. Without a mail server nothing is sent.
pub(crate) fn start(
    configuration: &Configuration,
    base: &str,
    keys: &Arc<PostgresKeyStore>,
    members: &Arc<PostgresMembers>,
) -> anyhow::Result<(Mails, Option<Arc<SmtpMailer>>)> {
    let new = |mailer| Mails::new(mailer, base.to_owned(), configuration.passwords());
    let Some(MailSettings { server, from }) = &configuration.mail else { return Ok((new(None), None)) };
    let mailer = Arc::new(SmtpMailer::start(server, from.clone())?);
    let mails = new(Some(Arc::clone(&mailer) as Arc<dyn Mailer>));
    let environment = configuration.environment;
    actix_web::rt::spawn(tell_of_keys(mails.clone(), Arc::clone(keys), Arc::clone(members), environment));
    Ok((mails, Some(mailer)))
}

/// Tells members of their keys, for as long as the service runs.
async fn tell_of_keys(
    mails: Mails,
    keys: Arc<PostgresKeyStore>,
    members: Arc<PostgresMembers>,
    environment: Environment,
) {
    tokio::time::sleep(FIRST_LOOK_AFTER).await;
    loop {
        if let Err(error) = mails.tell_of_expiring_keys(keys.as_ref(), members.as_ref()).await {
            tracing::warn!(%error, "keys that expire soon could not be looked for; the next look comes in an hour");
        }
        if let Err(error) = mails.tell_of_unusual_keys(keys.as_ref(), members.as_ref(), environment).await {
            tracing::warn!(%error, "keys whose use is unusual could not be looked for; the next look comes in an hour");
        }
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
}
