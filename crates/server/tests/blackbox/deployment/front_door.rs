//! The front door is watched: HAProxy, instances and certificate fail one after the other, and the shipped rules notice
//! each in a real Prometheus with the shipped probe. Only addresses and times differ from docs/operations.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
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
const ALERTMANAGER: Prerequisite = Prerequisite {
    subject: "alerts that cannot be sent",
    need: "prometheus-alertmanager",
    packages: Packages {
        apt: "apt-get install prometheus-alertmanager",
        dnf: "dnf install golang-github-prometheus-alertmanager",
        brew: "brew install alertmanager",
    },
};
/// Time for several evaluations of the rules.
const A_WHILE: Duration = Duration::from_secs(6);
/// Alerts that may fire throughout: PostgreSQL has no exporter here, and the second depends on the hour.
const EXPECTED: [&str; 3] = ["IntakeExporterDown", "IntakeSilent", operations::WATCHDOG];

/// Prometheus, its exporter and Alertmanager, ended when dropped.
pub(super) struct Watch {
    processes: Vec<Child>,
    client: Client,
    /// Calls of the dead man's switch.
    calls: Arc<AtomicUsize>,
    _folder: tempfile::TempDir,
}

impl Watch {
    /// None, where one of them is not installed.
    pub(super) fn start(site: &Site, also_trusted: &str) -> Option<Self> {
        let [address, probe, manager] = [(); 3].map(|()| free_address());
        let (switch, calls) = switch();
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().to_owned();
        let mut watch = Self { processes: Vec::new(), client: Client::plain(address), calls, _folder: folder };
        configure(&here, site, probe, manager);
        configure_alertmanager(&here, switch);
        let trusted = fs::read_to_string(site.authority()).unwrap() + also_trusted;
        fs::write(here.join("trusted.pem"), trusted).unwrap();
        let mut exporter = Command::new("prometheus-blackbox-exporter");
        exporter.arg(format!("--config.file={}", here.join("blackbox.yml").display()));
        exporter.arg(format!("--web.listen-address={probe}")).env("SSL_CERT_FILE", here.join("trusted.pem"));
        watch.run(exporter, &PROBE)?;
        let mut alertmanager = Command::new("prometheus-alertmanager");
        alertmanager.arg(format!("--config.file={}", here.join("alertmanager.yml").display()));
        alertmanager.arg(format!("--storage.path={}", here.join("alerts").display()));
        alertmanager.args([format!("--web.listen-address={manager}"), "--cluster.listen-address=".to_owned()]);
        watch.run(alertmanager, &ALERTMANAGER)?;
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
    pub(super) fn query(&self, expression: &str) -> String {
        self.query_as("promql", expression)
    }

    /// The same in another form: `json`.
    pub(super) fn query_as(&self, form: &str, expression: &str) -> String {
        let address = format!("http://{}", self.client.address());
        let (succeeded, text) = promtool(&["query", "--format", form, "instant", &address, expression], "").unwrap();
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

/// A dead man's switch: its address, and how often it was called.
fn switch() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, calls) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&calls);
    std::thread::spawn(move || {
        for mut caller in listener.incoming().flatten() {
            if caller.read(&mut [0; 65_536]).is_ok_and(|length| length > 0) {
                counted.fetch_add(1, Ordering::SeqCst);
                let _ = caller.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            }
        }
    });
    (address, calls)
}

/// Writes alertmanager.yml with this switch, without a mail server, and with a second for each time of pages. Warnings
/// wait longer than this test, because some are expected.
fn configure_alertmanager(here: &Path, switch: SocketAddr) {
    let mut text = fs::read_to_string(operations::folder().join("alertmanager.yml")).unwrap();
    let nobody = free_address().to_string();
    let url = format!("http://{switch}/intake");
    for (documented, used) in [
        ("mail.example:587", nobody.as_str()),
        ("https://dead-mans-switch.example/intake", &url),
        ("group_by: [alertname]", "group_by: [alertname]\n  group_wait: 1h"),
        ("repeat_interval: 30m", "repeat_interval: 30m\n      group_wait: 0s\n      group_interval: 1s"),
        ("group_interval: 1m", "group_interval: 1s"),
        ("repeat_interval: 50s", "repeat_interval: 500ms"),
    ] {
        assert!(text.contains(documented), "{documented}");
        text = text.replace(documented, used);
    }
    fs::write(here.join("alertmanager.yml"), text).unwrap();
}

/// Writes the files of docs/operations with the addresses of this test, and with a second for every time.
fn configure(here: &Path, site: &Site, probe: SocketAddr, manager: SocketAddr) {
    let [one, two] = site.admins();
    let addresses = [
        ("10.0.0.11:9464", one.to_string()),
        ("10.0.0.12:9464", two.to_string()),
        ("https://intake.example", format!("https://localhost:{}", site.address().port())),
        ("127.0.0.1:9115", probe.to_string()),
        ("127.0.0.1:9093", manager.to_string()),
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
    wait_for("the switch to be called", || watch.calls.load(Ordering::SeqCst) > 1);

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

    // No page can be sent: the switch hears nothing more.
    watch.wait_until_firing(&["IntakeAlertsNotSent"]);
    wait_for("silence of the switch", || {
        let before = watch.calls.load(Ordering::SeqCst);
        std::thread::sleep(A_WHILE);
        watch.calls.load(Ordering::SeqCst) == before
    });
}
