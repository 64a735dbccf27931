//! The time zone of an organisation.

use diesel::prelude::*;
use intake_domain::{Action, AuditContext, OrganisationRecord, Zone};

use crate::audit::log::record;
use crate::schema::organisations;

/// The zone that the column names. A later version of the program may know more zones than this one.
pub(crate) fn zone_of(name: &str) -> Zone {
    name.parse().unwrap_or_default()
}

/// Changes the time zone of a locked organisation, and records the old and the new one. Returns whether it is another
/// one.
pub(crate) fn put_zone(
    connection: &mut PgConnection,
    found: &OrganisationRecord,
    zone: Zone,
    audit: &AuditContext,
) -> QueryResult<bool> {
    let OrganisationRecord { id, name, zone: old, .. } = found;
    if *old == zone {
        return Ok(false);
    }
    let id = *id.as_uuid();
    diesel::update(organisations::table.find(id)).set(organisations::time_zone.eq(zone.name())).execute(connection)?;
    let subject = format!("{name}: {} → {}", old.name(), zone.name());
    record(connection, id, Action::OrganisationZoneChanged, &subject, audit)?;
    Ok(true)
}
