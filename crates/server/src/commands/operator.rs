//! Who runs a command, for the record, and how long they wait.

use std::time::Duration;

use intake_domain::{Actor, AuditContext, AuditEntryId, Name, Operator};
use intake_edge as edge;

use crate::settings::arguments::Run;

/// Longer than requests wait: a database may be starting.
pub(crate) const DEADLINE: Duration = Duration::from_secs(10);

/// The audit context of an operator now.
pub(crate) fn audit(run: &Run) -> AuditContext {
    let at = edge::now();
    // Under sudo, USER names the account that the command runs under.
    let account = || ["SUDO_USER", "USER"].iter().find_map(|name| Name::new(std::env::var(name).ok()?).ok());
    let operator = Operator { name: run.by.clone().or_else(account), reason: run.reason.clone() };
    AuditContext {
        entry_id: AuditEntryId::new(at, edge::random()),
        actor: Actor::Operator(operator),
        address: None,
        at,
        confirmed_in: None,
    }
}
