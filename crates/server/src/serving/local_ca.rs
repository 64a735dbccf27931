//! Certificates for development: a local certificate authority, made once, and a certificate for this machine's own
//! names. Only clients that are given `ca.pem` trust it; its key never leaves the data folder.

use std::fs;
use std::net::IpAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use time::OffsetDateTime;

use crate::settings::certificate_files::TlsFiles;
use crate::settings::data_dir::DataDir;
use crate::settings::private_file;

/// The names by which programs on this machine reach the service.
const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];
const AUTHORITY_LIFE: time::Duration = time::Duration::days(3_650);
/// Browsers refuse certificates that are valid for longer.
const CERTIFICATE_LIFE: time::Duration = time::Duration::days(397);
/// A certificate older than this is replaced at the next start, long before it expires.
const RENEW_AFTER: Duration = Duration::from_secs(180 * 24 * 60 * 60);

/// Returns the certificate in the data folder, which is made if it is missing or old.
pub(crate) fn certificate(data_dir: &DataDir, listener: IpAddr, now: OffsetDateTime) -> anyhow::Result<TlsFiles> {
    let files = data_dir.certificate();
    fs::DirBuilder::new().recursive(true).mode(0o700).create(data_dir.tls())?;
    let (authority_file, authority_key_file) = (data_dir.authority(), data_dir.authority_key());
    let has_authority = authority_file.exists() && authority_key_file.exists();
    // The certificate names a specific listener address, which may have changed since it was made.
    let is_usual = listener.is_loopback() || listener.is_unspecified();
    if has_authority && is_usual && is_young(&files.certificate) && files.key.exists() {
        return Ok(files);
    }
    let authority = authority_params(now);
    let authority_key = if has_authority {
        let pem = fs::read_to_string(&authority_key_file)?;
        KeyPair::from_pem(&pem).context("the local certificate authority's key cannot be read")?
    } else {
        let key = KeyPair::generate()?;
        private_file::write(&authority_key_file, &key.serialize_pem())?;
        private_file::write(&authority_file, &authority.self_signed(&key)?.pem())?;
        key
    };
    let key = KeyPair::generate()?;
    let certificate =
        server_params(listener, now)?.signed_by(&key, &Issuer::from_params(&authority, &authority_key))?;
    private_file::write(&files.key, &key.serialize_pem())?;
    private_file::write(&files.certificate, &certificate.pem())?;
    Ok(files)
}

fn is_young(file: &Path) -> bool {
    let age = fs::metadata(file).and_then(|metadata| metadata.modified()).map(|at| at.elapsed().unwrap_or_default());
    age.is_ok_and(|age| age < RENEW_AFTER)
}

fn authority_params(now: OffsetDateTime) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "intake local development authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.not_before = now - time::Duration::DAY;
    params.not_after = now + AUTHORITY_LIFE;
    params
}

fn server_params(listener: IpAddr, now: OffsetDateTime) -> anyhow::Result<CertificateParams> {
    let mut names: Vec<String> = NAMES.map(str::to_owned).into();
    if !listener.is_unspecified() && !listener.is_loopback() {
        names.push(listener.to_string());
    }
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name.push(DnType::CommonName, "intake development");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    params.not_before = now - time::Duration::DAY;
    params.not_after = now + CERTIFICATE_LIFE;
    Ok(params)
}
