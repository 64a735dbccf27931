//! Counts, as people read them.

/// The count and its noun, which is in the plural unless there is one.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
