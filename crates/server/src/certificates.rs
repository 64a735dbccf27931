//! TLS: the certificate in use, read again when its files change. Files that cannot be used are logged, and the old
//! certificate stays.

use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use anyhow::{Context, anyhow};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::configuration::TlsFiles;

/// How often to look at the files.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);

/// TLS 1.2 and 1.3 with the certificate of these files, whatever becomes of them.
pub(crate) fn server_config(files: TlsFiles) -> anyhow::Result<ServerConfig> {
    let certificate = Arc::new(CurrentCertificate(RwLock::new(read(&files)?)));
    watch(files, Arc::clone(&certificate))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(certificate);
    // Whoever comes back brings its session along, sealed: it costs no signature and nobody has to remember it.
    config.ticketer = ring::Ticketer::new()?;
    Ok(config)
}

struct CurrentCertificate(RwLock<Arc<CertifiedKey>>);

impl fmt::Debug for CurrentCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CurrentCertificate(…)")
    }
}

impl ResolvesServerCert for CurrentCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

fn read(files: &TlsFiles) -> anyhow::Result<Arc<CertifiedKey>> {
    let (certificate, key) = (files.certificate.display(), files.key.display());
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(&files.certificate)
        .and_then(Iterator::collect)
        .map_err(|error| anyhow!("INTAKE_TLS_CERT: {certificate} cannot be read: {error}"))?;
    if chain.is_empty() {
        return Err(anyhow!("INTAKE_TLS_CERT: {certificate} holds no certificate"));
    }
    let private = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|error| anyhow!("INTAKE_TLS_KEY: {key} cannot be read: {error}"))?;
    let certified = CertifiedKey::from_der(chain, private, &ring::default_provider());
    certified.map(Arc::new).with_context(|| format!("INTAKE_TLS_KEY: {key} does not fit {certificate}"))
}

fn watch(files: TlsFiles, current: Arc<CurrentCertificate>) -> std::io::Result<()> {
    let mut seen = changed(&files);
    let look = move || {
        loop {
            std::thread::sleep(WATCH_INTERVAL);
            let found = changed(&files);
            if found == seen {
                continue;
            }
            match read(&files) {
                Ok(certificate) => {
                    *current.0.write().unwrap_or_else(PoisonError::into_inner) = certificate;
                    tracing::info!("the certificate was renewed");
                }
                Err(error) => tracing::error!("the renewed certificate cannot be used, the old one stays: {error:#}"),
            }
            seen = found;
        }
    };
    std::thread::Builder::new().name("certificates".into()).stack_size(256 * 1024).spawn(look).map(drop)
}

/// What tells one version of the files from another.
fn changed(files: &TlsFiles) -> [Option<(SystemTime, u64)>; 2] {
    let mark = |file: &Path| fs::metadata(file).and_then(|found| Ok((found.modified()?, found.len()))).ok();
    [mark(&files.certificate), mark(&files.key)]
}
