//! Reads a certificate and its key, and checks that clients will accept them.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, anyhow, ensure};
use rustls::InconsistentKeys;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use time::OffsetDateTime;
use x509_parser::prelude::{FromDer, X509Certificate};

/// The files of a certificate and its key.
#[derive(Clone)]
pub(crate) struct TlsFiles {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

/// A certificate that can be used, and when it ends.
pub(crate) struct Certificate {
    pub(crate) certified: Arc<CertifiedKey>,
    pub(crate) ends_at: OffsetDateTime,
}

/// Mark in the head of a key that is protected by a passphrase.
const ENCRYPTED: &[u8] = b"ENCRYPTED";

pub(crate) fn read(files: &TlsFiles, now: OffsetDateTime) -> anyhow::Result<Certificate> {
    let (certificate, key) = (files.certificate.display(), files.key.display());
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(&files.certificate)
        .and_then(Iterator::collect)
        .map_err(|error| anyhow!("INTAKE_TLS_CERT: {certificate} cannot be read: {error}"))?;
    let first = chain.first().with_context(|| format!("INTAKE_TLS_CERT: {certificate} holds no certificate"))?;
    let (_, leaf) = X509Certificate::from_der(first)
        .map_err(|error| anyhow!("INTAKE_TLS_CERT: {certificate} holds no certificate that can be read: {error}"))?;
    let (starts_at, ends_at) = (leaf.validity().not_before.to_datetime(), leaf.validity().not_after.to_datetime());
    ensure!(now < ends_at, "INTAKE_TLS_CERT: {certificate} expired at {ends_at}");
    ensure!(now >= starts_at, "INTAKE_TLS_CERT: {certificate} is not valid before {starts_at}");

    let text = std::fs::read(&files.key).map_err(|error| anyhow!("INTAKE_TLS_KEY: {key} cannot be read: {error}"))?;
    // In its head, whatever wrote it.
    let is_encrypted = text.windows(ENCRYPTED.len()).any(|window| window == ENCRYPTED);
    ensure!(
        !is_encrypted,
        "INTAKE_TLS_KEY: {key} is protected by a passphrase, which nobody could enter: take it off with `openssl pkey`"
    );
    let private = PrivateKeyDer::from_pem_slice(&text)
        .map_err(|error| anyhow!("INTAKE_TLS_KEY: {key} cannot be read: {error}"))?;
    let signing = ring::default_provider().key_provider.load_private_key(private).map_err(|_| {
        anyhow!("INTAKE_TLS_KEY: {key} is too weak or of another kind: use RSA of at least 2048 bits, ECDSA P-256 or P-384, or Ed25519")
    })?;
    let certified = CertifiedKey::new(chain, signing);
    match certified.keys_match() {
        Ok(()) | Err(rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)) => {}
        Err(_) => return Err(anyhow!("INTAKE_TLS_KEY: {key} does not belong to {certificate}")),
    }
    Ok(Certificate { certified: Arc::new(certified), ends_at })
}
