//! Whether keys are accepted, asked for requests that create nothing, and where the insert did not store every patient.

use std::collections::HashMap;
use std::net::IpAddr;

use diesel::dsl::now;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::Timestamptz;
use intake_domain::{AllowedNetworks, KeyCheck, KeyHolder, KeyRefusal};
use uuid::Uuid;

use super::task::Request;
use crate::keys::network_sql::{Stored, read};
use crate::keys::{ids, status};
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
        let rows = api_keys::table
            .filter(api_keys::organisation_id.eq_any(organisations).and(api_keys::id.eq_any(keys)))
            .select((
                (api_keys::organisation_id, api_keys::id),
                status::refusal(now.into_sql::<Timestamptz>()),
                api_keys::allowed_networks,
            ))
            .load(connection)?;
        let found = rows.into_iter().map(|(key, refusal, networks): ((Uuid, Uuid), Option<String>, Stored)| {
            let holder = KeyHolder { key_id: key.1.into(), organisation_id: key.0.into() };
            (holder, FoundKey { refusal: refusal.as_deref().map(status::named), networks: read(networks) })
        });
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
