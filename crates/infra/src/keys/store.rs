//! The API keys of organisations, over Diesel.

use async_trait::async_trait;
use diesel::data_types::PgInterval;
use diesel::prelude::*;
use diesel::sql_types::{Timestamptz, Uuid as SqlUuid};
use intake_domain::{
    ACTIVE_KEYS_MAX, Actor, AuditContext, AuditDetails, AuditedKey, KEYS_PER_DAY_MAX, KeyDigest, KeyHolder, KeyPlace,
    KeyStore, ManageKeysError, NewKey, OrganisationId, Replacement, StoreError,
};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::accounts::permission::assert_manages_keys;
use crate::audit::log::{name_of, record_made_key};
use crate::database::cluster::shards::Shards;
use crate::database::cluster::spread::is_spread;
use crate::database::connecting::pool::Database;
use crate::database::connecting::share::Share;
use crate::diesel_errors::{is_foreign_key_violation, is_unique_violation};
use crate::keys::directory::{self, KeyDirectory};
use crate::keys::ids;
use crate::keys::network_sql::{Stored, read, stored};
use crate::keys::status::{can_be_replaced, refusal};
use crate::organisations::{age_of, locked_state};
use crate::schema::api_keys;

/// The ports to API keys over PostgreSQL.
pub struct PostgresKeyStore(pub(super) Database);

impl PostgresKeyStore {
    /// A store over this pool.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self(database)
    }

    /// The holder of a key that is active at this moment. Asking is no use of the key. None: there is no such key, or
    /// it is not active.
    pub async fn holder(&self, key: &KeyDigest, now: OffsetDateTime) -> Result<Option<KeyHolder>, StoreError> {
        let key = *key;
        let found = self.0.run(Share::Common, move |connection| {
            let directory = KeyDirectory::default();
            directory.shards.learn(connection)?;
            directory.learn(connection, [&key])?;
            let Some(holder) = directory.holder(&key) else { return Ok(None) };
            let active = api_keys::table.find(ids(&holder)).filter(refusal(now).is_null());
            let is_active = diesel::select(diesel::dsl::exists(active)).get_result::<bool>(connection)?;
            Ok(is_active.then_some(holder))
        });
        found.await
    }
}

#[async_trait]
impl KeyStore for PostgresKeyStore {
    async fn place(&self, organisation: OrganisationId) -> Result<KeyPlace, StoreError> {
        let found = self.0.run(Share::Of(*organisation.as_uuid()), move |connection| {
            let shards = Shards::default();
            shards.learn(connection)?;
            Ok(shards)
        });
        Ok(directory::place(&found.await?, organisation))
    }

    async fn add_key(&self, key: &NewKey, audit: &AuditContext) -> Result<(), ManageKeysError> {
        let (key, audit) = (key.clone(), audit.clone());
        let added = self.0.run(Share::Of(*key.organisation_id.as_uuid()), move |connection| {
            let is_spread = is_spread(connection)?;
            let added = connection.transaction(|connection| add_key(connection, &key, &audit, is_spread));
            // Errors are sorted outside the transaction, which an error must end.
            match added {
                // Where keys are divided among nodes, only their homes are unique everywhere.
                Err(error) if is_unique_violation(&error) => Ok(Err(ManageKeysError::AlreadyMade)),
                Err(error) if is_foreign_key_violation(&error) => {
                    Ok(Err(ManageKeysError::NoSuchOrganisation(key.organisation_id)))
                }
                Err(diesel::result::Error::RollbackTransaction) => Ok(Err(ManageKeysError::TooManyKeys)),
                other => other,
            }
        });
        added.await?
    }
}

fn add_key(
    connection: &mut PgConnection,
    key: &NewKey,
    audit: &AuditContext,
    is_spread: bool,
) -> QueryResult<Result<(), ManageKeysError>> {
    assert_manages_keys(connection, *key.organisation_id.as_uuid(), audit)?;
    if let Some(refused) = refused_by_organisation(connection, key)? {
        return Ok(Err(refused));
    }
    let Some(Inherited { note, contact, networks }) = inherited(connection, key, audit)? else {
        return Ok(Err(ManageKeysError::NothingToReplace));
    };
    if matches!(audit.actor, Actor::Member { .. }) && others_of_the_day(connection, key)? >= i64::from(KEYS_PER_DAY_MAX)
    {
        return Ok(Err(ManageKeysError::TooManyToday));
    }
    let subject = read(networks.clone()).after_name(key.name.as_str());
    let ends_after = key.replaces.map(|by| i64::try_from(by.ends_after.whole_microseconds()).unwrap_or(i64::MAX));
    let row = (
        api_keys::id.eq(key.id.as_uuid()),
        api_keys::organisation_id.eq(key.organisation_id.as_uuid()),
        api_keys::name.eq(key.name.as_str()),
        api_keys::digest.eq(key.digest.as_bytes().as_slice()),
        api_keys::hint.eq(&key.hint),
        api_keys::created_at.eq(key.created_at),
        api_keys::created_by.eq(name_of(&audit.actor)),
        api_keys::expires_at.eq(key.expires_at),
        api_keys::replaces.eq(key.replaces.map(|replacement| *replacement.key.as_uuid())),
        api_keys::replaced_ends_after.eq(ends_after.map(PgInterval::from_microseconds)),
        api_keys::note.eq(note),
        api_keys::contact.eq(contact),
        api_keys::allowed_networks.eq(networks),
    );
    if diesel::insert_into(api_keys::table).values(row).on_conflict_do_nothing().execute(connection)? > 0 {
        if active_keys(connection, *key.organisation_id.as_uuid(), audit.at)? > i64::from(ACTIVE_KEYS_MAX) {
            return Err(diesel::result::Error::RollbackTransaction);
        }
        if is_spread {
            directory::write(connection, key)?;
        }
        if let Some(replacement) = key.replaces {
            end_by(connection, key, replacement)?;
        }
        return record_added(connection, key, &subject, audit).map(Ok);
    }
    Ok(if is_stored(connection, key)? { Ok(()) } else { Err(ManageKeysError::AlreadyMade) })
}

/// Returns why the organisation, which gets locked, may not have this key.
fn refused_by_organisation(connection: &mut PgConnection, key: &NewKey) -> QueryResult<Option<ManageKeysError>> {
    let id = key.organisation_id;
    let Some(organisation) = locked_state(connection, *id.as_uuid())? else {
        return Ok(Some(ManageKeysError::NoSuchOrganisation(id)));
    };
    if organisation.closed_at.is_some() {
        return Ok(Some(ManageKeysError::OrganisationClosed(id)));
    }
    if organisation.suspended_at.is_some() {
        return Ok(Some(ManageKeysError::OrganisationSuspended(id)));
    }
    let limit = age_of(organisation.key_days_max).filter(|age| !age.allows(key.created_at, key.expires_at));
    Ok(limit.map(ManageKeysError::TooLong))
}

/// The texts and networks of a key, which hold for its replacement.
#[derive(Queryable)]
struct Inherited {
    note: Option<String>,
    contact: Option<String>,
    networks: Stored,
}

/// The texts and networks of a new key: those of the key that it replaces, or its own. None: the key cannot
/// be replaced.
fn inherited(connection: &mut PgConnection, key: &NewKey, audit: &AuditContext) -> QueryResult<Option<Inherited>> {
    let Some(replacement) = key.replaces else {
        let contact = Some(key.contact.as_str().to_owned()).filter(|contact| !contact.is_empty());
        return Ok(Some(Inherited { note: None, contact, networks: stored(&key.allowed_networks) }));
    };
    let replaced = api_keys::table.find((key.organisation_id.as_uuid(), replacement.key.as_uuid()));
    let replaceable = replaced.filter(can_be_replaced(audit.at));
    replaceable.select((api_keys::note, api_keys::contact, api_keys::allowed_networks)).first(connection).optional()
}

/// Sets the latest end of the replaced key, which the service's role cannot do itself.
fn end_by(connection: &mut PgConnection, new: &NewKey, replacement: Replacement) -> QueryResult<()> {
    diesel::sql_query("SELECT end_replaced_key_by($1, $2, $3)")
        .bind::<SqlUuid, _>(new.organisation_id.as_uuid())
        .bind::<SqlUuid, _>(replacement.key.as_uuid())
        .bind::<Timestamptz, _>(replacement.ends_by)
        .execute(connection)
        .map(drop)
}

/// Returns whether this very key is there: an earlier run of the work was committed, and its answer lost.
fn is_stored(connection: &mut PgConnection, key: &NewKey) -> QueryResult<bool> {
    let there = api_keys::table.find((key.organisation_id.as_uuid(), key.id.as_uuid()));
    let this = there.filter(api_keys::digest.eq(key.digest.as_bytes().as_slice()));
    diesel::select(diesel::dsl::exists(this)).get_result(connection)
}

fn record_added(connection: &mut PgConnection, key: &NewKey, subject: &str, audit: &AuditContext) -> QueryResult<()> {
    let audited = AuditedKey { id: key.id, hint: key.hint.clone() };
    let details = AuditDetails {
        replaced_key: key.replaces.map(|replacement| replacement.key),
        key_expires_at: key.expires_at,
        ..AuditDetails::default()
    };
    record_made_key(connection, *key.organisation_id.as_uuid(), subject, &audited, &details, audit)
}

/// Returns how many other keys the members of the organisation made within a day.
fn others_of_the_day(connection: &mut PgConnection, key: &NewKey) -> QueryResult<i64> {
    let of_members = api_keys::table
        .filter(api_keys::organisation_id.eq(key.organisation_id.as_uuid()))
        .filter(api_keys::created_at.gt(key.created_at - time::Duration::DAY))
        .filter(api_keys::created_by.is_not_null().and(api_keys::id.ne(key.id.as_uuid())));
    of_members.count().get_result(connection)
}

fn active_keys(connection: &mut PgConnection, organisation: Uuid, now: OffsetDateTime) -> QueryResult<i64> {
    let of_organisation = api_keys::table.filter(api_keys::organisation_id.eq(organisation));
    // A paused key can be active again at any moment.
    let is_active_or_paused = refusal(now).is_null().or(refusal(now).eq("paused"));
    of_organisation.filter(is_active_or_paused).count().get_result(connection)
}
