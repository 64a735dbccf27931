//! The sockets that the service listens on, and the limits of what comes in through them.

use std::future::ready;
use std::io::{Error, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use actix_http::body::MessageBody;
use actix_http::{HttpService, KeepAlive, Request, Response};
use actix_server::GracefulShutdownSignal;
use actix_service::{
    IntoServiceFactory, Service, ServiceFactory, ServiceFactoryExt, apply_fn_factory, fn_service, map_config,
};
use actix_tls::accept::max_concurrent_tls_connect;
use actix_tls::accept::rustls_0_23::Acceptor;
use actix_web::dev::{AppConfig, Server};
use actix_web::rt::net::TcpStream;
use anyhow::{Context, anyhow, ensure};
use intake_domain::Environment;
use intake_edge as edge;
use intake_http::{Connection, Connections, PIECE_MAX};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::serving::arrivals::{HANDSHAKE_TIMEOUT, admit, arrive, shake_hands};
use crate::serving::certificates::{self, CurrentCertificate};
use crate::serving::local_ca;
use crate::serving::passed_sockets::{ADMIN, HTTP, HTTPS, PassedSockets};
use crate::settings::certificate_files::TlsFiles;
use crate::settings::configuration::Configuration;
use crate::settings::{ADMIN_ADDR, HTTP_ADDR, HTTPS_ADDR, Setting};

/// Connections at the same time: far more than clinics' integrations need, and some 480 MiB if all of them stay idle
/// (docs/reliability.md).
const CONNECTIONS_MAX: usize = 16_384;
/// Connections that wait to be accepted: the usual 128 are soon full when many come at once, and a client that finds no
/// room tries again a second later.
const BACKLOG: i32 = 4_096;
/// Bytes that the system buffers until the client reads: by default megabytes for each connection.
const SEND_BUFFER: usize = 64 * 1024;
/// Those of a few proxies.
const CONNECTIONS_MIN: usize = 64;
/// Open files other than connections: the database, the log, the listeners.
const OTHER_FILES: usize = 256;
/// Time for which a client that is still sending has to read its refusal.
const LINGER_TIMEOUT: Duration = Duration::from_secs(1);
/// Time for which accepted requests have to finish when the service stops: longer than a request may wait for the
/// database, and short enough to leave time for the last writes and the embedded database before supervisors kill the
/// process.
const SHUTDOWN_TIMEOUT_SECONDS: u64 = 11;

pub(crate) struct Listeners {
    pub(crate) api: ApiListeners,
    pub(crate) admin: TcpListener,
    pub(crate) certificate: Option<Arc<CurrentCertificate>>,
}

/// The listeners of one application.
pub(crate) struct ApiListeners {
    https: Option<(TcpListener, ServerConfig)>,
    http: Option<TcpListener>,
}

impl Listeners {
    /// Opens the listeners, except those whose sockets were passed to the program.
    pub(crate) fn bind(configuration: &Configuration, mut sockets: PassedSockets) -> anyhow::Result<Self> {
        let certificate = tls_files(configuration)?.map(CurrentCertificate::of).transpose()?;
        let config =
            certificate.as_ref().map(|certificate| certificates::server_config(Arc::clone(certificate))).transpose()?;
        let https =
            config.is_some().then(|| listen("HTTPS", &HTTPS_ADDR, configuration.https_addr, sockets.take(HTTPS)));
        let http = configuration.http_addr.map(|address| listen("plain HTTP", &HTTP_ADDR, address, sockets.take(HTTP)));
        let admin = listen("probes", &ADMIN_ADDR, configuration.admin_addr, sockets.take(ADMIN));
        assert_all_open([https.as_ref(), http.as_ref(), Some(&admin)])?;
        sockets.assert_all_taken()?;
        let (https, http, admin) = (https.transpose()?.zip(config), http.transpose()?, admin?);
        Ok(Self { api: ApiListeners { https, http }, admin, certificate })
    }

    /// None: a proxy in front serves HTTPS.
    pub(crate) fn https_port(&self) -> Option<u16> {
        let (listener, _) = self.api.https.as_ref()?;
        listener.local_addr().ok().map(|address| address.port())
    }
}

impl ApiListeners {
    pub(crate) fn plain(listener: TcpListener) -> Self {
        Self { https: None, http: Some(listener) }
    }
}

/// As many workers as there are cores.
pub(crate) fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// Serves an application over HTTPS and plain HTTP.
pub(crate) fn serve<F, I, S, B>(
    listeners: ApiListeners,
    workers: usize,
    connections_max: usize,
    connections: &Connections,
    application: F,
) -> std::io::Result<Server>
where
    F: Fn() -> I + Clone + Send + 'static,
    I: IntoServiceFactory<S, Request> + 'static,
    S: ServiceFactory<Request, Config = AppConfig> + 'static,
    S::Error: Into<actix_web::Error>,
    S::InitError: std::fmt::Debug,
    S::Response: Into<Response<B>>,
    B: MessageBody + 'static,
{
    let each = connections_max.div_ceil(workers);
    let mut server = Server::build()
        .workers(workers)
        .max_concurrent_connections(each)
        .shutdown_timeout(SHUTDOWN_TIMEOUT_SECONDS)
        .disable_signals();
    let stopping = server.graceful_shutdown_signal();
    if let Some((listener, config)) = listeners.https {
        // By default a few stalled handshakes would block all others.
        max_concurrent_tls_connect(each);
        let mut handshake = Acceptor::new(config);
        handshake.set_handshake_timeout(HANDSHAKE_TIMEOUT);
        let (connections, application, stopping) = (connections.clone(), application.clone(), stopping.clone());
        server = server.listen("https", listener, move || {
            let connections = connections.clone();
            let secure = apply_fn_factory::<_, _, _, _, _, TcpStream, _, _>(handshake.clone(), shake_hands);
            fn_service(move |stream| arrive(stream, &connections))
                .and_then(secure.map_err(drop))
                .and_then(requests(application(), stopping.clone()))
        })?;
    }
    if let Some(listener) = listeners.http {
        let connections = connections.clone();
        server = server.listen("http", listener, move || {
            let connections = connections.clone();
            fn_service(move |stream| ready(admit(stream, &connections).ok_or(())))
                .and_then(requests(application(), stopping.clone()))
        })?;
    }
    Ok(server.run())
}

/// Serves HTTP/1.1 over one connection. The time limits are those of [`Connection`].
fn requests<T, I, S, B>(
    application: I,
    stopping: GracefulShutdownSignal,
) -> impl ServiceFactory<(Connection<T>, Option<SocketAddr>), Config = (), Response = (), Error = (), InitError = ()>
where
    T: AsyncRead + AsyncWrite + Unpin + 'static,
    I: IntoServiceFactory<S, Request>,
    S: ServiceFactory<Request, Config = AppConfig> + 'static,
    S::Error: Into<actix_web::Error>,
    S::InitError: std::fmt::Debug,
    S::Response: Into<Response<B>>,
    B: MessageBody + 'static,
{
    let application = application.into_factory().map_err(|error| error.into().error_response());
    let http = HttpService::build()
        .keep_alive(KeepAlive::Os)
        .client_request_timeout(Duration::ZERO)
        .client_disconnect_timeout(LINGER_TIMEOUT)
        .h1_write_buffer_size(PIECE_MAX)
        .graceful_shutdown_signal(move || {
            let stopping = stopping.clone();
            async move { stopping.notified().await }
        })
        .on_connect_ext(|connection: &Connection<T>, requests| connection.share_progress(requests))
        .h1(map_config(application, |()| AppConfig::default()));
    let serve = |(connection, peer): (Connection<T>, _), http: &_| {
        connection.turns().serve(Service::call(http, (connection, peer)))
    };
    apply_fn_factory(http, serve).map_err(drop)
}

/// Returns how many connections there may be. Each needs an open file, so the limit of open files is raised as far as
/// possible. Refuses one that leaves too few: clients would wait in vain, beside a probe that finds the service ready.
pub(crate) fn connections_max() -> anyhow::Result<usize> {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    let files =
        getrlimit(Resource::Nofile).current.map_or(usize::MAX, |files| usize::try_from(files).unwrap_or(usize::MAX));
    ensure!(
        files >= OTHER_FILES + CONNECTIONS_MIN,
        "open files are limited to {files}, and the service needs {}: raise the limit (LimitNOFILE, ulimit -n)",
        OTHER_FILES + CONNECTIONS_MIN
    );
    Ok(CONNECTIONS_MAX.min(files - OTHER_FILES))
}

/// Reports every address that cannot be used, so that a person with taken ports chooses others once.
fn assert_all_open<const N: usize>(listeners: [Option<&anyhow::Result<TcpListener>>; N]) -> anyhow::Result<()> {
    let failures = || listeners.iter().flatten().filter_map(|listener| listener.as_ref().err());
    let is_taken = |error: &anyhow::Error| error.downcast_ref::<Error>().map(Error::kind) == Some(ErrorKind::AddrInUse);
    let advice = match failures().filter(|error| is_taken(error)).count() {
        0 => "",
        1 => ": is another intake running? Stop it, or choose another address",
        _ => ": is another intake running? Stop it, or choose other addresses",
    };
    let texts: Vec<_> = failures().map(|error| format!("{error:#}")).collect();
    if texts.is_empty() { Ok(()) } else { Err(anyhow!("{}{advice}", texts.join("; "))) }
}

fn listen(
    what: &str,
    setting: &Setting,
    address: SocketAddr,
    passed: Option<TcpListener>,
) -> anyhow::Result<TcpListener> {
    let listener = match passed {
        Some(listener) => listener,
        None => {
            TcpListener::bind(address).with_context(|| format!("{}: cannot listen on {address}", setting.variable))?
        }
    };
    rustix::net::listen(&listener, BACKLOG)?;
    // Connections inherit both. Without nodelay the second piece of an answer would wait until the first is
    // acknowledged.
    rustix::net::sockopt::set_socket_send_buffer_size(&listener, SEND_BUFFER)?;
    rustix::net::sockopt::set_tcp_nodelay(&listener, true)?;
    let address = listener.local_addr()?;
    tracing::info!(%address, "listening for {what} on {address}");
    Ok(listener)
}

/// The files that the settings name; in development, else a certificate of our own. The caller has locked the data
/// folder.
fn tls_files(configuration: &Configuration) -> anyhow::Result<Option<TlsFiles>> {
    if configuration.tls_files.is_some() || configuration.environment == Environment::Production {
        return Ok(configuration.tls_files.clone());
    }
    let data_dir = &configuration.data_dir;
    let made = local_ca::certificate(data_dir, configuration.https_addr.ip(), edge::now());
    made.map(Some).with_context(|| format!("no certificate can be made in {}", data_dir.tls().display()))
}
