//! The digest by which an erased patient's idempotency key is recognised.

use std::fmt;
use std::str::FromStr;

/// SHA-256 of an idempotency key: all that is kept of it once its patient is erased. Written in hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IdempotencyDigest([u8; 32]);

impl IdempotencyDigest {
    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl TryFrom<Vec<u8>> for IdempotencyDigest {
    type Error = IdempotencyDigestError;

    /// Restores a stored digest.
    fn try_from(bytes: Vec<u8>) -> Result<Self, Self::Error> {
        bytes.try_into().map(Self).map_err(|_| IdempotencyDigestError)
    }
}

impl FromStr for IdempotencyDigest {
    type Err = IdempotencyDigestError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        let bytes: Option<Vec<u8>> = pairs.iter().map(|[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect();
        bytes.filter(|_| rest.is_empty()).ok_or(IdempotencyDigestError)?.try_into()
    }
}

impl fmt::Display for IdempotencyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// No digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be 64 hexadecimal digits")]
pub struct IdempotencyDigestError;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_written_and_read_in_hexadecimal_digits() {
        let text = "00ff1e".to_owned() + &"a7".repeat(29);
        let digest: IdempotencyDigest = text.parse().unwrap();
        assert_eq!((digest.to_string(), digest.as_bytes().len()), (text.clone(), 32));
        assert_eq!(IdempotencyDigest::try_from(digest.as_bytes().to_vec()), Ok(digest));
        for bad in ["", &text[1..], &text[2..], &(text.clone() + "00"), &text.replace('f', "g"), &"é".repeat(32)] {
            assert_eq!(bad.parse::<IdempotencyDigest>(), Err(IdempotencyDigestError), "{bad}");
        }
    }
}
