//! The stored columns of a member.

use diesel::prelude::*;
use intake_domain::Name;
use intake_domain::{Member, StoreError};
use uuid::Uuid;

use crate::schema::members;

/// A member as stored.
#[derive(Queryable, Selectable)]
#[diesel(table_name = members)]
pub(crate) struct MemberRow {
    id: Uuid,
    organisation_id: Uuid,
    name: String,
    email: String,
}

impl TryFrom<MemberRow> for Member {
    type Error = StoreError;

    fn try_from(row: MemberRow) -> Result<Self, Self::Error> {
        Ok(Self {
            id: row.id.into(),
            organisation_id: row.organisation_id.into(),
            name: Name::new(row.name).map_err(unreadable)?,
            email: row.email.parse().map_err(unreadable)?,
        })
    }
}

/// A stored value that no longer keeps the rules: a defect, not the caller's fault.
pub(crate) fn unreadable(error: impl std::error::Error + Send + Sync + 'static) -> StoreError {
    StoreError::Unexpected(error.into())
}
