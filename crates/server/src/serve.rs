//! The composition root: puts ports and listeners together, serves until a signal comes, and leaves nothing behind.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use actix_web::dev::Server;
use actix_web::middleware::from_fn;
use actix_web::{App, HttpServer, web};
use anyhow::anyhow;
use intake_dashboard::{BaseUrl, Throttle};
use intake_domain::{AuditLog, Environment, KeyStore, MemberStore, PasswordHasher, PatientRegister, SessionStore};
use intake_http::{AnswerCounts, Connections, RateLimiter, envelope};
use intake_infra::{
    Argon2Hasher, Database, KeyUseWriter, KeyUses, PostgresAuditLog, PostgresKeyStore, PostgresMemberStore,
    PostgresPatientRegister, PostgresSessionStore,
};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;

use crate::backend::Backend;
use crate::certificates::CurrentCertificate;
use crate::configuration::Configuration;
use crate::listeners::{self, ApiListeners, Listeners};
use crate::{admin, first_run, greeting, telemetry};

/// The exit status after a second signal.
const STOPPED_AT_ONCE: i32 = 130;

/// A start that is stopped has so long to leave everything in order; what takes longer hangs.
const STOPPED_START_TIMEOUT: Duration = Duration::from_secs(3);
/// The embedded database has so long to stop; after that its guard goes on.
const DATABASE_STOP_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) fn serve(configuration: Configuration) -> anyhow::Result<()> {
    telemetry::start(configuration.log.clone());
    configuration.assert_can_serve()?;
    let system = actix_web::rt::System::new();
    let served = system.block_on(start_and_serve(Arc::new(configuration)));
    // To end it is to wait for its threads, one of which may hang inside the database. They end with the process.
    std::mem::forget(system);
    served
}

async fn start_and_serve(configuration: Arc<Configuration>) -> anyhow::Result<()> {
    // From the first moment on: whoever stops a service that is still starting gets a clean end, too.
    let mut signals = Signals::listen()?;
    let opened = Arc::clone(&configuration);
    let mut opening = tokio::task::spawn_blocking(move || open(&opened));
    let backend = tokio::select! {
        opened = &mut opening => opened??,
        () = signals.next() => return stop_start(opening, signals).await,
    };
    let served = serve_over(&configuration, &backend, &mut signals).await;
    let stopping = tokio::task::spawn_blocking(move || drop(backend));
    // The last of its users stops the embedded database here.
    let stopped = signals.or_stop_at_once(tokio::time::timeout(DATABASE_STOP_TIMEOUT, stopping)).await;
    if stopped.is_err() {
        tracing::warn!("the embedded database does not stop: it is left to its guard");
    }
    served
}

fn open(configuration: &Configuration) -> anyhow::Result<Backend> {
    let mut backend = Backend::open_to_serve(configuration)?;
    if let Some(embedded) = &mut backend.embedded {
        embedded.keep_alive()?;
    }
    Ok(backend)
}

/// What has begun ends in order, if it ends at all.
async fn stop_start(opening: JoinHandle<anyhow::Result<Backend>>, mut signals: Signals) -> anyhow::Result<()> {
    tracing::info!("stopping: the start is given up");
    let end = async { opening.await.map(|opened| tokio::task::spawn_blocking(move || drop(opened))) };
    let end = tokio::time::timeout(STOPPED_START_TIMEOUT, async {
        if let Ok(closing) = end.await {
            let _ = closing.await;
        }
    });
    if signals.or_stop_at_once(end).await.is_err() {
        tracing::warn!("the start hangs: it is left as it is");
    }
    Ok(())
}

async fn serve_over(configuration: &Configuration, backend: &Backend, signals: &mut Signals) -> anyhow::Result<()> {
    let running = tokio::select! {
        running = start(configuration, backend) => running?,
        () = signals.next() => return Ok(()),
    };
    running.until_stopped(signals).await
}

/// A service that takes requests.
struct Running {
    api: Server,
    admin: Server,
    key_use_writer: KeyUseWriter,
}

async fn start(configuration: &Configuration, backend: &Backend) -> anyhow::Result<Running> {
    let uses = KeyUses::default();
    let key_use_writer = KeyUseWriter::start(backend.service.clone(), uses.clone())?;
    let database = Database::new(&backend.service, configuration.deadline);
    let keys: Arc<dyn KeyStore> = Arc::new(PostgresKeyStore::new(database.clone(), uses.clone()));
    let members: Arc<dyn MemberStore> = Arc::new(PostgresMemberStore::new(database.clone()));
    let lock = match configuration.environment {
        Environment::Development => Some(configuration.data_dir.lock().await?),
        Environment::Production => None,
    };
    let clinic = match &backend.embedded {
        Some(_) => {
            let (format, folder) = (&configuration.key_format, &configuration.data_dir);
            Some(first_run::ensure_demo(keys.as_ref(), format, folder).await?)
        }
        None => None,
    };

    let listeners = Listeners::bind(configuration)?;
    drop(lock);
    let base = configuration.base_url(listeners.https_port());
    let admin_addr = listeners.admin.local_addr()?;
    let counts = Arc::new(AnswerCounts::default());
    let most = listeners::connections_max();
    let connections = Connections::new(most, configuration.trusted_proxies.clone(), Arc::clone(&counts));
    let admin = admin_server(listeners.admin, database.clone(), counts, connections.clone(), listeners.certificate)?;
    let Configuration { writers, deadline, .. } = *configuration;
    let ports = Ports {
        register: Arc::new(PostgresPatientRegister::start(&backend.service, writers, deadline, &uses)?),
        keys,
        members: Arc::clone(&members),
        sessions: Arc::new(PostgresSessionStore::new(database.clone())),
        log: Arc::new(PostgresAuditLog::new(database)),
        hasher: Arc::new(Argon2Hasher::start()?),
    };
    let api = api_server(configuration, listeners.api, ports, &base, (most, &connections))?;
    if configuration.environment == Environment::Development {
        let invitation = match clinic {
            Some(clinic) => first_run::invite_first_member(members.as_ref(), clinic, &base).await?,
            None => None,
        };
        greeting::greet(&configuration.data_dir, &base, admin_addr, clinic.is_some(), invitation)?;
    }
    Ok(Running { api, admin, key_use_writer })
}

/// Everything that the pages and the API lead to.
struct Ports {
    register: Arc<dyn PatientRegister>,
    keys: Arc<dyn KeyStore>,
    members: Arc<dyn MemberStore>,
    sessions: Arc<dyn SessionStore>,
    log: Arc<dyn AuditLog>,
    hasher: Arc<dyn PasswordHasher>,
}

/// API and dashboard on their listeners.
fn api_server(
    configuration: &Configuration,
    listeners: ApiListeners,
    ports: Ports,
    base: &str,
    (most, connections): (usize, &Connections),
) -> std::io::Result<Server> {
    let (register, keys) = (web::Data::from(ports.register), web::Data::from(ports.keys));
    let (members, sessions) = (web::Data::from(ports.members), web::Data::from(ports.sessions));
    let (log, hasher) = (web::Data::from(ports.log), web::Data::from(ports.hasher));
    let format = web::Data::new(configuration.key_format.clone());
    let limiter = web::Data::new(configuration.rate_limit.0.map(RateLimiter::new));
    let proxies = web::Data::new(configuration.trusted_proxies.clone());
    let (throttle, base) = (web::Data::new(Throttle::new()), web::Data::new(BaseUrl(base.to_owned())));
    let application = move || {
        App::new()
            .app_data(register.clone())
            .app_data(keys.clone())
            .app_data(members.clone())
            .app_data(sessions.clone())
            .app_data(log.clone())
            .app_data(hasher.clone())
            .app_data(format.clone())
            .app_data(limiter.clone())
            .app_data(proxies.clone())
            .app_data(throttle.clone())
            .app_data(base.clone())
            .wrap(from_fn(envelope))
            .configure(intake_http::configure)
            .configure(intake_dashboard::configure)
    };
    listeners::serve(listeners, most, connections, application)
}

/// Probes and metrics on a listener of their own.
fn admin_server(
    listener: TcpListener,
    database: Database,
    counts: Arc<AnswerCounts>,
    connections: Connections,
    certificate: Option<Arc<CurrentCertificate>>,
) -> anyhow::Result<Server> {
    let (database, counts) = (web::Data::new(database), web::Data::from(counts));
    let (connections, certificate) = (web::Data::new(connections), web::Data::new(certificate));
    let application = move || {
        App::new()
            .app_data(database.clone())
            .app_data(counts.clone())
            .app_data(connections.clone())
            .app_data(certificate.clone())
            .configure(admin::configure)
    };
    let server = HttpServer::new(application).workers(1).disable_signals().shutdown_timeout(1);
    Ok(server.listen(listener)?.run())
}

impl Running {
    /// Serves until a signal asks to stop, then finishes what was accepted and writes what is left, each in a time of its own.
    async fn until_stopped(self, signals: &mut Signals) -> anyhow::Result<()> {
        let Self { api, admin, key_use_writer } = self;
        let (api_handle, admin_handle) = (api.handle(), admin.handle());
        let mut api = actix_web::rt::spawn(api);
        let mut admin = actix_web::rt::spawn(admin);
        tokio::select! {
            ended = &mut api => return Err(unexpected_end("the API", ended)),
            ended = &mut admin => return Err(unexpected_end("the admin listener", ended)),
            () = signals.next() => {}
        }
        tracing::info!("stopping: what was accepted is finished first");
        let finish = async {
            api_handle.stop(true).await;
            admin_handle.stop(false).await;
            // On a thread of its own, because a second signal must still be heard.
            let _ = tokio::task::spawn_blocking(|| drop(key_use_writer)).await;
        };
        signals.or_stop_at_once(finish).await;
        tracing::info!("stopped");
        Ok(())
    }
}

/// Whoever asks the service to stop.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn listen() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// The next request to stop.
    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    /// A second request to stop ends everything at once.
    async fn or_stop_at_once<T>(&mut self, work: impl Future<Output = T>) -> T {
        tokio::select! {
            done = work => done,
            () = self.next() => std::process::exit(STOPPED_AT_ONCE),
        }
    }
}

fn unexpected_end<T>(what: &str, ended: Result<std::io::Result<()>, T>) -> anyhow::Error {
    match ended {
        Ok(Err(error)) => anyhow!(error).context(format!("{what} has failed")),
        _ => anyhow!("{what} has ended by itself"),
    }
}
