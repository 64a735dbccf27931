//! The files for operators in docs/operations: their metrics exist, each alert fires and has its page in the runbook.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use intake_test_support::is_nightly;
use serde_json::Value;
use yaml_rust2::{Yaml, YamlLoader};

use crate::fixtures::TestApp;
use crate::service::metrics::promtool;

/// The one alert that always fires, so that its absence is noticed elsewhere.
pub(crate) const WATCHDOG: &str = "IntakeWatchdog";

pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operations")
}

fn read(name: &str) -> String {
    fs::read_to_string(folder().join(name)).unwrap()
}

fn alerts() -> BTreeSet<String> {
    read("alerts.yml").lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).map(str::to_owned).collect()
}

/// The metrics that a text names, without the endings of histograms.
pub(crate) fn metrics_in(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
    let names = words.filter(|word| word.starts_with("intake_") || word.starts_with("process_"));
    let ending = ["_bucket", "_sum", "_count"];
    names.map(|name| ending.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name).to_owned()).collect()
}

#[test]
fn every_metric_that_a_file_names_is_exported() {
    let app = TestApp::start();
    let text = app.service.probe("/metrics").text();
    let exported: BTreeSet<_> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    for file in ["alerts.yml", "alerts_test.yml", "grafana.json", "runbook.md"] {
        let named = metrics_in(&read(file));
        assert!(named.len() > 3, "{file}: {named:?}");
        // A delivery has metrics of its own.
        let named = named.iter().filter(|name| !name.starts_with("intake_deliver_"));
        let unknown: Vec<_> = named.filter(|name| !exported.contains(name.as_str())).collect();
        assert!(unknown.is_empty(), "{file}: {unknown:?}");
    }
    let documented = fs::read_to_string(folder().join("monitoring.md")).unwrap();
    let names = metrics_in(&documented);
    let untold: Vec<_> =
        exported.iter().filter(|name| !name.starts_with("process_") && !names.contains(**name)).collect();
    assert!(untold.is_empty(), "docs/operations/monitoring.md does not list {untold:?}");
}

#[test]
fn every_alert_fires_and_is_in_the_runbook() {
    let (tests, runbook) = (read("alerts_test.yml"), read("runbook.md"));
    let (firing, healthy) = tests.split_once("# A healthy service.").unwrap();
    assert!(alerts().len() > 10);
    for alert in alerts() {
        assert!(firing.contains(&format!("alertname: {alert}\n")), "{alert} is never shown to fire");
        let is_silent = healthy.contains(&format!("alertname: {alert}, exp_alerts: []"));
        assert_eq!(is_silent, alert != WATCHDOG, "{alert} may always fire");
        assert!(runbook.contains(&format!("\n## {alert}\n")), "{alert} is not in the runbook");
    }
    let headings = runbook.lines().filter_map(|line| line.strip_prefix("## Intake"));
    assert_eq!(headings.count(), alerts().len(), "the runbook has an alert that does not exist");
    let here = tempfile::tempdir().unwrap();
    fs::write(here.path().join("alerts.yml"), read("alerts.yml")).unwrap();
    let (short, quiet) = tests.split_once("  # Quiet days").unwrap();
    let head = "rule_files: [alerts.yml]\nevaluation_interval: 5m\ntests:\n";
    // Four days in steps of a minute take a minute of processor time.
    let parts = if is_nightly() { vec![tests.clone()] } else { vec![short.to_owned(), format!("{head}  # {quiet}")] };
    for (number, part) in parts.iter().enumerate() {
        let file = here.path().join(format!("{number}.yml"));
        fs::write(&file, part).unwrap();
        assert_clean(&["test", "rules", file.to_str().unwrap()]);
    }
    assert_clean(&["check", "rules", folder().join("alerts.yml").to_str().unwrap()]);
    assert_clean(&["check", "config", folder().join("prometheus.yml").to_str().unwrap()]);
}

#[test]
fn no_rule_is_silent_on_quiet_days_for_want_of_its_metrics() {
    let tests = read("alerts_test.yml");
    let (_, quiet) = tests.split_once("# Quiet days").unwrap();
    let (quiet, _) = quiet.split_once("promql_expr_test").unwrap();
    let words = |text: &str| {
        let words = text.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
        words.map(str::to_owned).collect::<BTreeSet<_>>()
    };
    let sources = ["intake_", "process_", "haproxy_", "nginx_", "pg_", "node_", "probe_"];
    let (rules, quiet) = (words(&read("alerts.yml")), words(quiet));
    let metrics = rules.iter().filter(|word| sources.iter().any(|source| word.starts_with(source)));
    let metrics: Vec<_> = metrics.collect();
    assert!(metrics.len() > 40, "{metrics:?}");
    let missing: Vec<_> = metrics.into_iter().filter(|metric| !quiet.contains(*metric)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[track_caller]
fn assert_clean(arguments: &[&str]) {
    if let Some((passed, text)) = promtool(arguments, "") {
        assert!(passed, "{text}");
    }
}

#[test]
fn every_severity_has_a_recipient() {
    let text = read("alertmanager.yml");
    let routes = &YamlLoader::load_from_str(&text).unwrap()[0];
    let named = |one: &Yaml| one["name"].as_str().unwrap().to_owned();
    let receivers: BTreeSet<_> = routes["receivers"].as_vec().unwrap().iter().map(named).collect();
    let of_route = |route: &Yaml| {
        let matchers = route["matchers"].as_vec().unwrap().iter().map(|one| one.as_str().unwrap());
        (matchers.collect::<Vec<_>>().join(" "), route["receiver"].as_str().unwrap().to_owned())
    };
    let mut routed: BTreeMap<_, _> = routes["route"]["routes"].as_vec().unwrap().iter().map(of_route).collect();
    routed.insert(r#"severity = "warn""#.to_owned(), routes["route"]["receiver"].as_str().unwrap().to_owned());
    assert_eq!(receivers, routed.values().cloned().collect());
    let rules = read("alerts.yml");
    let with = |severity: &str| rules.matches(&format!("severity: {severity} ")).count();
    let severities = ["page", "warn", "watchdog"];
    for severity in severities {
        assert!(with(severity) > 0 && routed.contains_key(&format!("severity = \"{severity}\"")), "{severity}");
    }
    assert_eq!((severities.map(with).iter().sum(), with("watchdog")), (alerts().len(), 1));
}

#[test]
fn commands_of_production_name_their_operator_and_set_up_ends_with_the_doctor() {
    let packaged = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/intake.env");
    for text in [read("compose.yaml"), read("kubernetes.yaml"), fs::read_to_string(packaged).unwrap()] {
        assert!(text.contains("INTAKE_OPERATOR"), "{text}");
    }
    for page in ["install.md", "production.md", "restoring.md", "upgrades.md"] {
        assert!(read(page).contains("intake doctor"), "{page}");
    }
}

#[test]
fn the_dashboard_is_whole() {
    let dashboard: Value = serde_json::from_str(&read("grafana.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    assert!(panels.len() > 10);
    let mut places = BTreeSet::new();
    for panel in panels {
        assert!(!panel["title"].as_str().unwrap().is_empty());
        let place = &panel["gridPos"];
        assert!(places.insert((place["x"].as_u64(), place["y"].as_u64())), "two panels in one place: {panel}");
        for target in panel["targets"].as_array().unwrap() {
            let expression = target["expr"].as_str().unwrap();
            let is_scraped = |prefix: &&str| expression.contains(prefix);
            let scraped = ["intake_", "process_", "probe_", "haproxy_", "node_", "pg_"];
            assert!(scraped.iter().any(is_scraped), "{target}");
        }
    }
}
