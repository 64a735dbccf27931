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
use intake_domain::{Environment, KeyStore, PatientRegister};
use intake_http::{AnswerCounts, RateLimiter, envelope};
use intake_infra::{Database, KeyUseWriter, KeyUses, PostgresKeyStore, PostgresPatientRegister};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::backend::{Backend, make_data_dir};
use crate::configuration::{Configuration, TlsFiles};
use crate::{admin, certificates, commands, edge, first_run, local_ca, telemetry};

/// From the first byte of a request's head to its last.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Between two requests of a connection: longer than proxies keep theirs.
const KEEP_ALIVE: Duration = Duration::from_secs(75);
/// What was accepted has so long to finish when the service stops.
const SHUTDOWN_TIMEOUT_SECONDS: u64 = 20;
/// Somebody to create at the first try.
const DEMO_PATIENT: &str =
    r#"{"firstName":"Ada","lastName":"Lovelace","phoneNumber":"+61412345678","dateOfBirth":"1985-12-10"}"#;
/// The exit status after a second signal.
const STOPPED_AT_ONCE: i32 = 130;

pub(crate) fn serve(configuration: &Configuration) -> anyhow::Result<()> {
    telemetry::start(configuration.log.clone());
    configuration.assert_can_serve()?;
    raise_file_limit();
    let mut backend = Backend::open(configuration)?;
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
    let database = Database::new(&backend.service, configuration.deadline);
    let keys: Arc<dyn KeyStore> = Arc::new(PostgresKeyStore::new(database.clone(), uses.clone()));
    let register: Arc<dyn PatientRegister> =
        Arc::new(PostgresPatientRegister::start(&backend.service, configuration.deadline, &uses)?);
    let key_use_writer = KeyUseWriter::start(backend.service.clone(), uses)?;
    if backend.embedded.is_some() {
        let _lock = lock(&configuration.data_dir)?;
        first_run::ensure_demo(keys.as_ref(), &configuration.key_format, &configuration.data_dir).await?;
    }

    let (terminate, interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let counts = web::Data::new(AnswerCounts::default());
    let (api, https_addr) = api_server(configuration, register, keys, counts.clone())?;
    let (admin, admin_addr) = admin_server(configuration, database, counts)?;
    if let Some(https_addr) = https_addr {
        greet(configuration, backend, https_addr, admin_addr)?;
    }
    let ended = until_stopped(api, admin, terminate, interrupt).await;
    drop(key_use_writer);
    ended
}

/// The API on every listener, and where the HTTPS one is.
fn api_server(
    configuration: &Configuration,
    register: Arc<dyn PatientRegister>,
    keys: Arc<dyn KeyStore>,
    counts: web::Data<AnswerCounts>,
) -> anyhow::Result<(Server, Option<SocketAddr>)> {
    let register = web::Data::from(register);
    let keys = web::Data::from(keys);
    let format = web::Data::new(configuration.key_format.clone());
    let limiter = web::Data::new(configuration.rate_limit.0.map(RateLimiter::new));
    let proxies = web::Data::new(configuration.trusted_proxies.clone());
    let application = move || {
        App::new()
            .app_data(register.clone())
            .app_data(keys.clone())
            .app_data(format.clone())
            .app_data(limiter.clone())
            .app_data(proxies.clone())
            .app_data(counts.clone())
            .wrap(from_fn(envelope))
            .configure(intake_http::configure)
            .default_service(web::to(intake_http::not_found))
    };
    let mut server = HttpServer::new(application)
        .client_request_timeout(HEAD_TIMEOUT)
        .keep_alive(KEEP_ALIVE)
        .shutdown_timeout(SHUTDOWN_TIMEOUT_SECONDS)
        .disable_signals();
    let mut https_addr = None;
    if let Some(files) = tls_files(configuration)? {
        let listener = bind("INTAKE_HTTPS_ADDR", configuration.https_addr)?;
        let address = listener.local_addr()?;
        https_addr = Some(address);
        tracing::info!(%address, "listening for HTTPS on {address}");
        server = server.listen_rustls_0_23(listener, certificates::server_config(files)?)?;
    }
    if let Some(address) = configuration.http_addr {
        let listener = bind("INTAKE_HTTP_ADDR", address)?;
        let address = listener.local_addr()?;
        tracing::info!(%address, "listening for plain HTTP on {address}");
        server = server.listen(listener)?;
    }
    Ok((server.run(), https_addr))
}

fn admin_server(
    configuration: &Configuration,
    database: Database,
    counts: web::Data<AnswerCounts>,
) -> anyhow::Result<(Server, SocketAddr)> {
    let listener = bind("INTAKE_ADMIN_ADDR", configuration.admin_addr)?;
    let address = listener.local_addr()?;
    tracing::info!(%address, "listening for probes on {address}");
    let database = web::Data::new(database);
    let application =
        move || App::new().app_data(database.clone()).app_data(counts.clone()).configure(admin::configure);
    let server = HttpServer::new(application).workers(1).disable_signals().shutdown_timeout(1);
    Ok((server.listen(listener)?.run(), address))
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

fn bind(setting: &str, address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).with_context(|| format!("{setting}: cannot listen on {address}"))
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

/// Tells a developer where everything is and what to paste. Silent in production, where the log says it.
fn greet(
    configuration: &Configuration,
    backend: &Backend,
    https_addr: SocketAddr,
    admin_addr: SocketAddr,
) -> anyhow::Result<()> {
    if configuration.environment == Environment::Production {
        return Ok(());
    }
    let base = configuration.public_url.clone().unwrap_or_else(|| format!("https://localhost:{}", https_addr.port()));
    let mut text = format!("\nintake is ready.\n\n  API     {base}/api/v1\n  Probes  http://{admin_addr}/readyz\n");
    if backend.embedded.is_some() {
        text += "\nTo create a patient of the Demo Clinic, paste this into a second terminal in the same folder:\n\n";
        text += &curl_line(&configuration.data_dir, &base);
        text += "\n";
    }
    commands::print(&text)
}

fn curl_line(data_dir: &Path, base: &str) -> String {
    let (authority, key) = (data_dir.join("tls/ca.pem"), first_run::key_file(data_dir));
    format!(
        "curl --cacert {} {base}/api/v1/patients -H \"Authorization: Bearer $(cat {})\" -H 'Content-Type: application/json' -d '{DEMO_PATIENT}'",
        for_shell(&authority),
        for_shell(&key),
    )
}

/// The path as a shell reads it: quoted only where it must be.
fn for_shell(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
    if is_plain { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// Serves until a signal asks to stop, then finishes what was accepted. A second signal ends everything at once.
async fn until_stopped(api: Server, admin: Server, mut terminate: Signal, mut interrupt: Signal) -> anyhow::Result<()> {
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
