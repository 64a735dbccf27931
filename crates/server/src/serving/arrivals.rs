//! New connections: each gets a slot, and those of the HTTPS listener their encryption.

use std::convert::Infallible;
use std::io::Error;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use actix_service::Service;
use actix_tls::accept::TlsError;
use actix_tls::accept::rustls_0_23::{AcceptorService, TlsStream};
use actix_web::rt::net::TcpStream;
use intake_http::{Connection, Connections, Slot};
use tokio::time::{Instant, timeout_at};
use tokio_util::either::Either;

/// A handshake takes two round trips.
pub(super) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// Encrypted data that waits to be sent: room for an answer, and for most pages, in one piece.
const TLS_BUFFER: usize = 16 * 1024;

/// A connection without encryption. None: all slots are taken, or the client is gone.
pub(super) fn admit(
    stream: TcpStream,
    connections: &Connections,
) -> Option<(Connection<TcpStream>, Option<SocketAddr>)> {
    let peer = peer(&stream)?;
    let slot = connections.admit(Some(peer.ip()), false)?;
    Some((Connection::new(stream, slot, false), Some(peer)))
}

/// The address of the client. None: it has reset the connection, and reads no answer. What it sent is not served: it
/// would be a stranger's, and a trusted proxy that gave up waiting would seem to send keys in clear.
fn peer(stream: &TcpStream) -> Option<SocketAddr> {
    stream.peer_addr().ok()
}

/// The first byte of a TLS handshake.
const HANDSHAKE: u8 = 22;

/// A client of the HTTPS listener that has begun to send.
pub(super) struct Arrived {
    stream: TcpStream,
    peer: SocketAddr,
    slot: Slot,
    /// The end of its time for the handshake. None: it sends plain HTTP by mistake, and gets the answer of the plain
    /// listener.
    handshake_until: Option<Instant>,
}

/// Waits until the client sends something, unless its slot is needed. It is boxed, as the handshake is.
pub(super) fn arrive(
    stream: TcpStream,
    connections: &Connections,
) -> Pin<Box<impl Future<Output = Result<Arrived, ()>> + use<>>> {
    let admitted = peer(&stream).and_then(|peer| Some((peer, connections.admit(Some(peer.ip()), true)?)));
    let until = Instant::now() + HANDSHAKE_TIMEOUT;
    Box::pin(async move {
        let (peer, slot) = admitted.ok_or(())?;
        let mut first = [0];
        let looked = slot.keep_while(timeout_at(until, stream.peek(&mut first))).await;
        match looked {
            Some(Ok(Ok(1))) => {}
            _ => return Err(()),
        }
        let handshake_until = (first == [HANDSHAKE]).then_some(until);
        Ok(Arrived { stream, peer, slot, handshake_until })
    })
}

/// A connection of the HTTPS listener and the address of its client.
pub(super) type Secured = (Connection<Either<TlsStream<TcpStream>, TcpStream>>, Option<SocketAddr>);

/// The TLS handshake of one connection, which ends if its slot is needed. It is boxed, because its memory would
/// otherwise be kept as long as the connection.
pub(super) fn shake_hands(
    arrived: Arrived,
    acceptor: &AcceptorService,
) -> Pin<Box<impl Future<Output = Result<Secured, TlsError<Error, Infallible>>> + use<>>> {
    let Arrived { stream, peer, slot, handshake_until } = arrived;
    let begun = match handshake_until {
        Some(until) => Either::Left((until, acceptor.call(stream))),
        None => Either::Right(stream),
    };
    Box::pin(async move {
        let (until, handshake) = match begun {
            Either::Left(begun) => begun,
            Either::Right(stream) => return Ok((Connection::new(Either::Right(stream), slot, false), Some(peer))),
        };
        let done = slot.keep_while(timeout_at(until, handshake)).await;
        let mut stream = done.and_then(Result::ok).ok_or(TlsError::Timeout)??;
        slot.handshake_done();
        stream.get_mut().1.set_buffer_limit(Some(TLS_BUFFER));
        Ok((Connection::new(Either::Left(stream), slot, true), Some(peer)))
    })
}
