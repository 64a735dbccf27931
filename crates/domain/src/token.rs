//! Secrets that are handed out once and sent back: in invitation links and session cookies.

use std::fmt;
use std::fmt::Write;

use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::ids::OrganisationId;

/// 256 random bits in hexadecimal digits.
const DIGITS: usize = 64;

/// A secret that identifies its holder. Never printed by `Debug`; only its digest is stored.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(Zeroizing<String>);

impl Token {
    /// A token of these random bits.
    #[must_use]
    pub fn new(random: [u8; 32]) -> Self {
        Self(Zeroizing::new(hexadecimal(&random)))
    }

    /// Parses a text that has the shape of a token.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let is_token = text.len() == DIGITS && text.bytes().all(is_digit);
        is_token.then(|| Self(Zeroizing::new(text.to_owned())))
    }

    /// The digest that the service stores.
    #[must_use]
    pub fn digest(&self) -> TokenDigest {
        TokenDigest::of(&self.0)
    }

    /// The value that every form of this session must send. Only the holder of the token can know it, and the token
    /// cannot be computed from it.
    #[must_use]
    pub fn form_token(&self) -> String {
        self.derived("form")
    }

    /// A value for this purpose. Only the holder of the token can know it, and neither the token nor the value for
    /// another purpose can be computed from it.
    pub(crate) fn derived(&self, purpose: &str) -> String {
        hexadecimal(&Sha256::digest(format!("intake {purpose} {}", *self.0)))
    }

    /// The same for the pages of an organisation: a form of one page does not change another organisation, which the
    /// session was switched to in the meantime.
    #[must_use]
    pub fn form_token_in(&self, organisation: OrganisationId) -> String {
        let mut hasher = Sha256::new();
        hasher.update(b"intake form ");
        hasher.update(self.0.as_bytes());
        hasher.update(organisation.as_uuid().as_bytes());
        hexadecimal(&hasher.finalize())
    }

    /// The token in plain text. Each call of this is a place where a secret may leak.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// The SHA-256 of a token, of a recovery code, or of the id of a passkey.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TokenDigest([u8; 32]);

impl TokenDigest {
    /// The digest of a secret, which must have too many possible values to be guessed.
    pub(crate) fn of(secret: &str) -> Self {
        Self::of_bytes(secret.as_bytes())
    }

    /// The digest of the id of a passkey.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The digest in hexadecimal digits, to identify an invitation in a link: nobody can use the invitation by it.
    #[must_use]
    pub fn to_hexadecimal(&self) -> String {
        hexadecimal(&self.0)
    }

    /// Parses the text that [`TokenDigest::to_hexadecimal`] returns.
    #[must_use]
    pub fn from_hexadecimal(text: &str) -> Option<Self> {
        // The same shape as a token's.
        Token::parse(text)?;
        let digits: Vec<u8> = text.chars().filter_map(|digit| u8::try_from(digit.to_digit(16)?).ok()).collect();
        let (pairs, _) = digits.as_chunks::<2>();
        let bytes: Vec<u8> = pairs.iter().map(|[high, low]| high << 4 | low).collect();
        bytes.try_into().ok().map(Self)
    }

    /// Restores a stored digest.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// The 32 bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for TokenDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenDigest(…)")
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_comes_back_and_nothing_else_does() {
        let token = Token::new([0xA7; 32]);
        assert_eq!(Token::parse(token.expose()), Some(token.clone()));
        for text in ["", "a7", &token.expose()[1..], &token.expose().to_uppercase(), &"é".repeat(32)] {
            assert_eq!(Token::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_digest_comes_back_from_its_text_and_nothing_else_does() {
        let digest = Token::new([0x5E; 32]).digest();
        let text = digest.to_hexadecimal();
        assert_eq!(TokenDigest::from_hexadecimal(&text), Some(digest));
        for other in ["", "5e", &text[1..], &text.to_uppercase(), &"é".repeat(32)] {
            assert_eq!(TokenDigest::from_hexadecimal(other), None, "{other}");
        }
    }

    #[test]
    fn digest_and_form_token_differ_from_the_token_and_each_other() {
        let (one, other) = (Token::new([1; 32]), Token::new([2; 32]));
        assert_ne!(one.form_token(), one.expose());
        assert_ne!(one.form_token(), other.form_token());
        assert_ne!(one.digest(), other.digest());
        assert_eq!(format!("{one:?} {:?}", one.digest()), "Token(…) TokenDigest(…)");
    }
}
