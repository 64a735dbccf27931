//! The parts of a provider of single sign-on that a test makes up: its keys and tokens, and the requests to it.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value, json};

/// A key that signs tokens.
pub struct ProviderKey(EcdsaKeyPair);

impl ProviderKey {
    /// A key that no other provider has.
    #[must_use]
    pub fn generate() -> Self {
        let random = SystemRandom::new();
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).expect("a key");
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random);
        Self(pair.expect("a key"))
    }

    /// The list of keys that the provider publishes, which is this one under a number.
    #[must_use]
    pub fn published(&self, number: usize) -> String {
        // After a byte that says how they are written.
        let coordinates = self.0.public_key().as_ref().get(1..).unwrap_or_default();
        let (x, y) = coordinates.split_at(coordinates.len() / 2);
        let [x, y] = [x, y].map(|part| BASE64_URL_SAFE_NO_PAD.encode(part));
        let id = number.to_string();
        let key = json!({ "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": id, "x": x, "y": y });
        json!({ "keys": [key] }).to_string()
    }

    /// The signature of a text.
    #[must_use]
    pub fn sign(&self, text: &str) -> Vec<u8> {
        self.0.sign(&SystemRandom::new(), text.as_bytes()).expect("a signature").as_ref().to_vec()
    }
}

/// The answer with a token that makes these claims. `sign` signs a text.
#[must_use]
pub fn token_answer(header: &Value, claims: &Value, sign: impl FnOnce(&str) -> Vec<u8>) -> String {
    let [header, claims] = [header, claims].map(|part| BASE64_URL_SAFE_NO_PAD.encode(part.to_string()));
    let signed = format!("{header}.{claims}");
    let signature = BASE64_URL_SAFE_NO_PAD.encode(sign(&signed));
    let token = format!("{signed}.{signature}");
    json!({ "access_token": "access", "token_type": "Bearer", "expires_in": 60, "id_token": token }).to_string()
}

/// The document by which a provider at this address is found. It says that it is this issuer.
#[must_use]
pub fn provider_document(address: &str, issuer: &str) -> String {
    let document = json!({
        "issuer": issuer, "authorization_endpoint": format!("{address}/authorize"),
        "token_endpoint": format!("{address}/token"), "jwks_uri": format!("{address}/keys"),
        "userinfo_endpoint": format!("{address}/person"), "response_types_supported": ["code"],
        "subject_types_supported": ["public"],
        // A lie in itself: none of the first two is to be believed.
        "id_token_signing_alg_values_supported": ["none", "HS256", "ES256"],
    });
    document.to_string()
}

/// Reads the first line of a request, and its body. None: there is no other one.
pub fn read_request(reader: &mut BufReader<TcpStream>) -> Option<(String, String)> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|length| *length > 0)?;
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        if header.trim().is_empty() {
            break;
        }
        if let Some(value) = header.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((line, String::from_utf8(body).ok()?))
}
