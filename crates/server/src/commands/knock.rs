//! Sends a create without a key to the public address, as a client would, and reports the certificate and the status.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use rustls_platform_verifier::BuilderVerifierExt;
use time::OffsetDateTime;
use x509_parser::prelude::{FromDer, X509Certificate};

/// Longer than a service behind a proxy takes to refuse.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Length of `HTTP/1.1 401`.
const STATUS_LINE: usize = 12;
const HTTPS_PORT: u16 = 443;

/// Answer to a create without a key.
pub(crate) struct Shown {
    pub(crate) status: u16,
    /// The earliest end of the certificates in the chain.
    pub(crate) ends_at: OffsetDateTime,
}

/// Fails if clients that trust what this machine trusts could not connect.
pub(crate) fn knock(url: &str) -> anyhow::Result<Shown> {
    let authority = url.strip_prefix("https://").context("it is no HTTPS address")?.trim_end_matches('/');
    let (host, port) = match authority.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?))) {
        Some((host, port)) => (host, port),
        None => (authority, HTTPS_PORT),
    };
    let host = host.trim_matches(['[', ']']);
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_platform_verifier()?
        .with_no_client_auth();
    let connection = ClientConnection::new(Arc::new(config), ServerName::try_from(host.to_owned())?)?;
    let mut stream = StreamOwned::new(connection, connect(host, port)?);
    let request = format!(
        "POST /api/v1/patients HTTP/1.1\r\nHost: {authority}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).context("no TLS connection")?;
    let mut answer = [0; STATUS_LINE];
    stream.read_exact(&mut answer).context("no answer")?;
    let status = std::str::from_utf8(&answer)?.split(' ').nth(1).and_then(|status| status.parse().ok());
    let chain = stream.conn.peer_certificates().unwrap_or_default();
    let mut ends_at = None;
    for certificate in chain {
        let (_, certificate) = X509Certificate::from_der(certificate)?;
        let end = certificate.validity().not_after.to_datetime();
        ends_at = Some(ends_at.map_or(end, |earliest| end.min(earliest)));
    }
    Ok(Shown { status: status.context("the answer is not HTTP")?, ends_at: ends_at.context("no certificate")? })
}

fn connect(host: &str, port: u16) -> anyhow::Result<TcpStream> {
    let addresses: Vec<_> = (host, port).to_socket_addrs().context("the name is not found")?.collect();
    ensure!(!addresses.is_empty(), "the name has no address");
    let mut reason = None;
    for address in addresses {
        match TcpStream::connect_timeout(&address, TIMEOUT) {
            Ok(stream) => {
                stream.set_read_timeout(Some(TIMEOUT))?;
                stream.set_write_timeout(Some(TIMEOUT))?;
                return Ok(stream);
            }
            Err(error) => reason = Some(error),
        }
    }
    bail!("no connection: {}", reason.map(|error| error.to_string()).unwrap_or_default())
}
