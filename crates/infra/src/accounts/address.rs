//! Which accounts have an address. Several can where there is no mail server, but not two in one organisation.

use diesel::dsl::exists;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::Text;
use intake_domain::PasswordHash;
use uuid::Uuid;

use crate::schema::{members, memberships, organisations};

/// The password hashes of all accounts with the address but this one. No account gets or loses the address by another
/// transaction that calls this, until this one ends.
pub(crate) fn others_with(
    connection: &mut PgConnection,
    email_folded: &str,
    member: Uuid,
) -> QueryResult<Vec<PasswordHash>> {
    let lock = diesel::sql_query("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))");
    lock.bind::<Text, _>(email_folded).execute(connection)?;
    let others = members::table.filter(members::email_folded.eq(email_folded).and(members::id.ne(member)));
    let hashes: Vec<Option<String>> = others.select(members::password_hash).load(connection)?;
    Ok(hashes.into_iter().flatten().map(PasswordHash::new).collect())
}

/// Locks an organisation until the end of the transaction: nobody else gets a name or an address in it.
pub(crate) fn lock_organisation(connection: &mut PgConnection, organisation: Uuid) -> QueryResult<()> {
    let row = organisations::table.find(organisation).select(organisations::id);
    row.for_no_key_update().first::<Uuid>(connection).map(drop)
}

/// Returns whether another member of the organisation has the address.
pub(crate) fn is_anothers_address(
    connection: &mut PgConnection,
    organisation: Uuid,
    member: Uuid,
    email_folded: &str,
) -> QueryResult<bool> {
    let others = memberships::table
        .inner_join(members::table)
        .filter(memberships::organisation_id.eq(organisation).and(memberships::member_id.ne(member)))
        .filter(members::email_folded.eq(email_folded));
    diesel::select(exists(others)).get_result(connection)
}
