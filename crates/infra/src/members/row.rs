//! The stored columns of a member.

use diesel::dsl::exists;
use diesel::prelude::*;
use intake_domain::{Member, MemberRecord, Name, StoreError};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::schema::{members, passkeys};

/// A member as stored.
#[derive(Queryable, Selectable)]
#[diesel(table_name = members)]
pub(crate) struct MemberRow {
    id: Uuid,
    organisation_id: Uuid,
    name: String,
    email: String,
    role: String,
}

impl TryFrom<MemberRow> for Member {
    type Error = StoreError;

    fn try_from(row: MemberRow) -> Result<Self, Self::Error> {
        Ok(Self {
            id: row.id.into(),
            organisation_id: row.organisation_id.into(),
            name: Name::new(row.name).map_err(unreadable)?,
            email: row.email.parse().map_err(unreadable)?,
            role: row.role.parse().map_err(unreadable)?,
        })
    }
}

/// Whether a member signs in with more than the password: a code of the app, or a passkey.
#[diesel::dsl::auto_type]
pub(crate) fn has_second_factor() -> _ {
    let passkeys = passkeys::table.filter(passkeys::member_id.eq(members::id));
    members::totp_secret.is_not_null().or(exists(passkeys))
}

/// A member as its organisation lists it.
#[derive(Queryable, Selectable)]
#[diesel(table_name = members)]
pub(crate) struct ListedMember {
    id: Uuid,
    name: String,
    email: String,
    joined_at: OffsetDateTime,
    role: String,
    #[diesel(select_expression = has_second_factor(), select_expression_type = has_second_factor)]
    has_second_factor: bool,
}

impl TryFrom<ListedMember> for MemberRecord {
    type Error = StoreError;

    fn try_from(row: ListedMember) -> Result<Self, Self::Error> {
        let ListedMember { id, name, email, joined_at, role, has_second_factor } = row;
        let role = role.parse().map_err(unreadable)?;
        Ok(Self { id: id.into(), name, email, joined_at, role, has_second_factor })
    }
}

/// A stored value that no longer keeps the rules: a defect, not the caller's fault.
pub(crate) fn unreadable(error: impl std::error::Error + Send + Sync + 'static) -> StoreError {
    StoreError::Unexpected(error.into())
}
