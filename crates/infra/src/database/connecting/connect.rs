//! Makes every connection that the service works over: to the host that accepts writes, even while other hosts do not
//! answer, and with durability set and checked. The settings of a role or a database may change at any time and take
//! effect with the next connection, so every connection is checked.

use std::ops::{Deref, DerefMut};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use diesel::connection::SimpleConnection;
use diesel::pg::PgConnection;
use diesel::prelude::*;

use crate::abandoned::{Abandoned, CallError};
use crate::database::connecting::clock;
use crate::database::connecting::durability::Durability;
use crate::database::connecting::url::DatabaseUrl;
use crate::database::rows::Named;
use crate::diesel_errors::without_row_values;
use crate::metrics::{CONNECTIONS, note_unreachable};

/// Between two tries while the database is away: short enough that nobody notices it once the database is back.
pub(crate) const RETRY_PAUSE: Duration = Duration::from_millis(50);
/// Time for which several hosts are tried at the same time: as long as libpq waits for one of them.
const RACE_TIME: Duration = Duration::from_secs(2);

/// Time that a connection may take in all, including the statements that set it up.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Makes a commit wait for this server's disk, and for a synchronous standby's. Set by the session itself, so that a
/// reload of the server's configuration does not undo it; a stronger setting is kept.
const SET_DURABILITY: &str = "SELECT set_config('synchronous_commit',
    CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false)";

/// The settings of durability that a session cannot set for itself.
const NOT_DURABLE: &str = "SELECT name FROM unnest(ARRAY['fsync', 'full_page_writes']) AS name
    WHERE current_setting(name) = 'off' ORDER BY name";

diesel::define_sql_function! {
    fn pg_backend_pid() -> Integer;
}

/// Reason why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    /// No host that accepts writes answered.
    #[error(transparent)]
    Unreachable(#[from] ConnectionError),
    /// The server answered, and then failed.
    #[error("the connection could not be set up: {0}")]
    Failed(intake_domain::Source),
    /// The server could lose what it has acknowledged.
    #[error("a crash of the database could lose acknowledged patients: turn on {0} in its configuration")]
    NotDurable(String),
    /// The server does not answer.
    #[error("the database accepts connections and does not answer")]
    Hangs,
}

/// A connection that is counted while it is open.
pub(crate) struct OpenConnection {
    connection: PgConnection,
    /// The process of PostgreSQL that serves it.
    pub(crate) pid: i32,
}

impl OpenConnection {
    fn new(mut connection: PgConnection) -> Result<Self, ConnectError> {
        let pid = diesel::select(pg_backend_pid()).get_result(&mut connection);
        let pid = pid.map_err(|error| ConnectError::Failed(without_row_values(error)))?;
        CONNECTIONS.add(1);
        Ok(Self { connection, pid })
    }
}

impl Deref for OpenConnection {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.connection
    }
}

impl DerefMut for OpenConnection {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.connection
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        CONNECTIONS.subtract(1);
    }
}

/// Connects so that a commit that has returned survives any crash, and runs the statements in `settings`. Never waits
/// for long: an attempt that hangs is left to its thread.
pub(crate) fn connect(url: &DatabaseUrl, settings: &str) -> Result<OpenConnection, ConnectError> {
    let connected = try_connect(url, settings);
    if connected.is_err() {
        note_unreachable();
    }
    connected
}

fn try_connect(url: &DatabaseUrl, settings: &str) -> Result<OpenConnection, ConnectError> {
    let (url, settings) = (url.clone(), settings.to_owned());
    limited(CONNECT_TIMEOUT, move || set_up(&url, &settings))?
}

/// Asks something over a new connection, which may hang as connecting may: a server can stop in between.
pub(crate) fn ask<T: Send + 'static>(
    mut connection: OpenConnection,
    limit: Duration,
    question: impl FnOnce(&mut PgConnection) -> T + Send + 'static,
) -> Result<(OpenConnection, T), ConnectError> {
    let answered = limited(limit, move || {
        let answer = question(&mut connection);
        (connection, answer)
    });
    answered.inspect_err(|_| note_unreachable())
}

fn limited<T: Send + 'static>(limit: Duration, work: impl FnOnce() -> T + Send + 'static) -> Result<T, ConnectError> {
    static ATTEMPTS: LazyLock<Arc<Abandoned>> = LazyLock::new(Arc::default);
    ATTEMPTS.call("connect", limit, work).map_err(|error| match error {
        CallError::Hangs => ConnectError::Hangs,
        CallError::Failed(error) => ConnectError::Failed(error.into()),
    })
}

fn set_up(url: &DatabaseUrl, settings: &str) -> Result<OpenConnection, ConnectError> {
    let failed = |error| ConnectError::Failed(without_row_values(error));
    let mut connection = OpenConnection::new(establish(url)?)?;
    if url.durability() == Durability::Full {
        connection.batch_execute(SET_DURABILITY).map_err(failed)?;
        let off: Vec<Named> = diesel::sql_query(NOT_DURABLE).load(&mut *connection).map_err(failed)?;
        if !off.is_empty() {
            let names: Vec<_> = off.into_iter().map(|setting| setting.name).collect();
            return Err(ConnectError::NotDurable(names.join(", ")));
        }
    }
    clock::look(&mut connection).map_err(failed)?;
    if !settings.is_empty() {
        connection.batch_execute(settings).map_err(failed)?;
    }
    Ok(connection)
}

/// Libpq tries one host after the other and waits the whole time-out for a host that is stopped. So if only one of
/// several hosts is wanted, all are tried at the same time, over and over, and the first that answers is used.
pub(crate) fn establish(url: &DatabaseUrl) -> ConnectionResult<PgConnection> {
    let url = url.latest().map_err(ConnectionError::BadConnection)?;
    let hosts = url.each_host();
    if hosts.is_empty() {
        return PgConnection::establish(url.expose());
    }
    let until = Instant::now() + RACE_TIME;
    let (sender, results) = channel();
    for host in hosts {
        let sender = sender.clone();
        let try_host = move || try_until(&host, until, &sender);
        let started = std::thread::Builder::new().name("connecting".into()).spawn(try_host);
        started.map_err(|error| ConnectionError::BadConnection(error.to_string()))?;
    }
    drop(sender);
    let mut last_error = None;
    while let Ok(result) = results.recv_timeout(until.saturating_duration_since(Instant::now())) {
        match result {
            Ok(connection) => return Ok(connection),
            Err(error) => last_error = Some(error),
        }
    }
    Err(last_error.unwrap_or_else(|| ConnectionError::BadConnection("no host answers".to_owned())))
}

/// Tries until the first success, or until the caller no longer waits.
fn try_until(host: &DatabaseUrl, until: Instant, results: &Sender<ConnectionResult<PgConnection>>) {
    loop {
        let result = PgConnection::establish(host.expose());
        let is_over = result.is_ok() || Instant::now() >= until;
        if results.send(result).is_err() || is_over {
            return;
        }
        std::thread::sleep(RETRY_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use intake_test_support::TestDatabase;

    use super::*;

    /// The crate as its users see it is another one than this, so addresses pass as text.
    fn url(url: &str) -> DatabaseUrl {
        url.parse().unwrap()
    }

    fn setting(connection: &mut PgConnection, name: &str) -> String {
        let query = diesel::sql_query(format!("SELECT current_setting('{name}') AS name"));
        query.get_result::<Named>(connection).unwrap().name
    }

    #[test]
    fn commits_are_durable_despite_settings_of_the_role() {
        let database = TestDatabase::durable();
        for (drifted, expected) in
            [("off", "on"), ("local", "on"), ("remote_write", "on"), ("on", "on"), ("remote_apply", "remote_apply")]
        {
            let drift = format!("ALTER DATABASE {} SET synchronous_commit = {drifted}", database.name());
            database.connect().batch_execute(&drift).unwrap();
            let mut connection = connect(&url(database.service.expose()), "").unwrap();
            assert_eq!(setting(&mut connection, "synchronous_commit"), expected, "{drifted}");
            let source = "SELECT source AS name FROM pg_settings WHERE name = 'synchronous_commit'";
            let source = diesel::sql_query(source).get_result::<Named>(&mut *connection).unwrap().name;
            assert_eq!(source, "session", "a reload of the configuration changes nothing");
        }
    }

    #[test]
    fn a_server_that_forgets_is_refused_unless_that_is_wanted() {
        let database = TestDatabase::new();
        let url = url(database.service.expose());
        match connect(&url, "").map(drop) {
            Err(ConnectError::NotDurable(names)) => assert_eq!(names, "fsync, full_page_writes"),
            other => panic!("{other:?}"),
        }
        let mut connection = connect(&url.with_durability(Durability::None), "").unwrap();
        assert_eq!(setting(&mut connection, "synchronous_commit"), "off", "as it was");
    }
}
