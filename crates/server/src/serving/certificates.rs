//! TLS: the certificate in use, read again when its files change. Files that cannot be used are logged, and the old
//! certificate stays.

use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, SystemTime};

use intake_edge as edge;
use intake_infra::{Pulse, spawn_vital};
use intake_metrics::{Counter, MetricsText};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use time::OffsetDateTime;

use crate::settings::certificate_files::{Certificate, TlsFiles, read};

/// Time between two checks of the files.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);
/// Time before its end at which to warn: enough time to find out why the certificate was not renewed.
const WARN_BEFORE: time::Duration = time::Duration::days(14);
/// Between two warnings.
const WARN_INTERVAL: time::Duration = time::Duration::DAY;

/// Renewed certificates that could not be used.
static FAILED_RELOADS: Counter = Counter::new();

/// The certificate in use.
pub(crate) struct CurrentCertificate {
    certificate: RwLock<Certificate>,
    /// Wakes the thread that watches the files.
    wake: Sender<()>,
}

impl CurrentCertificate {
    /// Reads the certificate, and watches its files.
    pub(crate) fn of(files: TlsFiles) -> anyhow::Result<Arc<Self>> {
        let (wake, woken) = channel();
        let current = Arc::new(Self { certificate: RwLock::new(read(&files, edge::now())?), wake });
        watch(files, Arc::clone(&current), woken)?;
        Ok(current)
    }

    /// Reads the files at once, whether or not they seem to have changed.
    pub(crate) fn read_again(&self) {
        // The thread that receives this ends with the program.
        let _ = self.wake.send(());
    }

    /// Writes when it ends.
    pub(crate) fn write_metrics(&self, text: &mut MetricsText) {
        let help = "When the TLS certificate ends, in seconds since 1970.";
        text.gauge("intake_certificate_end_seconds", help, self.read().ends_at.unix_timestamp());
        let failed = "Renewed certificates that could not be used, so that the old one stayed.";
        text.counter("intake_certificate_reload_failures_total", failed, FAILED_RELOADS.get());
    }

    fn read(&self) -> RwLockReadGuard<'_, Certificate> {
        self.certificate.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Warns if the certificate has expired or will soon.
    fn warn(&self, now: OffsetDateTime) {
        let left = self.read().ends_at - now;
        if left.is_negative() {
            tracing::error!("the certificate has expired: clients will not connect");
        } else if left < WARN_BEFORE {
            tracing::warn!(days = left.whole_days(), "the certificate expires soon");
        }
    }
}

/// TLS 1.2 and 1.3 with the current certificate.
pub(crate) fn server_config(certificate: Arc<CurrentCertificate>) -> anyhow::Result<ServerConfig> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(certificate);
    // Sessions are resumed from tickets that clients keep: this saves a signature, and no state is kept here.
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
        Some(Arc::clone(&self.read().certified))
    }
}

fn watch(files: TlsFiles, current: Arc<CurrentCertificate>, woken: Receiver<()>) -> std::io::Result<()> {
    let mut seen = stamps(&files);
    let check = move |pulse: Pulse| {
        let mut warned_at = OffsetDateTime::UNIX_EPOCH;
        loop {
            pulse.beat();
            let now = edge::now();
            if now > warned_at + WARN_INTERVAL {
                current.warn(now);
                warned_at = now;
            }
            let is_asked = woken.recv_timeout(WATCH_INTERVAL).is_ok();
            let found = stamps(&files);
            if found == seen && !is_asked {
                continue;
            }
            match read(&files, edge::now()) {
                Ok(certificate) => {
                    *current.certificate.write().unwrap_or_else(PoisonError::into_inner) = certificate;
                    tracing::info!("the certificate was reloaded");
                }
                Err(error) => {
                    FAILED_RELOADS.add_one();
                    tracing::error!("the renewed certificate cannot be used, the old one stays: {error:#}");
                }
            }
            seen = found;
        }
    };
    spawn_vital("certificates", std::thread::Builder::new().stack_size(256 * 1024), check).map(drop)
}

/// The times of change and the lengths of the files, which differ from one version to the next.
fn stamps(files: &TlsFiles) -> [Option<(SystemTime, u64)>; 2] {
    let stamp = |file: &Path| fs::metadata(file).and_then(|found| Ok((found.modified()?, found.len()))).ok();
    [stamp(&files.certificate), stamp(&files.key)]
}
