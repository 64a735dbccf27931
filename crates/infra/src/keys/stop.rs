//! Stopping all keys of an organisation, or selected ones, together, and resuming them together.

use diesel::dsl::{count_star, min};
use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::{Action, AuditContext, AuditedKey, KeyId, KeyStop, ManageKeysError, StoppedKey};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::accounts::permission::{assert_manages_keys, may_administer};
use crate::audit::log::{is_recorded, record, record_about_key};
use crate::keys::pause::{paused, unpaused};
use crate::keys::status::is_open;
use crate::organisations::note_resumed;
use crate::schema::{api_keys, audit_entries, organisation_states};

/// Runs a change of several keys: of all of them only for an administrator. Keys that are made at the same moment wait
/// for its end.
pub(super) fn change(
    connection: &mut PgConnection,
    organisation: Uuid,
    audit: &AuditContext,
    is_of_all: bool,
    change: impl FnOnce(&mut PgConnection, Uuid, &AuditContext) -> QueryResult<()>,
) -> QueryResult<Result<Vec<StoppedKey>, ManageKeysError>> {
    connection.transaction(|connection| {
        if !is_of_all {
            assert_manages_keys(connection, organisation, audit)?;
        } else if !may_administer(connection, organisation, audit)? {
            return Ok(Err(ManageKeysError::NotAdministrator));
        }
        let own = organisation_states::table.find(organisation).select(organisation_states::organisation_id);
        if own.for_no_key_update().first::<Uuid>(connection).optional()?.is_none() {
            return Ok(Err(ManageKeysError::NoSuchOrganisation(organisation.into())));
        }
        if !is_recorded(connection, organisation, audit)? {
            change(connection, organisation, audit)?;
        }
        changed(connection, organisation, audit).map(Ok)
    })
}

pub(super) fn stop(connection: &mut PgConnection, organisation: Uuid, audit: &AuditContext) -> QueryResult<()> {
    let keys = pause_each(connection, organisation, None, audit)?;
    if keys.is_empty() {
        return Ok(());
    }
    record(connection, organisation, Action::KeysStopped, &counted(&keys), audit)
}

/// Pauses those of these keys that are accepted.
pub(super) fn pause(
    connection: &mut PgConnection,
    organisation: Uuid,
    keys: &[Uuid],
    audit: &AuditContext,
) -> QueryResult<()> {
    pause_each(connection, organisation, Some(keys), audit).map(drop)
}

/// Pauses accepted keys, all or some, and records it for each.
fn pause_each(
    connection: &mut PgConnection,
    organisation: Uuid,
    selected: Option<&[Uuid]>,
    audit: &AuditContext,
) -> QueryResult<Vec<StoppedRow>> {
    let of_organisation = api_keys::table.filter(api_keys::organisation_id.eq(organisation));
    let accepted = of_organisation.filter(is_open()).filter(api_keys::paused_at.is_null()).order(api_keys::id);
    let accepted = accepted.select(StoppedRow::as_select()).for_no_key_update();
    let keys = match selected {
        Some(selected) => accepted.filter(api_keys::id.eq_any(selected)).load(connection)?,
        None => accepted.load(connection)?,
    };
    let change = paused(&audit.actor, Some(*audit.entry_id.as_uuid()));
    diesel::update(of_organisation.filter(api_keys::id.eq_any(ids(&keys)))).set(change).execute(connection)?;
    record_each(connection, organisation, &keys, Action::KeyPaused, audit)?;
    Ok(keys)
}

pub(super) fn resume(
    connection: &mut PgConnection,
    organisation: Uuid,
    stop: Uuid,
    audit: &AuditContext,
) -> QueryResult<()> {
    let of_organisation = api_keys::table.filter(api_keys::organisation_id.eq(organisation));
    let stopped = of_organisation.filter(is_open()).filter(api_keys::stopped_in.eq(stop)).order(api_keys::id);
    let keys = stopped.select(StoppedRow::as_select()).for_no_key_update().load(connection)?;
    if keys.is_empty() {
        return Ok(());
    }
    diesel::update(of_organisation.filter(api_keys::id.eq_any(ids(&keys)))).set(unpaused()).execute(connection)?;
    note_resumed(connection, organisation, Some(&ids(&keys)))?;
    record_each(connection, organisation, &keys, Action::KeyResumed, audit)?;
    record(connection, organisation, Action::KeysResumed, &counted(&keys), audit)
}

/// Records what was done to each key.
fn record_each(
    connection: &mut PgConnection,
    organisation: Uuid,
    keys: &[StoppedRow],
    action: Action,
    audit: &AuditContext,
) -> QueryResult<()> {
    for StoppedRow { id, name, hint } in keys {
        let key = AuditedKey { id: (*id).into(), hint: hint.clone() };
        record_about_key(connection, organisation, action, name, &key, &audit.of_key(key.id))?;
    }
    Ok(())
}

fn counted(keys: &[StoppedRow]) -> String {
    if keys.len() == 1 { "1 key".to_owned() } else { format!("{} keys", keys.len()) }
}

/// The keys that the change has recorded: in this run, or in an earlier one whose answer was lost.
fn changed(connection: &mut PgConnection, organisation: Uuid, audit: &AuditContext) -> QueryResult<Vec<StoppedKey>> {
    let all = api_keys::table.filter(api_keys::organisation_id.eq(organisation)).order(api_keys::id);
    let mut keys = all.select(StoppedRow::as_select()).load(connection)?;
    let entry = |key: &StoppedRow| *audit.of_key(key.id.into()).entry_id.as_uuid();
    let recorded = audit_entries::table
        .filter(audit_entries::organisation_id.eq(organisation))
        .filter(audit_entries::id.eq_any(keys.iter().map(entry).collect::<Vec<_>>()));
    let recorded = recorded.select(audit_entries::id).load::<Uuid>(connection)?;
    keys.retain(|key| recorded.contains(&entry(key)));
    Ok(keys.into_iter().map(StoppedKey::from).collect())
}

pub(super) fn stops(connection: &mut PgConnection, organisation: Uuid) -> QueryResult<Vec<KeyStop>> {
    type Stop = (Option<Uuid>, Option<OffsetDateTime>, Option<String>, i64);

    let stopped = api_keys::table
        .filter(api_keys::organisation_id.eq(organisation).and(api_keys::stopped_in.is_not_null()))
        .filter(is_open())
        .group_by(api_keys::stopped_in)
        .select((api_keys::stopped_in, min(api_keys::paused_at), min(api_keys::paused_by), count_star()))
        .order(min(api_keys::paused_at).desc());
    let stops = stopped.load::<Stop>(connection)?;
    let of_all = of_all(connection, organisation, &stops.iter().filter_map(|(id, ..)| *id).collect::<Vec<_>>())?;
    let stops = stops.into_iter().filter_map(|(id, at, by, keys)| {
        let (id, keys) = (id?, usize::try_from(keys).unwrap_or_default());
        Some(KeyStop { id: id.into(), is_of_all: of_all.contains(&id), at: at?, by, keys })
    });
    Ok(stops.collect())
}

/// Those of these stops that were of all keys: only such a stop is recorded as a whole.
pub(super) fn of_all(connection: &mut PgConnection, organisation: Uuid, stops: &[Uuid]) -> QueryResult<Vec<Uuid>> {
    let of_organisation = audit_entries::table.filter(audit_entries::organisation_id.eq(organisation));
    of_organisation.filter(audit_entries::id.eq_any(stops)).select(audit_entries::id).load(connection)
}

fn ids(keys: &[StoppedRow]) -> Vec<Uuid> {
    keys.iter().map(|key| key.id).collect()
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = api_keys)]
struct StoppedRow {
    id: Uuid,
    name: String,
    hint: String,
}

impl From<StoppedRow> for StoppedKey {
    fn from(StoppedRow { id, name, hint }: StoppedRow) -> Self {
        Self { id: KeyId::from(id), name, hint }
    }
}

#[cfg(test)]
mod tests {
    use diesel::connection::SimpleConnection;
    use intake_domain::{Actor, Operator};
    use intake_test_support::TestDatabase;

    use super::*;

    const KEYS: &str = "
        INSERT INTO organisations (id, name) VALUES (gen_random_uuid(), 'Clinic');
        INSERT INTO api_keys (id, organisation_id, name, digest, hint, created_at)
            SELECT gen_random_uuid(), id, n::text, sha256(n::text::bytea), 'aaaa', now()
            FROM organisations, generate_series(1, 3) AS n";

    fn audit(entry: u128) -> AuditContext {
        let (actor, at) = (Actor::Operator(Operator::default()), OffsetDateTime::UNIX_EPOCH);
        AuditContext { entry_id: Uuid::from_u128(entry).into(), actor, address: None, at, confirmed_in: None }
    }

    /// The pool runs work once more if its answer was lost, with the same entry.
    #[test]
    fn a_stop_that_is_run_again_gives_its_keys_again_and_another_one_gives_none() {
        let database = TestDatabase::new();
        let mut connection = database.connect();
        connection.batch_execute(KEYS).unwrap();
        let organisation = api_keys::table.select(api_keys::organisation_id).first::<Uuid>(&mut connection).unwrap();
        for (entry, keys) in [(1, 3), (1, 3), (2, 0)] {
            let stopped = change(&mut connection, organisation, &audit(entry), true, stop).unwrap().unwrap();
            assert_eq!(stopped.len(), keys, "{entry}");
        }
        let first = Uuid::from_u128(1);
        for (entry, keys) in [(3, 3), (3, 3), (4, 0)] {
            let again = |connection: &mut PgConnection, id, audit: &_| resume(connection, id, first, audit);
            let resumed = change(&mut connection, organisation, &audit(entry), true, again).unwrap().unwrap();
            assert_eq!(resumed.len(), keys, "{entry}");
        }
        assert_eq!(stops(&mut connection, organisation).unwrap(), []);
        assert_eq!(database.count("audit_entries"), 3 + 1 + 3 + 1);
    }
}
