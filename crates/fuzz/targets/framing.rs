//! The bytes of a connection: a request ends at the same byte however they are cut, and actix-http, which gets what was
//! passed on, sees exactly one request in it or refuses it.
#![no_main]

use actix_codec::Decoder;
use actix_http::ServiceConfig;
use actix_http::h1::{Codec, Message, MessageType};
use actix_web::rt::System;
use actix_web::web::BytesMut;
use libfuzzer_sys::fuzz_target;

use connection::framing::Framing;

#[expect(dead_code, reason = "what a refusal says is not looked at")]
#[path = "../../http/src/connection"]
mod connection {
    pub(crate) mod chunks;
    pub(crate) mod framing;
}

/// Outcome of the first request of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Whole,
    Broken,
    InHead,
    InBody,
}

thread_local!(static CONFIG: ServiceConfig = System::new().block_on(async { ServiceConfig::default() }));

fuzz_target!(|input: (u8, &[u8])| {
    let (piece, bytes) = input;
    let (passed_on, end) = pass_on(bytes, bytes.len());
    assert_eq!((&passed_on, end), (&pass_on(bytes, 1).0, pass_on(bytes, 1).1), "byte by byte");
    let cut = pass_on(bytes, usize::from(piece));
    assert_eq!((&passed_on, end), (&cut.0, cut.1), "in pieces of {piece}");
    let is_parsed = parsed(&passed_on);
    match (end, is_parsed) {
        (_, Parsed::Refused) | (End::Whole, Parsed::One) | (End::InHead | End::InBody, Parsed::Part) => {}
        // The service answers by itself, and ends the connection.
        (End::Broken, Parsed::Part) => {}
        _ => panic!("{end:?}, and actix-http sees {is_parsed:?}: {}", passed_on.escape_ascii()),
    }
});

/// The bytes of the first request, as actix-http gets them, when they come in pieces of this size.
fn pass_on(bytes: &[u8], piece: usize) -> (Vec<u8>, End) {
    let (mut framing, mut passed_on) = (Framing::default(), Vec::with_capacity(bytes.len()));
    for piece in bytes.to_vec().chunks_mut(piece.max(1)) {
        let taken = framing.advance(piece);
        passed_on.extend_from_slice(&piece[..taken]);
        if framing.is_whole() || framing.is_broken() {
            break;
        }
        assert_eq!(taken, piece.len(), "bytes are held back");
    }
    let end = match () {
        () if framing.is_whole() => End::Whole,
        () if framing.is_broken() => End::Broken,
        () if framing.is_in_body() => End::InBody,
        () => End::InHead,
    };
    if framing.is_too_large() {
        assert_eq!(end, End::Broken);
        // How much of it is passed on depends on where it was cut.
        passed_on.clear();
    }
    framing.next();
    assert!(!framing.is_whole() && !framing.is_broken() && !framing.is_in_body());
    (passed_on, end)
}

/// Result of actix-http for the bytes.
#[derive(Clone, Copy, Debug)]
enum Parsed {
    One,
    /// It waits for more.
    Part,
    Refused,
    /// The request is over before its bytes are.
    More,
}

fn parsed(bytes: &[u8]) -> Parsed {
    let mut codec = CONFIG.with(|config| Codec::new(config.clone()));
    let mut rest = BytesMut::from(bytes);
    match codec.decode(&mut rest) {
        Err(_) => return Parsed::Refused,
        Ok(None) => return Parsed::Part,
        Ok(Some(_)) => {}
    }
    // The body of a CONNECT or an upgrade is all that follows.
    while codec.message_type() == MessageType::Payload {
        match codec.decode(&mut rest) {
            Err(_) => return Parsed::Refused,
            Ok(None) => return Parsed::Part,
            Ok(Some(Message::Chunk(None))) => break,
            Ok(Some(_)) => {}
        }
    }
    if rest.is_empty() { Parsed::One } else { Parsed::More }
}
