//! An HTTP client that sends exactly the bytes it is given, over TLS or in clear, and reads whole answers.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketType};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, HandshakeKind, RootCertStore, StreamOwned};
use serde_json::Value;

/// Longer than any answer may take.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Opens connections to one service.
#[derive(Clone)]
pub struct Client {
    address: SocketAddr,
    tls: Option<Arc<ClientConfig>>,
    source: Option<IpAddr>,
}

/// One connection, to be used for any number of requests.
pub struct Connection {
    stream: Box<dyn Stream>,
    socket: TcpStream,
    unread: Vec<u8>,
}

trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// A whole answer.
#[derive(Clone, Debug)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The reason phrase.
    pub reason: String,
    /// Names in lower case, in the order they came.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Client {
    /// A client that uses TLS and trusts only this authority.
    #[must_use]
    pub fn tls(address: SocketAddr, authority: &Path) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(authority).expect("the authority is PEM")).expect("a certificate");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("TLS 1.2 and 1.3")
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self { address, tls: Some(Arc::new(config)), source: None }
    }

    /// A client without TLS.
    #[must_use]
    pub fn plain(address: SocketAddr) -> Self {
        Self { address, tls: None, source: None }
    }

    /// The same client from another address of this machine.
    #[must_use]
    pub fn from_address(self, source: impl Into<IpAddr>) -> Self {
        Self { source: Some(source.into()), ..self }
    }

    /// The address of the service.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Opens a connection.
    #[must_use]
    pub fn connect(&self) -> Connection {
        self.try_connect().expect("the service takes connections")
    }

    /// Opens a connection, or returns why it cannot.
    pub fn try_connect(&self) -> io::Result<Connection> {
        let socket = self.try_open_socket()?;
        socket.set_read_timeout(Some(TIMEOUT))?;
        socket.set_write_timeout(Some(TIMEOUT))?;
        socket.set_nodelay(true)?;
        let stream = socket.try_clone()?;
        let stream: Box<dyn Stream> = match self.session() {
            None => Box::new(stream),
            Some(session) => Box::new(StreamOwned::new(session, stream)),
        };
        Ok(Connection { stream, socket, unread: Vec::new() })
    }

    /// Opens a TCP connection and sends nothing, not even a handshake.
    pub fn try_open_socket(&self) -> io::Result<TcpStream> {
        let Some(source) = self.source else {
            return TcpStream::connect(self.address);
        };
        let family = if source.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let socket = rustix::net::socket(family, SocketType::STREAM, None)?;
        rustix::net::bind(&socket, &SocketAddr::new(source, 0))?;
        rustix::net::connect(&socket, &self.address)?;
        Ok(socket.into())
    }

    /// Opens a TLS session and returns whether it resumed an earlier one.
    #[must_use]
    pub fn resumes(&self) -> bool {
        let mut session = self.session().expect("a client that speaks TLS");
        let mut socket = TcpStream::connect(self.address).expect("the service takes connections");
        socket.set_read_timeout(Some(TIMEOUT)).expect("a time-out");
        while session.is_handshaking() {
            session.complete_io(&mut socket).expect("the handshake succeeds");
        }
        session.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    fn session(&self) -> Option<ClientConnection> {
        let name = ServerName::try_from("localhost").expect("a name");
        let config = self.tls.as_ref()?;
        Some(ClientConnection::new(Arc::clone(config), name).expect("a TLS session"))
    }

    /// Sends one request over a connection of its own.
    #[must_use]
    pub fn send(&self, bytes: &[u8]) -> Response {
        let mut connection = self.connect();
        connection.write(bytes);
        connection.read()
    }
}

impl Connection {
    /// Sends bytes as they are.
    pub fn write(&mut self, bytes: &[u8]) {
        self.try_write(bytes).expect("the service reads");
    }

    /// Sends bytes as they are, if the service still reads.
    pub fn try_write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)?;
        self.stream.flush()
    }

    /// Completes the handshake, if there is one, and never again waits for the service to read.
    pub fn stop_waiting(&mut self) -> io::Result<()> {
        self.stream.flush()?;
        self.socket.set_nonblocking(true)
    }

    /// Reads one answer that has a body, if it says so.
    #[must_use]
    pub fn read(&mut self) -> Response {
        self.try_read(true).expect("the service answers")
    }

    /// Reads one answer to HEAD, which never has a body.
    #[must_use]
    pub fn read_head(&mut self) -> Response {
        self.try_read(false).expect("the service answers")
    }

    /// Sends one request and reads its answer.
    #[must_use]
    pub fn exchange(&mut self, bytes: &[u8]) -> Response {
        self.write(bytes);
        self.read()
    }

    /// Returns whether the service closes the connection without another byte, before the time is over.
    #[must_use]
    pub fn is_closed_within(&mut self, time: Duration) -> bool {
        self.socket.set_read_timeout(Some(time)).expect("a time-out");
        let mut byte = [0];
        match self.stream.read(&mut byte) {
            Ok(read) => read == 0,
            Err(error) => !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut),
        }
    }

    /// Reads one answer, if it comes in time. What has come so far is kept.
    pub fn read_within(&mut self, time: Duration) -> io::Result<Response> {
        self.socket.set_read_timeout(Some(time))?;
        let answer = self.try_read(true);
        self.socket.set_read_timeout(Some(TIMEOUT))?;
        answer
    }

    /// Sends these bytes until the service has read nothing for this time. Returns how many were sent.
    pub fn write_within(&mut self, bytes: &[u8], time: Duration) -> io::Result<usize> {
        self.socket.set_write_timeout(Some(time))?;
        let mut sent = 0;
        while let Some(rest) = bytes.get(sent..).filter(|rest| !rest.is_empty()) {
            match self.stream.write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(length) => sent += length,
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(sent)
    }

    /// Reads one answer, or returns why it cannot.
    pub fn try_read(&mut self, has_body: bool) -> io::Result<Response> {
        loop {
            if let Some(response) = self.take_response(has_body)? {
                return Ok(response);
            }
            let mut buffer = [0; 4096];
            let read = self.stream.read(&mut buffer)?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.unread.extend_from_slice(buffer.get(..read).unwrap_or_default());
        }
    }

    fn take_response(&mut self, has_body: bool) -> io::Result<Option<Response>> {
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut head = httparse::Response::new(&mut headers);
        let parsed = head.parse(&self.unread).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        let httparse::Status::Complete(start) = parsed else {
            return Ok(None);
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut response = Response {
            status: head.code.unwrap_or_default(),
            reason: head.reason.unwrap_or_default().to_owned(),
            headers: head.headers.iter().map(|one| (one.name.to_lowercase(), text(one.value))).collect(),
            body: Vec::new(),
        };
        let length = response.header("content-length").and_then(|length| length.parse().ok()).filter(|_| has_body);
        let end = start + length.unwrap_or(0);
        if self.unread.len() < end {
            return Ok(None);
        }
        response.body = self.unread.drain(..end).skip(start).collect();
        Ok(Some(response))
    }
}

impl Response {
    /// The value of a header that came at most once.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str());
        let first = found.next();
        assert_eq!(found.next(), None, "{name} came twice");
        first
    }

    /// All headers with this name, in lower case.
    #[must_use]
    pub fn all(&self, name: &str) -> Vec<&str> {
        self.headers.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str()).collect()
    }

    /// The body as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.text()))
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// The bytes of a request, with a length where there is a body.
#[must_use]
pub fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n").into_bytes();
    for (name, value) in headers {
        bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    if !body.is_empty() {
        bytes.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(body);
    bytes
}
