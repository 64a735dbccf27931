//! An organisation as PostgreSQL holds it.

use diesel::prelude::*;
use intake_domain::{KeyAge, OrganisationRecord};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::organisations::zone::zone_of;
use crate::schema::{organisation_states, organisations};

/// An organisation as it is stored.
#[derive(Queryable, Selectable)]
#[diesel(table_name = organisations)]
pub(crate) struct OrganisationRow {
    pub(super) id: Uuid,
    pub(super) name: String,
    pub(super) suspended_at: Option<OffsetDateTime>,
    pub(super) closed_at: Option<OffsetDateTime>,
    pub(super) key_days_max: Option<i32>,
    pub(super) time_zone: String,
}

impl From<OrganisationRow> for OrganisationRecord {
    fn from(row: OrganisationRow) -> Self {
        let OrganisationRow { id, name, suspended_at, closed_at, key_days_max, time_zone } = row;
        let (key_age_max, zone) = (age_of(key_days_max), zone_of(&time_zone));
        Self { id: id.into(), name, suspended_at, closed_at, key_age_max, zone }
    }
}

/// The age that the column holds.
pub(crate) fn age_of(days: Option<i32>) -> Option<KeyAge> {
    days.and_then(|days| u16::try_from(days).ok()).and_then(KeyAge::of_days)
}

/// Facts that decide if an organisation may get a key.
#[derive(Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = organisation_states, treat_none_as_null = true)]
pub(crate) struct OrganisationState {
    pub(crate) suspended_at: Option<OffsetDateTime>,
    pub(crate) closed_at: Option<OffsetDateTime>,
    pub(crate) key_days_max: Option<i32>,
}
