//! The composition root: connects ports and listeners, serves until a signal comes, and stops everything in order.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use actix_web::App;
use actix_web::dev::Server;
use actix_web::middleware::from_fn;
use anyhow::anyhow;
use intake_dashboard::Dashboard;
use intake_domain::{Environment, KeyStore, MemberStore, OrganisationId};
use intake_http::{AnswerCounts, Api, Connections, envelope};
use intake_infra::{
    Argon2Hasher, Database, KeyUseWriter, KeyUses, PostgresAuditLog, PostgresKeyStore, PostgresMemberStore,
    PostgresPatientRegister, PostgresSessionStore,
};
use tokio::task::JoinHandle;

use crate::backend::Backend;
use crate::configuration::Configuration;
use crate::listeners::{self, Listeners};
use crate::origin_watch::OriginWatch;
use crate::readiness::{LastCheck, Readiness};
use crate::signals::{self, Signals};
use crate::{admin, first_run, greeting, telemetry};

/// How long a start that is interrupted may take to clean up; what takes longer hangs.
const STOPPED_START_TIMEOUT: Duration = Duration::from_secs(3);
/// How long the embedded database may take to stop before this is left to its guard.
const DATABASE_STOP_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) fn serve(configuration: Configuration) -> anyhow::Result<()> {
    telemetry::start(configuration.log.clone());
    configuration.assert_can_serve()?;
    let system = actix_web::rt::System::new();
    let served = system.block_on(serve_until_stopped(Arc::new(configuration)));
    // Dropping it would wait for its threads, one of which may hang inside the database. They end with the process.
    std::mem::forget(system);
    served
}

async fn serve_until_stopped(configuration: Arc<Configuration>) -> anyhow::Result<()> {
    // First, so that a service which is still starting can be stopped, too.
    let mut signals = Signals::listen()?;
    let Some(backend) = open(&configuration, &mut signals).await? else { return Ok(()) };
    let served = start_and_run(&configuration, &backend, &mut signals).await;
    close(backend, &mut signals).await;
    served
}

/// Opens the database. None: a signal came first.
async fn open(configuration: &Arc<Configuration>, signals: &mut Signals) -> anyhow::Result<Option<Backend>> {
    let configuration = Arc::clone(configuration);
    let mut opening = tokio::task::spawn_blocking(move || {
        let mut backend = Backend::open_to_serve(&configuration)?;
        if let Some(embedded) = &mut backend.embedded {
            embedded.keep_alive()?;
        }
        Ok(backend)
    });
    tokio::select! {
        opened = &mut opening => opened?.map(Some),
        () = signals.next() => {
            give_up(opening, signals).await;
            Ok(None)
        }
    }
}

/// Waits for an interrupted start to end, then closes what it has opened.
async fn give_up(opening: JoinHandle<anyhow::Result<Backend>>, signals: &mut Signals) {
    tracing::info!("stopping: the start is given up");
    let end = tokio::time::timeout(STOPPED_START_TIMEOUT, async {
        if let Ok(opened) = opening.await {
            let _ = tokio::task::spawn_blocking(move || drop(opened)).await;
        }
    });
    if signals.or_stop_at_once(end).await.is_err() {
        tracing::warn!("the start hangs: it is left as it is");
    }
}

/// Closes the database. The last user stops the embedded one here.
async fn close(backend: Backend, signals: &mut Signals) {
    let closing = tokio::task::spawn_blocking(move || drop(backend));
    let closed = signals.or_stop_at_once(tokio::time::timeout(DATABASE_STOP_TIMEOUT, closing)).await;
    if closed.is_err() {
        tracing::warn!("the embedded database does not stop: it is left to its guard");
    }
}

async fn start_and_run(configuration: &Configuration, backend: &Backend, signals: &mut Signals) -> anyhow::Result<()> {
    let running = tokio::select! {
        running = start(configuration, backend) => running?,
        () = signals.next() => return Ok(()),
    };
    running.until_stopped(signals).await
}

/// Starts everything, from the ports to the listeners.
async fn start(configuration: &Configuration, backend: &Backend) -> anyhow::Result<Running> {
    let uses = KeyUses::default();
    let key_use_writer = KeyUseWriter::start(backend.service.clone(), uses.clone())?;
    let database = Database::new(&backend.service, configuration.deadline);
    let keys: Arc<dyn KeyStore> = Arc::new(PostgresKeyStore::new(database.clone(), uses.clone()));
    let members: Arc<dyn MemberStore> = Arc::new(PostgresMemberStore::new(database.clone()));

    let (clinic, listeners) = prepare_and_listen(configuration, backend, keys.as_ref()).await?;
    let base = configuration.base_url(listeners.https_port());
    let admin_addr = listeners.admin.local_addr()?;

    let Configuration { environment, writers, deadline, .. } = *configuration;
    let register = Arc::new(PostgresPatientRegister::start(&backend.service, writers, deadline, &uses)?);
    let api = open_api(configuration, Arc::clone(&register), &keys, &base).configure();
    let dashboard = open_dashboard(configuration, &database, keys, &members, &base)?.configure();
    let application = move || App::new().wrap(from_fn(envelope)).configure(&api).configure(&dashboard);

    let counts = Arc::new(AnswerCounts::default());
    let connections_max = listeners::connections_max();
    let connections = Connections::new(connections_max, configuration.trusted_proxies.clone(), Arc::clone(&counts));
    let key_format = configuration.key_format.clone();
    let last = LastCheck::default();
    let watched = database.clone();
    let readiness = Readiness { database, register, connections: connections.clone(), environment, key_format, last };
    if let Some(certificate) = listeners.certificate.clone() {
        signals::at_hangup(move || certificate.read_again())?;
    }
    let admin = admin::serve(listeners.admin, readiness, counts, connections.clone(), listeners.certificate)?;
    let api = listeners::serve(listeners.api, connections_max, &connections, application)?;
    if environment == Environment::Development {
        greet(configuration, clinic, members.as_ref(), &base, admin_addr).await?;
    }
    let origin = OriginWatch::new(watched, environment);
    Ok(Running { api, admin, connections, drain_delay: configuration.drain_delay, key_use_writer, origin })
}

/// Makes the demo clinic of an embedded database, and listens. In development both write into the data folder, so
/// services that start together on one folder do this one after the other.
async fn prepare_and_listen(
    configuration: &Configuration,
    backend: &Backend,
    keys: &dyn KeyStore,
) -> anyhow::Result<(Option<OrganisationId>, Listeners)> {
    let _lock = match configuration.environment {
        Environment::Development => Some(configuration.data_dir.lock().await?),
        Environment::Production => None,
    };
    let clinic = match &backend.embedded {
        Some(_) => Some(first_run::ensure_demo(keys, &configuration.key_format, &configuration.data_dir).await?),
        None => None,
    };
    Ok((clinic, Listeners::bind(configuration)?))
}

fn open_api(
    configuration: &Configuration,
    register: Arc<PostgresPatientRegister>,
    keys: &Arc<dyn KeyStore>,
    base: &str,
) -> Api {
    Api {
        register,
        keys: Arc::clone(keys),
        format: configuration.key_format.clone(),
        rate: configuration.rate_limit.0,
        proxies: configuration.trusted_proxies.clone(),
        base_url: base.to_owned(),
    }
}

fn open_dashboard(
    configuration: &Configuration,
    database: &Database,
    keys: Arc<dyn KeyStore>,
    members: &Arc<dyn MemberStore>,
    base: &str,
) -> anyhow::Result<Dashboard> {
    Ok(Dashboard {
        keys,
        members: Arc::clone(members),
        sessions: Arc::new(PostgresSessionStore::new(database.clone())),
        log: Arc::new(PostgresAuditLog::new(database.clone())),
        hasher: Arc::new(Argon2Hasher::start()?),
        format: configuration.key_format.clone(),
        proxies: configuration.trusted_proxies.clone(),
        base_url: base.to_owned(),
    })
}

/// Prints the greeting, with an invitation for the first member of the demo clinic.
async fn greet(
    configuration: &Configuration,
    clinic: Option<OrganisationId>,
    members: &dyn MemberStore,
    base: &str,
    admin_addr: SocketAddr,
) -> anyhow::Result<()> {
    let invitation = match clinic {
        Some(clinic) => first_run::invite_first_member(members, clinic, base).await?,
        None => None,
    };
    greeting::greet(&configuration.data_dir, base, admin_addr, clinic.is_some(), invitation)
}

/// A service that takes requests.
struct Running {
    api: Server,
    admin: Server,
    connections: Connections,
    drain_delay: Duration,
    key_use_writer: KeyUseWriter,
    origin: OriginWatch,
}

impl Running {
    /// Serves until a signal asks to stop, goes on until balancers have noticed, then finishes the accepted requests and
    /// writes the last uses of keys. Each has a time limit of its own.
    async fn until_stopped(self, signals: &mut Signals) -> anyhow::Result<()> {
        let Self { api, admin, connections, drain_delay, key_use_writer, origin } = self;
        let (api_handle, admin_handle) = (api.handle(), admin.handle());
        let mut api = actix_web::rt::spawn(api);
        let mut admin = actix_web::rt::spawn(admin);
        tokio::select! {
            ended = &mut api => return Err(unexpected_end("the API", ended)),
            ended = &mut admin => return Err(unexpected_end("the admin listener", ended)),
            restored = origin.until_restored() => return Err(restored),
            () = signals.next() => {}
        }
        tracing::info!("stopping: accepted requests are finished first");
        connections.drain();
        let finish = async {
            tokio::time::sleep(drain_delay).await;
            api_handle.stop(true).await;
            admin_handle.stop(false).await;
            // On another thread, so that a second signal is still handled.
            let _ = tokio::task::spawn_blocking(|| drop(key_use_writer)).await;
        };
        signals.or_stop_at_once(finish).await;
        tracing::info!("stopped");
        Ok(())
    }
}

fn unexpected_end<T>(what: &str, ended: Result<std::io::Result<()>, T>) -> anyhow::Error {
    match ended {
        Ok(Err(error)) => anyhow!(error).context(format!("{what} has failed")),
        _ => anyhow!("{what} has ended by itself"),
    }
}
