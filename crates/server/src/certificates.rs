//! TLS: the certificate in use, read again when its files change. Files that cannot be used are logged, and the old
//! certificate stays.

use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, SystemTime};

use intake_http::edge;
use intake_infra::spawn_vital;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use time::OffsetDateTime;

use crate::certificate_files::{Certificate, TlsFiles, read};

/// How often to look at the files.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);
/// Time enough to find out why nobody has renewed it.
const WARN_BEFORE: time::Duration = time::Duration::days(14);
/// Between two warnings.
const WARN_INTERVAL: time::Duration = time::Duration::DAY;

/// The certificate in use.
pub(crate) struct CurrentCertificate(RwLock<Certificate>);

impl CurrentCertificate {
    /// Reads it, and goes on looking at its files.
    pub(crate) fn of(files: TlsFiles) -> anyhow::Result<Arc<Self>> {
        let current = Arc::new(Self(RwLock::new(read(&files, edge::now())?)));
        watch(files, Arc::clone(&current))?;
        Ok(current)
    }

    /// When it ends, in the text format of Prometheus.
    pub(crate) fn to_text(&self) -> String {
        format!(
            "# HELP intake_certificate_end_seconds When the TLS certificate ends, in seconds since 1970.\n\
             # TYPE intake_certificate_end_seconds gauge\nintake_certificate_end_seconds {}\n",
            self.look().ends_at.unix_timestamp()
        )
    }

    fn look(&self) -> RwLockReadGuard<'_, Certificate> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Warns when the end is near.
    fn warn(&self, now: OffsetDateTime) {
        let left = self.look().ends_at - now;
        if left.is_negative() {
            tracing::error!("the certificate has expired: clients will not connect");
        } else if left < WARN_BEFORE {
            tracing::warn!(days = left.whole_days(), "the certificate ends soon");
        }
    }
}

/// TLS 1.2 and 1.3 with this certificate, whatever becomes of its files.
pub(crate) fn server_config(certificate: Arc<CurrentCertificate>) -> anyhow::Result<ServerConfig> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(certificate);
    // Whoever comes back brings its session along, sealed: it costs no signature and nobody has to remember it.
    config.ticketer = ring::Ticketer::new()?;
    Ok(config)
}

impl fmt::Debug for CurrentCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CurrentCertificate(…)")
    }
}

impl ResolvesServerCert for CurrentCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.look().certified))
    }
}

fn watch(files: TlsFiles, current: Arc<CurrentCertificate>) -> std::io::Result<()> {
    let mut seen = changed(&files);
    let look = move || {
        let mut warned_at = OffsetDateTime::UNIX_EPOCH;
        loop {
            let now = edge::now();
            if now > warned_at + WARN_INTERVAL {
                current.warn(now);
                warned_at = now;
            }
            std::thread::sleep(WATCH_INTERVAL);
            let found = changed(&files);
            if found == seen {
                continue;
            }
            match read(&files, edge::now()) {
                Ok(certificate) => {
                    *current.0.write().unwrap_or_else(PoisonError::into_inner) = certificate;
                    tracing::info!("the certificate was renewed");
                }
                Err(error) => tracing::error!("the renewed certificate cannot be used, the old one stays: {error:#}"),
            }
            seen = found;
        }
    };
    spawn_vital(std::thread::Builder::new().name("certificates".into()).stack_size(256 * 1024), look).map(drop)
}

/// What tells one version of the files from another.
fn changed(files: &TlsFiles) -> [Option<(SystemTime, u64)>; 2] {
    let mark = |file: &Path| fs::metadata(file).and_then(|found| Ok((found.modified()?, found.len()))).ok();
    [mark(&files.certificate), mark(&files.key)]
}
