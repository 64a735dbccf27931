//! What is tortured: a database of a PostgreSQL of our own, two services in front of it with connections that can be cut on
//! both sides, and two organisations with their keys.

use std::net::Ipv4Addr;
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

use crate::ground::Ground;
use crate::proxy::{Proxy, Upstream};
use crate::random::Random;

/// How long PostgreSQL may take to come back after the last fault.
const RECOVERY_TIME: Duration = Duration::from_secs(30);
/// The services behind one door: what one acknowledges the other must know.
pub(crate) const INSTANCES: usize = 2;
/// A service that was killed starts again in this time, whatever else befalls it, and tries as often as this.
const START: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(100);

/// One database, and everything in front of it.
pub(crate) struct Arena {
    doors: Vec<Door>,
    /// The ways into the database that no fault lies on, unless it befalls the server.
    pub(crate) urls: Prepared,
    pub(crate) database_proxy: Proxy,
    pub(crate) clinics: Vec<(Clinic, Vec<ApiKey>)>,
    /// A key that opens nothing any more.
    pub(crate) revoked_key: ApiKey,
    pub(crate) folder: PathBuf,
}

/// How an arena is furnished.
pub(crate) struct Plot<'a> {
    pub(crate) program: &'a Path,
    /// A folder for it is made in this one.
    pub(crate) folder: &'a Path,
    pub(crate) name: &'a str,
    pub(crate) seed: u64,
    /// What the services are told beyond the usual.
    pub(crate) settings: &'a [(&'a str, &'a str)],
}

/// One service.
struct Door {
    program: String,
    data_dir: PathBuf,
    urls: Prepared,
    settings: Vec<(String, String)>,
    service: Mutex<Service>,
    address: Arc<Mutex<std::net::SocketAddr>>,
    proxy: Proxy,
    /// The most memory that any of its processes has held that were killed.
    memory: AtomicU64,
}

/// As what a service shows itself to PostgreSQL.
pub(crate) fn application_name(instance: usize) -> String {
    format!("torture-{instance}")
}

impl Arena {
    /// On a database of this server, with a proxy on the way there.
    pub(crate) fn open(ground: &Ground, plot: &Plot<'_>) -> anyhow::Result<Self> {
        let urls = ground.database(plot.name)?;
        let proxy = database_proxy(ground, plot)?;
        let through_proxy = format!("postgres://{SERVICE_ROLE}@{}/{}?", proxy.address, plot.name);
        Self::furnish(plot, urls, &through_proxy, proxy)
    }

    /// On a database that is there already, wherever these lead. The proxy stands aside.
    pub(crate) fn open_at(ground: &Ground, plot: &Plot<'_>, urls: Prepared) -> anyhow::Result<Self> {
        let (proxy, straight) = (database_proxy(ground, plot)?, format!("{} ", urls.service.expose()));
        Self::furnish(plot, urls, &straight, proxy)
    }

    /// `way` is how the services reach the database: an address that more can be added to.
    fn furnish(plot: &Plot<'_>, urls: Prepared, way: &str, database_proxy: Proxy) -> anyhow::Result<Self> {
        let folder = plot.folder.join(plot.name);
        let door = |instance: usize| {
            let url = format!("{way}application_name={}", application_name(instance));
            let service: DatabaseUrl = url.parse().map_err(|_| anyhow!("{url} is no address of a database"))?;
            // A control goes without.
            let service = service.with_durability(urls.service.durability());
            let random = Random::new(plot.seed, 2_000 + instance as u64);
            let data_dir = folder.join(format!("service-{instance}"));
            Door::open(plot, data_dir, Prepared { service, owner: urls.owner.clone() }, random)
        };
        let doors = (0..INSTANCES).map(door).collect::<anyhow::Result<_>>()?;
        let clinics = (0..2).map(|_| Clinic::open(&urls.service, Environment::Development));
        let clinics = clinics.map(|clinic| {
            let keys = vec![clinic.key().1, clinic.key().1];
            (clinic, keys)
        });
        let clinics: Vec<_> = clinics.collect();
        let (clinic, _) = clinics.first().context("a clinic")?;
        let (id, revoked_key) = clinic.key();
        clinic.revoke(id);
        Ok(Self { doors, clinics, revoked_key, urls, database_proxy, folder })
    }

    /// How to reach a service, through its proxy.
    pub(crate) fn client(&self, instance: usize) -> anyhow::Result<Client> {
        let door = self.door(instance)?;
        Ok(Client::tls(door.proxy.address, &door.data_dir.join("tls/ca.pem")))
    }

    /// Kills a service and starts it again.
    pub(crate) fn kill_service(&self, instance: usize) -> anyhow::Result<()> {
        self.door(instance)?.kill_and_start()
    }

    /// Cuts what the services answer, on average after so many bytes; 0 stops it.
    pub(crate) fn cut_answers(&self, every: u64) {
        self.doors.iter().for_each(|door| door.proxy.cut_every(0, every));
    }

    /// How many answers were cut.
    pub(crate) fn answers_cut(&self) -> u64 {
        self.doors.iter().map(|door| door.proxy.count()).sum()
    }

    /// The most memory that a service has held so far, in bytes.
    pub(crate) fn peak_memory(&self) -> u64 {
        self.doors.iter().map(Door::peak_memory).max().unwrap_or_default()
    }

    /// What the services have to say about answers that nobody expected.
    pub(crate) fn unexpected(&self) -> Option<String> {
        let output = |door: &Door| door.service.lock().unwrap_or_else(PoisonError::into_inner).output();
        let outputs: Vec<String> = self.doors.iter().map(output).collect();
        let mut lines = outputs.iter().flat_map(|output| output.lines());
        lines.find(|line| line.contains("a request failed unexpectedly")).map(str::to_owned)
    }

    /// As the owner of the register.
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

    /// How many patients are there.
    pub(crate) fn count(&self) -> anyhow::Result<u64> {
        let count = diesel::sql_query("SELECT count(*) AS count FROM patients");
        Ok(u64::try_from(count.get_result::<WithCount>(&mut self.register()?)?.count)?)
    }

    fn door(&self, instance: usize) -> anyhow::Result<&Door> {
        self.doors.get(instance).context("no such service")
    }
}

impl Door {
    fn open(plot: &Plot<'_>, data_dir: PathBuf, urls: Prepared, random: Random) -> anyhow::Result<Self> {
        let program = plot.program.to_string_lossy().into_owned();
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let settings: Vec<_> = plot.settings.iter().map(owned).collect();
        let service = start(&program, &data_dir, &urls, &settings)?;
        let address = Arc::new(Mutex::new(service.https.context("an HTTPS listener")?));
        let proxy = Proxy::before(Upstream::Tcp(Arc::clone(&address)), Ipv4Addr::LOCALHOST, random)?;
        let (service, memory) = (Mutex::new(service), AtomicU64::new(0));
        Ok(Self { program, data_dir, urls, settings, service, address, proxy, memory })
    }

    fn kill_and_start(&self) -> anyhow::Result<()> {
        let mut service = self.service.lock().unwrap_or_else(PoisonError::into_inner);
        self.memory.fetch_max(peak_memory(service.process()).unwrap_or_default(), Ordering::Relaxed);
        if !service.has_ended() {
            service.signal("KILL");
            service.wait();
        }
        // Other faults may be under way: without a database no service starts.
        let until = Instant::now() + START;
        *service = loop {
            match start(&self.program, &self.data_dir, &self.urls, &self.settings) {
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

fn database_proxy(ground: &Ground, plot: &Plot<'_>) -> anyhow::Result<Proxy> {
    let socket = ground.socket_folder().join(".s.PGSQL.5432");
    Proxy::before(Upstream::Unix(socket), own_host(), Random::new(plot.seed, 1_000))
}

/// An address of this machine that nobody else uses, so that what is sent to it can be dropped.
fn own_host() -> Ipv4Addr {
    let [.., high, low] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, 77, high, low.max(1))
}

fn start(program: &str, data_dir: &Path, urls: &Prepared, settings: &[(String, String)]) -> anyhow::Result<Service> {
    let builder = ServiceBuilder::in_folder(program, data_dir)
        .database_urls(&urls.service, &urls.owner)
        .setting("INTAKE_HTTP_ADDR", "off")
        .setting("INTAKE_RATE_LIMIT", "off")
        .setting("INTAKE_LOG", "warn,intake=info");
    let builder = settings.iter().fold(builder, |builder, (name, value)| builder.setting(name, value));
    builder.try_start().map_err(|output| anyhow!("a service did not start: {output}"))
}
