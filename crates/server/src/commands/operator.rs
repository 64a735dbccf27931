//! Who runs a command, for the audit log, and how long they wait.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use intake_domain::{Actor, AuditContext, AuditEntryId, Environment, Name, Operator};
use intake_edge as edge;

use crate::export::standard_error::say;
use crate::settings::arguments::Run;
use crate::settings::configuration::Configuration;

/// Longer than requests wait: a database may be starting.
pub(crate) const DEADLINE: Duration = Duration::from_secs(10);

/// True if an entry has no name.
static IS_UNNAMED: AtomicBool = AtomicBool::new(false);

/// The audit context of an operator now.
pub(super) fn audit(run: &Run, configuration: &Configuration) -> AuditContext {
    context(run, configuration.operator.as_ref())
}

/// The same where the settings name this operator.
pub(crate) fn context(run: &Run, configured: Option<&Name>) -> AuditContext {
    let at = edge::now();
    // Under sudo, USER names the account that the command runs under.
    let account = || ["SUDO_USER", "USER"].iter().find_map(|name| Name::new(std::env::var(name).ok()?).ok());
    let name = run.by.as_ref().or(configured).cloned().or_else(account);
    IS_UNNAMED.fetch_or(name.is_none(), Ordering::Relaxed);
    let operator = Operator { name, reason: run.reason.clone() };
    AuditContext {
        entry_id: AuditEntryId::new(at, edge::random()),
        actor: Actor::Operator(operator),
        address: None,
        at,
        confirmed_in: None,
    }
}

/// Says in production that a command which was done named nobody.
pub(super) fn warn_if_unnamed(configuration: &Configuration) -> anyhow::Result<()> {
    if configuration.environment == Environment::Production && IS_UNNAMED.load(Ordering::Relaxed) {
        say("the audit log does not say who did this: name yourself with --as NAME or INTAKE_OPERATOR")?;
    }
    Ok(())
}
