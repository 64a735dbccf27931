//! The commands of operators: each works on the database directly, whether or not the service runs beside it.

use std::io::Write;
use std::time::Duration;

use anyhow::Context;
use intake_domain::{
    Actor, AuditEntryId, ClearMarkOutcome, Deed, EmailAddress, KeyId, KeyRecord, KeyRequest, KeySecret, KeyStatus,
    KeyStore, Name, Organisation, OrganisationId, ResetSecondFactorError, Token, clear_sent_in_clear, create_key,
    invite_member, issue_password_reset, list_keys, reset_second_factor, revoke_key, timestamp,
};
use intake_infra::environment::assert_environment;
use intake_infra::grants::{assert_service_role, grant_service_role};
use intake_infra::migrations::{assert_not_newer, migrate, pending};
use intake_infra::readers::{Reader, Scope};
use intake_infra::spread::{Spread, spread};
use intake_infra::{Database, KeyUses, PostgresKeyStore, PostgresMemberStore};
use serde_json::{Value, json};
use time::OffsetDateTime;

use crate::backend::Backend;
use crate::command_line::{KeyCommand, MemberArguments, MemberCommand, OperatorCommand, OrganisationCommand, Output};
use crate::configuration::Configuration;
use crate::export;
use crate::patient::patient;
use crate::restored;
use intake_http::edge;

/// Operators wait longer than requests: a database may be starting.
pub(crate) const DEADLINE: Duration = Duration::from_secs(10);

pub(crate) fn run(command: OperatorCommand, configuration: &Configuration) -> anyhow::Result<()> {
    match command {
        OperatorCommand::Migrate { service_role, reader_role, organisation, all_organisations, check, output } => {
            let all = if all_organisations { Scope::All } else { Scope::AsBefore };
            let scope = organisation.map_or(all, Scope::Organisation);
            let reader = reader_role.map(|role| Reader { role, scope });
            if check {
                check_migrations(configuration, service_role.as_deref(), reader.as_ref(), &output)
            } else {
                migrate_database(configuration, service_role.as_deref(), reader.as_ref(), &output)
            }
        }
        OperatorCommand::Spread { shards, output } => spread_database(shards, &output, configuration),
        OperatorCommand::Export(arguments) => export::run(&arguments, configuration),
        OperatorCommand::Restored { audit, revoke_keys, output } => {
            restored::run(audit.as_ref(), revoke_keys, &output, configuration)
        }
        OperatorCommand::Patient(command) => patient(command, configuration),
        OperatorCommand::Organisation(command) => {
            with_database(configuration, async |database| organisation(command, &key_store(database)).await)
        }
        OperatorCommand::Key(command) => {
            with_database(configuration, async |database| key(command, &key_store(database), configuration).await)
        }
        OperatorCommand::Member(command) => with_database(configuration, async |database| {
            member(command, &PostgresMemberStore::new(database), configuration).await
        }),
    }
}

/// Prints a text and ends the line. A reader that closes the pipe early is no error.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    match writeln!(std::io::stdout().lock(), "{text}") {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("the result cannot be printed"),
    }
}

/// The database that is to be migrated, after every check that needs no change.
fn migratable(configuration: &Configuration, role: Option<&str>, reader: Option<&Reader>) -> anyhow::Result<Backend> {
    let backend = Backend::reach_as_owner(configuration)?;
    assert_environment(&backend.owner, configuration.environment)?;
    assert_not_newer(&backend.owner)?;
    if let Some(role) = role {
        assert_service_role(&backend.owner, role)?;
    }
    if let Some(reader) = reader {
        reader.assert_can_be(&backend.owner)?;
    }
    Ok(backend)
}

/// Fails wherever migrating would. The embedded database is migrated whenever it starts, so nothing is left to do there.
fn check_migrations(
    configuration: &Configuration,
    role: Option<&str>,
    reader: Option<&Reader>,
    output: &Output,
) -> anyhow::Result<()> {
    let backend = migratable(configuration, role, reader)?;
    let pending = pending(&backend.owner)?;
    let mut text = match pending.len() {
        0 => "The schema is up to date.".to_owned(),
        1 => format!("Would apply 1 migration: {}.", pending.join(", ")),
        count => format!("Would apply {count} migrations: {}.", pending.join(", ")),
    };
    if let Some(role) = role {
        text += &format!(" Would let the role {role} do what the service needs, and nothing else.");
    }
    if let Some(reader) = reader {
        let whose = whose(reader.organisation(&backend.owner)?);
        text += &format!(" Would let the role {} read the patients of {whose}, and nothing else.", reader.role);
    }
    print_result(output, &json!({ "pending": pending }), &text)
}

fn migrate_database(
    configuration: &Configuration,
    role: Option<&str>,
    reader: Option<&Reader>,
    output: &Output,
) -> anyhow::Result<()> {
    let backend = migratable(configuration, role, reader)?;
    let applied = migrate(&backend.owner)?;
    let mut text = match applied.len() {
        0 => "The schema is up to date.".to_owned(),
        1 => format!("Applied 1 migration: {}.", applied.join(", ")),
        count => format!("Applied {count} migrations: {}.", applied.join(", ")),
    };
    if let Some(role) = role {
        grant_service_role(&backend.owner, role)?;
        text += &format!(" The role {role} may do what the service needs, and nothing else.");
    }
    if let Some(reader) = reader {
        let whose = whose(reader.grant(&backend.owner)?);
        text += &format!(" The role {} may read the patients of {whose}, and nothing else.", reader.role);
    }
    print_result(output, &json!({ "applied": applied }), &text)
}

fn whose(organisation: Option<OrganisationId>) -> String {
    organisation.map_or("all organisations".to_owned(), |id| format!("the organisation {id}"))
}

fn spread_database(shards: Option<u32>, output: &Output, configuration: &Configuration) -> anyhow::Result<()> {
    let backend = Backend::reach_as_owner(configuration)?;
    assert_environment(&backend.owner, configuration.environment)?;
    let Spread { copied, kept, divided, shards, nodes } = spread(&backend.owner, shards)?;
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
    print_result(output, &value, &text)
}

fn listed(tables: &[String]) -> String {
    if tables.is_empty() { "nothing new".to_owned() } else { tables.join(", ") }
}

fn with_database(
    configuration: &Configuration,
    work: impl AsyncFnOnce(Database) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let backend = Backend::open(configuration)?;
    let database = Database::new(&backend.service, DEADLINE);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    runtime.block_on(work(database))
}

fn key_store(database: Database) -> PostgresKeyStore {
    PostgresKeyStore::new(database, KeyUses::default())
}

async fn organisation(command: OrganisationCommand, keys: &PostgresKeyStore) -> anyhow::Result<()> {
    match command {
        OrganisationCommand::Create { name, output } => {
            let name = Name::new(name).context("--name")?;
            let id = OrganisationId::new(edge::now(), edge::random());
            let made = Organisation { id, name };
            keys.add_organisation(&made).await?;
            let value = json!({ "id": made.id.to_string(), "name": made.name.as_str() });
            print_result(&output, &value, &format!("Made organisation {} ({})", made.id, made.name))
        }
        OrganisationCommand::List { output } => {
            let all = keys.organisations().await?;
            let values = all.iter().map(|(id, name)| json!({ "id": id.to_string(), "name": name }));
            let lines: Vec<_> = all.iter().map(|(id, name)| format!("{id}  {name}")).collect();
            let text = if lines.is_empty() { "There is no organisation yet.".to_owned() } else { lines.join("\n") };
            print_result(&output, &values.collect(), &text)
        }
    }
}

async fn key(command: KeyCommand, keys: &PostgresKeyStore, configuration: &Configuration) -> anyhow::Result<()> {
    match command {
        KeyCommand::Create { organisation, name, expires, output } => {
            let request = KeyRequest {
                organisation_id: organisation,
                name: Name::new(name).context("--name")?,
                expires_at: expires,
                replaces: None,
                id: KeyId::new(edge::now(), edge::random()),
                secret: KeySecret::new(edge::random()),
            };
            let made = create_key(keys, &configuration.key_format, request, &deed()).await?;
            let value = json!({
                "id": made.id.to_string(),
                "organisationId": made.organisation_id.to_string(),
                "name": made.name.as_str(),
                "key": made.key.expose(),
            });
            let text = format!(
                "Made key {} ({}). It is shown this once and cannot be retrieved later:\n{}",
                made.id,
                made.name,
                made.key.expose()
            );
            print_result(&output, &value, &text)
        }
        KeyCommand::List { organisation, output } => {
            let all = list_keys(keys, organisation).await?;
            let now = edge::now();
            let lines: Vec<_> = all.iter().map(|key| line_of(key, now)).collect();
            let text = if lines.is_empty() { "There is no key yet.".to_owned() } else { lines.join("\n") };
            print_result(&output, &all.iter().map(value_of).collect(), &text)
        }
        KeyCommand::ClearSentInClear { key, output } => {
            let was_marked = clear_sent_in_clear(keys, key, &deed()).await? == ClearMarkOutcome::Cleared;
            let text = match was_marked {
                true => format!("Key {key} is no longer marked as sent in clear."),
                false => format!("Key {key} is not marked as sent in clear."),
            };
            print_result(&output, &json!({ "id": key.to_string(), "wasMarked": was_marked }), &text)
        }
        KeyCommand::Revoke { key, output } => {
            let revoked_at = timestamp(revoke_key(keys, key, None, &deed()).await?);
            let value = json!({ "id": key.to_string(), "revokedAt": revoked_at });
            print_result(&output, &value, &format!("Key {key} was revoked at {revoked_at}."))
        }
    }
}

async fn member(
    command: MemberCommand,
    members: &PostgresMemberStore,
    configuration: &Configuration,
) -> anyhow::Result<()> {
    match command {
        MemberCommand::Invite { member: MemberArguments { organisation, email, output }, role } => {
            let token = Token::new(edge::random());
            let made = invite_member(members, organisation, email, role, token, &deed()).await?;
            print_link(&output, &made.email, &configuration.invitation_link(&made.token), made.expires_at)
        }
        MemberCommand::ResetPassword(MemberArguments { organisation, email, output }) => {
            let token = Token::new(edge::random());
            let made = issue_password_reset(members, organisation, &email, token, &deed()).await?;
            print_link(&output, &made.email, &configuration.password_reset_link(&made.token), made.expires_at)
        }
        MemberCommand::ResetSecondFactor(MemberArguments { organisation, email, output }) => {
            let was_on = match reset_second_factor(members, organisation, &email, &deed()).await {
                Ok(()) => true,
                Err(ResetSecondFactorError::AlreadyOff) => false,
                Err(error) => return Err(error.into()),
            };
            let text = match was_on {
                true => format!("{email} now signs in with a password alone."),
                false => format!("{email} already signs in with a password alone."),
            };
            print_result(&output, &json!({ "email": email.as_str(), "wasOn": was_on }), &text)
        }
    }
}

fn print_link(output: &Output, email: &EmailAddress, link: &str, expires_at: OffsetDateTime) -> anyhow::Result<()> {
    let expires_at = timestamp(expires_at);
    let value = json!({ "email": email.as_str(), "link": link, "expiresAt": expires_at });
    print_result(output, &value, &format!("Send this link to {email}. It works once, until {expires_at}:\n{link}"))
}

/// The deed of an operator at this moment.
pub(crate) fn deed() -> Deed {
    let at = edge::now();
    Deed { entry_id: AuditEntryId::new(at, edge::random()), actor: Actor::Operator, address: None, at }
}

fn value_of(key: &KeyRecord) -> Value {
    json!({
        "id": key.id.to_string(),
        "name": key.name,
        "hint": key.hint,
        "createdAt": timestamp(key.created_at),
        "lastUsedAt": key.last_used_at.map(timestamp),
        "expiresAt": key.expires_at.map(timestamp),
        "revokedAt": key.revoked_at.map(timestamp),
    })
}

fn line_of(key: &KeyRecord, now: OffsetDateTime) -> String {
    let status = match key.status(now) {
        KeyStatus::Revoked(at) => format!("revoked {}", timestamp(at)),
        KeyStatus::Expired(at) => format!("expired {}", timestamp(at)),
        KeyStatus::ActiveUntil(at) => format!("active, expires {}", timestamp(at)),
        KeyStatus::Active => "active".to_owned(),
    };
    let used = key.last_used_at.map_or("never used".to_owned(), |at| format!("last used {}", timestamp(at)));
    let warning = if key.must_be_replaced(now) { "  SENT IN CLEAR: replace it" } else { "" };
    format!("{}  …{}  {}  {status}, {used}{warning}", key.id, key.hint, key.name)
}

pub(crate) fn print_result(output: &Output, value: &Value, text: &str) -> anyhow::Result<()> {
    if output.json { print(&value.to_string()) } else { print(text) }
}
