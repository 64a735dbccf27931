//! Sends one patient, again and again until the service has decided.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::Value;
use ureq::http::{Response, Uri};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, TlsProvider, parse_pem};
use ureq::{Agent, Body};

use crate::pace::{Pace, Ticket};

/// Longer than the service lets a request wait for its database.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Longer than any answer of the service, so that another program's is not read for ever.
const ANSWER_BYTES_MAX: u64 = 256 * 1024;
/// The longest time that a service is left alone, whatever it asks for.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(300);
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(20);
/// Without an answer that decides for this long, a person has to look. An operator mends most faults within an hour.
const GIVE_UP_AFTER: Duration = Duration::from_secs(3600);
const CREATE: &str = "/api/v1/patients";

/// Sends patients with one key to one service.
pub(crate) struct Sender {
    agent: Agent,
    create: String,
    authorization: String,
    key_hint: String,
    pace: Pace,
}

/// Outcome of a patient.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// It is in the register, under this id; also when an earlier request has created it.
    Created { id: String, organisation: String, is_replayed: bool },
    /// The service will not take it. Whether it has had a patient under this idempotency key, which may be erased
    /// since.
    Refused { why: Vec<String>, is_key_known: bool },
}

/// Result of one request.
enum Answer {
    Sent(Sent),
    /// Not decided: to be sent again, after so long if the service says.
    Again {
        why: String,
        retry_after: Duration,
    },
    /// The same for every patient: the run ends.
    Stop(String),
}

impl Sender {
    pub(crate) fn new(url: &str, key: &str, cacert: Option<&Path>, in_flight: u16) -> anyhow::Result<Self> {
        let create = create_url(url)?;
        let roots = match cacert {
            Some(path) => certificates(path).with_context(|| format!("--cacert {}", path.display()))?,
            None => RootCerts::PlatformVerifier,
        };
        let tls = TlsConfig::builder()
            .provider(TlsProvider::Rustls)
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .root_certs(roots)
            .build();
        let agent = Agent::config_builder()
            .tls_config(tls)
            // A redirection could lead a key anywhere.
            .max_redirects(0)
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_global(Some(ANSWER_TIMEOUT))
            // One for each request under way: what is not kept is made again, with all that TLS costs.
            .max_idle_connections(in_flight.into())
            .max_idle_connections_per_host(in_flight.into())
            .user_agent(concat!("intake-import/", env!("CARGO_PKG_VERSION")))
            .build()
            .new_agent();
        let key_hint = format!("ends in {}", key.get(key.len().saturating_sub(4)..).unwrap_or_default());
        Ok(Self { agent, create, authorization: format!("Bearer {key}"), key_hint, pace: Pace::new(in_flight) })
    }

    /// The last four characters of the key, as on the dashboard, by which people recognise it.
    pub(crate) fn key_hint(&self) -> &str {
        &self.key_hint
    }

    /// Asks once whether the service takes this key, without creating anything: what is wrong with the address, the
    /// certificate or the key is reported at once and not after an hour of trying.
    pub(crate) fn greet(&self, body: &str) -> anyhow::Result<()> {
        let ticket = self.pace.wait();
        let response = match self.post(&format!("{}/validate", self.create), body, None) {
            Ok(response) => response,
            Err(error) => bail!("{}", unreachable(&self.create, &error)),
        };
        self.note_rate(ticket, &response);
        match decide(response) {
            Answer::Stop(why) => bail!("{why}"),
            Answer::Sent(_) | Answer::Again { .. } => Ok(()),
        }
    }

    /// Sends a patient until the service has decided. `waiting` learns each time why it must be sent again. Fails
    /// where every other patient would fail too.
    pub(crate) fn create(&self, body: &str, once: &str, mut waiting: impl FnMut(&str)) -> anyhow::Result<Sent> {
        let began = Instant::now();
        let mut longest_pause = FIRST_PAUSE;
        loop {
            let ticket = self.pace.wait();
            let answer = match self.post(&self.create, body, Some(once)) {
                Ok(response) => {
                    self.note_rate(ticket, &response);
                    decide(response)
                }
                Err(error) => Answer::Again { why: unreachable(&self.create, &error), retry_after: Duration::ZERO },
            };
            let (why, retry_after) = match answer {
                Answer::Sent(sent) => return Ok(sent),
                Answer::Stop(why) => bail!("{why}"),
                Answer::Again { why, retry_after } => (why, retry_after),
            };
            if began.elapsed() > GIVE_UP_AFTER {
                bail!("{why}; given up after an hour of trying: run the same command again to continue");
            }
            waiting(&why);
            // A service that says how long is left alone by everybody; the random part keeps senders apart.
            self.pace.hold(retry_after);
            thread::sleep(retry_after + random_part_of(longest_pause));
            longest_pause = (longest_pause * 2).min(PAUSE_MAX);
        }
    }

    fn note_rate(&self, ticket: Ticket, response: &Response<Body>) {
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        self.pace.note(ticket, header("ratelimit-policy"), header("ratelimit"));
    }

    fn post(&self, url: &str, body: &str, once: Option<&str>) -> Result<Response<Body>, ureq::Error> {
        let mut request = self.agent.post(url).header("Authorization", &self.authorization);
        request = request.header("Content-Type", "application/json");
        if let Some(once) = once {
            request = request.header("Idempotency-Key", once);
        }
        request.send(body)
    }
}

fn decide(mut response: Response<Body>) -> Answer {
    let status = response.status().as_u16();
    let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let retry_after = header("retry-after").and_then(|seconds| seconds.parse().ok()).unwrap_or(0);
    let retry_after = Duration::from_secs(retry_after).min(RETRY_AFTER_MAX);
    let is_replayed = header("idempotent-replayed").is_some();
    let reason = header("www-authenticate").unwrap_or_default();
    let mut text = Vec::new();
    if let Err(error) = response.body_mut().as_reader().take(ANSWER_BYTES_MAX).read_to_end(&mut text) {
        return Answer::Again { why: format!("the answer broke off: {error}"), retry_after };
    }
    let json: Value = serde_json::from_slice(&text).unwrap_or_default();
    match status {
        // The dry run gives no data.
        200 => Answer::Sent(Sent::Refused { why: vec!["was only checked".to_owned()], is_key_known: false }),
        201 => {
            let text = |pointer| json.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
            match (text("/data/id"), text("/data/organisationId")) {
                (Some(id), Some(organisation)) => Answer::Sent(Sent::Created { id, organisation, is_replayed }),
                _ => Answer::Stop("the address answers 201 without an id: it is not the service's".to_owned()),
            }
        }
        400 | 410 | 413 | 415 | 422 => {
            let is_key_known =
                status == 410 || json.pointer("/errors/0/path/0") == Some(&Value::from("Idempotency-Key"));
            Answer::Sent(Sent::Refused { why: reasons(&json, status), is_key_known })
        }
        401 => Answer::Stop(format!("the service refuses the key: {}", error_description(&reason))),
        408 | 429 | 500 | 502 | 503 | 504 => {
            Answer::Again { why: format!("the service answers {status}"), retry_after }
        }
        426 => Answer::Stop("the service has seen the key unencrypted: replace the key, and use https://".to_owned()),
        404 | 405 => Answer::Stop(format!("the address answers {status}: it is not the service's")),
        _ => Answer::Stop(format!("the address answers {status}")),
    }
}

/// Returns what a problem says is wrong.
fn reasons(problem: &Value, status: u16) -> Vec<String> {
    let errors = problem.get("errors").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let reasons: Vec<_> = errors
        .iter()
        .filter_map(|error| {
            let message = error.get("message")?.as_str()?;
            let path = error.pointer("/path/0").and_then(Value::as_str);
            Some(path.map_or_else(|| format!("the patient {message}"), |path| format!("{path}: {message}")))
        })
        .collect();
    match problem.get("detail").and_then(Value::as_str) {
        _ if !reasons.is_empty() => reasons,
        Some(detail) => vec![detail.to_owned()],
        None => vec![format!("the service answers {status}")],
    }
}

/// The reason in `Bearer realm="intake", error="invalid_token", error_description="…"`.
fn error_description(challenge: &str) -> &str {
    let rest = challenge.split_once("error_description=\"").map(|(_, rest)| rest);
    rest.and_then(|rest| rest.split('"').next()).unwrap_or("it is not a key")
}

fn unreachable(url: &str, error: &ureq::Error) -> String {
    let host = url.parse::<Uri>().ok().and_then(|uri| uri.authority().map(ToString::to_string)).unwrap_or_default();
    let text = error.to_string();
    let hint = if text.contains("UnknownIssuer") { " (a private authority is given with --cacert FILE)" } else { "" };
    format!("{host} cannot be reached: {text}{hint}")
}

/// The address to which patients are sent.
fn create_url(url: &str) -> anyhow::Result<String> {
    let uri: Uri = url.parse().with_context(|| format!("--url {url}"))?;
    if uri.scheme_str() != Some("https") || uri.authority().is_none() {
        bail!("--url must begin with https://, because a key is sent there");
    }
    let base = url.trim_end_matches('/');
    let base = base.strip_suffix(CREATE).or_else(|| base.strip_suffix("/api/v1")).unwrap_or(base);
    Ok(format!("{base}{CREATE}"))
}

fn certificates(path: &Path) -> anyhow::Result<RootCerts> {
    let pem = fs::read(path)?;
    let mut found: Vec<Certificate<'static>> = Vec::new();
    for item in parse_pem(&pem) {
        if let PemItem::Certificate(certificate) = item? {
            found.push(certificate);
        }
    }
    if found.is_empty() {
        bail!("holds no certificate");
    }
    Ok(RootCerts::new_with_certs(&found))
}

/// A random part of a pause, so that senders which failed together do not come back together.
#[expect(clippy::disallowed_methods, reason = "a program of its own is its own edge")]
fn random_part_of(longest: Duration) -> Duration {
    let mut bytes = [0; 2];
    // Without random bytes, the whole pause is as good.
    match getrandom::fill(&mut bytes) {
        Ok(()) => longest * u32::from(u16::from_ne_bytes(bytes)) / u32::from(u16::MAX),
        Err(_) => longest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_may_be_given_in_any_of_its_forms_but_unencrypted() {
        for url in ["https://clinic.example", "https://clinic.example/", "https://clinic.example/api/v1/"] {
            assert_eq!(create_url(url).unwrap(), "https://clinic.example/api/v1/patients");
        }
        assert_eq!(create_url("https://a.example/intake").unwrap(), "https://a.example/intake/api/v1/patients");
        for url in ["http://clinic.example", "clinic.example", "", "https://"] {
            assert!(create_url(url).is_err(), "{url}");
        }
    }
}
