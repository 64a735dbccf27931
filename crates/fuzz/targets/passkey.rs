//! What a browser sends when a passkey is made or used: only what was made or signed for the challenge, at the site, by
//! a verified user, is accepted.
#![no_main]

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use intake_domain::{
    Account, Challenge, MockPasskeyStore, MockSignatures, Origin, PasskeyAssertion, PasskeyHolder, PasskeyKey,
    PasskeyRegistration, RelyingParty, Token, sign_in_by_passkey,
};
use libfuzzer_sys::fuzz_target;
use sha2::{Digest, Sha256};
use time::macros::datetime;
use uuid::Uuid;

const PRESENT_AND_VERIFIED: u8 = 0b101;
const DESCRIBES_CREDENTIAL: u8 = 0b100_0000;
const SIGNATURE: &[u8] = b"right";

/// The site and its one passkey.
struct Site {
    party: RelyingParty,
    host: [u8; 32],
    challenge: Token,
    passkeys: MockPasskeyStore,
    signatures: MockSignatures,
}

thread_local!(static SITE: &'static Site = Box::leak(Box::new(Site::new())));

fuzz_target!(|input: &[u8]| SITE.with(|site| {
    // Texts that are no base64url, too.
    let lines: Vec<_> = String::from_utf8_lossy(input).split('\n').map(str::to_owned).collect();
    if let [one, two, three, four] = lines.as_slice() {
        let _ = PasskeyRegistration::from_base64url([one, two, three, four]);
    }
    let Some((is_made, fields)) = fields(input) else { return };
    let texts = fields.map(|field| BASE64_URL_SAFE_NO_PAD.encode(field));
    let texts = texts.each_ref().map(String::as_str);
    if is_made { site.make(fields, texts) } else { site.sign_in(fields, texts) }
}));

/// A byte for the kind, the lengths of three fields in two bytes each, and the four fields.
fn fields(input: &[u8]) -> Option<(bool, [&[u8]; 4])> {
    let (kind, mut rest) = input.split_first()?;
    let mut lengths = [0; 3];
    for length in &mut lengths {
        let (bytes, tail) = rest.split_first_chunk()?;
        (*length, rest) = (usize::from(u16::from_be_bytes(*bytes)), tail);
    }
    let [one, two, three] = lengths.map(|length| {
        let (field, tail) = rest.split_at(length.min(rest.len()));
        rest = tail;
        field
    });
    Some((kind % 2 == 1, [one, two, three, rest]))
}

impl Site {
    fn new() -> Self {
        let account = Account {
            id: Uuid::from_u128(1).into(),
            name: intake_domain::Name::new("Ada").expect("a name"),
            email: "ada@example.com".parse().expect("an address"),
        };
        let mut passkeys = MockPasskeyStore::new();
        passkeys.expect_holder().returning(move |_| {
            Ok(Some(PasskeyHolder { account: account.clone(), key: PasskeyKey::Ed25519(vec![9; 32]) }))
        });
        passkeys.expect_sign_in().returning(|_, _, _, _| Ok(()));
        let mut signatures = MockSignatures::new();
        signatures.expect_is_valid().returning(|_, _, signature| signature == SIGNATURE);
        let party = RelyingParty::of("https://clinic.example:8443/intake");
        let host = Sha256::digest(b"clinic.example").into();
        Self { party, host, challenge: Token::new([1; 32]), passkeys, signatures }
    }

    fn make(&self, [credential, client_data, authenticator_data, _]: [&[u8]; 4], texts: [&str; 4]) {
        let made = PasskeyRegistration::from_base64url(texts).expect("it was encoded");
        let Some((_, key)) = made.verified(&self.party, &Challenge::of(&self.challenge)) else { return };
        self.must_be_here(
            client_data,
            "webauthn.create",
            authenticator_data,
            PRESENT_AND_VERIFIED | DESCRIBES_CREDENTIAL,
        );
        assert!((1..=1_023).contains(&credential.len()));
        let length = u16::try_from(credential.len()).expect("it is short").to_be_bytes();
        assert!(authenticator_data[53..].starts_with(&[&length, credential].concat()));
        match key {
            PasskeyKey::P256(point) => assert!(point.len() == 65 && point[0] == 4),
            PasskeyKey::Ed25519(key) => assert_eq!(key.len(), 32),
            PasskeyKey::Rsa(key) => assert!((4..=1_100).contains(&key.len()) && key[0] == 0x30),
        }
    }

    fn sign_in(&self, [_, client_data, authenticator_data, signature]: [&[u8]; 4], texts: [&str; 4]) {
        let assertion = PasskeyAssertion::from_base64url(texts).expect("it was encoded");
        let (now, session) = (datetime!(2026-01-01 0:00 UTC), Token::new([2; 32]));
        let origin = Origin {
            address: None,
            browser: None,
            session: None,
            at: now,
            entry_id: intake_domain::AuditEntryId::new(now, [3; 10]),
        };
        let tried = sign_in_by_passkey(
            &self.passkeys,
            &self.signatures,
            &self.party,
            &self.challenge,
            &assertion,
            &session,
            origin,
        );
        let Poll::Ready(outcome) = pin!(tried).poll(&mut Context::from_waker(Waker::noop())) else {
            panic!("nothing here waits")
        };
        if outcome.is_ok() {
            self.must_be_here(client_data, "webauthn.get", authenticator_data, PRESENT_AND_VERIFIED);
            assert_eq!(signature, SIGNATURE);
        }
    }

    fn must_be_here(&self, client_data: &[u8], kind: &str, authenticator_data: &[u8], flags: u8) {
        assert!(authenticator_data.len() >= 37 && authenticator_data.starts_with(&self.host));
        assert_eq!(authenticator_data[32] & flags, flags);
        let challenge = Challenge::of(&self.challenge);
        let challenge = challenge.as_base64url();
        let start = format!(
            r#"{{"type":"{kind}","challenge":"{challenge}","origin":"https://clinic.example:8443","crossOrigin":false"#
        );
        assert!(client_data.starts_with(start.as_bytes()));
    }
}
