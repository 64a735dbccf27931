//! What makes each row be created once, however often the program is run: an idempotency key made of a secret, the
//! run's name and the row's texts. Of rows that are the same in every field, twins of the file, the first, second and
//! so on have keys of their own, wherever in the file they stand.

use std::collections::{HashMap, HashSet};

use hmac::{Hmac, KeyInit as _, Mac as _};
use intake_domain::Field;
use sha2::Sha256;

use crate::convert::Texts;
use crate::secret::Secret;

/// Beginning of all keys, so that they are not another program's.
const PREFIX: &str = "intake-import-";
/// Bytes of the digest that are used: as many as a UUID has.
const DIGEST_BYTES: usize = 16;

/// Gives out the idempotency keys of a run. Remembers eight bytes of each row's digest, which is 20 to 40 MB for a
/// million rows.
pub(crate) struct OnceKeys {
    run: Hmac<Sha256>,
    has_secret: bool,
    seen: HashSet<u64>,
    repeated: HashMap<u64, u32>,
}

/// The idempotency key of a row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct OnceKey {
    /// As it is sent; empty where nothing is.
    pub(crate) text: String,
    /// True if an earlier row of the file is the same in every field.
    pub(crate) is_repeated: bool,
}

impl OnceKeys {
    /// The keys of the run of this name. Without a secret, of a check, they only tell which rows are repeated.
    pub(crate) fn of(secret: Option<&Secret>, run: &str) -> anyhow::Result<Self> {
        let mut digest = Hmac::new_from_slice(secret.map_or(&[], Secret::bytes))?;
        absorb(&mut digest, run);
        Ok(Self { run: digest, has_secret: secret.is_some(), seen: HashSet::new(), repeated: HashMap::new() })
    }

    /// The key of the next row.
    pub(crate) fn next(&mut self, texts: &Texts) -> OnceKey {
        let mut digest = self.run.clone();
        for &field in Field::ALL {
            if let Some(text) = &texts[field] {
                digest.update(&field.number().to_be_bytes());
                absorb(&mut digest, text);
            }
        }
        let same = digest
            .clone()
            .finalize()
            .into_bytes()
            .iter()
            .take(8)
            .fold(0, |number, byte| number << 8 | u64::from(*byte));
        let earlier = if self.seen.insert(same) {
            0
        } else {
            let earlier = self.repeated.entry(same).or_default();
            *earlier += 1;
            *earlier
        };
        let mut text = String::new();
        if self.has_secret {
            digest.update(&earlier.to_be_bytes());
            text.push_str(PREFIX);
            text.extend(digest.finalize().into_bytes().iter().take(DIGEST_BYTES).map(|byte| format!("{byte:02x}")));
        }
        OnceKey { text, is_repeated: earlier > 0 }
    }
}

/// The first bytes of a key, to remember many keys. None: the text is not a key of this program.
pub(crate) fn fingerprint(key: &str) -> Option<u64> {
    u64::from_str_radix(key.strip_prefix(PREFIX)?.get(..16)?, 16).ok()
}

/// A text with its length, so that no two lists of texts are the same bytes.
fn absorb(digest: &mut Hmac<Sha256>, text: &str) {
    digest.update(&(text.len() as u64).to_be_bytes());
    digest.update(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(first_name: &str, suburb: Option<&str>) -> Texts {
        let mut texts = Texts::default();
        texts[Field::FirstName] = Some(first_name.to_owned());
        texts[Field::Suburb] = suburb.map(str::to_owned);
        texts
    }

    fn secret(byte: u8) -> Secret {
        Secret::from([byte; 32])
    }

    #[test]
    fn a_key_says_which_run_and_which_row_and_nothing_of_its_place() {
        let rows = [texts("Ada", None), texts("Ada", Some("")), texts("Grace", None), texts("Ada", None)];
        let keys = |run: &str, secret: &Secret, order: &[usize]| {
            let mut keys = OnceKeys::of(Some(secret), run).unwrap();
            let mut given: Vec<_> = order.iter().map(|row| keys.next(&rows[*row]).text).collect();
            given.sort();
            given
        };
        let given = keys("import", &secret(1), &[0, 1, 2, 3]);
        assert_eq!(given.iter().collect::<HashSet<_>>().len(), 4, "every row has its own");
        assert_eq!(given, keys("import", &secret(1), &[3, 2, 1, 0]), "in whatever order they stand");
        for others in [keys("another", &secret(1), &[0, 1, 2, 3]), keys("import", &secret(2), &[0, 1, 2, 3])] {
            assert!(others.iter().all(|key| !given.contains(key)), "every run and every secret has its own");
        }
    }

    #[test]
    fn without_a_secret_there_are_no_keys() {
        let mut keys = OnceKeys::of(None, "import").unwrap();
        assert_eq!(keys.next(&texts("Ada", None)), OnceKey { text: String::new(), is_repeated: false });
        assert_eq!(keys.next(&texts("Ada", None)), OnceKey { text: String::new(), is_repeated: true });
    }

    #[test]
    fn keys_stay_the_same_across_releases() {
        let key = OnceKeys::of(Some(&secret(7)), "import").unwrap().next(&texts("Ada", Some("Carlton")));
        assert_eq!(
            key,
            OnceKey { text: "intake-import-511bf84bae938cd24238b745b8287f0c".to_owned(), is_repeated: false }
        );
    }
}
