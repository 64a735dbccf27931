//! What is tortured: a database in a private PostgreSQL, two services in front of it whose connections on both sides
//! can be cut, and two organisations with their keys.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::{ApiKey, Environment};
use intake_infra::{DatabaseUrl, Prepared, SERVICE_ROLE};
use intake_test_support::processes::peak_memory;
use intake_test_support::{Client, Clinic, Service, ServiceBuilder, WithCount};

use crate::postgres_server::PostgresServer;
use crate::proxy::{Proxy, Upstream};
use crate::random::Random;

/// Time that PostgreSQL may take to come back after the last fault.
const RECOVERY_TIME: Duration = Duration::from_secs(120);
/// Number of services that share the database: what one acknowledges, the other must know.
pub(crate) const INSTANCES: usize = 2;
/// Time that a killed service may take to start again while other faults strike.
const START: Duration = Duration::from_secs(120);
/// Between two tries to start it.
const PAUSE: Duration = Duration::from_millis(100);

/// One database, and everything in front of it.
pub(crate) struct TestBed {
    instances: Vec<Instance>,
    /// The addresses of the database without the proxy.
    pub(crate) urls: Prepared,
    pub(crate) database_proxy: Proxy,
    pub(crate) clinics: Vec<(Clinic, Vec<ApiKey>)>,
    pub(crate) revoked_key: ApiKey,
    pub(crate) folder: PathBuf,
}

/// Settings of a test bed.
pub(crate) struct TestBedPlan<'a> {
    pub(crate) program: &'a Path,
    /// The folder in which the bed's own folder is made.
    pub(crate) folder: &'a Path,
    pub(crate) name: &'a str,
    pub(crate) seed: u64,
    /// Time for which requests wait.
    pub(crate) deadline: Duration,
    /// Additional settings of the services.
    pub(crate) settings: &'a [(&'a str, &'a str)],
}

/// One service.
struct Instance {
    program: String,
    data_dir: PathBuf,
    urls: Prepared,
    settings: Vec<(String, String)>,
    service: Mutex<Service>,
    address: Arc<Mutex<SocketAddr>>,
    proxy: Proxy,
    /// The most memory that any of its killed processes has used.
    memory: AtomicU64,
}

/// The name of a service in PostgreSQL's list of sessions.
pub(crate) fn application_name(instance: usize) -> String {
    format!("torture-{instance}")
}

impl TestBed {
    /// On a database of this server, with a proxy on the way there.
    pub(crate) fn open(server: &PostgresServer, plan: &TestBedPlan<'_>) -> anyhow::Result<Self> {
        let urls = server.database(plan.name)?;
        let proxy = database_proxy(server, plan)?;
        let through_proxy = format!("postgres://{SERVICE_ROLE}@{}/{}?", proxy.address, plan.name);
        Self::set_up(plan, urls, &through_proxy, proxy)
    }

    /// On an existing database at these addresses, without the proxy.
    pub(crate) fn open_at(server: &PostgresServer, plan: &TestBedPlan<'_>, urls: Prepared) -> anyhow::Result<Self> {
        let (proxy, straight) = (database_proxy(server, plan)?, format!("{} ", urls.service.expose()));
        Self::set_up(plan, urls, &straight, proxy)
    }

    /// `base` is the services' address of the database, to which parameters can be appended.
    fn set_up(plan: &TestBedPlan<'_>, urls: Prepared, base: &str, database_proxy: Proxy) -> anyhow::Result<Self> {
        let folder = plan.folder.join(plan.name);
        let start = |instance: usize| {
            let url = format!("{base}application_name={}", application_name(instance));
            let service: DatabaseUrl = url.parse().map_err(|_| anyhow!("{url} is no address of a database"))?;
            // Controls work without durability.
            let service = service.with_durability(urls.service.durability());
            let random = Random::new(plan.seed, 2_000 + instance as u64);
            let data_dir = folder.join(format!("service-{instance}"));
            Instance::start(plan, data_dir, Prepared { service, owner: urls.owner.clone() }, random)
        };
        let instances = (0..INSTANCES).map(start).collect::<anyhow::Result<_>>()?;
        let clinics = (0..2).map(|_| Clinic::open(&urls.service, Environment::Development));
        let clinics = clinics.map(|clinic| {
            let keys = vec![clinic.key().1, clinic.key().1];
            (clinic, keys)
        });
        let clinics: Vec<_> = clinics.collect();
        let (clinic, _) = clinics.first().context("a clinic")?;
        let (id, revoked_key) = clinic.key();
        clinic.revoke(id);
        Ok(Self { instances, clinics, revoked_key, urls, database_proxy, folder })
    }

    /// A client of a service, through its proxy.
    pub(crate) fn client(&self, instance: usize) -> anyhow::Result<Client> {
        let instance = self.instance(instance)?;
        Ok(Client::tls(instance.proxy.address, &instance.data_dir.join("tls/ca.pem")))
    }

    /// The address of a service, through its proxy, and the file of the authority that it is trusted by.
    pub(crate) fn listener(&self, instance: usize) -> anyhow::Result<(SocketAddr, PathBuf)> {
        let instance = self.instance(instance)?;
        Ok((instance.proxy.address, instance.data_dir.join("tls/ca.pem")))
    }

    /// Kills a service and starts it again.
    pub(crate) fn kill_service(&self, instance: usize) -> anyhow::Result<()> {
        self.instance(instance)?.kill_and_start(&[])
    }

    /// Kills a service and starts it again with a clock that is wrong by this much, as libfaketime writes it.
    pub(crate) fn start_with_clock(&self, instance: usize, library: &str, offset: &str) -> anyhow::Result<()> {
        // Without a thread that sleeps by a false clock.
        let clock = [("LD_PRELOAD", library), ("FAKETIME", offset), ("FAKETIME_DONT_FAKE_MONOTONIC", "1")];
        self.instance(instance)?.kill_and_start(&clock)
    }

    /// Leaves the logs of all services unread for a while.
    pub(crate) fn leave_logs_unread(&self, time: Duration) {
        let service =
            |instance: &Instance| instance.service.lock().unwrap_or_else(PoisonError::into_inner).output_handle();
        let outputs: Vec<_> = self.instances.iter().map(service).collect();
        // Who holds the text keeps more from being read.
        let held: Vec<_> = outputs.iter().map(|output| output.lock().unwrap_or_else(PoisonError::into_inner)).collect();
        std::thread::sleep(time);
        drop(held);
    }

    /// Cuts connections while the services answer, on average after this many bytes; 0 stops it.
    pub(crate) fn cut_answers(&self, every: u64) {
        self.instances.iter().for_each(|instance| instance.proxy.cut_every(0, every));
    }

    /// Returns how many answers were cut.
    pub(crate) fn answers_cut(&self) -> u64 {
        self.instances.iter().map(|instance| instance.proxy.count()).sum()
    }

    /// The most memory that a service has used so far, in bytes.
    pub(crate) fn peak_memory(&self) -> u64 {
        self.instances.iter().map(Instance::peak_memory).max().unwrap_or_default()
    }

    /// A line of the services' logs about an unexpected failure, if there is one.
    pub(crate) fn unexpected(&self) -> Option<String> {
        let output = |instance: &Instance| instance.service.lock().unwrap_or_else(PoisonError::into_inner).output();
        let outputs: Vec<String> = self.instances.iter().map(output).collect();
        let mut lines = outputs.iter().flat_map(|output| output.lines());
        lines.find(|line| line.contains("a request failed unexpectedly")).map(str::to_owned)
    }

    /// Connects as the owner of the register.
    pub(crate) fn register(&self) -> anyhow::Result<PgConnection> {
        let since = Instant::now();
        loop {
            match PgConnection::establish(self.urls.owner.expose()) {
                // The last fault may have struck a moment ago.
                Err(_) if since.elapsed() < RECOVERY_TIME => std::thread::sleep(Duration::from_millis(50)),
                connected => return Ok(connected?),
            }
        }
    }

    /// Returns how many patients are stored.
    pub(crate) fn count(&self) -> anyhow::Result<u64> {
        let count = diesel::sql_query("SELECT count(*) AS count FROM patients");
        Ok(u64::try_from(count.get_result::<WithCount>(&mut self.register()?)?.count)?)
    }

    fn instance(&self, index: usize) -> anyhow::Result<&Instance> {
        self.instances.get(index).context("no such service")
    }
}

impl Instance {
    fn start(plan: &TestBedPlan<'_>, data_dir: PathBuf, urls: Prepared, random: Random) -> anyhow::Result<Self> {
        let program = plan.program.to_string_lossy().into_owned();
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let deadline = ("INTAKE_DEADLINE".to_owned(), format!("{}s", plan.deadline.as_secs()));
        let settings: Vec<_> = plan.settings.iter().map(owned).chain([deadline]).collect();
        let service = start(&program, &data_dir, &urls, &settings)?;
        let address = Arc::new(Mutex::new(service.https.context("an HTTPS listener")?));
        let proxy = Proxy::before(Upstream::Tcp(Arc::clone(&address)), Ipv4Addr::LOCALHOST, random)?;
        let (service, memory) = (Mutex::new(service), AtomicU64::new(0));
        Ok(Self { program, data_dir, urls, settings, service, address, proxy, memory })
    }

    fn kill_and_start(&self, variables: &[(&str, &str)]) -> anyhow::Result<()> {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let settings: Vec<_> = self.settings.iter().cloned().chain(variables).collect();
        let mut service = self.service.lock().unwrap_or_else(PoisonError::into_inner);
        self.memory.fetch_max(peak_memory(service.process()).unwrap_or_default(), Ordering::Relaxed);
        if !service.has_ended() {
            service.signal("KILL");
            service.wait();
        }
        // Another fault may keep the database away, without which no service starts.
        let until = Instant::now() + START;
        *service = loop {
            match start(&self.program, &self.data_dir, &self.urls, &settings) {
                Err(_) if Instant::now() < until => std::thread::sleep(PAUSE),
                started => break started?,
            }
        };
        *self.address.lock().unwrap_or_else(PoisonError::into_inner) = service.https.context("an HTTPS listener")?;
        Ok(())
    }

    fn peak_memory(&self) -> u64 {
        let process = self.service.lock().unwrap_or_else(PoisonError::into_inner).process();
        peak_memory(process).unwrap_or_default().max(self.memory.load(Ordering::Relaxed))
    }
}

fn database_proxy(server: &PostgresServer, plan: &TestBedPlan<'_>) -> anyhow::Result<Proxy> {
    let socket = server.socket_folder().join(".s.PGSQL.5432");
    Proxy::before(Upstream::Unix(socket), own_host(), Random::new(plan.seed, 1_000))
}

/// An address of this machine that no other program uses, so that packets to it can be dropped.
fn own_host() -> Ipv4Addr {
    let [.., high, low] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, 77, high, low.max(1))
}

fn start(program: &str, data_dir: &Path, urls: &Prepared, settings: &[(String, String)]) -> anyhow::Result<Service> {
    let builder = ServiceBuilder::in_folder(program, data_dir)
        .database_urls(&urls.service, &urls.owner)
        .setting("INTAKE_HTTP_ADDR", "off")
        .setting("INTAKE_RATE_LIMIT", "off")
        // Sign-ins are limited by address, so some clients pretend to come from many.
        .setting("INTAKE_TRUSTED_PROXIES", "127.0.0.1")
        .setting("INTAKE_LOG", "warn,intake=info");
    let builder = settings.iter().fold(builder, |builder, (name, value)| builder.setting(name, value));
    builder.try_start().map_err(|output| anyhow!("a service did not start: {output}"))
}
