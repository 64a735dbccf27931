//! Changes that operators make to the register as a whole: each organisation concerned has an entry about it.

use diesel::connection::Connection;
use diesel::pg::PgConnection;
use intake_domain::{Action, AuditContext, OrganisationId, timestamp};
use time::OffsetDateTime;

use crate::audit::log::{record, record_in_each};
use crate::database::connecting::url::DatabaseUrl;
use crate::database::schema::restored::{accept, patiently};
use crate::database::schema::schema_error::SchemaError;

/// Records that these migrations were applied.
pub fn record_migrations(owner: &DatabaseUrl, applied: &[String], audit: &AuditContext) -> Result<(), SchemaError> {
    let subject = applied.join(", ");
    let record = |connection: &mut PgConnection| record_in_each(connection, Action::RegisterMigrated, &subject, audit);
    patiently(owner, |connection| connection.transaction(record))
}

/// Records that a database role is given the patients of an organisation to read; none: of all.
pub fn record_reader(
    owner: &DatabaseUrl,
    role: &str,
    organisation: Option<OrganisationId>,
    audit: &AuditContext,
) -> Result<(), SchemaError> {
    let record = |connection: &mut PgConnection| match organisation {
        Some(organisation) => record(connection, *organisation.as_uuid(), Action::ReaderGranted, role, audit),
        None => record_in_each(connection, Action::ReaderGranted, role, audit),
    };
    patiently(owner, |connection| connection.transaction(record))
}

/// Accepts a database that was restored or moved as the register, and records it. `newest` is the time of its newest
/// audit entry.
pub fn accept_restored(
    owner: &DatabaseUrl,
    newest: Option<OffsetDateTime>,
    audit: &AuditContext,
) -> Result<(), SchemaError> {
    let subject = newest.map_or_else(|| "an unknown time".to_owned(), timestamp);
    accept(owner, audit.entry_id, |connection| record_in_each(connection, Action::RegisterRestored, &subject, audit))
}
