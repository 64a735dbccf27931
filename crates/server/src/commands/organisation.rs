//! `intake organisation`: what operators do to whole organisations.

use anyhow::{Context, bail};
use intake_domain::{
    KeyRecord, ManageKeysError, MemberStore, Name, OrganisationId, OrganisationRecord, Zone, list_keys, timestamp,
};
use intake_edge as edge;
use intake_infra::{
    Database, EraseOrganisation, OrganisationOutcome, PostgresKeyStore, PostgresMembers, PostgresOrganisations,
    erase_organisation,
};
use serde_json::{Value, json};

use super::confirm::goes_on;
use super::database::with_database;
use super::operator::audit;
use super::output::{print_change, print_made, print_result};
use super::patient::OUT_OF_REACH;
use crate::backend::Backend;
use crate::settings::arguments::Brakes;
use crate::settings::configuration::Configuration;
use crate::settings::organisation_command::{OrganisationArguments, OrganisationCommand};

/// Number of ids that are tried on a cluster: one may belong to a node that is away.
const TRIED_IDS: usize = 8;

/// Keys that are named before they end.
const NAMED_MAX: usize = 20;

pub(crate) fn run(command: OrganisationCommand, configuration: &Configuration) -> anyhow::Result<()> {
    match command {
        OrganisationCommand::Erase { of, brakes } => erase(&of, &brakes, configuration),
        command => with_database(configuration, async |database| change(command, database, configuration).await),
    }
}

async fn change(command: OrganisationCommand, database: Database, configuration: &Configuration) -> anyhow::Result<()> {
    let organisations = PostgresOrganisations::new(database.clone());
    match command {
        OrganisationCommand::Create { name, run, output } => {
            let name = Name::new(name).context("--name")?;
            let ids = std::iter::repeat_with(|| OrganisationId::new(edge::now(), edge::random())).take(TRIED_IDS);
            let id = organisations.create(&name, ids, &audit(&run, configuration)).await?;
            let value = json!({ "id": id.to_string(), "name": name.as_str() });
            let unprinted = || format!("the organisation {id} was made");
            print_made(&output, &value, &format!("Created organisation {id} ({name})"), unprinted)
        }
        OrganisationCommand::List { output } => {
            let all = organisations.all().await?;
            let lines: Vec<_> = all.iter().map(line_of).collect();
            let text = if lines.is_empty() { "There is no organisation yet.".to_owned() } else { lines.join("\n") };
            print_result(&output, &all.iter().map(value_of).collect(), &text)
        }
        OrganisationCommand::Rename { name, of } => {
            let name = Name::new(name).context("--name")?;
            let outcome = organisations.rename(of.organisation, &name, &audit(&of.run, configuration)).await?;
            tell(&of, outcome, ["Renamed", "Nothing to do: this is its name already"])
        }
        OrganisationCommand::TimeZone { zone, of } => {
            let outcome = organisations.change_zone(of.organisation, zone, &audit(&of.run, configuration)).await?;
            tell(&of, outcome, ["Changed its time zone", "Nothing to do: this is its time zone already"])
        }
        OrganisationCommand::Suspend(of) => {
            let outcome = organisations.suspend(of.organisation, &audit(&of.run, configuration)).await?;
            tell(
                &of,
                outcome,
                ["Suspended: every key is refused from now on", "Nothing to do: it is suspended already"],
            )
        }
        OrganisationCommand::Resume(of) => {
            let outcome = organisations.resume(of.organisation, &audit(&of.run, configuration)).await?;
            tell(&of, outcome, ["Resumed: its keys are accepted again", "Nothing to do: it is not suspended"])
        }
        OrganisationCommand::Close { of, brakes } => {
            close(&of, &brakes, &organisations, &database, configuration).await
        }
        OrganisationCommand::Erase { .. } => bail!("this command must run as the owner of the database"),
    }
}

/// Closes an organisation after a yes. One that is not there, or closed already, is not asked about.
async fn close(
    of: &OrganisationArguments,
    brakes: &Brakes,
    organisations: &PostgresOrganisations,
    database: &Database,
    configuration: &Configuration,
) -> anyhow::Result<()> {
    let found = organisations.all().await?.into_iter().find(|organisation| organisation.id == of.organisation);
    let outcome = match found {
        None => OrganisationOutcome::NotFound,
        Some(organisation) if organisation.closed_at.is_some() => OrganisationOutcome::Closed(organisation),
        Some(organisation) => {
            let (ends, preview) = preview(database, &organisation).await?;
            if !goes_on(brakes, &of.output, &ends, &preview)? {
                return Ok(());
            }
            organisations.close(of.organisation, &audit(&of.run, configuration)).await?
        }
    };
    let outcome = match outcome {
        OrganisationOutcome::Closed(organisation) => OrganisationOutcome::Unchanged(organisation),
        outcome => outcome,
    };
    let closed = "Closed: its keys are revoked and its members removed. Its patients are kept until \
                  `intake organisation erase` removes them";
    tell(of, outcome, [closed, "Nothing to do: it is closed already"])
}

/// Keys and members that end when an organisation is closed.
async fn preview(database: &Database, organisation: &OrganisationRecord) -> anyhow::Result<(Value, String)> {
    let (now, OrganisationRecord { id, name, .. }) = (edge::now(), organisation);
    let id = *id;
    let keys: Vec<_> = list_keys(&PostgresKeyStore::new(database.clone()), id).await?;
    let open: Vec<_> = keys.iter().filter(|key| !key.is_over(now)).collect();
    let members = PostgresMembers::new(database.clone()).members(id).await?.len();
    let value = json!({
        "id": id.to_string(),
        "name": name,
        "members": members,
        "keys": open.iter().map(|key| key.id.to_string()).collect::<Vec<_>>(),
    });
    let text = format!(
        "This closes the organisation {name} ({id}) for good.\nMembers who are removed: {members}\n\
         {}",
        ending_keys(&open)
    );
    Ok((value, text))
}

/// The number of keys that a command revokes, and the names and last use of the first.
pub(super) fn ending_keys(keys: &[&KeyRecord]) -> String {
    let lines = keys.iter().map(|key| {
        let used =
            key.last_used_at.map_or_else(|| "never used".to_owned(), |at| format!("last used {}", timestamp(at)));
        format!("\n  {} (…{}), {used}", key.name, key.hint)
    });
    let named = lines.take(NAMED_MAX).collect::<String>();
    let more = if keys.len() > NAMED_MAX { format!("\n  and {} more", keys.len() - NAMED_MAX) } else { String::new() };
    format!("Keys that are revoked: {}{named}{more}", keys.len())
}

/// Refuses an organisation that is not there.
pub(super) async fn assert_organisation(
    database: &Database,
    organisation: Option<OrganisationId>,
) -> anyhow::Result<()> {
    let Some(id) = organisation else { return Ok(()) };
    let all = PostgresOrganisations::new(database.clone()).all().await?;
    let is_there = all.iter().any(|found| found.id == id);
    if is_there { Ok(()) } else { Err(ManageKeysError::NoSuchOrganisation(id).into()) }
}

/// Says what became of it: the first text if something changed, else the second.
fn tell(of: &OrganisationArguments, outcome: OrganisationOutcome, texts: [&str; 2]) -> anyhow::Result<()> {
    let [changed, unchanged] = texts;
    let (organisation, text) = match outcome {
        OrganisationOutcome::Changed(organisation) => (organisation, changed),
        OrganisationOutcome::Unchanged(organisation) => (organisation, unchanged),
        OrganisationOutcome::Closed(OrganisationRecord { id, .. }) => bail!("the organisation {id} is closed"),
        OrganisationOutcome::NotFound => bail!("there is no organisation {}", of.organisation),
    };
    print_change(&of.output, &value_of(&organisation), &format!("{}\n{text}.", line_of(&organisation)))
}

fn erase(of: &OrganisationArguments, brakes: &Brakes, configuration: &Configuration) -> anyhow::Result<()> {
    let backend = Backend::open(configuration)?;
    backend.assert_owner()?;
    let id = of.organisation;
    let mut agreed = Ok(false);
    let agrees = |name: &str, patients: i64| {
        let preview = format!("This erases {patients} patients of the closed organisation {name} ({id}) for good.");
        let ends = json!({ "id": id.to_string(), "name": name, "patients": patients });
        agreed = goes_on(brakes, &of.output, &ends, &preview);
        matches!(agreed, Ok(true))
    };
    match erase_organisation(&backend.owner, id, agrees, &audit(&of.run, configuration))? {
        EraseOrganisation::NotAgreed => agreed.map(drop),
        EraseOrganisation::Erased(patients) => {
            let value = json!({ "id": id.to_string(), "erasedPatients": patients });
            let text = format!("Erased {patients} patients for good.\n\n{OUT_OF_REACH}");
            let unprinted = || format!("erased {patients} patients of the organisation {id} for good");
            print_made(&of.output, &value, &text, unprinted)
        }
        EraseOrganisation::NotClosed => {
            bail!("the organisation {id} is not closed: `intake organisation close {id}` comes first")
        }
        EraseOrganisation::NotFound => bail!("there is no organisation {id}"),
    }
}

fn value_of(organisation: &OrganisationRecord) -> Value {
    let OrganisationRecord { id, name, suspended_at, closed_at, key_age_max, zone } = organisation;
    let mut value = json!({ "id": id.to_string(), "name": name });
    for (member, at) in [("suspendedAt", suspended_at), ("closedAt", closed_at)] {
        if let (Some(at), Some(members)) = (at, value.as_object_mut()) {
            members.insert(member.to_owned(), timestamp(*at).into());
        }
    }
    if let (true, Some(members)) = (*zone != Zone::default(), value.as_object_mut()) {
        members.insert("timeZone".to_owned(), zone.name().into());
    }
    if let (Some(age), Some(members)) = (key_age_max, value.as_object_mut()) {
        members.insert("keyDaysMax".to_owned(), age.days().into());
    }
    value
}

fn line_of(organisation: &OrganisationRecord) -> String {
    let OrganisationRecord { id, name, suspended_at, closed_at, key_age_max, zone } = organisation;
    let zone = if *zone == Zone::default() { String::new() } else { format!("  {}", zone.name()) };
    let age = key_age_max.map(|age| format!("  keys expire within {age}")).unwrap_or_default();
    match (closed_at, suspended_at) {
        (Some(at), _) => format!("{id}  {name}  closed {}", timestamp(*at)),
        (None, Some(at)) => format!("{id}  {name}  suspended {}{age}{zone}", timestamp(*at)),
        (None, None) => format!("{id}  {name}{age}{zone}"),
    }
}
