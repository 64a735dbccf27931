//! A quiet day and night of a hundred clinics fires none of the shipped rules. It is made of what a real Prometheus
//! records of real instances and a proxy: what patients do to each series, and what a time without any does. So a rule
//! that reads what nobody exports fails here.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::time::Duration;

use intake_domain::{Environment, KeyFormat};
use intake_test_support::{create_request, patient, wait_for};

use crate::deployment::front_door::Watch;
use crate::deployment::operations;
use crate::deployment::proxies::{Kind, Site};
use crate::patient_with;
use crate::service::metrics::promtool;

/// The jobs of prometheus.yml that are recorded.
const RECORDED: &str = "{job=~\"intake|haproxy|intake-probe\"}";
/// Metrics of what does not run here. Each has its series in `alerts_test.yml`.
const ELSEWHERE: [&str; 3] = ["intake_deliver_", "up{job=\"intake-deliver\"", "up{job=\"node\""];
const PATIENTS: u16 = 40;
/// Forty patients a day of each of a hundred clinics, in ten hours.
const PATIENTS_A_MINUTE: f64 = 7.0;
const NIGHT: Duration = Duration::from_secs(10);
/// Prometheus scrapes each second here, and the probe asks as often.
const SCRAPES_A_MINUTE: f64 = 4.0;
/// Minutes from Thursday, 0:00 UTC, which is eleven in Sydney: with patients until seven, then until twenty past nine
/// without, and with patients again.
const SPANS: [(u32, bool); 3] = [(420, true), (920, false), (220, true)];

type Labels = BTreeMap<String, String>;
type Scrape = BTreeMap<Labels, f64>;

/// Series before patients came, after that, and after a time without any.
struct Recorded([Scrape; 3]);

fn scrape(watch: &Watch) -> Scrape {
    let found: serde_json::Value = serde_json::from_str(&watch.query_as("json", RECORDED)).unwrap();
    let series = found.as_array().unwrap().iter().map(|one| {
        let labels = one["metric"].as_object().unwrap().iter();
        let labels = labels.map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned()));
        (labels.collect(), one["value"][1].as_str().unwrap().parse().unwrap())
    });
    series.collect()
}

fn record(site: &Site, watch: &Watch) -> Recorded {
    let all = "haproxy_backend_active_servers{proxy='intake'} == 2 and on () probe_success == 1";
    let settled = || wait_for("everything to be scraped", || !watch.query(all).trim().is_empty());
    settled();
    let before = scrape(watch);
    let (client, key) = (site.client(), site.key());
    let send = |body: String, key| client.send(&create_request(key, &[], body.as_bytes())).status;
    for _ in 0..PATIENTS {
        assert_eq!(send(patient().to_string(), &key), 201);
    }
    assert_eq!(send(patient_with("phoneNumber", "0491 570 006").to_string(), &key), 422);
    let unknown = KeyFormat::new(&"intake".parse().unwrap(), Environment::Development).mint([7; 32]);
    assert_eq!(send(patient().to_string(), &unknown), 401);
    let counted =
        "sum(intake_answers_total{status='201'}) >= 40 and on () sum(intake_answers_total{status='422'}) >= 1";
    wait_for("the patients to be scraped", || !watch.query(counted).trim().is_empty());
    let busy = scrape(watch);
    std::thread::sleep(NIGHT);
    settled();
    Recorded([before, busy, scrape(watch)])
}

impl Recorded {
    /// Returns whether the series counts something.
    fn is_counter(labels: &Labels) -> bool {
        ["_total", "_bucket", "_count", "_sum"].iter().any(|ending| labels["__name__"].ends_with(ending))
    }

    /// Growth of a series in a minute with patients, and in one without.
    fn growth(&self, labels: &Labels) -> [f64; 2] {
        let mut asked = labels.clone();
        // How long an answer takes says more of this machine than of a clinic's.
        if labels.get("le").is_some_and(|le| le.parse::<f64>().unwrap() >= 1.0) {
            asked.insert("le".to_owned(), "+Inf".to_owned());
        }
        let [before, busy, idle] = self.0.each_ref().map(|scrape| scrape.get(&asked).copied().unwrap_or_default());
        let night = (idle - busy) / NIGHT.as_secs_f64() * SCRAPES_A_MINUTE;
        [night + (busy - before) / f64::from(PATIENTS) * PATIENTS_A_MINUTE, night]
    }

    /// A line for each series of the metrics that the rules name.
    fn input(&self, rules: &str) -> String {
        let mut lines = String::new();
        for (labels, value) in &self.0[2] {
            let name = &labels["__name__"];
            if !rules.contains(name.as_str()) {
                continue;
            }
            let others = labels.iter().filter(|(label, _)| *label != "__name__");
            let others = others.map(|(label, value)| format!("{label}=\"{value}\"")).collect::<Vec<_>>().join(",");
            let (mut value, growth) = (*value, self.growth(labels));
            let spans = SPANS.map(|(minutes, has_patients)| {
                let step = if Self::is_counter(labels) { growth[usize::from(!has_patients)] } else { 0.0 };
                let span = format!("{value:.3}+{step:.6}x{}", minutes - 1);
                value += step * f64::from(minutes);
                span
            });
            let _ = writeln!(lines, "      - {{ series: '{name}{{{others}}}', values: '{}' }}", spans.join(" "));
        }
        lines
    }

    /// Selectors of the rules that no series has, by its name, its labels, and the values of those that do not depend
    /// on what happens.
    fn unread(&self, rules: &str) -> Vec<String> {
        let expressions = rules.lines().filter(|line| !line.contains("summary:") && !line.trim().starts_with('#'));
        let text = expressions.collect::<Vec<_>>().join("\n");
        let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let prefixes = ["intake_", "process_", "haproxy_", "probe_", "up{"];
        let mut unread = Vec::new();
        for (at, _) in text.char_indices().filter(|(at, _)| !text[..*at].ends_with(is_word)) {
            let rest = &text[at..];
            if !prefixes.iter().any(|prefix| rest.starts_with(prefix))
                || ELSEWHERE.iter().any(|one| rest.starts_with(one))
            {
                continue;
            }
            let (name, after) = rest.split_at(rest.find(|letter| !is_word(letter)).unwrap());
            let matchers =
                after.strip_prefix('{').and_then(|after| after.split_once('}')).map_or("", |(inside, _)| inside);
            let has = |labels: &Labels, (label, value): (&str, Option<&str>)| {
                labels.get(label).is_some_and(|found| value.is_none_or(|value| label == "status" || value == found))
            };
            let is_meant = |labels: &Labels| labels["__name__"] == name && split(matchers).all(|one| has(labels, one));
            if !self.0[2].keys().any(is_meant) {
                unread.push(format!("{name}{{{matchers}}}"));
            }
        }
        unread
    }
}

/// The labels of a selector, each with its value where it must have one.
fn split(matchers: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    matchers.split("\",").filter(|one| !one.is_empty()).map(|one| {
        let (label, value) = one.split_once('=').unwrap();
        let is_exact = !label.ends_with('!') && !value.starts_with('~');
        (label.trim_end_matches('!'), is_exact.then(|| value.trim_matches('"')))
    })
}

#[test]
fn a_recorded_quiet_day_and_night_of_a_hundred_clinics_fires_nothing() {
    let Some(site) = Site::open(Kind::Haproxy) else { return };
    let Some(watch) = Watch::start(&site, "") else { return };
    let recorded = record(&site, &watch);
    let rules = fs::read_to_string(operations::folder().join("alerts.yml")).unwrap();
    assert_eq!(recorded.unread(&rules), [""; 0]);
    for (shipped, wrong) in [
        ("intake_answers_total{", "intake_answer_total{"),
        ("{status=", "{state="),
        ("proxy=\"intake\"", "proxy=\"api\""),
    ] {
        assert!(!recorded.unread(&rules.replace(shipped, wrong)).is_empty(), "{wrong}");
    }

    let here = tempfile::tempdir().unwrap();
    fs::write(here.path().join("alerts.yml"), &rules).unwrap();
    let minutes: u32 = SPANS.iter().map(|(minutes, _)| minutes).sum();
    let test = |input: &str| {
        let text = format!(
            "rule_files: [alerts.yml]\nevaluation_interval: 5m\ntests:\n  - interval: 1m\n    input_series:\n{input}    \
             promql_expr_test:\n      - expr: 'count by (alertname) (present_over_time(ALERTS{{alertstate=\"firing\",\
             alertname!=\"{}\"}}[2d]))'\n        eval_time: {minutes}m\n        exp_samples: []\n",
            operations::WATCHDOG
        );
        let file = here.path().join("day.yml");
        fs::write(&file, text).unwrap();
        promtool(&["test", "rules", file.to_str().unwrap()], "")
    };
    let input = recorded.input(&rules);
    let Some((passed, said)) = test(&input) else { return };
    assert!(passed, "{said}\n{input}");
    // Else nothing could fire.
    let (passed, said) = test(&input.replace("values: '1.000+0.000000x419 ", "values: '0+0x419 ")).unwrap();
    assert!(!passed && said.contains("IntakeDown") && said.contains("IntakeProxyDown"), "{said}");
}
