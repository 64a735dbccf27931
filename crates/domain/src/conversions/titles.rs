//! Titles that stand before or after a name.

/// Bytes of the longest title.
const LENGTH_MAX: usize = 10;

/// Returns whether a word is a title, with or without its full stop. Some, such as `Master`, are also names: a text
/// with one of them is left to people.
#[must_use]
pub fn is_title(word: &str) -> bool {
    let word = word.strip_suffix('.').unwrap_or(word);
    let mut letters = [0; LENGTH_MAX];
    let Some(letters) = letters.get_mut(..word.len()) else { return false };
    letters.copy_from_slice(word.as_bytes());
    letters.make_ascii_lowercase();
    // A list would be compared one by one, and each patient's names are.
    matches!(
        &*letters,
        b"mr"
            | b"mrs"
            | b"ms"
            | b"miss"
            | b"mx"
            | b"mst"
            | b"mstr"
            | b"master"
            | b"dr"
            | b"doctor"
            | b"prof"
            | b"professor"
            | b"rev"
            | b"revd"
            | b"reverend"
            | b"hon"
            | b"honourable"
            | b"sir"
            | b"dame"
            | b"lady"
            | b"lord"
            | b"father"
            | b"fr"
            | b"mother"
            | b"brother"
            | b"br"
            | b"sister"
            | b"sr"
            | b"snr"
            | b"senior"
            | b"jr"
            | b"jnr"
            | b"junior"
    )
}
