//! Behind HAProxy and nginx, with the configurations in docs/operations: what clients claim about themselves is
//! overwritten, and two instances restart one after the other without a request that fails, although nothing is sent
//! twice.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use intake_domain::{ApiKey, Environment};
use intake_infra::embedded::Packages;
use intake_test_support::{
    Client, Clinic, Prerequisite, Response, Service, TestDatabase, create_request, free_port, leave_out, patient,
    request, wait_for,
};

use crate::deployment::operations;
use crate::fixtures::{OverWhenDropped, alone, password_field, post, service};

/// In the suite; a full run sets `INTAKE_ROLLING_REQUESTS=20000`.
const REQUESTS: usize = 300;
const CLIENTS: usize = 6;
/// Far longer than HAProxy needs to notice, which is two checks, half a second apart: other programs may keep it from
/// them.
const DRAIN_DELAY: &str = "10s";
/// In which an instance gets requests, unless the proxy takes it for down.
const NOTICE: Duration = Duration::from_secs(1);

pub(crate) const HAPROXY: Prerequisite = Prerequisite {
    subject: "proxies",
    need: "HAProxy",
    packages: Packages { apt: "apt-get install haproxy", dnf: "dnf install haproxy", brew: "brew install haproxy" },
};
const NGINX: Prerequisite = Prerequisite {
    subject: "proxies",
    need: "nginx",
    packages: Packages { apt: "apt-get install nginx", dnf: "dnf install nginx", brew: "brew install nginx" },
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Haproxy,
    Nginx,
}

/// One of two instances, on ports that stay the same.
struct Instance {
    http: SocketAddr,
    admin: SocketAddr,
    folder: tempfile::TempDir,
    running: Option<Service>,
}

/// A running proxy before two instances, killed when dropped.
pub(super) struct Site {
    kind: Kind,
    child: Child,
    address: SocketAddr,
    /// Listener for Prometheus.
    metrics: SocketAddr,
    folder: tempfile::TempDir,
    instances: [Instance; 2],
    database: TestDatabase,
}

pub(crate) fn free_address() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, free_port()).into()
}

impl Instance {
    fn start(database: &TestDatabase) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut instance = Self { http: free_address(), admin: free_address(), folder, running: None };
        instance.start_again(database);
        instance
    }

    fn start_again(&mut self, database: &TestDatabase) {
        let builder = service(database)
            .data_folder(self.folder.path())
            .setting("INTAKE_HTTP_ADDR", self.http.to_string())
            .setting("INTAKE_ADMIN_ADDR", self.admin.to_string())
            .setting("INTAKE_TRUSTED_PROXIES", "127.0.0.1")
            .setting("INTAKE_RATE_LIMIT", "off")
            .setting("INTAKE_DRAIN_DELAY", DRAIN_DELAY);
        self.running = Some(builder.start());
    }

    /// Returns how many requests the instance has answered.
    fn answers(&self) -> u64 {
        let metrics = self.running.as_ref().unwrap().probe("/metrics").text();
        let answers = metrics.lines().filter(|line| line.starts_with("intake_answers_total{"));
        answers.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
    }

    fn stop(&mut self) {
        let mut running = self.running.take().unwrap();
        assert_eq!(running.stop().code(), Some(0), "{}", running.output());
    }
}

impl Kind {
    fn configuration(self) -> &'static str {
        match self {
            Self::Haproxy => "haproxy.cfg",
            Self::Nginx => "nginx.conf",
        }
    }

    /// Starts the proxy with the files in this folder.
    fn start(self, folder: &Path) -> std::io::Result<Child> {
        let (configuration, errors) = (folder.join(self.configuration()), folder.join("error.log"));
        let mut command = match self {
            Self::Haproxy => Command::new("haproxy"),
            Self::Nginx => Command::new("nginx"),
        };
        match self {
            Self::Haproxy => command.arg("-db").arg("-f").arg(configuration),
            Self::Nginx => command.arg("-c").arg(configuration).arg("-e").arg(errors).args(["-g", "daemon off;"]),
        };
        let path = format!("{}:/usr/sbin", std::env::var("PATH").unwrap());
        let log = fs::File::create(folder.join("haproxy.log"))?;
        command.env("PATH", path).stdout(log).stderr(Stdio::null()).spawn()
    }
}

impl Site {
    /// None, where there is no such proxy: the test is left out then; under CI it fails.
    pub(super) fn open(kind: Kind) -> Option<Self> {
        let database = TestDatabase::new();
        let instances = [Instance::start(&database), Instance::start(&database)];
        let (folder, address) = (tempfile::tempdir().unwrap(), free_address());
        // The certificate of the first instance, which is for localhost.
        let tls = instances[0].folder.path().join("tls");
        let [certificate, key] = ["cert.pem", "key.pem"].map(|name| fs::read_to_string(tls.join(name)).unwrap());
        fs::write(folder.path().join("intake.pem"), certificate.clone() + &key).unwrap();
        fs::write(folder.path().join("intake-cert.pem"), certificate).unwrap();
        fs::write(folder.path().join("intake-key.pem"), key).unwrap();
        if kind == Kind::Nginx {
            write_servers(&folder, &instances, None);
        }
        let metrics = free_address();
        configure(kind.configuration(), &folder, [address, metrics], &instances);
        let Ok(child) = kind.start(folder.path()) else {
            leave_out(if kind == Kind::Haproxy { &HAPROXY } else { &NGINX });
            return None;
        };
        let site = Self { kind, child, address, metrics, folder, instances, database };
        wait_for("the proxy", || TcpStream::connect(address).is_ok());
        (0..2).for_each(|index| site.wait_until_served_by(index));
        Some(site)
    }

    /// Returns what the proxy has logged of requests.
    pub(super) fn log(&self) -> String {
        String::from_utf8_lossy(&self.log_bytes()).into_owned()
    }

    pub(super) fn log_bytes(&self) -> Vec<u8> {
        let name = if self.kind == Kind::Haproxy { "haproxy.log" } else { "access.log" };
        fs::read(self.folder.path().join(name)).unwrap()
    }

    /// Everything that the proxy has logged, by the name of the file.
    pub(super) fn logs(&self) -> Vec<(String, String)> {
        let files = self.folder.path().read_dir().unwrap().map(|entry| entry.unwrap().path());
        let logs = files.filter(|path| path.extension().is_some_and(|extension| extension == "log"));
        let named = |path: PathBuf| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned())
        };
        logs.map(named).collect()
    }

    pub(super) fn kind(&self) -> Kind {
        self.kind
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn metrics(&self) -> SocketAddr {
        self.metrics
    }

    /// The addresses of the instances' own metrics.
    pub(super) fn admins(&self) -> [SocketAddr; 2] {
        self.instances.each_ref().map(|instance| instance.admin)
    }

    /// The authority of the certificate with which the site begins.
    pub(super) fn authority(&self) -> PathBuf {
        self.instances[0].folder.path().join("tls/ca.pem")
    }

    pub(super) fn stop_instances(&mut self) {
        (0..2).for_each(|index| self.lose_instance(index));
    }

    pub(super) fn lose_instance(&mut self, index: usize) {
        drop(self.instances[index].running.take());
    }

    pub(super) fn kill_proxy(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Replaces what HAProxy shows to its clients, a certificate and its key, and starts it again. Returns what it
    /// showed before.
    pub(super) fn show_certificate(&mut self, pem: &str) -> String {
        let file = self.folder.path().join("intake.pem");
        let before = fs::read_to_string(&file).unwrap();
        fs::write(file, pem).unwrap();
        self.kill_proxy();
        self.child = self.kind.start(self.folder.path()).unwrap();
        wait_for("the proxy", || TcpStream::connect(self.address).is_ok());
        before
    }

    pub(super) fn client(&self) -> Client {
        Client::tls(self.address, &self.authority())
    }

    pub(super) fn key(&self) -> ApiKey {
        Clinic::open(&self.database.service, Environment::Development).key().1
    }

    /// Restarts an instance as the runbook says.
    fn restart(&mut self, index: usize) {
        self.mark(Some(index));
        self.instances[index].stop();
        self.instances[index].start_again(&self.database);
        self.mark(None);
        self.wait_until_served_by(index);
    }

    /// Asks for a page until an instance has answered.
    fn wait_until_served_by(&self, index: usize) {
        let before = self.instances[index].answers();
        wait_for("the proxy to choose an instance", || {
            let _ = self.client().send(&request("GET", "/sign-in", &[], b""));
            self.instances[index].answers() > before
        });
    }

    /// Waits until an instance gets no more requests, however many come.
    fn wait_until_left_alone(&self, index: usize) {
        let mut before = self.instances[index].answers();
        wait_for("the proxy to leave an instance alone", || {
            std::thread::sleep(NOTICE);
            let now = self.instances[index].answers();
            std::mem::replace(&mut before, now) == now
        });
    }

    /// Tells nginx which instance is down; HAProxy finds out by itself.
    fn mark(&self, down: Option<usize>) {
        if self.kind == Kind::Nginx {
            write_servers(&self.folder, &self.instances, down);
            let reload =
                Command::new("sh").args(["-c", "kill -s HUP -- \"$0\"", &self.child.id().to_string()]).status();
            assert!(reload.unwrap().success());
            if let Some(index) = down {
                self.wait_until_left_alone(index);
            }
        }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // Politely: nginx has workers, which would go on.
        let _ = Command::new("sh").args(["-c", "kill -s TERM -- \"$0\"", &self.child.id().to_string()]).status();
        let _ = self.child.wait();
    }
}

/// Writes the configuration of docs/operations with the addresses and files of this test.
fn configure(name: &str, folder: &tempfile::TempDir, [address, metrics]: [SocketAddr; 2], instances: &[Instance; 2]) {
    let [one, two] = instances;
    let here = folder.path().to_str().unwrap();
    let mut text = fs::read_to_string(operations::folder().join(name)).unwrap();
    // Of HAProxy, of nginx, of both.
    for (documented, used) in [
        ("bind :443", format!("bind {address}")),
        ("bind 127.0.0.1:8405", format!("bind {metrics}")),
        ("10.0.0.11:8080 port 9464", format!("{} port {}", one.http, one.admin.port())),
        ("10.0.0.12:8080 port 9464", format!("{} port {}", two.http, two.admin.port())),
        ("listen 443", format!("listen {address}")),
        ("listen 127.0.0.1:8406", format!("listen {metrics}")),
        ("/run/nginx.pid", format!("{here}/nginx.pid")),
        ("/var/log/nginx/", format!("{here}/")),
        ("/etc/haproxy/", format!("{here}/")),
        ("/etc/nginx/", format!("{here}/")),
    ] {
        text = text.replace(documented, &used);
    }
    fs::write(folder.path().join(name), text).unwrap();
}

fn write_servers(folder: &tempfile::TempDir, instances: &[Instance; 2], down: Option<usize>) {
    let line = |(index, instance): (usize, &Instance)| {
        format!("server {}{};\n", instance.http, if down == Some(index) { " down" } else { "" })
    };
    let lines: String = instances.iter().enumerate().map(line).collect();
    fs::write(folder.path().join("intake-servers.conf"), lines).unwrap();
}

fn what_a_client_claims_is_overwritten(kind: Kind) {
    let Some(site) = Site::open(kind) else { return };
    let claims = [
        ("X-Forwarded-Proto", "http"),
        ("X-Forwarded-For", "203.0.113.9"),
        ("Forwarded", "for=203.0.113.9;proto=http"),
    ];
    let created = site.client().send(&create_request(&site.key(), &claims, patient().to_string().as_bytes()));
    assert_eq!(created.status, 201, "{}", created.text());
    assert!(created.header("strict-transport-security").is_some());

    // A failed sign-in is recorded with the address that it came from.
    let clinic = Clinic::open(&site.database.service, Environment::Development);
    let id = clinic.organisation.to_string();
    let arguments = ["member", "invite", "--json", "--organisation", &id, "--email", "ada@clinic.example"];
    let invited = arguments.iter().fold(service(&site.database), |builder, argument| builder.argument(argument)).run();
    let invited: serde_json::Value = serde_json::from_slice(&invited.stdout).unwrap();
    let link = invited["link"].as_str().unwrap();
    let path = &link[link.find("/invitations/").unwrap()..];
    let form = format!("name=Ada&{}", password_field(crate::fixtures::PASSWORD));
    let joined = post(&site.client(), path, &claims, &form);
    assert_eq!(joined.status, 303, "{}", joined.text());
    let addresses = site.database.texts(
        "SELECT DISTINCT host(address)::text FROM (SELECT address::inet FROM audit_entries WHERE address IS NOT NULL) AS a",
    );
    assert_eq!(addresses, ["127.0.0.1"]);
}

fn a_rolling_restart_fails_no_request(kind: Kind) {
    let _alone = alone();
    let Some(mut site) = Site::open(kind) else { return };
    let wanted = std::env::var("INTAKE_ROLLING_REQUESTS").ok().and_then(|text| text.parse().ok()).unwrap_or(REQUESTS);
    let (client, key) = (site.client(), site.key());
    let (is_over, created) = (AtomicBool::new(false), AtomicUsize::new(0));
    let mut restarts = 0;
    std::thread::scope(|scope| {
        let over = OverWhenDropped(&is_over);
        let traffic = || {
            let request = create_request(&key, &[], patient().to_string().as_bytes());
            while !is_over.load(Ordering::SeqCst) {
                let answer = client.send(&request);
                assert_eq!(answer.status, 201, "{}", answer.text());
                created.fetch_add(1, Ordering::SeqCst);
            }
        };
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(traffic)).collect();
        while restarts < 2 || created.load(Ordering::SeqCst) < wanted {
            site.restart(restarts % 2);
            restarts += 1;
            assert!(clients.iter().all(|client| !client.is_finished()), "a request failed during restart {restarts}");
        }
        drop(over);
        clients.into_iter().for_each(|client| client.join().unwrap());
    });
    let created = created.into_inner();
    assert_eq!(site.database.count("patients"), i64::try_from(created).unwrap());
}

/// With both instances away and with something that is not HTTP, the answers are the proxy's own.
fn its_own_answers_read_like_the_service(kind: Kind) {
    let Some(mut site) = Site::open(kind) else { return };
    let create = create_request(&site.key(), &[], patient().to_string().as_bytes());
    assert_eq!(site.client().send(&create).status, 201);
    // HAProxy's bare 400 cannot be replaced.
    if kind == Kind::Nginx {
        let refused = site.client().send(b"GET / HTTP/1.1\r\nHost: localhost\r\nno header\r\n\r\n");
        assert_own_answer(&refused, 400, "Bad Request");
        assert_eq!(refused.header("retry-after"), None);
    }
    site.stop_instances();
    for _ in 0..20 {
        let refused = site.client().send(&create);
        assert_own_answer(&refused, 503, "Service Unavailable");
        assert_eq!(refused.header("retry-after"), Some("1"));
    }
    let browse = || site.client().send(&request("GET", "/sign-in", &[("Accept", "text/html,*/*;q=0.8")], b""));
    // HAProxy counts its instances every half second.
    wait_for("a page", || browse().header("content-type") == Some("text/html; charset=utf-8"));
    let page = browse();
    assert_eq!(page.status, 503);
    assert!(page.text().contains("<h1>This service is not available</h1>"), "{}", page.text());
    assert_own_headers(&page);
    let api = site.client().send(&request("GET", "/api/v1/key", &[("Accept", "text/html")], b""));
    assert_own_answer(&api, 503, "Service Unavailable");
    let log = site.log();
    assert!(log.contains(r#""client":"127.0.0.1""#) && log.contains(r#""status":503"#), "{log}");
    assert!(log.replace("\\/", "/").contains(r#""path":"/api/v1/patients""#), "{log}");
    assert!(!log.contains("sign-in"), "only paths of the API are logged: {log}");
}

pub(super) fn assert_own_answer(answer: &Response, status: u16, title: &str) {
    let body = answer.json();
    assert_eq!((answer.status, body["status"].as_u64()), (status, Some(u64::from(status))), "{}", answer.text());
    assert_eq!(body["title"], title);
    assert_eq!(body["type"], "about:blank");
    assert!(body["detail"].is_string() && body["instance"].is_null(), "{body}");
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let link = answer.header("link").unwrap();
    let anchor = link.split_once("/docs#").and_then(|(_, anchor)| anchor.strip_suffix(">; rel=\"help\""));
    let own = [format!("every-status-{status}"), "every-status-404-405".to_owned()];
    let is_right = match status {
        400 => anchor == Some("400-bad-request"),
        414 | 501 | 505 => anchor == Some("every-status"),
        _ => own.iter().any(|own| anchor == Some(own)),
    };
    assert!(is_right, "{status}: {link}");
    assert_own_headers(answer);
}

fn assert_own_headers(answer: &Response) {
    for (name, value) in [
        ("cache-control", "no-store"),
        ("x-content-type-options", "nosniff"),
        ("strict-transport-security", "max-age=31536000"),
    ] {
        assert_eq!(answer.header(name), Some(value), "{name}");
    }
    assert!(answer.header("x-request-id").is_some_and(|id| !id.is_empty()));
}

#[test]
fn answers_of_haproxy_read_like_those_of_the_service() {
    its_own_answers_read_like_the_service(Kind::Haproxy);
}

#[test]
fn answers_of_nginx_read_like_those_of_the_service() {
    its_own_answers_read_like_the_service(Kind::Nginx);
}

#[test]
fn haproxy_overwrites_what_a_client_claims() {
    what_a_client_claims_is_overwritten(Kind::Haproxy);
}

#[test]
fn nginx_overwrites_what_a_client_claims() {
    what_a_client_claims_is_overwritten(Kind::Nginx);
}

#[test]
fn behind_haproxy_a_rolling_restart_fails_no_request() {
    a_rolling_restart_fails_no_request(Kind::Haproxy);
}

#[test]
fn behind_nginx_a_rolling_restart_fails_no_request() {
    a_rolling_restart_fails_no_request(Kind::Nginx);
}
