//! Whether keys are accepted, asked for requests that create nothing, and where the insert did not store every patient.

use std::collections::HashMap;
use std::net::IpAddr;

use diesel::dsl::now;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{Nullable, Timestamptz};
use intake_domain::{AllowedNetworks, KeyCheck, KeyHolder, KeyRefusal};
use uuid::Uuid;

use super::task::Request;
use crate::keys::ids;
use crate::keys::network_sql::{Stored, read};
use crate::schema::api_keys;

/// The keys that exist, and what is known of each at one moment.
pub(super) struct KeyChecks(HashMap<KeyHolder, FoundKey>);

struct FoundKey {
    /// Reason why it is refused, wherever the request came from.
    refusal: Option<KeyRefusal>,
    networks: AllowedNetworks,
}

impl KeyChecks {
    /// Looks up the keys of these requests.
    pub(super) fn of<'a>(
        connection: &mut PgConnection,
        requests: impl Iterator<Item = &'a Request>,
    ) -> QueryResult<Self> {
        let (organisations, keys): (Vec<_>, Vec<_>) =
            requests.filter_map(|request| Some(ids(&request.holder()?))).unzip();
        if keys.is_empty() {
            return Ok(Self(HashMap::new()));
        }
        let has_expired = api_keys::expires_at.le(now.into_sql::<Nullable<Timestamptz>>());
        let rows = api_keys::table
            .filter(api_keys::organisation_id.eq_any(organisations).and(api_keys::id.eq_any(keys)))
            .select((
                (api_keys::organisation_id, api_keys::id),
                api_keys::revoked_at.is_not_null(),
                has_expired,
                api_keys::suspended_at.is_not_null(),
                api_keys::paused_at.is_not_null(),
                api_keys::allowed_networks,
            ))
            .load(connection)?;
        let found = rows.into_iter().map(
            |(key, is_revoked, has_expired, is_suspended, is_paused, networks): (_, _, Option<bool>, _, _, Stored)| {
                let (organisation, key): (Uuid, Uuid) = key;
                let refusal = match (is_revoked, has_expired, is_suspended, is_paused) {
                    (true, ..) => Some(KeyRefusal::Revoked),
                    (false, Some(true), ..) => Some(KeyRefusal::Expired),
                    (false, _, true, _) => Some(KeyRefusal::Suspended),
                    (false, _, false, true) => Some(KeyRefusal::Paused),
                    (false, _, false, false) => None,
                };
                let holder = KeyHolder { key_id: key.into(), organisation_id: organisation.into() };
                (holder, FoundKey { refusal, networks: read(networks) })
            },
        );
        Ok(Self(found.collect()))
    }

    /// Check of the holder's key for a request from this address. If the key is missing, the database was restored to a
    /// moment before the key was made.
    pub(super) fn check(&self, holder: &KeyHolder, address: Option<IpAddr>) -> KeyCheck {
        match self.0.get(holder) {
            None => KeyCheck::Refused(KeyRefusal::Unknown),
            Some(FoundKey { refusal: Some(refusal), .. }) => KeyCheck::Refused(*refusal),
            Some(FoundKey { networks, .. }) if !networks.allow(address) => KeyCheck::Refused(KeyRefusal::Elsewhere),
            Some(_) => KeyCheck::Active(*holder),
        }
    }
}
