//! Waits for PostgreSQL's locks with a limit, and finds out what holds them. For commands of people, who can end what
//! is in the way once they know it.

use std::fmt;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle, sleep};
use std::time::{Duration, Instant};

use diesel::connection::SimpleConnection;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Integer, Nullable, Text, Timestamptz};
use intake_domain::timestamp;
use time::OffsetDateTime;

use crate::database::cluster::extension::has_citus;
use crate::database::cluster::lock_holders::IN_CLUSTER;
use crate::database::connecting::connect::pg_backend_pid;
use crate::database::connecting::url::DatabaseUrl;

/// Between two looks at what the statement waits for. The first look is this long after its start.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// Query for what holds up the sessions that this session waits for, at the head of the queue: it waits for nothing
/// itself. A prepared transaction has no session: `pg_blocking_pids` gives it as 0, and the lock that it holds on its
/// own number tells which one it is.
const HOLDERS: &str = "WITH RECURSIVE queue (pid) AS (
        SELECT $1 UNION SELECT unnest(pg_blocking_pids(pid)) FROM queue WHERE pid <> 0),
    waiting AS (SELECT * FROM pg_locks WHERE pid IN (SELECT pid FROM queue) AND NOT granted),
    prepared AS (
        SELECT DISTINCT held.virtualtransaction FROM waiting JOIN pg_locks AS held
            ON held.granted AND held.pid IS NULL
            AND (held.locktype, held.database, held.relation, held.page, held.tuple, held.virtualxid,
                    held.transactionid, held.classid, held.objid, held.objsubid)
                IS NOT DISTINCT FROM (waiting.locktype, waiting.database, waiting.relation, waiting.page, waiting.tuple,
                    waiting.virtualxid, waiting.transactionid, waiting.classid, waiting.objid, waiting.objsubid)
        WHERE 0 = ANY (pg_blocking_pids(waiting.pid)))
    SELECT pid::bigint, usename::text AS role, application_name AS application, xact_start AS since, NULL AS gid
        FROM queue JOIN pg_stat_activity USING (pid) WHERE pid <> $1 AND cardinality(pg_blocking_pids(pid)) = 0
    UNION ALL SELECT NULL, owner::text, NULL, prepared.prepared, gid
        FROM prepared AS found JOIN pg_locks AS own USING (virtualtransaction)
            JOIN pg_prepared_xacts AS prepared ON transaction = own.transactionid
        WHERE own.pid IS NULL
    ORDER BY since";

/// A node that hangs answers no look.
const LOOK_TIMEOUT: &str = "SET statement_timeout = '2s'";
const CANCEL: &str = "SELECT pg_cancel_backend($1) FROM pg_extension WHERE extname = 'citus'";

/// Patience of a command that waits for locks. While it waits for a table, all that come later wait behind it: so it
/// waits a short time, several times, and lets them pass in between.
#[derive(Clone, Copy)]
pub(crate) struct LockPatience {
    pub(crate) limit: Duration,
    pub(crate) tries: usize,
    pub(crate) pause: Duration,
}

impl LockPatience {
    /// The patience of a command that needs a table which others hold for a moment.
    pub(crate) const OF_A_COMMAND: Self =
        Self { limit: Duration::from_secs(3), tries: 3, pause: Duration::from_secs(1) };
}

/// Sessions that hold a lock, and how to end them.
#[derive(Debug, thiserror::Error)]
pub struct LockHolders(Vec<Holder>);

#[derive(Debug, QueryableByName)]
struct Holder {
    /// None: a prepared transaction, which belongs to no session.
    #[diesel(sql_type = Nullable<BigInt>)]
    pid: Option<i64>,
    /// None, as the next two may be: this role may not see it.
    #[diesel(sql_type = Nullable<Text>)]
    role: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    application: Option<String>,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    since: Option<OffsetDateTime>,
    #[diesel(sql_type = Nullable<Text>)]
    gid: Option<String>,
}

/// Reason why work was not done.
pub(crate) enum Undone<E> {
    /// Others held a lock at every try.
    Locked(LockHolders),
    Failed(E),
}

/// Runs the work with a limit on its waits for locks, and again if others hold them.
pub(crate) fn with_lock_patience<T, E: From<diesel::result::Error>>(
    url: &DatabaseUrl,
    connection: &mut PgConnection,
    patience: LockPatience,
    mut work: impl FnMut(&mut PgConnection) -> Result<T, E>,
) -> Result<T, Undone<E>> {
    let failed = |error: diesel::result::Error| Undone::Failed(error.into());
    let limit = format!("SET lock_timeout = {}", patience.limit.as_millis());
    connection.batch_execute(&limit).map_err(failed)?;
    let pid = diesel::select(pg_backend_pid()).get_result(connection).map_err(failed)?;
    let mut tries_left = patience.tries;
    loop {
        let look = Look::begin(url, pid, patience.limit);
        let done = work(connection);
        let ended_at = Instant::now();
        look.stop();
        let error = match done {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        tries_left = tries_left.saturating_sub(1);
        let seen = look.end();
        // A look that began while the statement waited for a lock has seen what held it.
        let is_known = ended_at.saturating_duration_since(seen.looked_at) < patience.limit;
        match seen.holders {
            Some(holders) if tries_left == 0 => return Err(Undone::Locked(holders)),
            None if tries_left == 0 || is_known => return Err(Undone::Failed(error)),
            _ => sleep(patience.pause),
        }
    }
}

/// Looks over another connection at what a session waits for. Diesel does not tell a lock timeout from other errors,
/// and afterwards nobody waits any more. On Citus it also ends a wait: the other nodes do not know the limit that the
/// session has set.
pub(crate) struct Look {
    /// None: it is over. While this is locked nobody ends a wait.
    going_on: Arc<Mutex<Option<Sender<()>>>>,
    seen: std::io::Result<JoinHandle<Seen>>,
}

/// Result of looking while a session did its work.
pub(crate) struct Seen {
    /// Holders of the lock for which it waited last. None: it waited for none as far as was seen.
    pub(crate) holders: Option<LockHolders>,
    /// Beginning of the last look that was answered.
    looked_at: Instant,
}

impl Look {
    pub(crate) fn begin(url: &DatabaseUrl, pid: i32, limit: Duration) -> Self {
        let (sender, is_over) = channel();
        let going_on = Arc::new(Mutex::new(Some(sender)));
        let url = url.clone();
        let ending = Arc::clone(&going_on);
        let mut seen = Seen { holders: None, looked_at: Instant::now() };
        let look = move || {
            let mut connection = None;
            let mut unhindered_at = seen.looked_at;
            while is_over.recv_timeout(LOOK_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                let looked_at = Instant::now();
                if connection.is_none() {
                    connection = connect(&url);
                }
                let Some(connection) = &mut connection else { continue };
                let Ok(holders) = holders(connection, pid) else { continue };
                seen.looked_at = looked_at;
                if holders.0.is_empty() {
                    // Those of before are kept: the wait may have timed out before the work has ended.
                    unhindered_at = looked_at;
                } else {
                    seen.holders = Some(holders);
                }
                if unhindered_at.elapsed() > limit {
                    let going_on = ending.lock().unwrap_or_else(PoisonError::into_inner);
                    if going_on.is_some() {
                        // It may have ended by itself.
                        drop(diesel::sql_query(CANCEL).bind::<Integer, _>(pid).execute(connection));
                        unhindered_at = looked_at;
                    }
                }
            }
            seen
        };
        Self { going_on, seen: Builder::new().name("lock-look".into()).spawn(look) }
    }

    /// Returns what was seen.
    pub(crate) fn end(self) -> Seen {
        self.stop();
        let seen = self.seen.ok().and_then(|look| look.join().ok());
        seen.unwrap_or_else(|| Seen { holders: None, looked_at: Instant::now() })
    }

    /// Ends no wait of the session from here on.
    pub(crate) fn stop(&self) {
        drop(self.going_on.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

fn connect(url: &DatabaseUrl) -> Option<PgConnection> {
    let mut connection = PgConnection::establish(url.expose()).ok()?;
    connection.batch_execute(LOOK_TIMEOUT).ok().map(|()| connection)
}

fn holders(connection: &mut PgConnection, pid: i32) -> QueryResult<LockHolders> {
    // Citus knows nothing of prepared transactions.
    let queries: &[&str] = if has_citus(connection)? { &[IN_CLUSTER, HOLDERS] } else { &[HOLDERS] };
    for query in queries {
        let holders: Vec<Holder> = diesel::sql_query(*query).bind::<Integer, _>(pid).load(connection)?;
        if !holders.is_empty() {
            return Ok(LockHolders(holders));
        }
    }
    Ok(LockHolders(Vec::new()))
}

impl fmt::Display for LockHolders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a lock is held by ")?;
        for (index, holder) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; and by " };
            write!(f, "{separator}{holder}")?;
        }
        f.write_str("; then try again")
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unseen = "(not visible to this role)";
        let role = self.role.as_deref().unwrap_or(unseen);
        let since = self.since.map_or(unseen.to_owned(), timestamp);
        match (self.pid, &self.gid) {
            (None, Some(gid)) => {
                let gid = gid.replace('\'', "''");
                write!(
                    f,
                    "the prepared transaction '{gid}' of the role {role}, prepared at {since}: \
                     end it with COMMIT PREPARED '{gid}' or ROLLBACK PREPARED '{gid}'"
                )
            }
            (pid, _) => {
                let (pid, application) = (pid.unwrap_or_default(), self.application.as_deref().unwrap_or(unseen));
                write!(
                    f,
                    "the process {pid} of PostgreSQL (application {application:?}, role {role}), in a transaction since {since}: \
                     wait for it, or end it with SELECT pg_terminate_backend({pid})"
                )
            }
        }
    }
}
