//! The second factor: an authenticator app that shows codes, and recovery codes for the day it is lost.

use std::fmt;

use time::OffsetDateTime;
use totp_rs::{Builder, Secret, Totp};
use zeroize::Zeroizing;

use crate::accounts::presented::PresentedCode;
use crate::token::TokenDigest;

/// Number of recovery codes that a member gets at once.
pub const RECOVERY_CODES: usize = 10;

/// Bytes of a secret, as RFC 4226 recommends.
const SECRET_LENGTH: usize = 20;

/// The secret that the service shares with a member's authenticator app (RFC 6238). Never printed by `Debug`.
///
/// ```
/// use intake_domain::accounts::{PresentedCode, TotpSecret};
/// use time::Duration;
/// use time::macros::datetime;
///
/// let secret = TotpSecret::new([7; 20]); // 20 random bytes, in a program
/// let now = datetime!(2025-12-03 10:30 UTC);
/// let typed = PresentedCode::new(secret.code_at(now));
/// assert!(secret.step_of(&typed, now + Duration::seconds(30)).is_some());
/// assert_eq!(secret.step_of(&typed, now + Duration::minutes(5)), None);
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct TotpSecret(Secret);

impl TotpSecret {
    /// A secret of these random bytes.
    #[must_use]
    pub fn new(random: [u8; SECRET_LENGTH]) -> Self {
        Self(Secret::new_stack(random))
    }

    /// Parses the text that [`TotpSecret::to_base32`] returns.
    #[must_use]
    pub fn from_base32(text: &str) -> Option<Self> {
        let secret = Self::from_bytes(Secret::try_from_base32(text).ok()?.as_bytes())?;
        // Trailing digits that make up no whole byte would be ignored.
        (*secret.to_base32() == text).then_some(secret)
    }

    /// Restores a stored secret.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self::new)
    }

    /// The secret in base 32, as authenticator apps expect it.
    #[must_use]
    pub fn to_base32(&self) -> Zeroizing<String> {
        Zeroizing::new(self.0.to_base32())
    }

    /// The secret in base 32, in groups that people can type.
    #[must_use]
    pub fn to_groups(&self) -> Zeroizing<String> {
        in_groups(&self.to_base32(), " ")
    }

    /// The secret's bytes, to be stored: the service computes the codes from them.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// The number of the half minute that this code belongs to, if it is the one of that moment or of a neighbour:
    /// clocks differ, and people type slowly.
    #[must_use]
    pub fn step_of(&self, code: &PresentedCode, now: OffsetDateTime) -> Option<i64> {
        let seconds = u64::try_from(now.unix_timestamp()).ok()?;
        let step = self.totp().check(&without_spaces(code.expose()), seconds)?;
        i64::try_from(step).ok()
    }

    /// The code that the app shows at that moment.
    #[must_use]
    pub fn code_at(&self, now: OffsetDateTime) -> String {
        let seconds = u64::try_from(now.unix_timestamp()).unwrap_or_default();
        self.totp().generate(seconds).to_string()
    }

    /// The parameters that every app assumes: SHA-1, six digits, half a minute.
    fn totp(&self) -> Totp {
        Builder::new().with_secret(self.0.clone()).build_noncompliant()
    }
}

impl fmt::Debug for TotpSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TotpSecret(…)")
    }
}

/// Works once in place of the app's code. Never printed by `Debug`; only its digest is stored.
#[derive(Clone, PartialEq, Eq)]
pub struct RecoveryCode(Zeroizing<String>);

impl RecoveryCode {
    /// A code of these 128 random bits: enough that a plain digest of it reveals nothing.
    #[must_use]
    pub fn new(random: [u8; 16]) -> Self {
        let digits = Zeroizing::new(Secret::from(random.to_vec()).to_base32().to_ascii_lowercase());
        Self(in_groups(&digits, "-"))
    }

    /// The code in plain text, in groups that people can copy. Each call of this is a place where a secret may leak.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The digest that the service stores.
    #[must_use]
    pub fn digest(&self) -> TokenDigest {
        Self::digest_of_text(&self.0)
    }

    /// The digest of a code as typed: with or without hyphens, in either case.
    #[must_use]
    pub(crate) fn digest_of(typed: &PresentedCode) -> TokenDigest {
        Self::digest_of_text(typed.expose())
    }

    fn digest_of_text(text: &str) -> TokenDigest {
        let digits = text.chars().filter(|c| !c.is_whitespace() && *c != '-');
        TokenDigest::of(&Zeroizing::new(digits.map(|digit| digit.to_ascii_lowercase()).collect::<String>()))
    }
}

impl fmt::Debug for RecoveryCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RecoveryCode(…)")
    }
}

/// Puts the digits in groups of four, which people can copy without losing track. The last group may be shorter.
fn in_groups(digits: &str, separator: &str) -> Zeroizing<String> {
    let group = |at: usize| digits.get(at..digits.len().min(at + 4));
    let groups: Vec<&str> = (0..digits.len()).step_by(4).filter_map(group).collect();
    Zeroizing::new(groups.join(separator))
}

/// Apps show "123 456", and people type what they see.
fn without_spaces(typed: &str) -> Zeroizing<String> {
    Zeroizing::new(typed.split_whitespace().collect())
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    #[test]
    fn the_codes_are_those_of_the_rfc() {
        let secret = TotpSecret::new(*b"12345678901234567890");
        for (seconds, code) in [(59, "287082"), (1_111_111_109, "081804"), (20_000_000_000, "353130")] {
            let at = OffsetDateTime::from_unix_timestamp(seconds).unwrap();
            assert_eq!(secret.code_at(at), code);
            assert_eq!(secret.step_of(&PresentedCode::new(code), at), Some(seconds / 30));
        }
    }

    #[test]
    fn a_code_works_in_its_half_minute_and_the_two_next_to_it() {
        let secret = TotpSecret::new([7; 20]);
        let at = datetime!(2025-12-03 10:30 UTC);
        let code = secret.code_at(at);
        let step = at.unix_timestamp() / 30;
        for (late, works) in [(-31, false), (-30, true), (0, true), (59, true), (60, false)] {
            let found = secret.step_of(&PresentedCode::new(code.as_str()), at + time::Duration::seconds(late));
            assert_eq!(found, works.then_some(step), "{late} s");
        }
        let spaced = format!(" {} {} ", &code[..3], &code[3..]);
        assert_eq!(secret.step_of(&PresentedCode::new(spaced), at), Some(step));
        for wrong in ["", "12345", "1234567", "+12345", "abcdef", "١٢٣٤٥٦"] {
            assert_eq!(secret.step_of(&PresentedCode::new(wrong), at), None, "{wrong}");
        }
        assert_eq!(secret.step_of(&PresentedCode::new(code), datetime!(1969-12-31 0:00 UTC)), None);
    }

    #[test]
    fn a_secret_comes_back_and_nothing_else_does() {
        let secret = TotpSecret::new([0xA5; 20]);
        assert_eq!(TotpSecret::from_base32(&secret.to_base32()), Some(secret.clone()));
        assert_eq!(TotpSecret::from_bytes(secret.as_bytes()), Some(secret.clone()));
        for text in ["", "A", &secret.to_base32()[1..], &format!("{}A", *secret.to_base32()), "é"] {
            assert_eq!(TotpSecret::from_base32(text), None, "{text}");
        }
        assert_eq!(format!("{secret:?} {:?}", RecoveryCode::new([0; 16])), "TotpSecret(…) RecoveryCode(…)");
    }

    #[test]
    fn a_recovery_code_may_be_typed_as_people_type() {
        let code = RecoveryCode::new([0xA7; 16]);
        assert_eq!(code.expose(), "u6t2-pj5h-u6t2-pj5h-u6t2-pj5h-u4");
        let shouted = code.expose().to_uppercase().replace('-', " ");
        assert_eq!(RecoveryCode::digest_of(&PresentedCode::new(shouted.as_str())), code.digest());
        assert_ne!(RecoveryCode::digest_of(&PresentedCode::new(&shouted[1..])), code.digest());
        assert_ne!(RecoveryCode::new([1; 16]).digest(), RecoveryCode::new([2; 16]).digest());
    }
}
