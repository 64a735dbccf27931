//! The refusals of one request by its id, over all keys.

use diesel::prelude::*;
use diesel::sql_types::{Array, Bool, Integer, Nullable, Text, Timestamptz};
use intake_domain::StoreError;
use time::OffsetDateTime;

use crate::database::connecting::pool::Database;
use crate::database::connecting::share::Share;
use crate::keys::activity::owned_key::OwnedKey;

const REFUSED: &str = "SELECT r.at, r.status, r.reason, r.fields, r.is_simulated, r.address, r.instance,
        r.organisation_id AS organisation, o.name AS organisation_name, r.key_id AS key, k.name, k.hint
    FROM key_refusals AS r
    JOIN api_keys AS k ON k.organisation_id = r.organisation_id AND k.id = r.key_id
    JOIN organisations AS o ON o.id = r.organisation_id
    WHERE r.request_id = $1 ORDER BY r.at, r.key_id";

/// A request that was refused, with its key.
#[derive(Clone, Debug, QueryableByName)]
pub struct RefusedRequest {
    /// Time at which it was answered.
    #[diesel(sql_type = Timestamptz)]
    pub at: OffsetDateTime,
    /// Status of the answer.
    #[diesel(sql_type = Integer)]
    pub status: i32,
    /// Reason, in a word.
    #[diesel(sql_type = Text)]
    pub reason: String,
    /// Names of the fields that broke rules.
    #[diesel(sql_type = Array<Text>)]
    pub fields: Vec<String>,
    /// True if the request had ordered the failure.
    #[diesel(sql_type = Bool)]
    pub is_simulated: bool,
    /// The address that it came from, if that is known.
    #[diesel(sql_type = Nullable<Text>)]
    pub address: Option<String>,
    /// The instance that answered. None: an earlier program did.
    #[diesel(sql_type = Nullable<Text>)]
    pub instance: Option<String>,
    /// The key.
    #[diesel(embed)]
    pub key: OwnedKey,
}

/// The refusals of requests with this id, the oldest first. Clients may send an id more than once.
pub async fn refused_requests(database: &Database, request_id: String) -> Result<Vec<RefusedRequest>, StoreError> {
    let found = database
        .run(Share::Common, move |connection| diesel::sql_query(REFUSED).bind::<Text, _>(&request_id).load(connection));
    found.await
}
