//! The composition root: puts ports and listeners together, serves until a signal comes, and leaves nothing behind.

use std::fs::OpenOptions;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;

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

use crate::backend::Backend;
use crate::certificates::CertificateEnd;
use crate::configuration::Configuration;
use crate::listeners::{self, ApiListeners, Listeners};
use crate::{admin, first_run, greeting, telemetry};

/// The exit status after a second signal.
const STOPPED_AT_ONCE: i32 = 130;

pub(crate) fn serve(configuration: &Configuration) -> anyhow::Result<()> {
    telemetry::start(configuration.log.clone());
    configuration.assert_can_serve()?;
    actix_web::rt::System::new().block_on(async {
        // From the first moment on: whoever stops a service that is still starting gets a clean end, too.
        let signals = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let mut backend = Backend::open_to_serve(configuration)?;
        if let Some(embedded) = &mut backend.embedded {
            embedded.keep_alive()?;
        }
        let served = serve_over(configuration, &backend, signals).await;
        // The last of its users stops the embedded database here.
        drop(backend);
        served
    })
}

async fn serve_over(configuration: &Configuration, backend: &Backend, signals: (Signal, Signal)) -> anyhow::Result<()> {
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

    let listeners = Listeners::bind(configuration)?;
    let base = configuration.base_url(listeners.https_port());
    let admin_addr = listeners.admin.local_addr()?;
    let counts = Arc::new(AnswerCounts::default());
    let most = listeners::connections_max();
    let connections = Connections::new(most, configuration.trusted_proxies.clone(), Arc::clone(&counts));
    let admin =
        admin_server(listeners.admin, database.clone(), counts, connections.clone(), listeners.certificate_end)?;
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
    until_stopped(api, admin, key_use_writer, signals).await
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
    certificate_end: CertificateEnd,
) -> anyhow::Result<Server> {
    let (database, counts) = (web::Data::new(database), web::Data::from(counts));
    let (connections, certificate_end) = (web::Data::new(connections), web::Data::new(certificate_end));
    let application = move || {
        App::new()
            .app_data(database.clone())
            .app_data(counts.clone())
            .app_data(connections.clone())
            .app_data(certificate_end.clone())
            .configure(admin::configure)
    };
    let server = HttpServer::new(application).workers(1).disable_signals().shutdown_timeout(1);
    Ok(server.listen(listener)?.run())
}

/// Services that start together on one data folder prepare it one after the other.
pub(crate) fn lock(data_dir: &Path) -> anyhow::Result<std::fs::File> {
    let lock = OpenOptions::new().create(true).truncate(false).write(true).open(data_dir.join("lock"))?;
    lock.lock()?;
    Ok(lock)
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
