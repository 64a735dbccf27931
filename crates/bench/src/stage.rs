//! What is measured: a private PostgreSQL with its default settings, the service in front of it, and the load. After
//! every run the table must hold what was acknowledged and nothing else, except requests in progress when the load
//! ended.

mod beside;
mod clinics;
mod counts;
mod log;
mod own_schema;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use diesel::connection::SimpleConnection;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::{ApiKey, Field};
use intake_infra::embedded::{EmbeddedPostgres, Settings};
use intake_infra::{Durability, Prepared, prepare};
use intake_test_support::processes::{peak_memory, processor_time_of_family};
use intake_test_support::{Service, ServiceBuilder, WithCount, request};
use tempfile::TempDir;

use crate::load::{self, Listener};
use crate::median::median;
use crate::open_loop::{self, Tail};
use crate::pgbench::Pgbench;
use crate::requests;

use clinics::Clinics;

pub(crate) use beside::Neighbour;

/// As many clinics as a service of this size may have at work at once.
const ORGANISATIONS: usize = 10;
/// Number of commits that are measured.
const COMMITS: usize = 500;
/// Number of connections over TLS that are measured.
const TLS_CONNECTIONS: u32 = 1_000;
/// Time until the requests are stored that wrk had sent when its time was over.
const SETTLE: Duration = Duration::from_millis(500);

/// A private PostgreSQL with full durability.
pub(crate) struct PostgresServer {
    // Ends before its folder.
    embedded: EmbeddedPostgres,
    folder: TempDir,
}

impl PostgresServer {
    pub(crate) fn prepare() -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("intake-bench-").tempdir()?;
        let embedded = EmbeddedPostgres::start(&Settings {
            folder: folder.path().join("postgres"),
            durability: Durability::Full,
            programs: None,
            user: std::process::id(),
        })?;
        Ok(Self { embedded, folder })
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn data_folder(&self) -> PathBuf {
        self.folder.path().join("postgres/data")
    }

    /// One of PostgreSQL's programs, beside the running server.
    fn program(&self, name: &str) -> anyhow::Result<PathBuf> {
        let options = fs::read_to_string(self.data_folder().join("postmaster.opts"))?;
        let server = options.split_whitespace().next().context("postmaster.opts is empty")?;
        Ok(Path::new(server).with_file_name(name))
    }

    fn server(&self) -> anyhow::Result<u32> {
        let file = fs::read_to_string(self.data_folder().join("postmaster.pid"))?;
        Ok(file.lines().next().unwrap_or_default().parse()?)
    }
}

/// A database of it, and the service in front.
pub(crate) struct Stage<'a> {
    postgres: &'a PostgresServer,
    service: Service,
    builder: Box<dyn Fn() -> ServiceBuilder>,
    urls: Prepared,
    keys: Vec<ApiKey>,
    requests: PathBuf,
    folder: PathBuf,
    /// A SQL list of the organisations whose patients are counted.
    organisations: String,
    /// The servers of the database.
    servers: Vec<u32>,
}

impl<'a> Stage<'a> {
    pub(crate) fn build(
        postgres: &'a PostgresServer,
        database: &str,
        program: &Path,
        settings: &[String],
    ) -> anyhow::Result<Self> {
        Self::build_for(ORGANISATIONS, postgres, database, program, settings)
    }

    pub(crate) fn build_for(
        organisations: usize,
        postgres: &'a PostgresServer,
        database: &str,
        program: &Path,
        settings: &[String],
    ) -> anyhow::Result<Self> {
        let urls = prepare(&postgres.embedded, database)?;
        Self::build_on(urls, vec![postgres.server()?], organisations, postgres, database, program, settings)
    }

    /// In front of a register elsewhere, whose servers run on this machine.
    pub(crate) fn build_on(
        urls: Prepared,
        servers: Vec<u32>,
        organisations: usize,
        postgres: &'a PostgresServer,
        name: &str,
        program: &Path,
        settings: &[String],
    ) -> anyhow::Result<Self> {
        let clinics = Clinics::open(organisations, &urls);
        Self::build_for_clinics(urls, servers, clinics, postgres, name, program, settings)
    }

    fn build_for_clinics(
        urls: Prepared,
        servers: Vec<u32>,
        Clinics { organisations, keys }: Clinics,
        postgres: &'a PostgresServer,
        name: &str,
        program: &Path,
        settings: &[String],
    ) -> anyhow::Result<Self> {
        let folder = postgres.folder.path().join(name);
        fs::create_dir(&folder)?;
        let requests = folder.join("requests.tsv");
        fs::write(&requests, requests::lines(&keys))?;

        let (program, data) = (program.to_string_lossy().into_owned(), folder.join("data"));
        let settings: Vec<(String, String)> = settings
            .iter()
            .map(|setting| setting.split_once('=').context("--set takes NAME=VALUE"))
            .map(|pair| pair.map(|(name, value)| (name.to_owned(), value.to_owned())))
            .collect::<anyhow::Result<_>>()?;
        let (service_url, owner_url) = (urls.service.clone(), urls.owner.clone());
        let builder = move || {
            let builder = ServiceBuilder::in_folder(&program, &data)
                .database_urls(&service_url, &owner_url)
                .setting("INTAKE_TRUSTED_PROXIES", "127.0.0.1")
                // The default, which other tests raise.
                .setting("INTAKE_DEADLINE", "5s")
                // A limit that is on, and never reached.
                .setting("INTAKE_RATE_LIMIT", "1000000/1000000");
            settings.iter().fold(builder, |builder, (name, value)| builder.setting(name, value))
        };
        let service = builder().start();
        let organisations = organisations.join(", ");
        Ok(Self { postgres, service, builder: Box::new(builder), urls, keys, requests, folder, organisations, servers })
    }

    /// The time from the start of the program to the first probe that finds it ready.
    pub(crate) fn median_start(&mut self, times: usize) -> anyhow::Result<Duration> {
        let mut starts = Vec::new();
        for _ in 0..times {
            let ended = self.service.stop();
            anyhow::ensure!(ended.success(), "the service does not stop well: {ended}\n{}", self.service.output());
            let started = Instant::now();
            self.service = (self.builder)().start();
            anyhow::ensure!(self.service.probe("/readyz").status == 200, "the service is not ready");
            starts.push(started.elapsed().as_secs_f64());
        }
        Ok(Duration::from_secs_f64(median(starts)))
    }

    /// pgbench on this database.
    pub(crate) fn pgbench(&self) -> anyhow::Result<Pgbench<'_>> {
        self.settle()?;
        let (program, connection) = (self.postgres.program("pgbench")?, self.urls.owner.expose());
        Ok(Pgbench { program, connection, folder: &self.folder, organisations: ORGANISATIONS })
    }

    /// Sends as much as this many connections can, and checks that exactly the acknowledged patients are stored.
    pub(crate) fn load(&mut self, listener: Listener, connections: usize, time: Duration) -> anyhow::Result<load::Run> {
        self.settle()?;
        let url = match listener {
            Listener::Https => format!("https://{}/api/v1/patients", self.https()?),
            Listener::Plain => format!("http://{}/api/v1/patients", self.plain()?),
        };
        let (rows, acknowledged) = (self.rows()?, self.acknowledged());
        let (service, postgres) = (self.service.processor_time(), self.postgres_cpu()?);
        let seen = load::run(&url, &self.requests, connections, time)?;
        std::thread::sleep(SETTLE);
        let (service, postgres) = (self.service.processor_time() - service, self.postgres_cpu()? - postgres);
        let (rows, acknowledged) = (self.rows()? - rows, self.acknowledged() - acknowledged);
        // Requests in progress when wrk stopped, at most one for each connection, are stored without wrk seeing the
        // answer.
        let created = seen.answers - seen.refused;
        anyhow::ensure!(
            created <= acknowledged && acknowledged <= rows && rows <= created + u64::try_from(connections)?,
            "wrk saw {created} patients acknowledged, the service acknowledged {acknowledged}, and {rows} are stored"
        );
        let (per_second, each) = (seen.time.as_secs_f64(), 1e6 / rows as f64);
        Ok(load::Run {
            creates: created as f64 / per_second,
            p50: seen.p50,
            p99: seen.p99,
            service_cpu: service.as_secs_f64() * each,
            postgres_cpu: postgres.as_secs_f64() * each,
        })
    }

    /// Sends at a fixed rate over plain HTTP, and checks that exactly the acknowledged patients are stored.
    pub(crate) fn open_loop(&mut self, rate: f64, connections: usize, time: Duration) -> anyhow::Result<Tail> {
        self.settle()?;
        let address = self.plain()?;
        let requests = requests::whole(&self.keys, &[("X-Forwarded-Proto", "https")]);
        let rows = self.rows()?;
        let outcome = open_loop::run(address, &requests, rate, connections, time)?.all_answered()?;
        let rows = self.rows()? - rows;
        anyhow::ensure!(
            rows == outcome.created,
            "{} patients were acknowledged and {rows} are stored",
            outcome.created
        );
        Ok(outcome.tail)
    }

    /// Returns how long PostgreSQL takes for one insert and its commit, in milliseconds: the median, over one
    /// connection.
    pub(crate) fn commit_latency(&mut self) -> anyhow::Result<f64> {
        self.settle()?;
        let mut connection = self.connect()?;
        connection.batch_execute("CREATE TABLE IF NOT EXISTS commits (at timestamptz)")?;
        let mut times = Vec::new();
        for _ in 0..COMMITS {
            let started = Instant::now();
            connection.batch_execute("INSERT INTO commits VALUES (now())")?;
            times.push(started.elapsed().as_secs_f64() * 1e3);
        }
        Ok(median(times))
    }

    /// Processor time of the service for a connection over TLS with one small answer, in microseconds.
    pub(crate) fn tls_connection(&self, is_resumed: bool) -> anyhow::Result<f64> {
        let small = request("GET", "/nothing", &[], b"");
        let known = self.service.client();
        let before = self.service.processor_time();
        for _ in 0..TLS_CONNECTIONS {
            let client = if is_resumed { known.clone() } else { self.service.client() };
            anyhow::ensure!(client.send(&small).status == 404, "a page at /nothing");
        }
        Ok((self.service.processor_time() - before).as_secs_f64() * 1e6 / f64::from(TLS_CONNECTIONS))
    }

    pub(crate) fn peak_memory(&self) -> anyhow::Result<u64> {
        Ok(peak_memory(self.service.process())?)
    }

    pub(crate) fn empty_table(&mut self) -> anyhow::Result<()> {
        Ok(self.connect()?.batch_execute("TRUNCATE patients")?)
    }

    /// Stores this many patients of the same organisations, with the ids of earlier times.
    pub(crate) fn fill_table(&mut self, rows: u64) -> anyhow::Result<()> {
        self.insert_patients(rows)?;
        Ok(self.connect()?.batch_execute("VACUUM ANALYZE patients")?)
    }

    fn insert_patients(&self, rows: u64) -> anyhow::Result<()> {
        let organisations = self.keys.len();
        let columns = Field::ALL.iter().copied().map(Field::column).collect::<Vec<_>>().join(", ");
        let values =
            Field::ALL.iter().map(|field| format!("'{}'", field.definition().example)).collect::<Vec<_>>().join(", ");
        Ok(self.connect()?.batch_execute(&format!(
            "INSERT INTO patients (organisation_id, id, {columns}, created_at, updated_at)
             SELECT organisations.id, (lpad(to_hex(1700000000000 + number), 12, '0') || '7' || substr(random, 1, 3) || '8' || substr(random, 4, 15))::uuid,
                {values}, now(), now()
             FROM (SELECT number, md5(number::text) AS random FROM generate_series(1, {rows}) AS number) AS numbers
             JOIN (SELECT id, row_number() OVER () AS position FROM organisations) AS organisations
                ON organisations.position = 1 + number % {organisations}"
        ))?)
    }

    /// Makes each statement that stores patients take a tenth of a second longer.
    pub(crate) fn slow_down(&mut self) -> anyhow::Result<()> {
        Ok(self.connect()?.batch_execute(
            "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
                $$ BEGIN PERFORM pg_sleep(0.1); RETURN NULL; END $$;
             CREATE TRIGGER slow AFTER INSERT ON patients FOR EACH STATEMENT EXECUTE FUNCTION slow()",
        )?)
    }

    /// Sends at a fixed rate over plain HTTP, far more than can be stored.
    pub(crate) fn overload(&self, rate: f64, connections: usize, time: Duration) -> anyhow::Result<open_loop::Outcome> {
        let requests = requests::whole(&self.keys, &[("X-Forwarded-Proto", "https")]);
        open_loop::run(self.plain()?, &requests, rate, connections, time)?.all_answered()
    }

    pub(crate) fn plain(&self) -> anyhow::Result<SocketAddr> {
        self.service.http.context("no plain HTTP")
    }

    pub(crate) fn https(&self) -> anyhow::Result<SocketAddr> {
        self.service.https.context("no HTTPS")
    }

    /// A request as a proxy sends it.
    pub(crate) fn request(&self) -> anyhow::Result<Vec<u8>> {
        let requests = requests::whole(&self.keys, &[("X-Forwarded-Proto", "https")]);
        requests.into_iter().nth(1).context("requests")
    }

    /// Lets the database finish its background work, before every run.
    pub(crate) fn settle(&self) -> anyhow::Result<()> {
        std::thread::sleep(SETTLE);
        Ok(self.connect()?.batch_execute("CHECKPOINT")?)
    }

    fn rows(&self) -> anyhow::Result<u64> {
        self.count("true")
    }

    fn count(&self, which: &str) -> anyhow::Result<u64> {
        let count = diesel::sql_query(format!("SELECT count(*) AS count FROM patients WHERE {which}"));
        Ok(u64::try_from(count.get_result::<WithCount>(&mut self.connect()?)?.count)?)
    }

    /// Returns how many patients the service has acknowledged, by its own count.
    pub(crate) fn acknowledged(&self) -> u64 {
        let metrics = self.service.probe("/metrics").text();
        let count = metrics.lines().find_map(|line| line.strip_prefix("intake_answers_total{status=\"201\"} "));
        count.and_then(|count| count.parse().ok()).unwrap_or_default()
    }

    fn postgres_cpu(&self) -> anyhow::Result<Duration> {
        self.servers.iter().map(|server| Ok(processor_time_of_family(*server)?)).sum()
    }

    fn connect(&self) -> anyhow::Result<PgConnection> {
        Ok(PgConnection::establish(self.urls.owner.expose())?)
    }
}
