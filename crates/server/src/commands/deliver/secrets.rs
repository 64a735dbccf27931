//! Secrets of a target. A delivery reads their files again while it runs, so a secret is replaced without a restart.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use ureq::http::{HeaderName, HeaderValue};

use crate::commands::deliver::lock::lock;
use crate::export::standard_error::{has_room, say};

/// Between two readings of the files.
const READ_INTERVAL: Duration = Duration::from_secs(1);

/// Secrets as their files had them when they were last read.
#[derive(Default)]
pub(crate) struct Secrets {
    /// Each signs every message.
    signing: Vec<hmac::Key>,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
}

/// Files with secrets.
#[derive(Default)]
pub(crate) struct SecretFiles {
    signing: Option<PathBuf>,
    headers: Option<PathBuf>,
    last: Mutex<Last>,
}

#[derive(Default)]
struct Last {
    read_at: Option<Instant>,
    secrets: Arc<Secrets>,
    /// Reason why the files could not be read again.
    fault: Option<String>,
}

impl SecretFiles {
    /// A file with the keys that sign and one with headers, one in each line.
    pub(crate) fn open(signing: Option<&Path>, headers: Option<&Path>) -> anyhow::Result<Self> {
        let files =
            Self { signing: signing.map(Path::to_owned), headers: headers.map(Path::to_owned), last: Mutex::default() };
        lock(&files.last).secrets = Arc::new(files.read()?);
        Ok(files)
    }

    pub(crate) fn signs(&self) -> bool {
        self.signing.is_some()
    }

    /// The secrets as they are now. While the files cannot be read, those from before.
    pub(crate) fn current(&self) -> Arc<Secrets> {
        let mut last = lock(&self.last);
        if last.read_at.is_none_or(|at| at.elapsed() >= READ_INTERVAL) {
            last.read_at = Some(Instant::now());
            let read = self.read().map_err(|error| format!("{error:#}"));
            let fault = read.as_ref().err().cloned();
            if let Some(why) = fault.iter().find(|_| fault != last.fault && has_room()) {
                let _ = say(&format!("the secrets from before are used: {why}"));
            }
            last.fault = fault;
            if let Ok(secrets) = read {
                last.secrets = Arc::new(secrets);
            }
        }
        Arc::clone(&last.secrets)
    }

    fn read(&self) -> anyhow::Result<Secrets> {
        Ok(Secrets {
            signing: lines(self.signing.as_deref())?.iter().map(|line| key(line)).collect::<anyhow::Result<_>>()?,
            headers: lines(self.headers.as_deref())?.iter().map(|line| header(line)).collect::<anyhow::Result<_>>()?,
        })
    }
}

impl Secrets {
    /// The header `webhook-signature` of Standard Webhooks: a signature by each key. None: there is no key.
    pub(crate) fn signatures(&self, signed: &str) -> Option<String> {
        let sign = |key| format!("v1,{}", STANDARD.encode(hmac::sign(key, signed.as_bytes())));
        let signatures: Vec<_> = self.signing.iter().map(sign).collect();
        (!signatures.is_empty()).then(|| signatures.join(" "))
    }
}

fn lines(path: Option<&Path>) -> anyhow::Result<Vec<String>> {
    let Some(path) = path else { return Ok(Vec::new()) };
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect();
    ensure!(!lines.is_empty(), "{} is empty", path.display());
    Ok(lines)
}

fn key(line: &str) -> anyhow::Result<hmac::Key> {
    let secret = line.strip_prefix("whsec_").and_then(|text| STANDARD.decode(text).ok());
    let secret = secret.filter(|secret| secret.len() >= 24);
    let secret = secret.context("--secrets: a line must be whsec_ and at least 24 bytes in base64")?;
    Ok(hmac::Key::new(hmac::HMAC_SHA256, &secret))
}

fn header(line: &str) -> anyhow::Result<(HeaderName, HeaderValue)> {
    let parts = line.split_once(':').and_then(|(name, value)| {
        Some((name.trim().parse::<HeaderName>().ok()?, value.trim().parse::<HeaderValue>().ok()?))
    });
    parts.context("--headers: a line must be NAME: VALUE")
}
