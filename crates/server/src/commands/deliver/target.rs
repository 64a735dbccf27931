//! Targets, and what they make of an event.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use intake_edge as edge;
use intake_infra::client_tls;
use ring::hmac;
use ureq::Agent;
use ureq::http::{HeaderName, HeaderValue, Method, Request, Uri};

use crate::commands::deliver::event::{Event, Form};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Read of an answer: what breaks off before that is none.
const ANSWER_MAX: u64 = 64 * 1024;
/// Statuses that say that this event is wrong, and not the address, the key or the moment.
const REFUSALS: [u16; 5] = [400, 412, 413, 415, 422];

/// Address of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Webhook(String),
    /// Base address of a FHIR R4 server, without a slash at its end.
    Fhir(String),
    Folder(PathBuf),
}

/// Secrets of a target.
#[derive(Default)]
pub(crate) struct Secrets {
    /// Each signs every message.
    signing: Vec<hmac::Key>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// A target that events are delivered to.
pub(crate) struct Target {
    address: Address,
    form: Form,
    secrets: Secrets,
    agent: Agent,
}

/// Answer of a target, apart from its content.
struct Answer {
    status: u16,
    retry_after: Option<Duration>,
}

/// Reason why an event was not taken. It holds no value of a patient.
#[derive(Debug)]
pub(crate) enum Fault {
    /// It can be taken later, and not before this pause if the target names one.
    Later(String, Option<Duration>),
    /// It will never be taken.
    Refused(String),
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (is_fhir, url) = text.strip_prefix("fhir+").map_or((false, text), |url| (true, url));
        if !url.contains("://") {
            return if is_fhir {
                Err("must be fhir+https://…".to_owned())
            } else {
                Ok(Self::Folder(PathBuf::from(url)))
            };
        }
        let uri: Uri = url.parse().map_err(|_| "is not a URL".to_owned())?;
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err("must hold no password: put the header Authorization into the file of --headers".to_owned());
        }
        let is_here = matches!(uri.host(), Some("localhost" | "127.0.0.1" | "[::1]"));
        match uri.scheme_str() {
            Some("https") => {}
            Some("http") if is_here => {}
            _ => return Err("must begin with https://: patients do not travel in the clear".to_owned()),
        }
        Ok(if is_fhir { Self::Fhir(url.trim_end_matches('/').to_owned()) } else { Self::Webhook(url.to_owned()) })
    }
}

impl Secrets {
    /// Reads the keys that sign, one in each line, and headers, one in each line.
    pub(crate) fn read(signing: Option<&Path>, headers: Option<&Path>) -> anyhow::Result<Self> {
        let lines = |path: Option<&Path>| -> anyhow::Result<Vec<String>> {
            let Some(path) = path else { return Ok(Vec::new()) };
            let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
            let lines: Vec<_> =
                text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect();
            ensure!(!lines.is_empty(), "{} is empty", path.display());
            Ok(lines)
        };
        let key = |line: String| {
            let secret = line.strip_prefix("whsec_").and_then(|text| STANDARD.decode(text).ok());
            let secret = secret.filter(|secret| secret.len() >= 24);
            let secret = secret.context("--secrets: a line must be whsec_ and at least 24 bytes in base64")?;
            Ok(hmac::Key::new(hmac::HMAC_SHA256, &secret))
        };
        let header = |line: String| {
            let parts = line.split_once(':').and_then(|(name, value)| {
                Some((name.trim().parse::<HeaderName>().ok()?, value.trim().parse::<HeaderValue>().ok()?))
            });
            parts.context("--headers: a line must be NAME: VALUE")
        };
        Ok(Self {
            signing: lines(signing)?.into_iter().map(key).collect::<anyhow::Result<_>>()?,
            headers: lines(headers)?.into_iter().map(header).collect::<anyhow::Result<_>>()?,
        })
    }
}

impl Target {
    /// A target that has this long for an answer, however slowly it comes.
    pub(crate) fn new(address: Address, is_thin: bool, secrets: Secrets, timeout: Duration) -> anyhow::Result<Self> {
        let form = match &address {
            Address::Webhook(_) if is_thin => Form::ThinMessage,
            _ if is_thin => bail!("--thin: only a webhook can ask for the rest"),
            Address::Webhook(_) => Form::Message,
            Address::Fhir(_) => Form::Fhir,
            Address::Folder(_) => Form::File,
        };
        let is_webhook = matches!(address, Address::Webhook(_));
        ensure!(is_webhook || secrets.signing.is_empty(), "--secrets: only messages of a webhook are signed");
        if let Address::Folder(folder) = &address {
            ensure!(folder.is_dir(), "--to: {} is not a folder", folder.display());
        }
        let agent = Agent::config_builder()
            .tls_config(client_tls())
            // A redirection could lead patients anywhere.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_global(Some(timeout))
            .max_idle_connections(usize::from(u8::MAX))
            .max_idle_connections_per_host(usize::from(u8::MAX))
            .user_agent(concat!("intake/", env!("CARGO_PKG_VERSION")))
            .build()
            .new_agent();
        Ok(Self { address, form, secrets, agent })
    }

    pub(crate) fn form(&self) -> Form {
        self.form
    }

    /// Returns when the target has the event.
    pub(crate) fn take(&self, event: &Event) -> Result<(), Fault> {
        match &self.address {
            Address::Webhook(url) => self.post(url, event).and_then(|answer| judged(&answer, false)),
            Address::Fhir(base) => {
                let identifier = format!("urn%3Aietf%3Arfc%3A3986%7Curn%3Auuid%3A{}", event.id);
                let url = format!("{base}/Patient?identifier={identifier}");
                let method = if event.is_erased { Method::DELETE } else { Method::PUT };
                let answer = self.send(method, &url, "application/fhir+json", &[], &event.body)?;
                judged(&answer, event.is_erased)
            }
            Address::Folder(folder) => keep(folder, event).map_err(|error| later(error.to_string())),
        }
    }

    /// Tries the target with an event about nobody; returns what it answered.
    pub(crate) fn try_out(&self) -> anyhow::Result<String> {
        let event = Event::test();
        let answered = match &self.address {
            Address::Webhook(url) => self.post(url, &event),
            Address::Fhir(base) => {
                self.send(Method::GET, &format!("{base}/metadata"), "application/fhir+json", &[], "")
            }
            Address::Folder(folder) => {
                keep(folder, &event)?;
                keep(folder, &Event::again(event.id, true, String::new()))?;
                return Ok("a file was written and removed".to_owned());
            }
        };
        match answered {
            Ok(Answer { status: status @ 200..300, .. }) => Ok(format!("the target answered {status}")),
            Ok(Answer { status, .. }) => bail!("the target answered {status}"),
            Err(Fault::Later(why, _) | Fault::Refused(why)) => bail!(why),
        }
    }

    /// Posts a message with the headers of Standard Webhooks.
    fn post(&self, url: &str, event: &Event) -> Result<Answer, Fault> {
        let (name, seconds) = (event.name(), edge::now().unix_timestamp());
        let signed = format!("{name}.{seconds}.{}", event.body);
        let signatures: Vec<_> = self.secrets.signing.iter().map(|key| signature(key, &signed)).collect();
        let mut headers = vec![("webhook-id", name), ("webhook-timestamp", seconds.to_string())];
        if !signatures.is_empty() {
            headers.push(("webhook-signature", signatures.join(" ")));
        }
        self.send(Method::POST, url, "application/json", &headers, &event.body)
    }

    fn send(
        &self,
        method: Method,
        url: &str,
        kind: &str,
        headers: &[(&str, String)],
        body: &str,
    ) -> Result<Answer, Fault> {
        let mut request = Request::builder().method(method).uri(url);
        if !body.is_empty() {
            request = request.header("content-type", kind);
        }
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        for (name, value) in &self.secrets.headers {
            request = request.header(name, value);
        }
        let request = request.body(body).map_err(|error| later(error.to_string()))?;
        let mut answer = self.agent.run(request).map_err(|error| later(format!("no answer: {error}")))?;
        let after = answer.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
        // What it says may be about a patient, and is nobody's business.
        let body = &mut answer.body_mut().as_reader().take(ANSWER_MAX);
        io::copy(body, &mut io::sink()).map_err(|error| later(format!("the answer broke off: {error}")))?;
        Ok(Answer { status: answer.status().as_u16(), retry_after: after.map(Duration::from_secs) })
    }
}

fn later(why: String) -> Fault {
    Fault::Later(why, None)
}

fn signature(key: &hmac::Key, signed: &str) -> String {
    format!("v1,{}", STANDARD.encode(hmac::sign(key, signed.as_bytes())))
}

/// A patient who is not there is as good as erased.
fn judged(answer: &Answer, may_be_absent: bool) -> Result<(), Fault> {
    let status = answer.status;
    match status {
        200..300 => Ok(()),
        404 | 410 if may_be_absent => Ok(()),
        _ if REFUSALS.contains(&status) => Err(Fault::Refused(format!("the target answered {status}"))),
        _ => Err(Fault::Later(format!("the target answered {status}"), answer.retry_after)),
    }
}

/// Keeps a patient in a file of their own, or removes it. It is on disk when this returns.
fn keep(folder: &Path, event: &Event) -> io::Result<()> {
    let path = folder.join(format!("{}.json", event.id));
    let unfinished = folder.join(format!(".{}.unfinished", event.id));
    if event.is_erased {
        for path in [unfinished, path] {
            match fs::remove_file(path) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
    } else {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o640).open(&unfinished)?;
        file.write_all(event.body.as_bytes())?;
        file.sync_all()?;
        fs::rename(unfinished, path)?;
    }
    File::open(folder)?.sync_all()
}
