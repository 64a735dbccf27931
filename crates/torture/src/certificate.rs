//! The certificate of a service in production, which makes none for itself.

use std::fs;
use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

/// Makes a certificate, and the authority that it is from. Returns the settings that name it.
pub(crate) fn certificate(folder: &Path) -> anyhow::Result<[(String, String); 2]> {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate()?;
    let root = authority.self_signed(&authority_key)?.pem();
    let key = KeyPair::generate()?;
    let names = CertificateParams::new(vec!["localhost".to_owned(), "127.0.0.1".to_owned()])?;
    let certificate = names.signed_by(&key, &Issuer::from_params(&authority, &authority_key))?.pem();
    fs::create_dir_all(folder)?;
    for (name, text) in [("ca.pem", root), ("own.pem", certificate), ("own-key.pem", key.serialize_pem())] {
        fs::write(folder.join(name), text)?;
    }
    let setting = |name: &str, file: &str| (name.to_owned(), folder.join(file).to_string_lossy().into_owned());
    Ok([setting("INTAKE_TLS_CERT", "own.pem"), setting("INTAKE_TLS_KEY", "own-key.pem")])
}
