//! The port [`PatientFeed`] over one connection, made again when it is lost. Every call is one short transaction:
//! nothing stays open while a reader takes its time.

use std::thread::sleep;
use std::time::{Duration, Instant};

use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Nullable, Text, Uuid as SqlUuid};
use intake_domain::{
    Erasure, FeedError, FeedRefusal, FeedScope, FeedToken, Mark, Page, PatientFeed, PatientId, Selection, Span,
    StoreError, StoredPatient,
};
use uuid::Uuid;

use crate::database::cluster::shards::Shards;
use crate::database::connecting::connect::{ConnectError, OpenConnection, RETRY_PAUSE, connect};
use crate::database::connecting::lock_wait::{LockPatience, Undone, with_lock_patience};
use crate::database::connecting::url::DatabaseUrl;
use crate::diesel_errors::{Failure, failure, store_error, without_row_values};
use crate::feed::page;
use crate::feed::readers::may_read;

/// The planner guesses how many rows are beyond its statistics, which are always behind the end of the register. With
/// guesses it would read all of it, and compile the statement.
const SETTINGS: &str = "SET enable_seqscan = off; SET plan_cache_mode = force_custom_plan; SET jit = off;
    SET default_transaction_read_only = off";

/// Time to wait for a table that a migration or a restore has locked, before what holds it is reported.
const LOCK_PATIENCE: LockPatience = LockPatience { limit: Duration::from_secs(5), tries: 1, pause: Duration::ZERO };

/// Word of `feed_open` for a role that may not read.
const UNREADABLE: &str = "unreadable";

/// Decides, after a time, if to go on, and says what is in the way.
type KeepsTrying = Box<dyn Fn(Duration, &StoreError) -> bool + Send>;

/// The change feed over PostgreSQL.
pub struct PostgresPatientFeed {
    url: DatabaseUrl,
    /// The connection, and the address to which it leads.
    connection: Option<(DatabaseUrl, OpenConnection)>,
    keeps_trying: KeepsTrying,
    /// Up to where nothing has happened since the mark of this token. Kept for a connection: after a crash PostgreSQL
    /// may give numbers out again.
    looked: Option<(Option<FeedToken>, Snapshot)>,
}

/// Transactions that a statement does not see, as `feed_now` says.
#[derive(Clone, QueryableByName)]
struct Snapshot {
    #[diesel(sql_type = BigInt)]
    next: i64,
    #[diesel(sql_type = Array<BigInt>)]
    running: Vec<i64>,
}

/// Reason why work ended early.
enum Stopped {
    Statement(diesel::result::Error),
    /// The word of `feed_open`.
    Refused(String),
}

impl From<diesel::result::Error> for Stopped {
    fn from(error: diesel::result::Error) -> Self {
        Self::Statement(error)
    }
}

/// Answer of `feed_open`.
#[derive(QueryableByName)]
struct Opened {
    #[diesel(sql_type = Nullable<Text>)]
    refusal: Option<String>,
    #[diesel(embed)]
    seen: Snapshot,
}

impl PostgresPatientFeed {
    /// A feed that connects when it is first used. While the database is away it keeps trying for as long as it may
    /// to, given for how long it has tried, and what is in the way.
    #[must_use]
    pub fn new(url: &DatabaseUrl, keeps_trying: impl Fn(Duration, &StoreError) -> bool + Send + 'static) -> Self {
        Self { url: url.clone(), connection: None, keeps_trying: Box::new(keeps_trying), looked: None }
    }

    /// Reads through the views. They show no row to a role whose right has ended, and the rows that were left out would
    /// count as given out.
    pub(crate) fn read<T>(
        &mut self,
        scope: &FeedScope,
        work: impl Fn(&mut PgConnection) -> QueryResult<T>,
    ) -> Result<T, FeedError> {
        self.run(scope, |connection| {
            let found = work(connection)?;
            opened(connection, scope, None)?.refusal.map_or(Ok(found), |word| Err(Stopped::Refused(word)))
        })
    }

    fn run<T>(
        &mut self,
        scope: &FeedScope,
        work: impl Fn(&mut PgConnection) -> Result<T, Stopped>,
    ) -> Result<T, FeedError> {
        let started = Instant::now();
        loop {
            let error = match self.try_once(scope, &work) {
                Err(FeedError::Store(error @ StoreError::Unavailable(_))) => error,
                done => return done,
            };
            (self.connection, self.looked) = (None, None);
            if !(self.keeps_trying)(started.elapsed(), &error) {
                return Err(error.into());
            }
            sleep(RETRY_PAUSE);
        }
    }

    fn try_once<T>(
        &mut self,
        scope: &FeedScope,
        work: impl Fn(&mut PgConnection) -> Result<T, Stopped>,
    ) -> Result<T, FeedError> {
        let (url, connection) = match &mut self.connection {
            Some(connected) => connected,
            none => none.insert(reach(&self.url, scope)?),
        };
        let error = match with_lock_patience(url, connection, LOCK_PATIENCE, work) {
            Ok(done) => return Ok(done),
            Err(Undone::Locked(holders)) => return Err(StoreError::Unavailable(holders.into()).into()),
            Err(Undone::Failed(Stopped::Refused(word))) => return Err(refused_in_passing(word)),
            Err(Undone::Failed(Stopped::Statement(error))) => error,
        };
        Err(match failure(&error) {
            Failure::Transient => store_error(error).into(),
            // Diesel tells neither a server that shuts down nor a right that has ended: the next statement does.
            Failure::Unknown => match refusal(connection, scope) {
                Err(_) => store_error(error).into(),
                Ok(Some(word)) => refused_in_passing(word),
                Ok(None) => StoreError::Unexpected(without_row_values(error)).into(),
            },
            Failure::Refused => StoreError::Unexpected(without_row_values(error)).into(),
        })
    }
}

/// Reason why a role cannot read the feed; it may not even be allowed to ask.
fn refusal(connection: &mut PgConnection, scope: &FeedScope) -> QueryResult<Option<String>> {
    if !may_read(connection)?.may_read {
        return Ok(Some(UNREADABLE.to_owned()));
    }
    Ok(opened(connection, scope, None)?.refusal)
}

/// Connects to where the patients lie: on Citus to the node that holds them, which alone can make a mark of them.
fn reach(url: &DatabaseUrl, scope: &FeedScope) -> Result<(DatabaseUrl, OpenConnection), StoreError> {
    let refused = |error| match error {
        ConnectError::NotDurable(_) => StoreError::Unexpected(error.into()),
        other => StoreError::Unavailable(other.into()),
    };
    let mut connection = connect(url, SETTINGS).map_err(refused)?;
    let shards = Shards::default();
    shards.learn(&mut connection).map_err(store_error)?;
    let shards = shards.all();
    let Some(shard) = Shards::place(&shards, *scope.organisation_id.as_uuid()).and_then(|place| shards.get(place))
    else {
        return Ok((url.clone(), connection));
    };
    let node = shard.node();
    let away = |why: String| StoreError::Unavailable(format!("{node}, which holds the patients: {why}").into());
    let url = shard.url(url).ok_or_else(|| away("it could be reached only in clear text".into()))?;
    let connected = connect(&url, SETTINGS).map_err(|error| match error {
        ConnectError::NotDurable(_) => refused(error),
        other => away(other.to_string().trim_end().to_owned()),
    });
    connected.map(|connection| (url, connection))
}

impl PatientFeed for PostgresPatientFeed {
    fn open(&mut self, scope: &FeedScope, since: Option<FeedToken>) -> Result<Mark, FeedError> {
        let scope = *scope;
        let Opened { refusal, seen } = self.run(&scope, move |connection| Ok(opened(connection, &scope, since)?))?;
        refusal.map_or(Ok(()), |word| Err(refused(word)))?;
        Ok(Mark { token: since, next: seen.next, running: seen.running })
    }

    fn mark(&mut self, scope: &FeedScope, superseded: Option<FeedToken>) -> Result<Mark, FeedError> {
        #[derive(QueryableByName)]
        struct Made {
            #[diesel(sql_type = SqlUuid)]
            token: Uuid,
            #[diesel(embed)]
            seen: Snapshot,
        }

        let scope = *scope;
        let made: Made = self.run(&scope, move |connection| {
            let query = diesel::sql_query("SELECT token, next, running FROM feed_mark($1, $2, $3)");
            let query = query.bind::<SqlUuid, _>(*scope.organisation_id.as_uuid());
            let query = query.bind::<Nullable<SqlUuid>, _>(scope.key_id.map(|key| *key.as_uuid()));
            Ok(query.bind::<Nullable<SqlUuid>, _>(superseded.map(|token| *token.as_uuid())).get_result(connection)?)
        })?;
        Ok(Mark { token: Some(made.token.into()), next: made.seen.next, running: made.seen.running })
    }

    fn record(&mut self, scope: &FeedScope, until: FeedToken, patients: u64) -> Result<(), FeedError> {
        let scope = *scope;
        let patients = i64::try_from(patients).unwrap_or(i64::MAX);
        self.run(&scope, move |connection| {
            let query = diesel::sql_query("SELECT feed_record_export($1, $2, $3)");
            let query = query.bind::<SqlUuid, _>(*scope.organisation_id.as_uuid());
            query.bind::<SqlUuid, _>(*until.as_uuid()).bind::<BigInt, _>(patients).execute(connection)?;
            Ok(())
        })
    }

    fn has_news(&mut self, scope: &FeedScope, since: &Mark) -> Result<bool, FeedError> {
        let from_mark = Snapshot { next: since.next, running: since.running.clone() };
        let known = self.looked.as_ref().filter(|(token, _)| *token == since.token);
        let from = known.map_or(from_mark, |(_, seen)| seen.clone());
        let scope = *scope;
        let (seen, has_news) = self.read(&scope, move |connection| {
            // Before the look, which sees at least as much.
            let now = diesel::sql_query("SELECT next, running FROM feed_now($1)");
            let seen: Snapshot = now.bind::<SqlUuid, _>(*scope.organisation_id.as_uuid()).get_result(connection)?;
            let query = diesel::sql_query(page::LOOK).bind::<SqlUuid, _>(*scope.organisation_id.as_uuid());
            let query = query.bind::<Nullable<SqlUuid>, _>(scope.key_id.map(|key| *key.as_uuid()));
            let query = query.bind::<BigInt, _>(from.next).bind::<Array<BigInt>, _>(&from.running);
            Ok((seen, query.execute(connection)? > 0))
        })?;
        if !has_news {
            self.looked = Some((since.token, seen));
        }
        Ok(has_news)
    }

    fn select(&mut self, scope: &FeedScope, span: &Span) -> Result<Selection, FeedError> {
        self.read(scope, |connection| page::select(connection, scope, span))
    }

    fn patients(
        &mut self,
        scope: &FeedScope,
        span: &Span,
        selection: &Selection,
        after: Option<PatientId>,
    ) -> Result<Page<StoredPatient>, FeedError> {
        self.read(scope, |connection| match selection {
            Selection::These(ids) => page::these(connection, scope, ids, after),
            Selection::Many { ends, .. } => page::range(connection, scope, span, ends, after),
        })
    }

    fn erasures(
        &mut self,
        scope: &FeedScope,
        span: &Span,
        after: Option<PatientId>,
    ) -> Result<Page<Erasure>, FeedError> {
        self.read(scope, |connection| page::erasures(connection, scope, span, after))
    }
}

fn opened(connection: &mut PgConnection, scope: &FeedScope, since: Option<FeedToken>) -> QueryResult<Opened> {
    let query = diesel::sql_query("SELECT refusal, next, running FROM feed_open($1, $2, $3)");
    let query = query.bind::<SqlUuid, _>(*scope.organisation_id.as_uuid());
    let query = query.bind::<Nullable<SqlUuid>, _>(scope.key_id.map(|key| *key.as_uuid()));
    query.bind::<Nullable<SqlUuid>, _>(since.map(|token| *token.as_uuid())).get_result(connection)
}

/// The refusal of a feed that was open before. A standby may be about to take over.
fn refused_in_passing(word: String) -> FeedError {
    match refused(word) {
        FeedError::Refused(standby @ FeedRefusal::Standby) => StoreError::Unavailable(standby.into()).into(),
        error => error,
    }
}

/// The refusals by the words of `feed_open`.
fn refused(word: String) -> FeedError {
    FeedError::Refused(match word.as_str() {
        UNREADABLE => FeedRefusal::Unreadable,
        "standby" => FeedRefusal::Standby,
        "restored" => FeedRefusal::Restored,
        "unknown" => FeedRefusal::UnknownToken,
        "cluster" => FeedRefusal::OtherCluster,
        "organisation" => FeedRefusal::OtherOrganisation,
        "key" => FeedRefusal::OtherKey,
        _ => return FeedError::Store(StoreError::Unexpected(word.into())),
    })
}
