//! `intake restored`: what an operator does after a backup was restored, before the service is started again. Tells
//! what was done since the restored moment, as far as a copy of the audit log tells, repeats it, and can revoke every
//! key that is there.

mod copy;
mod plan;
mod report;
mod standing;
mod step;

use std::cmp::Reverse;

use anyhow::bail;
use intake_domain::{AuditContext, KeyRecord, list_keys};
use intake_infra::environment::assert_environment_as_owner;
use intake_infra::restored::{NewestPatient, newest_entry, newest_patients};
use intake_infra::{Database, PostgresKeyStore, accept_restored, revoke_all_keys};

use self::copy::{AuditCopy, Recorded};
use self::plan::Plan;
use self::report::Report;
use self::standing::Standing;
use crate::backend::{Backend, explain};
use crate::commands::confirm::ask;
use crate::commands::operator::{DEADLINE, audit as context};
use crate::commands::output::{print_made, print_result};
use crate::settings::command_line::RestoredArguments;
use crate::settings::configuration::Configuration;

pub(crate) fn run(arguments: &RestoredArguments, configuration: &Configuration) -> anyhow::Result<()> {
    let recorded = arguments.audit.as_deref().map(copy::read).transpose()?;
    let backend = Backend::reach_as_owner(configuration)?;
    assert_environment_as_owner(&backend.owner, configuration.environment)?;
    let owner = explain(backend.owner_setting);
    let newest = newest_entry(&backend.owner).map_err(&owner)?;
    let patients = newest_patients(&backend.owner).map_err(&owner)?;
    let copied_until = recorded.as_ref().and_then(|recorded| recorded.iter().map(|entry| entry.at.clone()).max());
    let copy = recorded.map(|recorded| AuditCopy::compare(recorded, &backend.owner)).transpose().map_err(&owner)?;
    let audit = || context(&arguments.run, configuration);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let database = Database::new(&backend.owner, DEADLINE);
    let standing = match &copy {
        Some(copy) => Some(runtime.block_on(standing(&copy.entries, &patients, arguments, &backend, &database))?),
        None => None,
    };
    let plan = copy.as_ref().zip(standing.as_ref()).map(|(copy, standing)| Plan::of(copy, standing));
    let ending = if arguments.revoke_keys { runtime.block_on(open_keys(&patients, &database))? } else { Vec::new() };
    let (patients, run, results) = (patients.as_slice(), &arguments.run, Vec::new());
    let mut report =
        Report { newest, copied_until, plan, patients, configuration, run, ending, revoked: None, results };
    if arguments.brakes.dry_run {
        return print_result(&arguments.output, &report.value(), &report.text(false));
    }
    confirm(arguments, &report)?;
    // Before any service may start again.
    if arguments.revoke_keys {
        report.revoked = Some(revoke_all_keys(&backend.owner, audit).map_err(&owner)?);
    }
    if arguments.apply {
        report.results = runtime.block_on(carry_out(&report, &backend, &database, audit));
    }
    // A statement that waits for a lock has been given up, and is not waited for.
    runtime.shutdown_background();
    let failed = report.results.iter().filter(|(_, result)| result.is_err()).count();
    if failed == 0 {
        accept_restored(&backend.owner, newest, &audit()).map_err(&owner)?;
    }
    let summary = || report.summary(failed == 0);
    print_made(&arguments.output, &report.value(), &report.text(failed == 0), summary)?;
    if failed > 0 {
        bail!(
            "{failed} of {} commands failed, so the service does not start yet: run this again, or do what matters by hand \
             and run it without --apply",
            report.results.len()
        );
    }
    Ok(())
}

async fn standing(
    entries: &[Recorded],
    patients: &[NewestPatient],
    arguments: &RestoredArguments,
    backend: &Backend,
    database: &Database,
) -> anyhow::Result<Standing> {
    let standing = Standing::of(entries, patients, backend, database).await?;
    Ok(if arguments.revoke_keys { standing.without_keys() } else { standing })
}

/// The keys of all organisations that can still be revoked, the last used first.
async fn open_keys(patients: &[NewestPatient], database: &Database) -> anyhow::Result<Vec<KeyRecord>> {
    let (store, mut open) = (PostgresKeyStore::new(database.clone()), Vec::new());
    for NewestPatient { organisation, .. } in patients {
        open.extend(list_keys(&store, *organisation).await?.into_iter().filter(|key| key.revoked_at.is_none()));
    }
    open.sort_by_key(|key| Reverse(key.last_used_at));
    Ok(open)
}

/// Asks at a terminal before anything is done that cannot be undone.
fn confirm(arguments: &RestoredArguments, report: &Report<'_>) -> anyhow::Result<()> {
    let steps = if arguments.apply { report.to_carry_out().count() } else { 0 };
    if steps == 0 && !arguments.revoke_keys {
        return Ok(());
    }
    let revokes = arguments.revoke_keys.then(|| "Revoke every key".to_owned());
    let carries_out = (steps > 0).then(|| format!("{steps} of these commands"));
    let question = match (revokes, carries_out) {
        (Some(revokes), Some(steps)) => format!("{revokes}, and carry out {steps}?"),
        (Some(revokes), None) => format!("{revokes}?"),
        (None, steps) => format!("Carry out {}?", steps.unwrap_or_default()),
    };
    ask(&arguments.brakes, &format!("{}{question}", report.preview()))
}

/// Does every step that needs no person, in their order. One that fails keeps none of the others from being done.
async fn carry_out(
    report: &Report<'_>,
    backend: &Backend,
    database: &Database,
    audit: impl Fn() -> AuditContext + Copy,
) -> Vec<(String, Result<(), String>)> {
    let mut results = Vec::new();
    for step in report.to_carry_out() {
        let done = step.carry_out(backend, database, audit).await;
        results.push((step.command(), done.map_err(|error| format!("{error:#}"))));
    }
    results
}
