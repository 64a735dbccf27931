//! What is tortured: a database of a PostgreSQL of our own, two services in front of it with connections that can be cut on
//! both sides, and two organisations with their keys.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, anyhow};
use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::{ApiKey, Environment};
use intake_infra::embedded::{Durability, EmbeddedPostgres, Settings};
use intake_infra::{DatabaseUrl, Prepared, SERVICE_ROLE, prepare};
use intake_test_support::{Client, Clinic, Service, ServiceBuilder, WithCount};
use rustix::process::{Pid, Signal, kill_process};

use crate::proxy::{Proxy, Upstream};
use crate::random::Random;

/// The services behind one door: what one acknowledges the other must know.
pub(crate) const INSTANCES: usize = 2;
/// How long a killed PostgreSQL may take to be gone, with every part of it.
const GONE: Duration = Duration::from_secs(10);

/// A PostgreSQL of our own.
pub(crate) struct Ground {
    folder: PathBuf,
    postgres: EmbeddedPostgres,
}

impl Ground {
    pub(crate) fn prepare(folder: &Path, durability: Durability) -> anyhow::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let folder = folder.join("postgres");
        let user = std::process::id();
        let postgres = EmbeddedPostgres::start(&Settings { folder: folder.clone(), durability, programs: None, user })?;
        Ok(Self { folder, postgres })
    }

    /// Makes a database on it.
    fn database(&self, name: &str) -> anyhow::Result<Prepared> {
        Ok(prepare(&self.postgres, name)?)
    }

    /// Kills the server and all its parts.
    pub(crate) fn kill(&self) -> anyhow::Result<()> {
        let server = self.server()?;
        let mut family = children(server)?;
        family.push(server);
        family.iter().for_each(|&process| kill(process));
        wait_until_gone(&family)
    }

    /// Kills the server alone: its parts notice, and end by themselves some time.
    pub(crate) fn kill_head(&self) -> anyhow::Result<()> {
        let server = self.server()?;
        let family = children(server)?;
        kill(server);
        wait_until_gone(&family)
    }

    /// Kills one part of the server, which then ends all others and starts again by itself.
    pub(crate) fn kill_part(&self, random: &mut Random) -> anyhow::Result<()> {
        let family = children(self.server()?)?;
        let choice = usize::try_from(random.below(family.len() as u64))?;
        family.get(choice).copied().into_iter().for_each(kill);
        Ok(())
    }

    /// Starts the server again, unless it runs.
    pub(crate) fn restart(&self) -> anyhow::Result<()> {
        Ok(self.postgres.ensure_running()?)
    }

    fn server(&self) -> anyhow::Result<u32> {
        let file = std::fs::read_to_string(self.folder.join("data/postmaster.pid"))?;
        Ok(file.lines().next().context("the pid file is empty")?.trim().parse()?)
    }
}

/// One database, and everything in front of it.
pub(crate) struct Arena {
    doors: Vec<Door>,
    pub(crate) urls: Prepared,
    pub(crate) database_proxy: Proxy,
    pub(crate) clinics: Vec<(Clinic, Vec<ApiKey>)>,
    pub(crate) folder: PathBuf,
}

/// One service.
struct Door {
    program: String,
    data_dir: PathBuf,
    urls: Prepared,
    service: Mutex<Service>,
    address: Arc<Mutex<std::net::SocketAddr>>,
    proxy: Proxy,
}

impl Arena {
    pub(crate) fn open(ground: &Ground, name: &str, program: &Path, folder: &Path, seed: u64) -> anyhow::Result<Self> {
        let urls = ground.database(name)?;
        let socket = ground.folder.join("socket/.s.PGSQL.5432");
        let database_proxy = Proxy::before(Upstream::Unix(socket), own_host(), Random::new(seed, 1_000))?;
        let url = format!("postgres://{SERVICE_ROLE}@{}/{name}", database_proxy.address);
        let url: DatabaseUrl = url.parse().map_err(|_| anyhow!("{url} is no address of a database"))?;
        let through_proxy = Prepared { service: url, owner: urls.owner.clone() };
        let folder = folder.join(name);
        let doors = (0..INSTANCES)
            .map(|number| {
                let data_dir = folder.join(format!("service-{number}"));
                Door::open(program, data_dir, through_proxy.clone(), seed + number as u64)
            })
            .collect::<anyhow::Result<_>>()?;
        let clinics = (0..2).map(|_| Clinic::open(&urls.service, Environment::Development));
        let clinics = clinics.map(|clinic| {
            let keys = vec![clinic.key().1, clinic.key().1];
            (clinic, keys)
        });
        Ok(Self { doors, clinics: clinics.collect(), urls, database_proxy, folder })
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

    /// What the services have to say about answers that nobody expected.
    pub(crate) fn unexpected(&self) -> Option<String> {
        let output = |door: &Door| door.service.lock().unwrap_or_else(PoisonError::into_inner).output();
        let outputs: Vec<String> = self.doors.iter().map(output).collect();
        let mut lines = outputs.iter().flat_map(|output| output.lines());
        lines.find(|line| line.contains("a request failed unexpectedly")).map(str::to_owned)
    }

    /// As the owner of the register.
    pub(crate) fn register(&self) -> anyhow::Result<PgConnection> {
        Ok(PgConnection::establish(self.urls.owner.expose())?)
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
    fn open(program: &Path, data_dir: PathBuf, urls: Prepared, seed: u64) -> anyhow::Result<Self> {
        let program = program.to_string_lossy().into_owned();
        let service = start(&program, &data_dir, &urls)?;
        let address = Arc::new(Mutex::new(service.https.context("an HTTPS listener")?));
        let proxy = Proxy::before(Upstream::Tcp(Arc::clone(&address)), Ipv4Addr::LOCALHOST, Random::new(seed, 2_000))?;
        Ok(Self { program, data_dir, urls, service: Mutex::new(service), address, proxy })
    }

    fn kill_and_start(&self) -> anyhow::Result<()> {
        let mut service = self.service.lock().unwrap_or_else(PoisonError::into_inner);
        service.signal("KILL");
        service.wait();
        *service = start(&self.program, &self.data_dir, &self.urls)?;
        *self.address.lock().unwrap_or_else(PoisonError::into_inner) = service.https.context("an HTTPS listener")?;
        Ok(())
    }
}

/// An address of this machine that nobody else uses, so that what is sent to it can be dropped.
fn own_host() -> Ipv4Addr {
    let [.., high, low] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, 77, high, low.max(1))
}

fn start(program: &str, data_dir: &Path, urls: &Prepared) -> anyhow::Result<Service> {
    let builder = ServiceBuilder::in_folder(program, data_dir)
        .database_urls(&urls.service, &urls.owner)
        .setting("INTAKE_HTTP_ADDR", "off")
        .setting("INTAKE_RATE_LIMIT", "off")
        .setting("INTAKE_LOG", "warn,intake=info");
    builder.try_start().map_err(|output| anyhow!("a service did not start: {output}"))
}

/// The processes that one has started.
fn children(parent: u32) -> anyhow::Result<Vec<u32>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let Some(process) = entry?.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        // The name in parentheses may hold anything.
        let of = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse::<u32>().ok());
        if of == Some(parent) {
            found.push(process);
        }
    }
    Ok(found)
}

pub(crate) fn kill(process: u32) {
    if let Some(process) = i32::try_from(process).ok().and_then(Pid::from_raw) {
        // It may have ended by itself.
        let _ = kill_process(process, Signal::KILL);
    }
}

fn wait_until_gone(processes: &[u32]) -> anyhow::Result<()> {
    let lives = |process: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        // One that has ended stays in the list until its parent has noticed.
        stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
    };
    let until = std::time::Instant::now() + GONE;
    while processes.iter().any(lives) {
        anyhow::ensure!(std::time::Instant::now() < until, "PostgreSQL does not end");
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}
