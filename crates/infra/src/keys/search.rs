//! Which of an organisation's keys a search finds, and how many are in each scope.

use std::collections::BTreeMap;

use diesel::dsl::{count, count_star};
use diesel::helper_types::LeftJoinQuerySource;
use diesel::pg::{Pg, PgConnection};
use diesel::prelude::*;
use diesel::sql_types::{Bool, Nullable, Timestamptz};
use intake_domain::{ENDED_LATELY, EXPIRES_SOON, INSTALLED_WITHIN, KeyScope, KeySearch};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::audit::selection::literal;
use crate::keys::known::{Known, OfKey, with_uses};
use crate::keys::makers::made_by;
use crate::keys::status::refusal;
use crate::schema::{api_keys, key_refusals, key_uses};

const STATUSES: [KeyScope; 6] =
    [KeyScope::Current, KeyScope::Active, KeyScope::Suspended, KeyScope::Paused, KeyScope::Ended, KeyScope::All];
/// Reasons why keys need attention.
const REASONS: [KeyScope; 5] =
    [KeyScope::Lapsed, KeyScope::Expiring, KeyScope::OnlyRefused, KeyScope::NeverUsed, KeyScope::Silent];
/// Characters of a hint.
const HINT_LENGTH: usize = 4;

diesel::define_sql_function! {
    fn coalesce(first: Nullable<Timestamptz>, second: Timestamptz) -> Timestamptz;
}

/// A condition on keys and their uses.
pub(super) type Condition =
    Box<dyn BoxableExpression<LeftJoinQuerySource<api_keys::table, key_uses::table, OfKey>, Pg, SqlType = Bool>>;

/// Everything that decides which keys are in a scope.
pub(super) struct Scopes {
    now: OffsetDateTime,
    /// Those of which a request was refused whose id was typed.
    refused: Vec<Uuid>,
    only_refused: Vec<Uuid>,
    /// Those that the member of the search made.
    made: Vec<Uuid>,
    replaced: Vec<Uuid>,
}

/// Numbers of keys.
pub(super) struct Counts {
    /// Those that the search finds.
    pub(super) found: u64,
    pub(super) in_scope: BTreeMap<KeyScope, u64>,
    pub(super) total: u64,
    /// Those that were ever used.
    pub(super) used: u64,
}

impl Scopes {
    /// Scopes of an organisation of whose keys this is known.
    pub(super) fn read(
        connection: &mut PgConnection,
        organisation: Uuid,
        known: &Known,
        search: &KeySearch,
        now: OffsetDateTime,
    ) -> QueryResult<Self> {
        let request = search.text.trim();
        let refused = key_refusals::table
            .filter(key_refusals::organisation_id.eq(organisation).and(key_refusals::request_id.eq(request)))
            .select(key_refusals::key_id);
        let refused = if request.is_empty() { Vec::new() } else { refused.load(connection)? };
        let made = search.made_by.map(|member| made_by(connection, organisation, *member.as_uuid())).transpose()?;
        let only_refused = known.only_refused.keys().copied().collect();
        let replaced = known.successors.keys().copied().collect();
        Ok(Self { now, refused, only_refused, made: made.unwrap_or_default(), replaced })
    }

    /// Condition that a key is found.
    pub(super) fn found(&self, search: &KeySearch) -> Condition {
        Box::new(self.fits(search).and(self.condition(search.scope)))
    }

    /// Condition that a key is in the scope.
    fn condition(&self, scope: KeyScope) -> Condition {
        let now = self.now;
        let is_refused = |word: &'static str| refusal(now).is_not_distinct_from(word);
        let is_active = || refusal(now).is_null();
        match scope {
            KeyScope::Current => {
                let ended_at = coalesce(api_keys::revoked_at, coalesce(api_keys::expires_at, now));
                Box::new(ended_at.gt(now - ENDED_LATELY))
            }
            KeyScope::Active => Box::new(is_active()),
            KeyScope::Suspended => Box::new(is_refused("suspended")),
            KeyScope::Paused => Box::new(is_refused("paused")),
            KeyScope::Ended => Box::new(is_refused("expired").or(is_refused("revoked"))),
            KeyScope::All => Box::new(true.into_sql::<Bool>()),
            KeyScope::Lapsed => {
                let is_lately = api_keys::expires_at.assume_not_null().gt(now - ENDED_LATELY);
                Box::new(is_refused("expired").and(is_lately).and(api_keys::id.ne_all(self.replaced.clone())))
            }
            KeyScope::Expiring => {
                let is_soon = api_keys::expires_at.assume_not_null().le(now + EXPIRES_SOON);
                Box::new(is_active().and(is_soon).and(api_keys::id.ne_all(self.replaced.clone())))
            }
            KeyScope::OnlyRefused => Box::new(is_active().and(api_keys::id.eq_any(self.only_refused.clone()))),
            KeyScope::NeverUsed => {
                // As `KeyRecord::is_awaited` says.
                let is_old = api_keys::created_at.le(now - INSTALLED_WITHIN).and(api_keys::replaces.is_null());
                let is_unused = key_uses::last_used_at.nullable().is_null().and(is_old);
                Box::new(is_active().and(is_unused).and(api_keys::id.ne_all(self.only_refused.clone())))
            }
            KeyScope::Silent => {
                let announced_at = key_uses::silence_announced_at.nullable().assume_not_null();
                let last_used_at = coalesce(key_uses::last_used_at.nullable(), api_keys::created_at);
                Box::new(is_active().and(announced_at.gt(last_used_at)))
            }
        }
    }

    /// Counts an organisation's keys in one statement: by status those that fit the search.
    pub(super) fn count(
        &self,
        connection: &mut PgConnection,
        organisation: Uuid,
        search: &KeySearch,
    ) -> QueryResult<Counts> {
        type Statuses = (i64, i64, i64, i64, i64, i64);

        let [current, active, suspended, paused, ended, all] =
            STATUSES.map(|scope| count(api_keys::id).aggregate_filter(self.fits(search).and(self.condition(scope))));
        let [lapsed, expiring, refused, unused, silent] =
            REASONS.map(|scope| count(api_keys::id).aggregate_filter(self.condition(scope)));
        let found = count(api_keys::id).aggregate_filter(self.found(search));
        let counts = with_uses().filter(api_keys::organisation_id.eq(organisation)).select((
            (current, active, suspended, paused, ended, all),
            (lapsed, expiring, refused, unused, silent),
            (found, count_star(), count(key_uses::last_used_at.nullable())),
        ));
        let (by_status, by_reason, (found, total, used)) =
            counts.first::<(Statuses, (i64, i64, i64, i64, i64), (i64, i64, i64))>(connection)?;
        let counts = <[i64; 6]>::from(by_status).into_iter().chain(<[i64; 5]>::from(by_reason)).map(number);
        let in_scope = STATUSES.into_iter().chain(REASONS).zip(counts).collect();
        Ok(Counts { found: number(found), in_scope, total: number(total), used: number(used) })
    }

    /// Condition that the name, the creator or the hint of a key fits what was typed, or one of its refused requests,
    /// that it was unused for as long as is asked, and that the member who is asked for made it.
    fn fits(&self, search: &KeySearch) -> Condition {
        let text = search.text.trim();
        let hint: String = text.chars().skip(text.chars().count().saturating_sub(HINT_LENGTH)).collect();
        let is_named = api_keys::name.ilike(format!("%{}%", literal(text))).or(api_keys::hint.eq(hint));
        let is_created_by = api_keys::created_by.assume_not_null().ilike(format!("%{}%", literal(text)));
        let is_meant = is_named
            .or(api_keys::created_by.is_not_null().and(is_created_by))
            .or(api_keys::id.eq_any(self.refused.clone()));
        let last_used_or_made = coalesce(key_uses::last_used_at.nullable(), api_keys::created_at);
        let is_unused = search.unused_since.map(|since| Box::new(last_used_or_made.lt(since)) as Condition);
        let is_made = search.made_by.map(|_| Box::new(api_keys::id.eq_any(self.made.clone())) as Condition);
        let further = is_unused.into_iter().chain(is_made);
        further.fold(Box::new(is_meant), |all, one| Box::new(all.and(one)))
    }
}

fn number(count: i64) -> u64 {
    u64::try_from(count).unwrap_or_default()
}
