//! What makes each row be created once, however often the program is run: an idempotency key made of the run's name and
//! the row's texts. Of rows that are the same in every field, twins of the file, the first, second and so on have keys of
//! their own, wherever in the file they stand.

use std::collections::{HashMap, HashSet};

use intake_domain::Field;
use sha2::{Digest, Sha256};

use crate::rows::Texts;

/// What all keys begin with, so that they are not another program's.
const PREFIX: &str = "intake-import-";
/// So many bytes of the digest: as many as a UUID has.
const DIGEST_BYTES: usize = 16;

/// Gives out the idempotency keys of a run. Remembers eight bytes of each row's digest, which is 20 to 40 MB for a million
/// rows.
pub(crate) struct OnceKeys {
    run: Sha256,
    seen: HashSet<u64>,
    repeated: HashMap<u64, u32>,
}

/// The idempotency key of a row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct OnceKey {
    /// As it is sent.
    pub(crate) text: String,
    /// Whether an earlier row of the file is the same in every field.
    pub(crate) is_repeated: bool,
}

impl OnceKeys {
    /// The keys of the run of this name.
    pub(crate) fn of(run: &str) -> Self {
        let mut digest = Sha256::new();
        absorb(&mut digest, run);
        Self { run: digest, seen: HashSet::new(), repeated: HashMap::new() }
    }

    /// The key of the next row.
    pub(crate) fn next(&mut self, texts: &Texts) -> OnceKey {
        let mut digest = self.run.clone();
        for field in Field::ALL {
            if let Some(text) = &texts[field] {
                digest.update(field.definition().number.to_be_bytes());
                absorb(&mut digest, text);
            }
        }
        let same = digest.clone().finalize().iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte));
        let earlier = if self.seen.insert(same) {
            0
        } else {
            let earlier = self.repeated.entry(same).or_default();
            *earlier += 1;
            *earlier
        };
        digest.update(earlier.to_be_bytes());
        let digest = digest.finalize();
        let hex: String = digest.iter().take(DIGEST_BYTES).map(|byte| format!("{byte:02x}")).collect();
        OnceKey { text: format!("{PREFIX}{hex}"), is_repeated: earlier > 0 }
    }
}

/// What stands for a key where many are remembered; none where the text is not a key of this program.
pub(crate) fn fingerprint(key: &str) -> Option<u64> {
    u64::from_str_radix(key.strip_prefix(PREFIX)?.get(..16)?, 16).ok()
}

/// A text with its length, so that no two lists of texts are the same bytes.
fn absorb(digest: &mut Sha256, text: &str) {
    digest.update((text.len() as u64).to_be_bytes());
    digest.update(text);
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

    #[test]
    fn a_key_says_which_run_and_which_row_and_nothing_of_its_place() {
        let rows = [texts("Ada", None), texts("Ada", Some("")), texts("Grace", None), texts("Ada", None)];
        let keys = |run: &str, order: &[usize]| {
            let mut keys = OnceKeys::of(run);
            let mut given: Vec<_> = order.iter().map(|row| keys.next(&rows[*row]).text).collect();
            given.sort();
            given
        };
        let given = keys("import", &[0, 1, 2, 3]);
        assert_eq!(given.iter().collect::<HashSet<_>>().len(), 4, "every row has its own");
        assert_eq!(given, keys("import", &[3, 2, 1, 0]), "in whatever order they stand");
        assert!(keys("another", &[0, 1, 2, 3]).iter().all(|key| !given.contains(key)), "and every run");
    }

    #[test]
    fn keys_stay_the_same_across_releases() {
        let key = OnceKeys::of("import").next(&texts("Ada", Some("Carlton")));
        assert_eq!(
            key,
            OnceKey { text: "intake-import-dc5975f399b72f05461804512253c68f".to_owned(), is_repeated: false }
        );
    }
}
