//! Titles that stand before or after a name.

/// In lower case. Some are names too: a text with one of them is left to people.
const TITLES: [&str; 32] = [
    "mr",
    "mrs",
    "ms",
    "miss",
    "mx",
    "mstr",
    "master",
    "dr",
    "doctor",
    "prof",
    "professor",
    "rev",
    "revd",
    "reverend",
    "hon",
    "honourable",
    "sir",
    "dame",
    "lady",
    "lord",
    "father",
    "fr",
    "mother",
    "brother",
    "br",
    "sister",
    "sr",
    "snr",
    "senior",
    "jr",
    "jnr",
    "junior",
];

/// Returns whether a word is a title, with or without its full stop. Some, such as `Master`, are also names.
#[must_use]
pub fn is_title(word: &str) -> bool {
    let word = word.strip_suffix('.').unwrap_or(word);
    TITLES.iter().any(|title| title.eq_ignore_ascii_case(word))
}
