//! The composition root: connects ports and listeners, serves until a signal comes, and stops everything in order.

pub(crate) mod admin;
mod arrivals;
pub(crate) mod certificates;
mod instance;
pub(crate) mod listeners;
pub(crate) mod local_ca;
pub(crate) mod mails;
pub(crate) mod origin_watch;
pub(crate) mod passed_sockets;
pub(crate) mod readiness;
pub(crate) mod running;
pub(crate) mod systemd;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use actix_web::App;
use actix_web::middleware::from_fn;
use intake_dashboard::{Dashboard, Mails, SingleSignOn};
use intake_domain::{Environment, IdentityProvider, KeyActivity, OrganisationId};
use intake_http::{Api, Connections, envelope};
use intake_infra::{
    Argon2Hasher, Database, KeyDirectory, KeyUseWriter, KeyUses, PostgresAuditLog, PostgresKeyActivity,
    PostgresKeyStore, PostgresMembers, PostgresOwnKeyStore, PostgresPasskeyStore, PostgresPatientRegister,
    PostgresSessionStore, Pulse, RingSignatures,
};
use tokio::signal::unix::SignalKind;
use tokio::task::JoinHandle;

use crate::backend::Backend;
use crate::first_run;
use crate::first_run::greeting;
use crate::serving::listeners::Listeners;
use crate::serving::origin_watch::OriginWatch;
use crate::serving::passed_sockets::PassedSockets;
use crate::serving::readiness::{LastCheck, Readiness};
use crate::serving::running::Running;
use crate::settings;
use crate::settings::configuration::Configuration;
use crate::signals::{self, Signals};
use crate::telemetry;
use crate::traces;

/// Time that a start that is interrupted may take to clean up; what takes longer hangs.
const STOPPED_START_TIMEOUT: Duration = Duration::from_secs(3);
/// Between two signs of life of a worker.
const BEAT_INTERVAL: Duration = Duration::from_secs(1);
/// Time that the embedded database may take to stop before this is left to its guard.
const DATABASE_STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// Reads the configuration and serves.
pub(crate) fn serve(configuration: impl FnOnce() -> anyhow::Result<Configuration>) -> anyhow::Result<()> {
    let system = actix_web::rt::System::new();
    // Before the configuration is read, which may take a while and ask a question.
    system.block_on(async { signals::survive() })?;
    // Before any other program is started, which would inherit them.
    let sockets = PassedSockets::from_environment()?;
    let configuration = configuration()?;
    if configuration.environment == Environment::Development {
        configuration.data_dir.become_owner()?;
    }
    telemetry::start(configuration.log.clone());
    for warning in configuration.warnings() {
        tracing::warn!("{warning}");
    }
    for variable in settings::unknown_variables(std::env::vars_os().map(|(name, _)| name)) {
        tracing::warn!(variable, "unknown setting: is it misspelt?");
    }
    configuration.assert_can_serve()?;
    traces::start()?;
    let served = system.block_on(serve_until_stopped(Arc::new(configuration), sockets));
    // Dropping it would wait for its threads, one of which may hang inside the database. They end with the process.
    std::mem::forget(system);
    // Each of its threads holds one of these. If a thread dropped the last one while it ends, it would wake what is
    // left of the system, which tokio cannot do from there: the program would abort after all was done.
    std::mem::forget(actix_web::rt::System::current());
    served
}

async fn serve_until_stopped(configuration: Arc<Configuration>, sockets: PassedSockets) -> anyhow::Result<()> {
    // First, so that a service which is still starting can be stopped, too.
    let mut signals = Signals::listen()?;
    let Some(backend) = open(&configuration, &mut signals).await? else { return Ok(()) };
    // A start that fails before says why in the one line that it logs.
    let [version, commit, features] = [env!("CARGO_PKG_VERSION"), env!("BUILD_COMMIT"), env!("BUILD_FEATURES")];
    tracing::info!(version, commit, features, "starting");
    let served = start_and_run(&configuration, &backend, sockets, &mut signals).await;
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
    tracing::info!("stopping: the start is cancelled");
    let end = tokio::time::timeout(STOPPED_START_TIMEOUT, async {
        if let Ok(opened) = opening.await {
            let _ = tokio::task::spawn_blocking(move || drop(opened)).await;
        }
    });
    if signals.or_stop_at_once(end).await.is_err() {
        tracing::warn!("the start did not stop in time: the program ends without it");
    }
}

/// Closes the database. The last user stops the embedded one here.
async fn close(backend: Backend, signals: &mut Signals) {
    let closing = tokio::task::spawn_blocking(move || drop(backend));
    let closed = signals.or_stop_at_once(tokio::time::timeout(DATABASE_STOP_TIMEOUT, closing)).await;
    if closed.is_err() {
        tracing::warn!("the embedded database did not stop in time: its guard will stop it");
    }
}

async fn start_and_run(
    configuration: &Configuration,
    backend: &Backend,
    sockets: PassedSockets,
    signals: &mut Signals,
) -> anyhow::Result<()> {
    let running = tokio::select! {
        running = start(configuration, backend, sockets) => running?,
        () = signals.next() => return Ok(()),
    };
    systemd::note_ready();
    systemd::keep_watchdog_quiet();
    running.until_stopped(signals).await
}

/// Starts everything, from the ports to the listeners.
async fn start(configuration: &Configuration, backend: &Backend, sockets: PassedSockets) -> anyhow::Result<Running> {
    let (directory, uses) = (KeyDirectory::default(), KeyUses::default());
    let instance = instance::name(configuration.admin_addr);
    let key_use_writer = KeyUseWriter::start(backend.service.clone(), directory.clone(), uses.clone(), instance)?;
    let database = Database::new(&backend.service, configuration.deadline);
    let keys = Arc::new(PostgresKeyStore::new(database.clone()));
    let activity = PostgresKeyActivity::new(database.clone(), directory.clone(), uses.clone());
    let activity: Arc<dyn KeyActivity> = Arc::new(activity);
    let members = Arc::new(PostgresMembers::new(database.clone()));

    let (clinic, listeners) = prepare_and_listen(configuration, backend, sockets, &database).await?;
    let base = configuration.base_url(listeners.https_port());
    let admin_addr = listeners.admin.local_addr()?;

    let Configuration { environment, writers, deadline, .. } = *configuration;
    let register = Arc::new(PostgresPatientRegister::start(&backend.service, writers, deadline, &directory, &uses)?);
    let api = open_api(configuration, &database, Arc::clone(&register), &activity, &base).configure();
    let (mails, sending) = mails::start(configuration, &base, &keys, &members)?;
    let dashboard = open_dashboard(configuration, &database, &keys, activity, &members, mails, &base)?.configure();
    let application = move || {
        beat_with_this_worker();
        App::new().wrap(from_fn(envelope)).configure(&api).configure(&dashboard)
    };

    let connections_max = listeners::connections_max()?;
    let documentation = Some(format!("{base}/docs"));
    let proxies = configuration.trusted_proxies.clone();
    let connections = Connections::new(connections_max, proxies, configuration.hsts, documentation);
    let last = LastCheck::default();
    let watched = database.clone();
    let readiness = Readiness { database, register, connections: connections.clone(), environment, last };
    let certificate = listeners.certificate.clone();
    signals::at(SignalKind::user_defined1(), telemetry::tell_more)?;
    signals::at(SignalKind::user_defined2(), telemetry::tell_as_set)?;
    signals::at(SignalKind::hangup(), move || {
        systemd::note_reload();
        certificate.iter().for_each(|certificate| certificate.read_again());
        systemd::note_ready();
    })?;
    let admin = admin::serve(listeners.admin, readiness, connections.clone(), listeners.certificate)?;
    let api = listeners::serve(listeners.api, listeners::workers(), connections_max, &connections, application)?;
    if environment == Environment::Development {
        greet(configuration, clinic, &members, &base, admin_addr).await?;
    }
    let origin = OriginWatch::new(watched, backend.service_setting, environment);
    let drain_delay = configuration.drain_delay;
    Ok(Running { api, admin, connections, drain_delay, key_use_writer, mails: sending, origin })
}

/// Makes the demo clinic of an embedded database, and listens. In development both write into the data folder, so
/// services that start together on one folder do this one after the other.
async fn prepare_and_listen(
    configuration: &Configuration,
    backend: &Backend,
    sockets: PassedSockets,
    database: &Database,
) -> anyhow::Result<(Option<OrganisationId>, Listeners)> {
    let _lock = match configuration.environment {
        Environment::Development => Some(configuration.data_dir.lock().await?),
        Environment::Production => None,
    };
    let clinic = match &backend.embedded {
        Some(_) => Some(first_run::ensure_demo(database, &configuration.key_format, &configuration.data_dir).await?),
        None => None,
    };
    Ok((clinic, Listeners::bind(configuration, sockets)?))
}

fn open_api(
    configuration: &Configuration,
    database: &Database,
    register: Arc<PostgresPatientRegister>,
    activity: &Arc<dyn KeyActivity>,
    base: &str,
) -> Api {
    Api {
        register,
        activity: Arc::clone(activity),
        own_keys: Arc::new(PostgresOwnKeyStore::new(database.clone())),
        format: configuration.key_format.clone(),
        rate: configuration.rate_limit.0,
        proxies: configuration.trusted_proxies.clone(),
        base_url: base.to_owned(),
    }
}

fn open_dashboard(
    configuration: &Configuration,
    database: &Database,
    keys: &Arc<PostgresKeyStore>,
    activity: Arc<dyn KeyActivity>,
    members: &Arc<PostgresMembers>,
    mails: Mails,
    base: &str,
) -> anyhow::Result<Dashboard> {
    let sign_on = configuration.single_sign_on.as_ref().map(|settings| {
        let provider: Arc<dyn IdentityProvider> = Arc::new(settings.provider(base)?);
        anyhow::Ok(SingleSignOn { provider, name: settings.name.clone(), passwords: settings.passwords })
    });
    Ok(Dashboard {
        keys: Arc::<PostgresKeyStore>::clone(keys),
        activity,
        members: Arc::<PostgresMembers>::clone(members),
        passkeys: Arc::new(PostgresPasskeyStore::new(database.clone())),
        signatures: Arc::new(RingSignatures),
        sessions: Arc::new(PostgresSessionStore::new(database.clone(), configuration.passwords())),
        log: Arc::new(PostgresAuditLog::new(database.clone())),
        hasher: Arc::new(Argon2Hasher::start(configuration.deadline)?),
        single_sign_on: sign_on.transpose()?,
        mails,
        format: configuration.key_format.clone(),
        proxies: configuration.trusted_proxies.clone(),
        base_url: base.to_owned(),
        authority: greeting::authority(configuration),
    })
}

/// Prints the greeting, with how someone becomes the first member of the demo clinic.
async fn greet(
    configuration: &Configuration,
    clinic: Option<OrganisationId>,
    members: &PostgresMembers,
    base: &str,
    admin_addr: SocketAddr,
) -> anyhow::Result<()> {
    let first_member = match clinic {
        Some(clinic) => first_run::invite_first_member(members, clinic, base, configuration.passwords()).await?,
        None => None,
    };
    greeting::greet(&configuration.data_dir, base, admin_addr, clinic.is_some(), first_member)
}

/// Reports that this worker runs. A stuck worker answers nothing.
fn beat_with_this_worker() {
    let pulse = Pulse::named("api");
    actix_web::rt::spawn(async move {
        loop {
            pulse.beat();
            tokio::time::sleep(BEAT_INTERVAL).await;
        }
    });
}
