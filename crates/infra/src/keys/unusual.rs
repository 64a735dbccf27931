//! Finds keys that have fallen silent, are refused more often than usual or altogether, each once, however many
//! instances look for them. All moments are the database's.

use async_trait::async_trait;
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Bool, Date as SqlDate, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use intake_domain::{
    ACTIVE_KEYS_MAX, BUSY_DAYS, BUSY_REQUESTS, ONLY_REFUSED_MIN, QUIET_TIMES, REFUSALS_ANNOUNCED_EVERY, REFUSED_MIN,
    REFUSED_TIMES, StoreError, USUAL_DAYS, UnusualKey, UnusualKeyStore, UnusualUse,
};
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

use crate::database::cluster::parts::{Part, of_each_part};
use crate::database::connecting::clock;
use crate::database::connecting::share::Share;
use crate::database::rows::Id;
use crate::keys::PostgresKeyStore;
use crate::keys::habit::{SameDay, by_day, habit, is_in_part};
use crate::keys::only_refused::NIGHT;
use crate::keys::status::{has_no_replacement_at, refusal_at};
use crate::organisations::zone_of;

/// Looks come once an hour. Where the last one was longer ago than this, or is to come, the service was away, the
/// database was restored, or a clock was changed: silence counts from here, or hundreds of mails would say so.
const BREAK: Duration = Duration::hours(3);
/// Longer than a weekend. Where several organisations send and none has for so long, requests did not get through, and
/// silence counts from the first that does.
const CUT_OFF: Duration = Duration::days(3);
/// Time for which an organisation that got news waits for the next of its kind: what happens in between is one mail.
const NEWS_EVERY: Duration = Duration::DAY;
/// Keys of a part at once: as many as one organisation can have. The rest follow at the next look.
const CLAIMED_MAX: u32 = ACTIVE_KEYS_MAX;

#[async_trait]
impl UnusualKeyStore for PostgresKeyStore {
    async fn claim_unusual(&self) -> Result<Vec<UnusualKey>, StoreError> {
        let now = self.0.run(Share::Common, clock::read).await?;
        let uses = of_each_part(&self.0, last_use).await?;
        // Where several organisations send and none has for a day, the service itself may be out of reach, or all have
        // a holiday.
        let send_several = uses.iter().map(|part| part.organisations).sum::<i64>() > 1;
        let is_used = !send_several || uses.iter().any(|part| part.is_recent);
        let is_cut_off = send_several && uses.iter().all(|part| part.is_long_ago);
        of_each_part(&self.0, move |connection, part| {
            // One instance at a time, because the row of the watch is locked first. A look that fails does not count.
            // One that is slow is run again, and gives the keys that it has marked with its moment again.
            connection.transaction(|connection| {
                let look = Look::begin(connection, part, now, is_cut_off)?;
                // First, because a key that got this news is not silent as well.
                let mut found = look.claim(connection, Kind::Refused)?;
                if is_used {
                    found.extend(look.claim(connection, Kind::Silent)?);
                }
                Ok(found)
            })
        })
        .await
    }
}

#[derive(QueryableByName)]
struct LastUse {
    #[diesel(sql_type = Bool)]
    is_recent: bool,
    #[diesel(sql_type = Bool)]
    is_long_ago: bool,
    #[diesel(sql_type = BigInt)]
    organisations: i64,
}

/// Query for whether any key was used within a day, whether none was for [`CUT_OFF`], and of how many organisations
/// keys were used in the usual time.
fn last_use(connection: &mut PgConnection, part: &Part) -> QueryResult<Vec<LastUse>> {
    let query = format!(
        "SELECT coalesce(max(last_used_at) > now() - interval '1 day', false) AS is_recent,
            coalesce(max(last_used_at) < now() - interval '{} days', true) AS is_long_ago,
            count(DISTINCT organisation_id) AS organisations
         FROM key_uses WHERE last_used_at > now() - interval '{USUAL_DAYS} days'
            AND ($1 IS NULL OR organisation_id = ANY ($1))",
        CUT_OFF.whole_days()
    );
    diesel::sql_query(query).bind::<Nullable<Array<SqlUuid>>, _>(&part.organisations).load(connection)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Silent,
    Refused,
}

impl Kind {
    fn column(self) -> &'static str {
        match self {
            Self::Silent => "silence_announced_at",
            Self::Refused => "refusals_announced_at",
        }
    }

    /// Condition that the use of a key was not announced yet, except by this look: `$1` is now.
    fn is_news(self) -> String {
        let column = self.column();
        let news_until = match self {
            Self::Silent => "used.last_used_at".to_owned(),
            Self::Refused => format!("$1 - interval '{} hours'", REFUSALS_ANNOUNCED_EVERY.whole_hours()),
        };
        format!("(coalesce(used.{column}, '-infinity') <= {news_until} OR used.{column} = $1)")
    }

    /// Condition that a key's use is unusual, with what costs little to find out first. `$1` is now, `$2` today in
    /// the organisation's time zone. Only silence asks for `$4`, since when there was no break.
    fn is_unusual(self) -> String {
        match self {
            // One day more, because days apart are up to a day longer in hours. A mail about refusals says as much.
            Self::Silent => format!(
                "used.last_used_at BETWEEN $1 - interval '{USUAL_DAYS} days' AND $1 - interval '2 days'
                 AND habit.used_days >= {BUSY_DAYS} AND coalesce(used.refusals_announced_at, '-infinity')
                    <= greatest(used.last_used_at, $1 - interval '{} hours')
                 AND greatest(used.last_used_at, used.resumed_at, $4) < $1 - (habit.days_apart + 1) * interval '1 day'
                    * CASE WHEN habit.accepted < {BUSY_REQUESTS} THEN {QUIET_TIMES} ELSE 1 END",
                REFUSALS_ANNOUNCED_EVERY.whole_hours()
            ),
            // While a key was paused, all its requests were refused.
            Self::Refused => format!(
                "coalesce(used.resumed_at, '-infinity') < $1 - interval '2 days'
                 AND {ONLY_REFUSED_MIN} <= (SELECT sum(late.count) FROM key_answers AS late
                    WHERE late.organisation_id = key.organisation_id AND late.key_id = key.id AND late.local_day >= $2 - 1
                        AND late.field = '' AND late.status BETWEEN 400 AND 499 AND {})
                 AND (habit.only_refused >= {ONLY_REFUSED_MIN} AND {}
                    OR habit.refused_lately >= greatest({REFUSED_MIN}, {REFUSED_TIMES} * habit.refused_before)
                        AND habit.used_days >= {BUSY_DAYS} AND habit.accepted >= {BUSY_REQUESTS})",
                is_in_part("late"),
                creates_usually()
            ),
        }
    }
}

/// Condition that a key created patients on most days and none for a night, because in an organisation that has not
/// chosen its time zone the day of UTC begins while it is open. `$1` is now.
fn creates_usually() -> String {
    let night = NIGHT.whole_hours();
    format!("habit.created_days >= {BUSY_DAYS} AND used.last_used_at <= $1 - interval '{night} hours'")
}

/// One look at a part.
struct Look {
    days: Vec<SameDay>,
    now: OffsetDateTime,
    /// Since when there was no break.
    since: OffsetDateTime,
}

impl Look {
    fn begin(connection: &mut PgConnection, part: &Part, now: OffsetDateTime, is_cut_off: bool) -> QueryResult<Self> {
        #[derive(QueryableByName)]
        struct Since {
            #[diesel(sql_type = Timestamptz)]
            since: OffsetDateTime,
        }
        let begin = "INSERT INTO key_watches (part, since, looked_at) VALUES ($1, $2, $2)
            ON CONFLICT (part) DO UPDATE SET looked_at = excluded.looked_at, since =
                CASE WHEN key_watches.looked_at BETWEEN $3 AND $4 AND NOT $5 THEN key_watches.since ELSE excluded.since END
            RETURNING since";
        let Since { since } = diesel::sql_query(begin)
            .bind::<Integer, _>(part.number)
            .bind::<Timestamptz, _>(now)
            .bind::<Timestamptz, _>(now - BREAK)
            .bind::<Timestamptz, _>(now + BREAK)
            .bind::<Bool, _>(is_cut_off)
            .get_result(connection)?;
        Ok(Self { days: by_day(connection, part, now)?, now, since })
    }

    /// Found and marked apart, because Citus cannot limit a change of rows on several nodes.
    fn claim(&self, connection: &mut PgConnection, kind: Kind) -> QueryResult<Vec<UnusualKey>> {
        let mut found = Vec::new();
        for day in &self.days {
            found.extend(self.find(connection, kind, day)?);
        }
        if found.is_empty() {
            return Ok(vec![]);
        }
        let (organisations, keys): (Vec<_>, Vec<_>) = found.iter().map(|key| (key.organisation_id, key.id)).unzip();
        let mark = format!(
            "UPDATE key_uses AS used SET {} = $1 WHERE {} AND organisation_id = ANY ($2) AND key_id = ANY ($3)
             RETURNING key_id AS id",
            kind.column(),
            kind.is_news()
        );
        let marked: Vec<Id> = diesel::sql_query(mark)
            .bind::<Timestamptz, _>(self.now)
            .bind::<Array<SqlUuid>, _>(organisations)
            .bind::<Array<SqlUuid>, _>(keys)
            .load(connection)?;
        let is_marked = |key: &Found| marked.iter().any(|marked| marked.id == key.id);
        Ok(found.into_iter().filter(is_marked).map(|key| key.into_unusual(kind)).collect())
    }

    fn find(&self, connection: &mut PgConnection, kind: Kind, day: &SameDay) -> QueryResult<Vec<Found>> {
        let (habit, column, is_news, is_unusual) = (habit(), kind.column(), kind.is_news(), kind.is_unusual());
        let find = format!(
            "SELECT key.organisation_id, organisation.name AS organisation_name,
                organisation.time_zone, key.id, key.name, key.hint, coalesce(key.contact, '') AS contact,
                used.last_used_at, habit.used_days, habit.days_apart, habit.refused_lately, habit.refused_before,
                CASE WHEN {} THEN habit.only_refused ELSE 0 END AS only_refused,
                (SELECT named.field FROM key_answers AS named
                    WHERE named.organisation_id = key.organisation_id AND named.key_id = key.id AND named.local_day >= $2 - 1
                        AND named.field <> '' AND {} GROUP BY named.field ORDER BY sum(named.count) DESC, named.field
                    LIMIT 1) AS field
             FROM api_keys AS key
             JOIN organisations AS organisation ON organisation.id = key.organisation_id
             JOIN key_uses AS used ON used.organisation_id = key.organisation_id AND used.key_id = key.id
             CROSS JOIN LATERAL ({habit}) AS habit
             WHERE {} IS NULL
                AND used.last_used_at IS NOT NULL AND {is_news} AND {is_unusual}
                AND {}
                AND NOT EXISTS (SELECT 1 FROM key_uses AS other WHERE other.organisation_id = key.organisation_id
                    AND other.{column} > $1 - interval '{} hours' AND other.{column} <> $1 AND {})
                AND {} AND {}
             ORDER BY key.organisation_id, key.name, key.id LIMIT {CLAIMED_MAX}",
            creates_usually(),
            is_in_part("named"),
            refusal_at("$1"),
            has_no_replacement_at("$1"),
            NEWS_EVERY.whole_hours(),
            is_in_part("other"),
            is_in_part("key"),
            is_in_part("used")
        );
        let find = diesel::sql_query(find)
            .bind::<Timestamptz, _>(self.now)
            .bind::<SqlDate, _>(day.today)
            .bind::<Nullable<Array<SqlUuid>>, _>(&day.organisations);
        match kind {
            Kind::Silent => find.bind::<Timestamptz, _>(self.since).load(connection),
            Kind::Refused => find.load(connection),
        }
    }
}

#[derive(QueryableByName)]
struct Found {
    #[diesel(sql_type = SqlUuid)]
    organisation_id: Uuid,
    #[diesel(sql_type = Text)]
    organisation_name: String,
    #[diesel(sql_type = Text)]
    time_zone: String,
    #[diesel(sql_type = SqlUuid)]
    id: Uuid,
    #[diesel(sql_type = Text)]
    name: String,
    #[diesel(sql_type = Text)]
    hint: String,
    #[diesel(sql_type = Text)]
    contact: String,
    #[diesel(sql_type = Timestamptz)]
    last_used_at: OffsetDateTime,
    #[diesel(sql_type = BigInt)]
    used_days: i64,
    #[diesel(sql_type = BigInt)]
    days_apart: i64,
    #[diesel(sql_type = BigInt)]
    refused_lately: i64,
    #[diesel(sql_type = BigInt)]
    refused_before: i64,
    #[diesel(sql_type = BigInt)]
    only_refused: i64,
    #[diesel(sql_type = Nullable<Text>)]
    field: Option<String>,
}

impl Found {
    fn into_unusual(self, kind: Kind) -> UnusualKey {
        let Self { organisation_id, organisation_name, id, name, hint, contact, .. } = self;
        let zone = zone_of(&self.time_zone);
        let Self { last_used_at, used_days, days_apart, refused_lately: lately, refused_before: before, .. } = self;
        let change = match (kind, self.only_refused) {
            (Kind::Silent, _) => UnusualUse::Silent { last_used_at, used_days, days_apart },
            (Kind::Refused, 0) => UnusualUse::Refused { lately, before },
            (Kind::Refused, refused) => UnusualUse::OnlyRefused { last_used_at, refused, field: self.field },
        };
        let organisation_id = organisation_id.into();
        UnusualKey { organisation_id, organisation_name, zone, id: id.into(), name, hint, contact, change }
    }
}
