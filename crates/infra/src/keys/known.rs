//! What is known of keys besides their own rows: their uses, their refusals, and the keys that replace them.

use std::collections::HashMap;

use diesel::data_types::PgInterval;
use diesel::dsl::{And, Eq};
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::Timestamptz;
use intake_domain::{KeySuccessor, OnlyRefused};
use time::Duration;
use uuid::Uuid;

use crate::keys::only_refused;
use crate::keys::status::refusal;
use crate::schema::{api_keys, key_uses};

pub(super) type OfKey =
    And<Eq<key_uses::key_id, api_keys::id>, Eq<key_uses::organisation_id, api_keys::organisation_id>>;

/// Refusals and successors of keys, by the ids of the keys. A successor that is refused is none: the newest that is
/// accepted counts.
pub(super) struct Known {
    pub(super) only_refused: HashMap<Uuid, OnlyRefused>,
    pub(super) successors: HashMap<Uuid, KeySuccessor>,
}

impl Known {
    /// Reads what is known of these keys of an organisation, or of all of them.
    pub(super) fn read(connection: &mut PgConnection, organisation: Uuid, ids: Option<&[Uuid]>) -> QueryResult<Self> {
        let now = diesel::dsl::now.into_sql::<Timestamptz>();
        let replacements = with_uses()
            .filter(api_keys::organisation_id.eq(organisation))
            .filter(api_keys::replaces.is_not_null().and(refusal(now).is_null()))
            .order(api_keys::id)
            .select((
                api_keys::replaces.assume_not_null(),
                api_keys::id,
                key_uses::last_used_at.nullable().is_not_null(),
                api_keys::replaced_ends_after,
            ));
        let replacements: Vec<(Uuid, Uuid, bool, Option<PgInterval>)> = match ids {
            Some(ids) => replacements.filter(api_keys::replaces.eq_any(ids)).load(connection)?,
            None => replacements.load(connection)?,
        };
        let successor = |(replaced, id, is_used, ends_after): (Uuid, Uuid, bool, Option<PgInterval>)| {
            let ends_after = ends_after.as_ref().map_or(Duration::ZERO, duration);
            (replaced, KeySuccessor { id: id.into(), is_used, ends_after })
        };
        let successors = replacements.into_iter().map(successor).collect();
        Ok(Self { only_refused: only_refused::with_fields(connection, organisation, ids)?, successors })
    }
}

fn duration(interval: &PgInterval) -> Duration {
    Duration::microseconds(interval.microseconds) + Duration::days(interval.days.into())
}

/// Keys with their uses.
#[diesel::dsl::auto_type]
pub(super) fn with_uses() -> _ {
    let of_key: OfKey = key_uses::key_id.eq(api_keys::id).and(key_uses::organisation_id.eq(api_keys::organisation_id));
    api_keys::table.left_join(key_uses::table.on(of_key))
}
