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
    let found = database.run(Share::Common, move |connection| {
        let own = memberships::table.on(memberships::member_id.eq(sessions::member_id));
        let all = sessions::table.left_join(own).filter(sessions::token_digest.eq(digest.as_slice()));
        let first = all.order((memberships::joined_at, memberships::organisation_id));
        let columns = (sessions::member_id, memberships::organisation_id.nullable());
        first.select(columns).first::<(Uuid, Option<Uuid>)>(connection).optional()
    });
    Ok(Share::within(found.await?.map(|(person, organisation)| organisation.unwrap_or(person))))
}
