//! The share of the pool's connections that a person's work uses.

use diesel::prelude::*;
use intake_domain::{StoreError, TokenDigest};
use uuid::Uuid;

use crate::database::connecting::pool::Database;
use crate::database::connecting::share::Share;
use crate::schema::{memberships, sessions};

/// The share of the organisation that the person joined first, because what a person does is recorded there. With a
/// share each, the members of one organisation would use all connections while its rows are locked.
pub(crate) async fn share_of(database: &Database, person: Uuid) -> Result<Share, StoreError> {
    let found = database.run(Share::Common, move |connection| {
        let own = memberships::table.filter(memberships::member_id.eq(person));
        let first = own.order((memberships::joined_at, memberships::organisation_id));
        first.select(memberships::organisation_id).first(connection).optional()
    });
    Ok(Share::Of(found.await?.unwrap_or(person)))
}

/// The share of the person whose session it is.
pub(crate) async fn share_of_session(database: &Database, token: &TokenDigest) -> Result<Share, StoreError> {
    let digest = *token.as_bytes();
    let person = database.run(Share::Common, move |connection| {
        sessions::table.find(digest.as_slice()).select(sessions::member_id).first(connection).optional()
    });
    match person.await? {
        Some(person) => share_of(database, person).await,
        None => Ok(Share::Common),
    }
}
