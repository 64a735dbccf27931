//! The commands of operators: each works on the database directly, whether or not the service runs beside it.

mod audit;
mod backup;
pub(crate) mod confirm;
mod contact;
mod database;
mod deliver;
mod doctor;
mod key;
mod knock;
mod member;
pub(crate) mod operator;
mod organisation;
pub(crate) mod output;
mod pairs;
mod patient;
mod pause;
pub(crate) mod probe;
mod request;
mod restored;
mod usage;

use intake_domain::OrganisationId;
use intake_infra::environment::assert_environment_as_owner;
use intake_infra::grants::{assert_service_role, grant_service_role, missing_for};
use intake_infra::migrations::{assert_not_newer, pending};
use intake_infra::readers::{Reader, Scope};
use intake_infra::spread::{Spread, spread};
use intake_infra::{make_direct_writes, migrate, record_migrations, record_reader};
use serde_json::{Map, Value, json};

use crate::backend::Backend;
use crate::export;
use crate::settings::arguments::{Brakes, Output, Run};
use crate::settings::command_line::{ExportArguments, OperatorCommand};
use crate::settings::configuration::Configuration;
use crate::settings::organisation_command::OrganisationCommand;
use confirm::ask;
use database::with_database;
use key::key;
use member::member;
use output::print_change;
use patient::patient;

pub(crate) fn run(
    command: OperatorCommand,
    configuration: impl FnOnce() -> anyhow::Result<Configuration>,
) -> anyhow::Result<()> {
    // An operator whose database is away must see what waits for it.
    if let OperatorCommand::Deliver(arguments) = &command
        && let Some(action) = &arguments.action
    {
        return deliver::look_after(action);
    }
    let configuration = &configuration()?;
    if configuration.database.is_none() {
        configuration.data_dir.become_owner()?;
    }
    if !makes_database(&command) && !matches!(&command, OperatorCommand::Backup(backup) if backup.check) {
        Backend::assert_made(configuration)?;
    }
    carry_out(command, configuration)?;
    operator::warn_if_unnamed(configuration)
}

fn carry_out(command: OperatorCommand, configuration: &Configuration) -> anyhow::Result<()> {
    match command {
        OperatorCommand::Migrate { service_role, reader_role, organisation, all_organisations, check, run, output } => {
            let all = if all_organisations { Scope::All } else { Scope::AsBefore };
            let scope = organisation.map_or(all, Scope::Organisation);
            let reader = reader_role.map(|role| Reader { role, scope });
            let run = (!check).then_some(&run);
            bring_up_to_date(configuration, service_role.as_deref(), reader.as_ref(), run, &output)
        }
        OperatorCommand::Spread { shards, output } => spread_database(shards, &output, configuration),
        OperatorCommand::Export(arguments) => {
            ask_before_replacing(&arguments)?;
            export::run(&arguments, configuration)
        }
        OperatorCommand::Deliver(arguments) => deliver::deliver(&arguments, configuration),
        OperatorCommand::Pairs(arguments) => pairs::run(&arguments, configuration),
        OperatorCommand::Backup(arguments) => backup::run(&arguments, configuration),
        OperatorCommand::Restored(arguments) => restored::run(&arguments, configuration),
        OperatorCommand::Patient(command) => patient(command, configuration),
        OperatorCommand::Doctor { output } => doctor::run(&output, configuration),
        OperatorCommand::Audit(arguments) => audit::run(&arguments, configuration),
        OperatorCommand::Organisation(command) => organisation::run(command, configuration),
        OperatorCommand::Key(command) => {
            with_database(configuration, async |database| key(command, database, configuration).await)
        }
        OperatorCommand::Request { id, output } => {
            with_database(configuration, async |database| request::request(id, &output, &database).await)
        }
        OperatorCommand::Member(command) => {
            with_database(configuration, async |database| member(command, database, configuration).await)
        }
    }
}

fn ask_before_replacing(arguments: &ExportArguments) -> anyhow::Result<()> {
    let Some(path) = arguments.output.as_deref().filter(|path| path.is_file()) else { return Ok(()) };
    let brakes = Brakes { yes: arguments.yes, dry_run: false };
    ask(&brakes, &format!("{} is there. Replace it?", path.display()))
}

/// Returns whether the command makes the embedded database if there is none. All others would find nothing in it.
fn makes_database(command: &OperatorCommand) -> bool {
    match command {
        OperatorCommand::Migrate { check, .. } => !check,
        OperatorCommand::Organisation(command) => matches!(command, OrganisationCommand::Create { .. }),
        _ => false,
    }
}

/// Migrates the database, and grants what its roles need. A check, which nobody runs for the audit log, fails wherever
/// migrating would, and changes nothing.
/// The embedded database is migrated whenever it starts, so nothing is left to do there.
fn bring_up_to_date(
    configuration: &Configuration,
    role: Option<&str>,
    reader: Option<&Reader>,
    run: Option<&Run>,
    output: &Output,
) -> anyhow::Result<()> {
    let backend = Backend::reach_as_owner(configuration)?;
    assert_environment_as_owner(&backend.owner, configuration.environment)?;
    assert_not_newer(&backend.owner)?;
    role.map_or(Ok(()), |role| assert_service_role(&backend.owner, role))?;
    reader.map_or(Ok(()), |reader| reader.assert_can_be(&backend.owner))?;
    let is_check = run.is_none();
    let migrations =
        if let Some(run) = run { apply_migrations(&backend, run, configuration)? } else { pending(&backend.owner)? };
    let apply = if is_check { "Would apply" } else { "Applied" };
    let mut text = match migrations.len() {
        0 => "The schema is up to date.".to_owned(),
        1 => format!("{apply} 1 migration: {}.", migrations.join(", ")),
        count => format!("{apply} {count} migrations: {}.", migrations.join(", ")),
    };
    let mut value = Map::new();
    value.insert(if is_check { "pending" } else { "applied" }.to_owned(), json!(migrations));
    if let Some(role) = role {
        text += &if is_check {
            // Of tables that are not there yet nothing can be missing.
            let missing = if migrations.is_empty() { missing_for(&backend.owner, role)? } else { Vec::new() };
            value.insert("missingGrants".to_owned(), json!(missing));
            match missing.len() {
                0 if migrations.is_empty() => format!(" The role {role} has what the service needs."),
                0 => format!(" Would let the role {role} do what the service needs, and nothing else."),
                _ => format!(" Would grant the role {role} what is missing: {}.", missing.join(", ")),
            }
        } else {
            grant_service_role(&backend.owner, role)?;
            format!(" The role {role} may do what the service needs, and nothing else.")
        };
    }
    if let Some(reader) = reader {
        text += &grant_reader(reader, &backend, run, configuration)?;
    }
    if !is_check {
        make_direct_writes(&backend.owner)?;
    }
    print_change(output, &Value::Object(value), &text)
}

fn apply_migrations(backend: &Backend, run: &Run, configuration: &Configuration) -> anyhow::Result<Vec<String>> {
    let applied = migrate(&backend.owner)?;
    if !applied.is_empty() {
        record_migrations(&backend.owner, &applied, &operator::audit(run, configuration))?;
    }
    Ok(applied)
}

/// Lets the role read, unless this is a check, and returns what was done. The entry comes first: no role reads without
/// one.
fn grant_reader(
    reader: &Reader,
    backend: &Backend,
    run: Option<&Run>,
    configuration: &Configuration,
) -> anyhow::Result<String> {
    let (role, owner) = (&reader.role, &backend.owner);
    let organisation = reader.organisation(owner)?;
    let whose = whose(organisation);
    let Some(run) = run else {
        return Ok(format!(" Would let the role {role} read the patients of {whose}, and nothing else."));
    };
    record_reader(owner, role, organisation, &operator::audit(run, configuration))?;
    reader.grant(owner)?;
    Ok(format!(" The role {role} may read the patients of {whose}, and nothing else."))
}

fn whose(organisation: Option<OrganisationId>) -> String {
    organisation.map_or("all organisations".to_owned(), |id| format!("the organisation {id}"))
}

fn spread_database(shards: Option<u32>, output: &Output, configuration: &Configuration) -> anyhow::Result<()> {
    let backend = Backend::reach_as_owner(configuration)?;
    assert_environment_as_owner(&backend.owner, configuration.environment)?;
    let Spread { copied, kept, divided, shards, nodes } = spread(&backend.owner, shards)?;
    make_direct_writes(&backend.owner)?;
    let mut text = if copied.is_empty() && kept.is_empty() && divided.is_empty() {
        "Every table was spread already.".to_owned()
    } else {
        format!(
            "Every node holds a copy of {}. Kept on the coordinator: {}. Divided by organisation: {}.",
            listed(&copied),
            listed(&kept),
            listed(&divided)
        )
    };
    text += &format!(" Parts: {shards}, on {nodes} nodes.");
    let value = json!({ "copied": copied, "kept": kept, "divided": divided, "shards": shards, "nodes": nodes });
    print_change(output, &value, &text)
}

fn listed(tables: &[String]) -> String {
    if tables.is_empty() { "nothing new".to_owned() } else { tables.join(", ") }
}
