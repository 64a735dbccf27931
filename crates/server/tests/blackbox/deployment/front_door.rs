//! The front door is watched: HAProxy, instances and certificate fail one after the other, and the shipped rules notice
//! each in a real Prometheus with the shipped probe. Only addresses and times differ from docs/operations.

use std::collections::BTreeSet;
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use intake_edge as edge;
use intake_infra::embedded::Packages;
use intake_test_support::{Client, Prerequisite, leave_out, processes, request, wait_for};
use rcgen::{CertificateParams, KeyPair};

use crate::deployment::operations;
use crate::deployment::proxies::{Kind, Site, free_address};
use crate::service::metrics::{PROMTOOL, promtool};

const PROBE: Prerequisite = Prerequisite {
    subject: "the front door",
    need: "blackbox_exporter",
    packages: Packages {
        apt: "apt-get install prometheus-blackbox-exporter",
        dnf: "dnf install golang-github-prometheus-blackbox-exporter",
        brew: "brew install blackbox_exporter",
    },
};
/// Time for several evaluations of the rules.
const A_WHILE: Duration = Duration::from_secs(6);
/// Alerts that may fire throughout: PostgreSQL has no exporter here, and the second depends on the hour.
const EXPECTED: [&str; 3] = ["IntakeExporterDown", "IntakeSilent", operations::WATCHDOG];

/// Prometheus and its exporter, ended when dropped.
struct Watch {
    processes: Vec<Child>,
    client: Client,
    _folder: tempfile::TempDir,
}

impl Watch {
    /// None, where one of both is not installed.
    fn start(site: &Site, also_trusted: &str) -> Option<Self> {
        let (address, probe) = (free_address(), free_address());
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().to_owned();
        let mut watch = Self { processes: Vec::new(), client: Client::plain(address), _folder: folder };
        configure(&here, site, probe);
        let trusted = fs::read_to_string(site.authority()).unwrap() + also_trusted;
        fs::write(here.join("trusted.pem"), trusted).unwrap();
        let mut exporter = Command::new("prometheus-blackbox-exporter");
        exporter.arg(format!("--config.file={}", here.join("blackbox.yml").display()));
        exporter.arg(format!("--web.listen-address={probe}")).env("SSL_CERT_FILE", here.join("trusted.pem"));
        watch.run(exporter, &PROBE)?;
        let mut prometheus = Command::new("prometheus");
        prometheus.arg(format!("--config.file={}", here.join("prometheus.yml").display()));
        prometheus.arg(format!("--storage.tsdb.path={}", here.join("data").display()));
        prometheus.arg(format!("--web.listen-address={address}"));
        watch.run(prometheus, &PROMTOOL)?;
        let ready = request("GET", "/-/ready", &[], b"");
        wait_for("Prometheus", || TcpStream::connect(address).is_ok() && watch.client.send(&ready).status == 200);
        Some(watch)
    }

    fn run(&mut self, mut command: Command, prerequisite: &Prerequisite) -> Option<()> {
        let started = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        if started.is_err() {
            leave_out(prerequisite);
        }
        self.processes.push(started.ok()?);
        Some(())
    }

    /// Asks Prometheus for the value of an expression: a line for each series.
    fn query(&self, expression: &str) -> String {
        let address = format!("http://{}", self.client.address());
        let (succeeded, text) = promtool(&["query", "instant", &address, expression], "").unwrap();
        assert!(succeeded, "{text}");
        text
    }

    /// The alerts that fire, without those that may do so throughout.
    fn firing(&self) -> BTreeSet<String> {
        let found = self.query("count by (alertname) (ALERTS{alertstate='firing'})");
        let names = found.lines().filter_map(|line| line.split('"').nth(1));
        names.filter(|name| !EXPECTED.contains(name)).map(str::to_owned).collect()
    }

    fn wait_until_firing(&self, alerts: &[&str]) {
        wait_for(&format!("{alerts:?}"), || {
            let firing = self.firing();
            alerts.iter().all(|alert| firing.contains(*alert))
        });
    }

    fn wait_until_silent(&self) {
        wait_for("silence", || self.firing().is_empty());
        std::thread::sleep(A_WHILE);
        assert_eq!(self.firing(), BTreeSet::new());
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        for process in &mut self.processes {
            processes::send("TERM", &process.id().to_string());
            let _ = process.wait();
        }
    }
}

/// Writes the files of docs/operations with the addresses of this test, and with a second for every time.
fn configure(here: &Path, site: &Site, probe: SocketAddr) {
    let [one, two] = site.admins();
    let addresses = [
        ("10.0.0.11:9464", one.to_string()),
        ("10.0.0.12:9464", two.to_string()),
        ("https://intake.example", format!("https://localhost:{}", site.address().port())),
        ("127.0.0.1:9115", probe.to_string()),
        ("10.0.0.1:8405", site.metrics().to_string()),
        ("_interval: 15s", "_interval: 1s".to_owned()),
    ];
    let read = |file: &str| fs::read_to_string(operations::folder().join(file)).unwrap();
    let mut scraped = read("prometheus.yml");
    for (documented, used) in addresses {
        assert!(scraped.contains(documented), "{documented}");
        scraped = scraped.replace(documented, &used);
    }
    let in_a_second = |line: &str| match line.split_once("for: ") {
        Some((indent, _)) if indent.trim().is_empty() => format!("{indent}for: 1s\n"),
        _ => format!("{line}\n"),
    };
    fs::write(here.join("prometheus.yml"), scraped).unwrap();
    fs::write(here.join("alerts.yml"), read("alerts.yml").lines().map(in_a_second).collect::<String>()).unwrap();
    fs::write(here.join("blackbox.yml"), read("blackbox.yml")).unwrap();
}

/// A certificate of localhost that ends in five days, and its key.
fn ending_certificate() -> [String; 2] {
    let key = KeyPair::generate().unwrap();
    let mut parameters = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    parameters.not_after = edge::now() + time::Duration::days(5);
    [parameters.self_signed(&key).unwrap().pem(), key.serialize_pem()]
}

#[test]
fn what_fails_at_the_front_door_is_noticed_by_the_shipped_rules() {
    let Some(mut site) = Site::open(Kind::Haproxy) else { return };
    let ending = ending_certificate();
    let Some(watch) = Watch::start(&site, &ending[0]) else { return };
    let all = "probe_success == 1 and on () sum(up{job=~'intake|haproxy'}) == 3";
    wait_for("everything to be scraped", || !watch.query(all).trim().is_empty());
    watch.wait_until_silent();
    let watchdog = format!("ALERTS{{alertstate='firing',alertname='{}'}}", operations::WATCHDOG);
    assert!(watch.query(&watchdog).contains(operations::WATCHDOG));

    let lasting = site.show_certificate(&ending.concat());
    watch.wait_until_firing(&["IntakeCertificateEndsSoon"]);
    site.show_certificate(&lasting);
    watch.wait_until_silent();

    site.lose_instance(0);
    watch.wait_until_firing(&["IntakeBackendsMissing", "IntakeDown"]);
    site.lose_instance(1);
    watch.wait_until_firing(&["IntakeBackendsGone", "IntakeProbeFails", "IntakeProxyErrors"]);
    site.kill_proxy();
    watch.wait_until_firing(&["IntakeProxyDown", "IntakeProbeFails"]);
}
