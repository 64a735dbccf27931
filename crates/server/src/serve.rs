//! The composition root: puts ports and listeners together, serves until a signal comes, and leaves nothing behind.

use std::fs::OpenOptions;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use actix_web::dev::Server;
use actix_web::middleware::from_fn;
use actix_web::{App, HttpServer, web};
use anyhow::{Context, anyhow};
use intake_dashboard::{BaseUrl, Throttle};
use intake_domain::{AuditLog, Environment, KeyStore, MemberStore, PasswordHasher, PatientRegister, SessionStore};
use intake_http::{AnswerCounts, RateLimiter, edge, envelope};
use intake_infra::{
    Argon2Hasher, Database, KeyUseWriter, KeyUses, PostgresAuditLog, PostgresKeyStore, PostgresMemberStore,
    PostgresPatientRegister, PostgresSessionStore,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustls::ServerConfig;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::backend::{Backend, make_data_dir};
use crate::configuration::{Configuration, TlsFiles};
use crate::{admin, certificates, first_run, greeting, local_ca, telemetry};

/// From the first byte of a request's head to its last.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// For each worker; connections that never begin their handshake hold a place for three seconds.
const HANDSHAKES_AT_ONCE: usize = 4_096;
/// Between two requests of a connection: longer than proxies keep theirs.
const KEEP_ALIVE: Duration = Duration::from_secs(75);
/// What was accepted has so long to finish when the service stops.
const SHUTDOWN_TIMEOUT_SECONDS: u64 = 20;
/// The exit status after a second signal.
const STOPPED_AT_ONCE: i32 = 130;

pub(crate) fn serve(configuration: &Configuration) -> anyhow::Result<()> {
    telemetry::start(configuration.log.clone());
    configuration.assert_can_serve()?;
    raise_file_limit();
    let mut backend = Backend::open_to_serve(configuration)?;
    if let Some(embedded) = &mut backend.embedded {
        embedded.keep_alive()?;
    }
    let served = actix_web::rt::System::new().block_on(serve_over(configuration, &backend));
    // The last of its users stops the embedded database here.
    drop(backend);
    served
}

async fn serve_over(configuration: &Configuration, backend: &Backend) -> anyhow::Result<()> {
    let uses = KeyUses::default();
    let key_use_writer = KeyUseWriter::start(backend.service.clone(), uses.clone())?;
    let database = Database::new(&backend.service, configuration.deadline);
    let keys: Arc<dyn KeyStore> = Arc::new(PostgresKeyStore::new(database.clone(), uses.clone()));
    let members: Arc<dyn MemberStore> = Arc::new(PostgresMemberStore::new(database.clone()));
    let clinic = match &backend.embedded {
        Some(_) => {
            let _lock = lock(&configuration.data_dir)?;
            // Looking at the demo key is no use of it: noted where nobody writes it down.
            let unnoted = KeyUses::default();
            let register = PostgresPatientRegister::start(&backend.service, None, configuration.deadline, &unnoted)?;
            let (format, folder) = (&configuration.key_format, &configuration.data_dir);
            Some(first_run::ensure_demo(keys.as_ref(), &register, format, folder).await?)
        }
        None => None,
    };

    let signals = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let listeners = Listeners::bind(configuration)?;
    let base = configuration.base_url(listeners.https_port());
    let admin_addr = listeners.admin.local_addr()?;
    let counts = web::Data::new(AnswerCounts::default());
    let admin = admin_server(listeners.admin, database.clone(), counts.clone())?;
    let Configuration { writers, deadline, .. } = *configuration;
    let ports = Ports {
        register: Arc::new(PostgresPatientRegister::start(&backend.service, writers, deadline, &uses)?),
        keys,
        members: Arc::clone(&members),
        sessions: Arc::new(PostgresSessionStore::new(database.clone())),
        log: Arc::new(PostgresAuditLog::new(database)),
        hasher: Arc::new(Argon2Hasher::start()?),
    };
    let api = api_server(configuration, (listeners.https, listeners.http), ports, &base, counts)?;
    if configuration.environment == Environment::Development {
        let invitation = match clinic {
            Some(clinic) => first_run::invite_first_member(members.as_ref(), clinic, &base).await?,
            None => None,
        };
        greeting::greet(&configuration.data_dir, &base, admin_addr, clinic.is_some(), invitation)?;
    }
    until_stopped(api, admin, key_use_writer, signals).await
}

/// Every socket that the service listens on.
struct Listeners {
    https: Option<(TcpListener, ServerConfig)>,
    http: Option<TcpListener>,
    admin: TcpListener,
}

impl Listeners {
    fn bind(configuration: &Configuration) -> anyhow::Result<Self> {
        let https = match tls_files(configuration)? {
            Some(files) => {
                let config = certificates::server_config(files)?;
                Some((listen("HTTPS", "INTAKE_HTTPS_ADDR", configuration.https_addr)?, config))
            }
            None => None,
        };
        let http = configuration.http_addr.map(|address| listen("plain HTTP", "INTAKE_HTTP_ADDR", address));
        let admin = listen("probes", "INTAKE_ADMIN_ADDR", configuration.admin_addr)?;
        Ok(Self { https, http: http.transpose()?, admin })
    }

    fn https_port(&self) -> u16 {
        let address = self.https.as_ref().and_then(|(listener, _)| listener.local_addr().ok());
        address.map_or(443, |address| address.port())
    }
}

fn listen(what: &str, setting: &str, address: SocketAddr) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind(address).with_context(|| format!("{setting}: cannot listen on {address}"))?;
    let address = listener.local_addr()?;
    tracing::info!(%address, "listening for {what} on {address}");
    Ok(listener)
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
    (https, http): (Option<(TcpListener, ServerConfig)>, Option<TcpListener>),
    ports: Ports,
    base: &str,
    counts: web::Data<AnswerCounts>,
) -> anyhow::Result<Server> {
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
            .app_data(counts.clone())
            .wrap(from_fn(envelope))
            .configure(intake_http::configure)
            .configure(intake_dashboard::configure)
    };
    let mut server = HttpServer::new(application)
        .client_request_timeout(HEAD_TIMEOUT)
        .max_connection_rate(HANDSHAKES_AT_ONCE)
        .keep_alive(KEEP_ALIVE)
        .shutdown_timeout(SHUTDOWN_TIMEOUT_SECONDS)
        .disable_signals();
    if let Some((listener, config)) = https {
        server = server.listen_rustls_0_23(listener, config)?;
    }
    if let Some(listener) = http {
        server = server.listen(listener)?;
    }
    Ok(server.run())
}

fn admin_server(listener: TcpListener, database: Database, counts: web::Data<AnswerCounts>) -> anyhow::Result<Server> {
    let database = web::Data::new(database);
    let application =
        move || App::new().app_data(database.clone()).app_data(counts.clone()).configure(admin::configure);
    let server = HttpServer::new(application).workers(1).disable_signals().shutdown_timeout(1);
    Ok(server.listen(listener)?.run())
}

/// The files that the settings name, or, in development, a certificate of our own.
fn tls_files(configuration: &Configuration) -> anyhow::Result<Option<TlsFiles>> {
    if configuration.tls_files.is_some() || configuration.environment == Environment::Production {
        return Ok(configuration.tls_files.clone());
    }
    make_data_dir(&configuration.data_dir)?;
    let _lock = lock(&configuration.data_dir)?;
    let folder = configuration.data_dir.join("tls");
    let made = local_ca::certificate(&folder, configuration.https_addr.ip(), edge::now());
    made.map(Some).with_context(|| format!("no certificate can be made in {}", folder.display()))
}

/// Services that start together on one data folder prepare it one after the other.
fn lock(data_dir: &Path) -> anyhow::Result<std::fs::File> {
    let lock = OpenOptions::new().create(true).truncate(false).write(true).open(data_dir.join("lock"))?;
    lock.lock()?;
    Ok(lock)
}

/// Every connection is a file, and the usual limit of 1,024 is soon reached. Best effort: the hard limit is the system's.
fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// Serves until a signal asks to stop, then finishes what was accepted and writes what is left. A second signal ends
/// everything at once.
async fn until_stopped(
    api: Server,
    admin: Server,
    key_use_writer: KeyUseWriter,
    (mut terminate, mut interrupt): (Signal, Signal),
) -> anyhow::Result<()> {
    let (api_handle, admin_handle) = (api.handle(), admin.handle());
    let mut api = actix_web::rt::spawn(api);
    let mut admin = actix_web::rt::spawn(admin);
    tokio::select! {
        ended = &mut api => return Err(unexpected_end("the API", ended)),
        ended = &mut admin => return Err(unexpected_end("the admin listener", ended)),
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::info!("stopping: what was accepted is finished first");
    let finish = async {
        api_handle.stop(true).await;
        admin_handle.stop(false).await;
        // On a thread of its own, because a second signal must still be heard.
        let _ = tokio::task::spawn_blocking(|| drop(key_use_writer)).await;
    };
    tokio::select! {
        () = finish => {}
        _ = terminate.recv() => std::process::exit(STOPPED_AT_ONCE),
        _ = interrupt.recv() => std::process::exit(STOPPED_AT_ONCE),
    }
    tracing::info!("stopped");
    Ok(())
}

fn unexpected_end<T>(what: &str, ended: Result<std::io::Result<()>, T>) -> anyhow::Error {
    match ended {
        Ok(Err(error)) => anyhow!(error).context(format!("{what} has failed")),
        _ => anyhow!("{what} has ended by itself"),
    }
}
