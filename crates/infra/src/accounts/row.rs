//! The stored columns of a member.

use diesel::dsl::exists;
use diesel::prelude::*;
use intake_domain::{Account, Factors, Member, MemberRecord, Name, StoreError, TotpSecret};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::schema::{members, memberships, passkeys};

/// An account as stored.
#[derive(Queryable, Selectable)]
#[diesel(table_name = members)]
pub(crate) struct AccountRow {
    pub(crate) id: Uuid,
    name: String,
    pub(crate) email: String,
}

impl TryFrom<AccountRow> for Account {
    type Error = StoreError;

    fn try_from(AccountRow { id, name, email }: AccountRow) -> Result<Self, Self::Error> {
        let name = Name::stored(name).map_err(unreadable)?;
        Ok(Self { id: id.into(), name, email: email.parse().map_err(unreadable)? })
    }
}

/// A member of an organisation as stored.
#[derive(Queryable, Selectable)]
#[diesel(table_name = memberships)]
pub(crate) struct MemberRow {
    #[diesel(embed)]
    account: AccountRow,
    organisation_id: Uuid,
    role: String,
}

impl TryFrom<MemberRow> for Member {
    type Error = StoreError;

    fn try_from(row: MemberRow) -> Result<Self, Self::Error> {
        let Account { id, name, email } = row.account.try_into()?;
        let role = row.role.parse().map_err(unreadable)?;
        Ok(Self { id, organisation_id: row.organisation_id.into(), name, email, role })
    }
}

/// Returns whether a person belongs to another organisation than this one.
pub(crate) fn belongs_elsewhere(connection: &mut PgConnection, member: Uuid, organisation: Uuid) -> QueryResult<bool> {
    let others = memberships::table
        .filter(memberships::member_id.eq(member))
        .filter(memberships::organisation_id.ne(organisation));
    diesel::select(exists(others)).get_result(connection)
}

/// The second factors of a member as stored.
#[derive(Default, Queryable, Selectable)]
#[diesel(table_name = members)]
pub(crate) struct FactorsRow {
    totp_secret: Option<Vec<u8>>,
    #[diesel(select_expression = has_passkey(), select_expression_type = has_passkey)]
    has_passkey: bool,
    #[diesel(select_expression = members::password_hash.is_not_null())]
    has_password: bool,
    #[diesel(select_expression = members::provider_subject.is_not_null())]
    is_linked_to_provider: bool,
}

impl From<FactorsRow> for Factors {
    fn from(row: FactorsRow) -> Self {
        let FactorsRow { totp_secret, has_passkey, has_password, is_linked_to_provider } = row;
        let secret = totp_secret.and_then(|bytes| TotpSecret::from_bytes(&bytes));
        Self { secret, has_passkey, has_password, is_linked_to_provider }
    }
}

#[diesel::dsl::auto_type]
fn has_passkey() -> _ {
    exists(passkeys::table.filter(passkeys::member_id.eq(members::id)))
}

/// Condition that a member signs in with more than the password: a code of the app, or a passkey.
#[diesel::dsl::auto_type]
pub(crate) fn has_second_factor() -> _ {
    members::totp_secret.is_not_null().or(has_passkey())
}

/// Condition that the address was proved to be the member's.
#[diesel::dsl::auto_type]
pub(crate) fn is_address_proved() -> _ {
    members::email_proved_at.is_not_null()
}

/// A member as its organisation lists it.
#[derive(Queryable, Selectable)]
#[diesel(table_name = members)]
pub(crate) struct ListedMember {
    id: Uuid,
    name: String,
    email: String,
    #[diesel(select_expression = memberships::joined_at)]
    joined_at: OffsetDateTime,
    #[diesel(select_expression = memberships::role)]
    role: String,
    #[diesel(select_expression = has_second_factor(), select_expression_type = has_second_factor)]
    has_second_factor: bool,
    #[diesel(select_expression = members::provider_subject.is_not_null())]
    is_linked_to_provider: bool,
}

impl TryFrom<ListedMember> for MemberRecord {
    type Error = StoreError;

    fn try_from(row: ListedMember) -> Result<Self, Self::Error> {
        let ListedMember { id, name, email, joined_at, role, has_second_factor, is_linked_to_provider } = row;
        let role = role.parse().map_err(unreadable)?;
        Ok(Self { id: id.into(), name, email, joined_at, role, has_second_factor, is_linked_to_provider })
    }
}

/// A stored value that no longer keeps the rules: a defect, not the caller's fault.
pub(crate) fn unreadable(error: impl std::error::Error + Send + Sync + 'static) -> StoreError {
    StoreError::Unexpected(error.into())
}
