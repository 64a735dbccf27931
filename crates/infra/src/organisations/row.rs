//! An organisation as PostgreSQL holds it.

use diesel::prelude::*;
use intake_domain::OrganisationRecord;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::schema::organisations;

/// An organisation as it is stored.
#[derive(Queryable, Selectable)]
#[diesel(table_name = organisations)]
pub(crate) struct OrganisationRow {
    pub(super) id: Uuid,
    pub(super) name: String,
    pub(super) suspended_at: Option<OffsetDateTime>,
    pub(super) closed_at: Option<OffsetDateTime>,
}

impl From<OrganisationRow> for OrganisationRecord {
    fn from(row: OrganisationRow) -> Self {
        let OrganisationRow { id, name, suspended_at, closed_at } = row;
        Self { id: id.into(), name, suspended_at, closed_at }
    }
}
