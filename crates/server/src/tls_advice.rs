//! What to do when a database is not reached over TLS, or for want of a password. libpq has no codes for what is wrong,
//! only sentences: those of this build's own libpq, which are never translated, and three of the server.

/// Message of libpq where a password is needed; a node of a cluster says it, too.
pub(crate) const NO_PASSWORD: &str = "no password supplied";

/// A part of a sentence, and what helps then.
const ADVICE: [(&str, &str); 11] = [
    ("server does not support SSL", "set ssl = on there, with ssl_cert_file and ssl_key_file"),
    ("certificate verify failed", WRONG_AUTHORITY),
    // An authority with the right name and another key.
    ("SSL error: EVP lib", WRONG_AUTHORITY),
    ("does not match host name", "use a name that the certificate is for, or have a certificate issued for this one"),
    ("root certificate file", NO_AUTHORITY),
    ("alert unknown ca", "the server must have the authority that issued sslcert in its ssl_ca_file"),
    ("requires a valid client certificate", "set sslcert and sslkey to the files of this role's certificate and key"),
    (
        "certificate authentication failed",
        "sslcert must be issued for this role: its common name (CN) is the role's name",
    ),
    (
        NO_PASSWORD,
        "set the role's password in the address; between the nodes of a Citus cluster, in pg_dist_authinfo on each of them (docs/scale.md)",
    ),
    (
        "password authentication failed",
        "a password that has expired is refused with these words, too: SELECT rolvaliduntil FROM pg_roles WHERE rolname = 'NAME'",
    ),
    ("private key file", "sslkey must be a file that this account can read, and nobody else"),
];
const WRONG_AUTHORITY: &str = "sslrootcert must hold the authority that issued the server's certificate, which must be \
    valid today: `openssl s_client -starttls postgres -connect HOST:PORT` shows it";
const NO_AUTHORITY: &str = "set sslrootcert to a file with the certificate of the server's authority, or to system for \
    the authorities that this machine trusts";

/// Beginning of libpq's advice not to verify the server.
const ADVICE_OF_LIBPQ: &str = "\nEither provide the file";

/// Returns what libpq said, and what to do about it if that is known here.
pub(crate) fn with_advice(said: &str) -> String {
    let fault = said.split(ADVICE_OF_LIBPQ).next().unwrap_or(said).trim_end();
    match ADVICE.iter().find(|(part, _)| fault.contains(part)) {
        Some((_, advice)) => format!("{fault}: {advice}"),
        None => fault.to_owned(),
    }
}
