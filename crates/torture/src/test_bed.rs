//! What is tortured: a database in a private PostgreSQL, two services in front of it whose connections on both sides
//! can be cut, and two organisations with their keys.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::{ApiKey, Environment};
use intake_infra::{DatabaseUrl, Prepared, SERVICE_ROLE};
use intake_test_support::{Client, Clinic, WithCount};

use crate::clock::Clock;
use crate::instance::Instance;
use crate::postgres_server::PostgresServer;
use crate::provider::Provider;
use crate::proxy::{Proxy, Upstream};
use crate::random::Random;
use crate::test_bed_plan::TestBedPlan;

/// Time that PostgreSQL may take to come back after the last fault.
const RECOVERY_TIME: Duration = Duration::from_secs(120);
/// Number of services that share the database: what one acknowledges, the other must know.
pub(crate) const INSTANCES: usize = 2;
/// Between two looks at a service that is to end.
const PAUSE: Duration = Duration::from_millis(100);

/// One database, and everything in front of it.
pub(crate) struct TestBed {
    instances: Vec<Instance>,
    /// The addresses of the database without the proxy.
    pub(crate) urls: Prepared,
    pub(crate) database_proxy: Proxy,
    pub(crate) clinics: Vec<(Clinic, Vec<ApiKey>)>,
    pub(crate) revoked_key: ApiKey,
    /// The provider by which members sign in. None in production, where it would need HTTPS.
    pub(crate) provider: Option<Provider>,
    pub(crate) environment: Environment,
    /// The clock of the database runs steadily.
    pub(crate) keeps_time: bool,
    /// The last moment at which a server may have answered that does not know that it was replaced.
    stale_until: Mutex<Option<Instant>>,
    pub(crate) folder: PathBuf,
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
        let is_development = plan.environment == Environment::Development;
        let provider = is_development.then(Provider::start).transpose()?;
        let start = |instance: usize| {
            let url = format!("{base}application_name={}", application_name(instance));
            let service: DatabaseUrl = url.parse().map_err(|_| anyhow!("{url} is no address of a database"))?;
            // Controls work without durability.
            let service = service.with_durability(urls.service.durability());
            let random = Random::new(plan.seed, 2_000 + instance as u64);
            let data_dir = folder.join(format!("service-{instance}"));
            Instance::start(plan, data_dir, Prepared { service, owner: urls.owner.clone() }, random, provider.as_ref())
        };
        let instances = (0..INSTANCES).map(start).collect::<anyhow::Result<_>>()?;
        let clinics = (0..2).map(|_| Clinic::open(&urls.service, plan.environment));
        let clinics = clinics.map(|clinic| {
            let keys = vec![clinic.key().1, clinic.key().1];
            (clinic, keys)
        });
        let clinics: Vec<_> = clinics.collect();
        let (clinic, _) = clinics.first().context("a clinic")?;
        let (id, revoked_key) = clinic.key();
        clinic.revoke(id);
        let TestBedPlan { environment, keeps_time, .. } = *plan;
        let stale_until = Mutex::default();
        Ok(Self {
            instances,
            clinics,
            revoked_key,
            provider,
            environment,
            keeps_time,
            stale_until,
            urls,
            database_proxy,
            folder,
        })
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

    /// Kills a service and starts it again with this clock.
    pub(crate) fn start_with_clock(&self, instance: usize, clock: &Clock) -> anyhow::Result<()> {
        self.instance(instance)?.kill_and_start(&clock.variables())
    }

    /// Sends a signal to a service.
    pub(crate) fn signal(&self, instance: usize, name: &str) -> anyhow::Result<()> {
        self.instance(instance)?.service.lock().unwrap_or_else(PoisonError::into_inner).signal(name);
        Ok(())
    }

    /// Returns whether a service ends by itself in this time.
    pub(crate) fn ends_within(&self, instance: usize, time: Duration) -> anyhow::Result<bool> {
        let mut service = self.instance(instance)?.service.lock().unwrap_or_else(PoisonError::into_inner);
        let until = Instant::now() + time;
        while !service.has_ended() {
            if Instant::now() > until {
                return Ok(false);
            }
            std::thread::sleep(PAUSE);
        }
        Ok(true)
    }

    /// Until this moment a server may answer that does not know that it was replaced.
    pub(crate) fn is_stale_until(&self, moment: Instant) {
        *self.stale_until.lock().unwrap_or_else(PoisonError::into_inner) = Some(moment);
    }

    /// Returns whether what a request of this moment read may be the past.
    pub(crate) fn may_be_stale(&self, asked: Instant) -> bool {
        self.stale_until.lock().unwrap_or_else(PoisonError::into_inner).is_some_and(|until| asked <= until)
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

fn database_proxy(server: &PostgresServer, plan: &TestBedPlan<'_>) -> anyhow::Result<Proxy> {
    let socket = server.socket_folder().join(".s.PGSQL.5432");
    Proxy::before(Upstream::Unix(socket), own_host(), Random::new(plan.seed, 1_000))
}

/// An address of this machine that no other program and no other bed uses, so that packets to it can be dropped.
fn own_host() -> Ipv4Addr {
    static NEXT: AtomicU8 = AtomicU8::new(64);
    let [.., high, low] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, NEXT.fetch_add(1, Ordering::Relaxed) | 64, high, low.max(1))
}
