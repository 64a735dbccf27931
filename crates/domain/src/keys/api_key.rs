//! API keys: their shape, their checksum, and the digest that is all the service keeps of them.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::environment::Environment;

const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// 30 digits of base 62 hold 178 bits: never guessed, never drawn twice.
const SECRET_DIGITS: usize = 30;
/// Six digits of base 62 hold every CRC-32.
const CHECKSUM_DIGITS: usize = 6;
/// Short enough to read, long enough for a product's name.
const PREFIX_MAX: usize = 16;
/// One key of each few hundred suits a database on hundreds of machines. Any key works, so the search may end.
const MINTED_MAX: usize = 10_000;

/// Beginning of keys: 1 to 16 of `[a-z0-9]`, a letter first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPrefix(String);

impl FromStr for KeyPrefix {
    type Err = KeyPrefixError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let starts_with_letter = text.starts_with(|c: char| c.is_ascii_lowercase());
        let is_plain = text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        if starts_with_letter && is_plain && text.len() <= PREFIX_MAX {
            Ok(Self(text.to_owned()))
        } else {
            Err(KeyPrefixError)
        }
    }
}

/// Reason why a text cannot be the prefix of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be 1 to {PREFIX_MAX} of a-z and 0-9, starting with a letter")]
pub struct KeyPrefixError;

/// The random bits that a key is made of. Never printed by `Debug`.
#[derive(Clone)]
pub struct KeySecret(pub(crate) Zeroizing<[u8; 32]>);

impl KeySecret {
    /// A secret of these random bits.
    #[must_use]
    pub fn new(random: [u8; 32]) -> Self {
        Self(Zeroizing::new(random))
    }
}

impl fmt::Debug for KeySecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeySecret(…)")
    }
}

/// The shape of the keys that one service makes and takes: `<prefix>_<live|demo>_<secret><checksum>`.
///
/// ```
/// use intake_domain::Environment;
/// use intake_domain::keys::{KeyFormat, MalformedKey};
///
/// let format = KeyFormat::new(&"intake".parse()?, Environment::Development);
/// let key = format.mint([7; 32]); // 32 random bytes, in a program
/// assert!(key.expose().starts_with("intake_demo_"));
///
/// // The caller presents the same key; only its digest is kept.
/// assert_eq!(format.parse(key.expose())?.digest(), key.digest());
/// let production = KeyFormat::new(&"intake".parse()?, Environment::Production);
/// assert_eq!(production.parse(key.expose()), Err(MalformedKey::OtherEnvironment));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyFormat {
    environment: Environment,
    head: String,
    other_head: String,
}

impl KeyFormat {
    /// The format of keys with that prefix, in that environment.
    #[must_use]
    pub fn new(prefix: &KeyPrefix, environment: Environment) -> Self {
        let head = |environment: Environment| format!("{}{}", prefix.0, environment.key_mark());
        Self { environment, head: head(environment), other_head: head(environment.other()) }
    }

    /// The environment whose keys have this format.
    #[must_use]
    pub fn environment(&self) -> Environment {
        self.environment
    }

    /// Returns what every key of this format begins with, for hints: `intake_demo_`.
    #[must_use]
    pub fn head(&self) -> &str {
        &self.head
    }

    /// Makes a key of 256 random bits.
    #[must_use]
    pub fn mint(&self, random: [u8; 32]) -> ApiKey {
        let mut number = Zeroizing::new(random);
        let mut text = Zeroizing::new(String::with_capacity(self.head.len() + SECRET_DIGITS + CHECKSUM_DIGITS));
        text.push_str(&self.head);
        for _ in 0..SECRET_DIGITS {
            text.push(divide_by_62(&mut number));
        }
        let checksum = checksum(&text);
        text.extend(checksum.map(char::from));
        ApiKey(text)
    }

    /// Makes a key that suits this place: the first one, or else one of those that follow from it.
    #[must_use]
    pub(crate) fn mint_at(&self, secret: &KeySecret, place: &KeyPlace) -> ApiKey {
        let mut random = secret.0.clone();
        for _ in 0..MINTED_MAX {
            let key = self.mint(*random);
            if place.suits(&key.digest()) {
                return key;
            }
            *random = Sha256::digest(*random).into();
        }
        self.mint(*random)
    }

    /// Parses a key, if its shape, environment and checksum are right. The database is not asked: a key that passes may
    /// still be unknown.
    pub fn parse(&self, text: &str) -> Result<ApiKey, MalformedKey> {
        let digits = match text.strip_prefix(self.head.as_str()) {
            Some(digits) => digits,
            None if text.starts_with(&self.other_head) => return Err(MalformedKey::OtherEnvironment),
            None => return Err(MalformedKey::Shape),
        };
        if digits.len() != SECRET_DIGITS + CHECKSUM_DIGITS || !digits.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(MalformedKey::Shape);
        }
        let (body, sum) = text.split_at(text.len() - CHECKSUM_DIGITS);
        if sum.as_bytes() != checksum(body) {
            return Err(MalformedKey::Checksum);
        }
        Ok(ApiKey(Zeroizing::new(text.to_owned())))
    }
}

/// Reason why a text cannot be a key of this service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MalformedKey {
    /// Not the shape of a key, or another service's prefix.
    #[error("The API key is malformed")]
    Shape,
    /// A key of the other environment.
    #[error("The API key belongs to the other environment")]
    OtherEnvironment,
    /// A digit was mistyped or cut.
    #[error("The API key has a wrong checksum")]
    Checksum,
}

/// A whole key, in plain text: shown once to the person who made it, wiped from memory when dropped, never printed by
/// `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(Zeroizing<String>);

impl ApiKey {
    /// Returns what the service keeps of the key.
    #[must_use]
    pub fn digest(&self) -> KeyDigest {
        KeyDigest(Sha256::digest(self.0.as_bytes()).into())
    }

    /// The last four characters, by which people tell their keys apart.
    #[must_use]
    pub fn hint(&self) -> &str {
        self.0.get(self.0.len().saturating_sub(4)..).unwrap_or_default()
    }

    /// The key in plain text. Each call of this is a place where a secret may leak.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

/// The SHA-256 of a key: finds the key's record, and cannot be turned back. Made from a key alone.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyDigest([u8; 32]);

impl KeyDigest {
    /// The 32 bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// Which keys the database finds without asking a machine that has nothing else of their organisation.
pub struct KeyPlace(Box<dyn Fn(&KeyDigest) -> bool + Send + Sync>);

impl KeyPlace {
    /// The keys of these digests.
    pub fn new(suits: impl Fn(&KeyDigest) -> bool + Send + Sync + 'static) -> Self {
        Self(Box::new(suits))
    }

    /// Returns whether this is one of them.
    #[must_use]
    pub fn suits(&self, key: &KeyDigest) -> bool {
        (self.0)(key)
    }
}

impl fmt::Debug for KeyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyDigest(…)")
    }
}

/// Returns whether a text contains a whole key, of any prefix and either environment. Such a text is not stored where
/// people read it.
pub(crate) fn contains_key(text: &str) -> bool {
    let marks = Environment::ALL.map(Environment::key_mark);
    text.match_indices('_').any(|(at, _)| {
        let rest = text.get(at..).unwrap_or_default();
        let Some(mark) = marks.iter().find(|mark| rest.starts_with(**mark)) else { return false };
        let end = at + mark.len() + SECRET_DIGITS + CHECKSUM_DIGITS;
        // Other letters may stand before the prefix.
        let mut candidates = (1..=PREFIX_MAX).filter_map(|length| text.get(at.checked_sub(length)?..end));
        candidates.any(|candidate| {
            let parts = candidate.split_at_checked(candidate.len() - CHECKSUM_DIGITS);
            parts.is_some_and(|(body, sum)| sum.as_bytes() == checksum(body))
        })
    })
}

/// Divides a big-endian number by 62 and gives the remainder as a digit. Thirty remainders of 256 random bits are even
/// to one part in 2^77.
fn divide_by_62(number: &mut [u8; 32]) -> char {
    let mut remainder = 0_u16;
    for byte in number {
        let value = remainder << 8 | u16::from(*byte);
        // The remainder is below 62, so the quotient fits into the lower byte.
        [_, *byte] = (value / 62).to_be_bytes();
        remainder = value % 62;
    }
    base62_digit(u32::from(remainder)).into()
}

/// The CRC-32 (IEEE) of the text in base 62, most significant digit first.
fn checksum(text: &str) -> [u8; CHECKSUM_DIGITS] {
    let mut rest = crc32fast::hash(text.as_bytes());
    let mut digits = [b'0'; CHECKSUM_DIGITS];
    for digit in digits.iter_mut().rev() {
        *digit = base62_digit(rest % 62);
        rest /= 62;
    }
    digits
}

#[expect(
    clippy::indexing_slicing,
    reason = "a remainder of 62 is below 62; any other digit in its place would be guessed"
)]
fn base62_digit(value: u32) -> u8 {
    BASE62[(value % 62) as usize]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::*;

    fn demo() -> KeyFormat {
        KeyFormat::new(&"intake".parse().unwrap(), Environment::Development)
    }

    #[test]
    fn a_checksum_is_the_crc_32_of_all_before_it() {
        // 0xCBF43926 is the check value that every description of CRC-32 (IEEE) gives for "123456789".
        assert_eq!(crc32fast::hash(b"123456789"), 0xCBF4_3926);
        assert_eq!(checksum("123456789"), *b"3jZRME");
        assert_eq!(checksum(""), *b"000000");
    }

    #[test]
    fn a_key_of_known_bytes_never_changes() {
        let key = demo().mint([0; 32]);
        assert_eq!(&key.expose()[..42], "intake_demo_000000000000000000000000000000");
        assert_eq!(key.expose().len(), 48);
        assert_eq!(demo().parse(key.expose()), Ok(key));
    }

    #[test]
    fn a_digest_is_the_sha_256_of_the_whole_key() {
        let key = demo().mint([7; 32]);
        let expected: [u8; 32] = Sha256::digest(key.expose().as_bytes()).into();
        assert_eq!(key.digest().as_bytes(), &expected);
    }

    #[test]
    fn the_other_environments_key_is_refused_as_such() {
        let live = KeyFormat::new(&"intake".parse().unwrap(), Environment::Production);
        assert_eq!(demo().parse(live.mint([1; 32]).expose()), Err(MalformedKey::OtherEnvironment));
        assert_eq!(live.parse(demo().mint([1; 32]).expose()), Err(MalformedKey::OtherEnvironment));
    }

    #[test]
    fn another_services_key_is_refused() {
        let other = KeyFormat::new(&"outtake".parse().unwrap(), Environment::Development);
        assert_eq!(demo().parse(other.mint([1; 32]).expose()), Err(MalformedKey::Shape));
    }

    #[test]
    fn a_text_of_another_shape_is_refused() {
        let key = demo().mint([9; 32]);
        let key = key.expose();
        for text in ["", "intake", "intake_demo_", &key[1..], &key[..47], &format!("{key}0"), &format!("{key} ")] {
            assert_eq!(demo().parse(text), Err(MalformedKey::Shape), "{text}");
        }
        let with_dash = format!("{}-{}", &key[..20], &key[21..]);
        assert_eq!(demo().parse(&with_dash), Err(MalformedKey::Shape));
        let with_accent = format!("{}é{}", &key[..20], &key[22..]);
        assert_eq!(demo().parse(&with_accent), Err(MalformedKey::Shape));
    }

    #[test]
    fn a_prefix_is_short_and_plain() {
        for good in ["a", "intake", "a1", "abcdefghijklmnop"] {
            assert!(good.parse::<KeyPrefix>().is_ok(), "{good}");
        }
        for bad in ["", "1a", "A", "a_b", "a-b", "é", "abcdefghijklmnopq"] {
            assert_eq!(bad.parse::<KeyPrefix>(), Err(KeyPrefixError), "{bad}");
        }
    }

    #[test]
    fn a_key_is_found_within_a_text() {
        let live = KeyFormat::new(&"a1".parse().unwrap(), Environment::Production);
        for key in [demo().mint([7; 32]), live.mint([8; 32])] {
            let key = key.expose();
            for text in [
                key.to_owned(),
                format!("é {key}."),
                format!("Booking{key}9"),
                format!("_demo_ {key}"),
                format!("_demo_{key}"),
            ] {
                assert!(contains_key(&text), "{text}");
            }
            let mistyped = key.replace(&key[key.len() - 1..], "-");
            for text in ["", "_demo_", "é_live_é", &key[..key.len() - 1], &mistyped, &key.to_uppercase()] {
                assert!(!contains_key(text), "{text}");
            }
        }
    }

    #[test]
    fn debug_output_shows_no_secret() {
        let key = demo().mint([3; 32]);
        assert_eq!(format!("{key:?} {:?}", key.digest()), "ApiKey(…) KeyDigest(…)");
    }

    proptest! {
        #[test]
        fn every_minted_key_is_taken_back(random in any::<[u8; 32]>()) {
            let key = demo().mint(random);
            prop_assert_eq!(demo().parse(key.expose()), Ok(key));
        }

        #[test]
        fn one_changed_character_is_noticed(random in any::<[u8; 32]>(), position in 12..48_usize, digit in 0..62_usize) {
            let key = demo().mint(random);
            let mut bytes = key.expose().as_bytes().to_vec();
            if bytes[position] != BASE62[digit] {
                bytes[position] = BASE62[digit];
                let text = String::from_utf8(bytes).unwrap();
                prop_assert_eq!(demo().parse(&text), Err(MalformedKey::Checksum));
            }
        }

        #[test]
        fn no_text_makes_parsing_panic(text in any::<String>()) {
            prop_assert!(demo().parse(&text).is_err());
        }
    }
}
