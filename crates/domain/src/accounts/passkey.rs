//! Passkeys (W3C Web Authentication, level 3): what a browser sends when one is made or used, and what of it must be
//! true. The signature itself is checked behind a port. Attestation is neither asked for nor looked at: which make an
//! authenticator is does not matter here.

use std::borrow::Cow;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use time::OffsetDateTime;

use crate::token::{Token, TokenDigest};

/// Beginnings of the keys of both kinds as `SubjectPublicKeyInfo`. Everything before the point, or the key, is fixed.
const P256_PREFIX: &[u8] = &[
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01, 0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE,
    0x3D, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
const ED25519_PREFIX: &[u8] = &[0x30, 0x2A, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70, 0x03, 0x21, 0x00];

/// `rsaEncryption` without parameters.
const RSA_ALGORITHM: &[u8] =
    &[0x30, 0x0D, 0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01, 0x05, 0x00];
/// More bytes than `RSAPublicKey` needs for 8,192 bits, the longest key that is checked.
const RSA_KEY_MAX: usize = 1_100;

/// The longest id of a credential that the standard allows.
const CREDENTIAL_MAX: usize = 1_023;

/// Flags of the authenticator: the user was there, was verified (by a fingerprint, say), and a credential is described.
const PRESENT_AND_VERIFIED: u8 = 0b101;
const DESCRIBES_CREDENTIAL: u8 = 0b100_0000;

/// The site that passkeys belong to: the host by which people reach the dashboard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelyingParty {
    origin: String,
    host: String,
}

/// Text that an authenticator signs, so that no earlier signature is good again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge(String);

/// Statement of a browser about what it did. A member that is there twice is refused, unknown ones are not looked at.
#[derive(Deserialize)]
struct ClientData<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    challenge: Cow<'a, str>,
    origin: Cow<'a, str>,
    #[serde(rename = "crossOrigin", default)]
    is_cross_origin: bool,
}

/// The public half of a passkey.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PasskeyKey {
    /// ECDSA on the curve P-256 with SHA-256 (ES256): the uncompressed point.
    P256(Vec<u8>),
    /// Ed25519: the key.
    Ed25519(Vec<u8>),
    /// RSA with PKCS #1 v1.5 and SHA-256 (RS256), which some machines with Windows have alone: modulus and exponent as
    /// `RSAPublicKey`.
    Rsa(Vec<u8>),
}

/// Answer of a browser that has made a passkey, decoded.
#[derive(Clone, Debug)]
pub struct PasskeyRegistration {
    /// The id of the credential.
    pub credential: Vec<u8>,
    /// The JSON in which the browser describes what it did.
    pub client_data: Vec<u8>,
    /// Statement of the authenticator about itself and the credential.
    pub authenticator_data: Vec<u8>,
    /// The public key as `SubjectPublicKeyInfo`.
    pub public_key: Vec<u8>,
}

/// Answer of a browser that has used a passkey, decoded.
#[derive(Clone, Debug)]
pub struct PasskeyAssertion {
    /// The id of the credential.
    pub credential: Vec<u8>,
    /// The JSON in which the browser describes what it did.
    pub client_data: Vec<u8>,
    /// Statement of the authenticator about itself.
    pub authenticator_data: Vec<u8>,
    /// The signature over both.
    pub signature: Vec<u8>,
}

/// Checks signatures.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait Signatures: Send + Sync {
    /// Returns whether this is the key's signature of the message.
    fn is_valid(&self, key: &PasskeyKey, message: &[u8], signature: &[u8]) -> bool;
}

impl RelyingParty {
    /// The site of this address, which may have a path.
    #[must_use]
    pub fn of(base_url: &str) -> Self {
        let (scheme, rest) = base_url.split_once("://").unwrap_or(("https", base_url));
        let authority = rest.split('/').next().unwrap_or_default().to_ascii_lowercase();
        let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if is_port(port) => (host, port),
            _ => (authority.as_str(), ""),
        };
        // Browsers leave out the port that is usual.
        let origin = match port {
            "" | "443" => format!("{scheme}://{host}"),
            port => format!("{scheme}://{host}:{port}"),
        };
        Self { origin, host: host.to_owned() }
    }

    /// The host, by which browsers and authenticators know the site.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    fn is_in(&self, authenticator_data: &[u8]) -> bool {
        authenticator_data.starts_with(&Sha256::digest(self.host.as_bytes()))
    }
}

impl Challenge {
    /// The challenge for the holder of this token. The token cannot be computed from it.
    #[must_use]
    pub fn of(token: &Token) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(b"intake passkey ");
        hasher.update(token.expose().as_bytes());
        Self(BASE64_URL_SAFE_NO_PAD.encode(hasher.finalize()))
    }

    /// The challenge by which the holder of a session confirms who they are. Every confirmation needs another
    /// signature, because each gives the session another moment.
    #[must_use]
    pub fn of_confirmation(token: &Token, last_confirmed_at: Option<OffsetDateTime>) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(b"intake confirmation ");
        hasher.update(last_confirmed_at.map_or(0, OffsetDateTime::unix_timestamp_nanos).to_be_bytes());
        hasher.update(token.expose().as_bytes());
        Self(BASE64_URL_SAFE_NO_PAD.encode(hasher.finalize()))
    }

    /// The challenge in the digits in which browsers send it back.
    #[must_use]
    pub fn as_base64url(&self) -> &str {
        &self.0
    }

    /// Returns whether the browser was asked for this, at this site, and not in a frame of another one. Not every
    /// browser writes the members in the order of the standard, and some leave out `crossOrigin`.
    fn is_in(&self, client_data: &[u8], kind: &str, site: &RelyingParty) -> bool {
        serde_json::from_slice::<ClientData>(client_data).is_ok_and(|data| {
            data.kind == kind && data.challenge == self.0 && data.origin == site.origin && !data.is_cross_origin
        })
    }
}

impl PasskeyKey {
    /// Reads a `SubjectPublicKeyInfo`. None: it is of another kind.
    #[must_use]
    pub fn from_spki(spki: &[u8]) -> Option<Self> {
        if let Some(point) = spki.strip_prefix(P256_PREFIX) {
            return (point.len() == 65 && point.first() == Some(&4)).then(|| Self::P256(point.to_vec()));
        }
        if let Some(key) = spki.strip_prefix(ED25519_PREFIX) {
            return (key.len() == 32).then(|| Self::Ed25519(key.to_vec()));
        }
        let inner = der_of_length(spki, [0x30, 0x82])?.strip_prefix(RSA_ALGORITHM)?;
        let key = der_of_length(inner, [0x03, 0x82])?.strip_prefix(&[0])?;
        der_of_length(key, [0x30, 0x82])?;
        (key.len() <= RSA_KEY_MAX).then(|| Self::Rsa(key.to_vec()))
    }
}

impl PasskeyRegistration {
    /// Decodes what a form sends, in the order of the fields.
    #[must_use]
    pub fn from_base64url(fields: [&str; 4]) -> Option<Self> {
        let [credential, client_data, authenticator_data, public_key] = decoded(fields)?;
        Some(Self { credential, client_data, authenticator_data, public_key })
    }

    /// The digest of the credential's id and its key, if the passkey was made for this challenge, at this site, by a
    /// user whom the authenticator has verified.
    #[must_use]
    pub fn verified(&self, site: &RelyingParty, challenge: &Challenge) -> Option<(TokenDigest, PasskeyKey)> {
        let flags = flags(&self.authenticator_data)?;
        let is_made = challenge.is_in(&self.client_data, "webauthn.create", site)
            && site.is_in(&self.authenticator_data)
            && flags & PRESENT_AND_VERIFIED == PRESENT_AND_VERIFIED
            && flags & DESCRIBES_CREDENTIAL != 0
            && described_credential(&self.authenticator_data) == Some(self.credential.as_slice())
            && (1..=CREDENTIAL_MAX).contains(&self.credential.len());
        let key = PasskeyKey::from_spki(&self.public_key)?;
        is_made.then(|| (passkey_digest(&self.credential), key))
    }
}

impl PasskeyAssertion {
    /// Decodes what a form sends, in the order of the fields.
    #[must_use]
    pub fn from_base64url(fields: [&str; 4]) -> Option<Self> {
        let [credential, client_data, authenticator_data, signature] = decoded(fields)?;
        Some(Self { credential, client_data, authenticator_data, signature })
    }

    /// The digest of the credential's id, by which the passkey is found.
    #[must_use]
    pub fn passkey(&self) -> TokenDigest {
        passkey_digest(&self.credential)
    }

    /// Returns whether the holder of this key has signed this challenge, at this site, and was verified by the
    /// authenticator.
    pub(crate) fn is_signed(
        &self,
        site: &RelyingParty,
        challenge: &Challenge,
        key: &PasskeyKey,
        signatures: &dyn Signatures,
    ) -> bool {
        let message = [self.authenticator_data.as_slice(), &Sha256::digest(&self.client_data)].concat();
        challenge.is_in(&self.client_data, "webauthn.get", site)
            && site.is_in(&self.authenticator_data)
            && flags(&self.authenticator_data).is_some_and(|it| it & PRESENT_AND_VERIFIED == PRESENT_AND_VERIFIED)
            && signatures.is_valid(key, &message, &self.signature)
    }
}

/// The content of an element of DER that begins with this tag and a length of two bytes, as every RSA key's elements
/// do, and ends with the text.
fn der_of_length(text: &[u8], start: [u8; 2]) -> Option<&[u8]> {
    let (length, content) = text.strip_prefix(&start)?.split_first_chunk::<2>()?;
    (usize::from(u16::from_be_bytes(*length)) == content.len()).then_some(content)
}

fn decoded(fields: [&str; 4]) -> Option<[Vec<u8>; 4]> {
    let all: Result<Vec<_>, _> = fields.iter().map(|field| BASE64_URL_SAFE_NO_PAD.decode(field)).collect();
    all.ok()?.try_into().ok()
}

fn passkey_digest(credential: &[u8]) -> TokenDigest {
    TokenDigest::of_bytes(credential)
}

/// The flags after the digest of the host; a counter of four bytes follows them. It is not looked at: passkeys that are
/// synchronised between devices keep none.
fn flags(authenticator_data: &[u8]) -> Option<u8> {
    (authenticator_data.len() >= 37).then(|| authenticator_data.get(32).copied()).flatten()
}

/// The id of the credential that the authenticator describes: after the make of the authenticator, 16 bytes, and the
/// id's length.
fn described_credential(authenticator_data: &[u8]) -> Option<&[u8]> {
    let (length, rest) = authenticator_data.get(37 + 16..)?.split_first_chunk::<2>()?;
    rest.get(..usize::from(u16::from_be_bytes(*length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site() -> RelyingParty {
        RelyingParty::of("https://clinic.example:8443/intake")
    }

    fn challenge() -> Challenge {
        Challenge::of(&Token::new([1; 32]))
    }

    fn client_data(kind: &str, challenge: &Challenge, origin: &str, rest: &str) -> Vec<u8> {
        let challenge = challenge.as_base64url();
        format!(r#"{{"type":"webauthn.{kind}","challenge":"{challenge}","origin":"{origin}","crossOrigin":false{rest}"#)
            .into_bytes()
    }

    fn authenticator_data(host: &str, flags: u8, credential: &[u8]) -> Vec<u8> {
        let mut data = Sha256::digest(host.as_bytes()).to_vec();
        data.push(flags);
        data.extend([0; 4 + 16]);
        data.extend(u16::try_from(credential.len()).unwrap().to_be_bytes());
        data.extend(credential);
        data.extend(b"the key, in a form of its own");
        data
    }

    fn p256() -> Vec<u8> {
        [P256_PREFIX, &[4], &[7; 64]].concat()
    }

    fn registration() -> PasskeyRegistration {
        PasskeyRegistration {
            credential: b"credential".to_vec(),
            client_data: client_data("create", &challenge(), "https://clinic.example:8443", "}"),
            authenticator_data: authenticator_data("clinic.example", 0b100_0101, b"credential"),
            public_key: p256(),
        }
    }

    fn assertion() -> PasskeyAssertion {
        PasskeyAssertion {
            credential: b"credential".to_vec(),
            client_data: client_data("get", &challenge(), "https://clinic.example:8443", r#","more":1}"#),
            authenticator_data: authenticator_data("clinic.example", 0b101, b""),
            signature: b"right".to_vec(),
        }
    }

    /// Says that a signature is valid if it is this word.
    struct Words;

    impl Signatures for Words {
        fn is_valid(&self, _: &PasskeyKey, _: &[u8], signature: &[u8]) -> bool {
            signature == b"right"
        }
    }

    fn is_signed(assertion: &PasskeyAssertion) -> bool {
        let key = PasskeyKey::from_spki(&p256()).unwrap();
        assertion.is_signed(&site(), &challenge(), &key, &Words)
    }

    #[test]
    fn a_site_is_the_origin_of_its_address() {
        for (address, origin, host) in [
            ("https://localhost:8443", "https://localhost:8443", "localhost"),
            ("https://Intake.example:443", "https://intake.example", "intake.example"),
            ("https://intake.example/door", "https://intake.example", "intake.example"),
        ] {
            let site = RelyingParty::of(address);
            assert_eq!((site.origin.as_str(), site.host()), (origin, host), "{address}");
        }
    }

    #[test]
    fn an_answer_to_this_challenge_is_accepted() {
        let (_, key) = registration().verified(&site(), &challenge()).unwrap();
        assert_eq!(key, PasskeyKey::P256([&[4][..], &[7; 64]].concat()));
        let ed25519 = PasskeyRegistration { public_key: [ED25519_PREFIX, &[9; 32]].concat(), ..registration() };
        assert!(matches!(ed25519.verified(&site(), &challenge()), Some((_, PasskeyKey::Ed25519(_)))));
    }

    #[test]
    fn nothing_else_is() {
        let other = Challenge::of(&Token::new([2; 32]));
        let origin = "https://clinic.example:8443";
        let data = |host: &str, flags: u8| authenticator_data(host, flags, b"credential");
        let broken: Vec<(&str, PasskeyRegistration)> = vec![
            (
                "a challenge",
                PasskeyRegistration { client_data: client_data("create", &other, origin, "}"), ..registration() },
            ),
            (
                "a use",
                PasskeyRegistration { client_data: client_data("get", &challenge(), origin, "}"), ..registration() },
            ),
            (
                "an origin",
                PasskeyRegistration {
                    client_data: client_data("create", &challenge(), "https://evil.example", "}"),
                    ..registration()
                },
            ),
            (
                "a frame",
                PasskeyRegistration {
                    client_data: client_data("create", &challenge(), origin, "ish}"),
                    ..registration()
                },
            ),
            ("a host", PasskeyRegistration { authenticator_data: data("evil.example", 0b100_0101), ..registration() }),
            (
                "nobody there",
                PasskeyRegistration { authenticator_data: data("clinic.example", 0b100_0100), ..registration() },
            ),
            (
                "nobody verified",
                PasskeyRegistration { authenticator_data: data("clinic.example", 0b100_0001), ..registration() },
            ),
            (
                "no credential",
                PasskeyRegistration { authenticator_data: data("clinic.example", 0b101), ..registration() },
            ),
            ("another credential", PasskeyRegistration { credential: b"other".to_vec(), ..registration() }),
            (
                "a cut",
                PasskeyRegistration {
                    authenticator_data: data("clinic.example", 0b100_0101)[..50].to_vec(),
                    ..registration()
                },
            ),
            ("nothing", PasskeyRegistration { authenticator_data: Vec::new(), ..registration() }),
            ("a key", PasskeyRegistration { public_key: b"RSA".to_vec(), ..registration() }),
            ("a short key", PasskeyRegistration { public_key: p256()[..80].to_vec(), ..registration() }),
            (
                "a compressed key",
                PasskeyRegistration { public_key: [P256_PREFIX, &[2], &[7; 64]].concat(), ..registration() },
            ),
        ];
        for (what, registration) in broken {
            assert!(registration.verified(&site(), &challenge()).is_none(), "{what}");
        }
    }

    #[test]
    fn client_data_counts_however_a_browser_writes_it() {
        let digits = challenge();
        let digits = digits.as_base64url();
        let is_read = |text: &str| {
            let client_data = text.replace("CHALLENGE", digits).into_bytes();
            is_signed(&PasskeyAssertion { client_data, ..assertion() })
        };
        for good in [
            // Chrome on Android with Play services.
            r#"{"type":"webauthn.get","challenge":"CHALLENGE","origin":"https:\/\/clinic.example:8443","androidPackageName":"com.android.chrome"}"#,
            // Safari before the order of the standard.
            r#"{"challenge":"CHALLENGE","origin":"https://clinic.example:8443","type":"webauthn.get"}"#,
            r#"{"type":"webauthn.get", "challenge":"CHALLENGE", "origin":"https://clinic.example:8443", "crossOrigin":false}"#,
        ] {
            assert!(is_read(good), "{good}");
        }
        for bad in [
            "",
            "[]",
            r#"{"type":"webauthn.get","challenge":"CHALLENGE"}"#,
            r#"{"type":"webauthn.get","challenge":"CHALLENGE","origin":"https://clinic.example:8443","crossOrigin":true}"#,
            r#"{"type":"webauthn.get","challenge":"CHALLENGE","origin":"https://clinic.example:8443","crossOrigin":null}"#,
            r#"{"type":"webauthn.get","challenge":"CHALLENGE","origin":"https://clinic.example:8443","crossOrigin":"false"}"#,
            r#"{"type":"webauthn.get","challenge":"CHALLENGE","origin":"https://clinic.example:8443","origin":"https://clinic.example:8443"}"#,
            r#"{"type":"webauthn.get","challenge":"CHALLENGE","origin":"https://clinic.example:8443","crossOrigin":true,"crossOrigin":false}"#,
            r#"{"type":"webauthn.get","challenge":"CHALLENGE","origin":"https://clinic.example:8443"} {}"#,
            r#"{"type":"webauthn.get","challenge":"CHALLENGE","origin":"https://clinic.example"}"#,
        ] {
            assert!(!is_read(bad), "{bad}");
        }
    }

    #[test]
    fn an_rsa_key_is_taken_whole_or_not_at_all() {
        let with_length = |start: &[u8], content: &[u8]| {
            [start, &u16::try_from(content.len()).unwrap().to_be_bytes(), content].concat()
        };
        let key = with_length(&[0x30, 0x82], &[7; 266]);
        let bits = with_length(&[0x03, 0x82], &[&[0], key.as_slice()].concat());
        let spki = with_length(&[0x30, 0x82], &[RSA_ALGORITHM, &bits].concat());
        assert_eq!(PasskeyKey::from_spki(&spki), Some(PasskeyKey::Rsa(key)));
        for cut in [1, 4, 20, 25, 29, spki.len() - 1] {
            assert_eq!(PasskeyKey::from_spki(&spki[..cut]), None, "{cut}");
        }
        assert_eq!(PasskeyKey::from_spki(&[spki.as_slice(), &[0]].concat()), None);
    }

    #[test]
    fn a_use_counts_here_for_this_challenge_of_a_verified_user_with_the_right_signature() {
        assert!(is_signed(&assertion()));
        let other = Challenge::of(&Token::new([2; 32]));
        let origin = "https://clinic.example:8443";
        let broken: Vec<(&str, PasskeyAssertion)> = vec![
            ("a challenge", PasskeyAssertion { client_data: client_data("get", &other, origin, "}"), ..assertion() }),
            (
                "a making",
                PasskeyAssertion { client_data: client_data("create", &challenge(), origin, "}"), ..assertion() },
            ),
            (
                "an origin",
                PasskeyAssertion {
                    client_data: client_data("get", &challenge(), "https://evil.example", "}"),
                    ..assertion()
                },
            ),
            (
                "a host",
                PasskeyAssertion { authenticator_data: authenticator_data("evil.example", 0b101, b""), ..assertion() },
            ),
            (
                "nobody verified",
                PasskeyAssertion {
                    authenticator_data: authenticator_data("clinic.example", 0b001, b""),
                    ..assertion()
                },
            ),
            (
                "a cut",
                PasskeyAssertion { authenticator_data: Sha256::digest(b"clinic.example").to_vec(), ..assertion() },
            ),
            ("a signature", PasskeyAssertion { signature: b"wrong".to_vec(), ..assertion() }),
        ];
        for (what, assertion) in broken {
            assert!(!is_signed(&assertion), "{what}");
        }
    }
}
