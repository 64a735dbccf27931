//! Targets, and what they make of an event.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use intake_edge as edge;
use intake_infra::client_tls;
use ureq::http::request::Builder;
use ureq::http::{Request, Response, Uri};
use ureq::{Agent, Body};

use crate::commands::deliver::capabilities::{assert_found_none, missing};
use crate::commands::deliver::event::{Event, Form};
use crate::commands::deliver::lock::lock;
use crate::commands::deliver::secrets::SecretFiles;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Shortest time for which a FHIR server may go on with a request that failed here.
const LATE_MIN: Duration = Duration::from_secs(10);
/// Bytes of an answer that are read. One that breaks off earlier counts as no answer.
const ANSWER_MAX: u64 = 64 * 1024;
/// Read of what a FHIR server says about itself: a statement about all resources has some megabytes.
const STATEMENT_MAX: u64 = 16 * 1024 * 1024;
/// Pause of all events after the status 429 without a time.
const BUSY_PAUSE: Duration = Duration::from_secs(1);
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

/// A target that events are delivered to.
pub(crate) struct Target {
    address: Address,
    form: Form,
    secrets: SecretFiles,
    agent: Agent,
    /// Time for which it may go on with a request that failed here, and so undo a later one.
    late_for: Duration,
    /// Time at which a request failed. Requests of an earlier run did when this one began.
    failed_at: Mutex<Instant>,
}

/// Answer of a target, apart from its content.
struct Answer {
    status: u16,
    retry_after: Option<Duration>,
}

/// Reason why an event was not taken. It holds no value of a patient.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// It can be taken later, and not before this pause if the target names one.
    #[error("{0}")]
    Later(String, Option<Duration>),
    /// The target asks for fewer events for this time.
    #[error("{0}")]
    Busy(String, Duration),
    /// It will never be taken.
    #[error("{0}")]
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

impl Target {
    /// A target that has this long for an answer, however slowly it comes.
    pub(crate) fn new(
        address: Address,
        is_thin: bool,
        secrets: SecretFiles,
        timeout: Duration,
    ) -> anyhow::Result<Self> {
        let form = match &address {
            Address::Webhook(_) if is_thin => Form::ThinMessage,
            _ if is_thin => bail!("--thin: only a webhook can ask for the rest"),
            Address::Webhook(_) => Form::Message,
            Address::Fhir(_) => Form::Fhir,
            Address::Folder(_) => Form::File,
        };
        let is_webhook = matches!(address, Address::Webhook(_));
        ensure!(is_webhook || !secrets.signs(), "--secrets: only messages of a webhook are signed");
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
        let late_for = match form {
            Form::Fhir => LATE_MIN.max(2 * timeout),
            Form::Message | Form::ThinMessage | Form::File => Duration::ZERO,
        };
        Ok(Self { address, form, secrets, agent, late_for, failed_at: Mutex::new(Instant::now()) })
    }

    pub(crate) fn form(&self) -> Form {
        self.form
    }

    /// Returns until when a request that failed here may still be carried out.
    pub(crate) fn late_until(&self) -> Option<Instant> {
        Some(*lock(&self.failed_at) + self.late_for).filter(|until| Instant::now() < *until)
    }

    /// Returns when the target has the event.
    pub(crate) fn take(&self, event: &Event) -> Result<(), Fault> {
        let taken = self.try_to_give(event);
        if let Err(Fault::Later(..)) = taken {
            *lock(&self.failed_at) = Instant::now();
        }
        taken
    }

    fn try_to_give(&self, event: &Event) -> Result<(), Fault> {
        match &self.address {
            Address::Webhook(url) => self.post(url, event).and_then(|answer| judged(&answer, false)),
            Address::Fhir(base) => {
                let url = searched(base, event);
                let request = if event.is_erased {
                    Request::delete(url)
                } else {
                    Request::put(url).header("content-type", "application/fhir+json")
                };
                let answer = self.send(request, &event.body)?;
                judged(&answer, event.is_erased)
            }
            Address::Folder(folder) => keep(folder, event).map_err(|error| later(format!("{error:#}"))),
        }
    }

    /// Tries the target with an event about nobody; returns what was found.
    pub(crate) fn try_out(&self) -> anyhow::Result<String> {
        let event = Event::test();
        match &self.address {
            Address::Webhook(url) => match self.post(url, &event)?.status {
                status @ 200..300 => Ok(format!("the target answered {status}")),
                status => bail!("the target answered {status}"),
            },
            Address::Fhir(base) => self.try_fhir(base, &event),
            Address::Folder(folder) => {
                keep(folder, &event)?;
                keep(folder, &Event { is_erased: true, ..event })?;
                Ok("a file was written and removed".to_owned())
            }
        }
    }

    /// Asks a FHIR server for what it offers, and searches as a conditional update does.
    fn try_fhir(&self, base: &str, nobody: &Event) -> anyhow::Result<String> {
        let missing = missing(&self.get(&format!("{base}/metadata"))?)?;
        ensure!(
            missing.is_empty(),
            "the server does not offer, by its CapabilityStatement (/metadata): {}",
            missing.join("; ")
        );
        assert_found_none(&self.get(&searched(base, nobody))?)?;
        Ok("the server offers what a delivery needs, and a search by identifier works\n\
            not checked, because nothing was written: the right to update and delete, and rules of the server's own"
            .to_owned())
    }

    fn get(&self, url: &str) -> anyhow::Result<Vec<u8>> {
        let mut answer = self.request(Request::get(url), "")?;
        let status = answer.status();
        ensure!(status.is_success(), "the target answered {} to GET {url}", status.as_u16());
        let mut body = Vec::new();
        answer.body_mut().as_reader().take(STATEMENT_MAX).read_to_end(&mut body)?;
        Ok(body)
    }

    /// Posts a message with the headers of Standard Webhooks.
    fn post(&self, url: &str, event: &Event) -> Result<Answer, Fault> {
        let (name, seconds) = (event.name(), edge::now().unix_timestamp());
        let signatures = self.secrets.current().signatures(&format!("{name}.{seconds}.{}", event.body));
        let request = Request::post(url).header("content-type", "application/json");
        let request = request.header("webhook-id", name).header("webhook-timestamp", seconds);
        let request =
            signatures.into_iter().fold(request, |all, signatures| all.header("webhook-signature", signatures));
        self.send(request, &event.body)
    }

    fn send(&self, request: Builder, body: &str) -> Result<Answer, Fault> {
        let mut answer = self.request(request, body)?;
        let after = answer.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
        // What it says may be about a patient, and is nobody's business.
        let body = &mut answer.body_mut().as_reader().take(ANSWER_MAX);
        io::copy(body, &mut io::sink()).map_err(|error| later(format!("the answer broke off: {error}")))?;
        Ok(Answer { status: answer.status().as_u16(), retry_after: after.map(Duration::from_secs) })
    }

    fn request(&self, request: Builder, body: &str) -> Result<Response<Body>, Fault> {
        let secrets = self.secrets.current();
        let request = secrets.headers.iter().fold(request, |all, (name, value)| all.header(name, value));
        let request = request.body(body).map_err(|error| later(error.to_string()))?;
        self.agent.run(request).map_err(|error| later(format!("no answer: {error}")))
    }
}

/// Address of a patient by their identifier, which no server gives again.
fn searched(base: &str, event: &Event) -> String {
    format!("{base}/Patient?identifier=urn%3Aietf%3Arfc%3A3986%7Curn%3Auuid%3A{}", event.id)
}

fn later(why: String) -> Fault {
    Fault::Later(why, None)
}

/// A patient who is not there is as good as erased.
fn judged(answer: &Answer, may_be_absent: bool) -> Result<(), Fault> {
    let status = answer.status;
    match status {
        200..300 => Ok(()),
        404 | 410 if may_be_absent => Ok(()),
        _ if REFUSALS.contains(&status) => Err(Fault::Refused(format!("the target answered {status}"))),
        429 => {
            let pause = answer.retry_after.unwrap_or(BUSY_PAUSE);
            Err(Fault::Busy(format!("the target answered {status}"), pause))
        }
        _ => Err(Fault::Later(format!("the target answered {status}"), answer.retry_after)),
    }
}

/// Keeps a patient in a file of their own, or removes it. It is on disk when this returns.
fn keep(folder: &Path, event: &Event) -> anyhow::Result<()> {
    let path = folder.join(format!("{}.json", event.id));
    let unfinished = folder.join(format!(".{}.unfinished", event.id));
    if event.is_erased {
        for path in [&unfinished, &path] {
            match fs::remove_file(path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(error).with_context(|| path.display().to_string());
                }
                _ => {}
            }
        }
    } else {
        let opened = OpenOptions::new().write(true).create(true).truncate(true).mode(0o640).open(&unfinished);
        let written = opened.and_then(|mut file| {
            file.write_all(event.body.as_bytes())?;
            file.sync_all()
        });
        written.with_context(|| unfinished.display().to_string())?;
        fs::rename(&unfinished, &path).with_context(|| path.display().to_string())?;
    }
    File::open(folder).and_then(|folder| folder.sync_all()).with_context(|| folder.display().to_string())
}
