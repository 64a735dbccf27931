//! The share of the pool's connections that a person's work uses.

use diesel::prelude::*;
use intake_domain::{MemberId, StoreError, TokenDigest};

use crate::database::connecting::pool::Database;
use crate::database::connecting::share::Share;
use crate::schema::{memberships, sessions, waiting_sign_ins};

/// The share for changes of a person's account, which all organisations of the person record. With a share each, the
/// members of one organisation would use all connections while its rows are locked.
pub(crate) async fn share_of(database: &Database, person: MemberId) -> Result<Share, StoreError> {
    let own = memberships::table.filter(memberships::member_id.eq(*person.as_uuid()));
    let organisations = own.select(memberships::organisation_id);
    let found = database.run(Share::Common, move |connection| organisations.load(connection));
    Ok(Share::of_member(&found.await?))
}

/// The share of the person whose session it is.
pub(crate) async fn share_of_session(database: &Database, token: &TokenDigest) -> Result<Share, StoreError> {
    let own = memberships::table.on(memberships::member_id.eq(sessions::member_id));
    let digest = *token.as_bytes();
    let found = database.run(Share::Common, move |connection| {
        let of_holder = sessions::table.inner_join(own).filter(sessions::token_digest.eq(digest.as_slice()));
        of_holder.select(memberships::organisation_id).load(connection)
    });
    Ok(Share::of_member(&found.await?))
}

/// The share of a person who signs in in two steps, perhaps to accept an invitation.
pub(crate) async fn share_of_sign_in(
    database: &Database,
    waiting: &TokenDigest,
    person: MemberId,
) -> Result<Share, StoreError> {
    let digest = *waiting.as_bytes();
    let found = database.run(Share::Common, move |connection| {
        let waiting = waiting_sign_ins::table.find(digest.as_slice());
        waiting.select(waiting_sign_ins::invitation_digest.is_not_null()).first(connection).optional()
    });
    if found.await? == Some(true) { Ok(Share::Several) } else { share_of(database, person).await }
}
