//! A first and a last name that stand in one column.

use intake_domain::conversions::is_placeholder;

/// Words that are no part of a name, in lower case and without dots.
const TITLES: [&str; 16] = [
    "mr", "mrs", "ms", "miss", "mx", "master", "dr", "prof", "rev", "sir", "dame", "sr", "jr", "junior", "senior",
    "baby",
];

/// The first and the last name, where nothing has to be guessed: two words, or `Last, First`. None where there are more
/// words or fewer, or one of them is a title.
pub(crate) fn split(text: &str) -> Option<(&str, &str)> {
    let words = |text: &'_ str| text.split_whitespace().count();
    let (first, last) = match text.split_once(',') {
        Some((last, first)) => (first.trim(), last.trim()),
        None if words(text) == 2 => text.trim().split_once(char::is_whitespace)?,
        None => return None,
    };
    let last = last.trim_start();
    let is_name = |name: &str| !name.contains(',') && !is_placeholder(name) && !name.split_whitespace().any(is_title);
    (is_name(first) && is_name(last)).then_some((first, last))
}

fn is_title(word: &str) -> bool {
    TITLES.contains(&word.trim_end_matches('.').to_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_only_where_nothing_has_to_be_guessed() {
        for (text, expected) in [
            ("Ada Lovelace", Some(("Ada", "Lovelace"))),
            (" Ada \u{a0}Lovelace ", Some(("Ada", "Lovelace"))),
            ("Lovelace, Ada", Some(("Ada", "Lovelace"))),
            ("van Dyke, Mary Jane", Some(("Mary Jane", "van Dyke"))),
            ("O'Neill,Zoë", Some(("Zoë", "O'Neill"))),
            ("Ada van Dyke", None),
            ("Ada", None),
            ("", None),
            ("Mr Lovelace", None),
            ("Lovelace, Mrs. Ada", None),
            ("Ada Lovelace, Jr.", None),
            ("Lovelace, Ada, Countess", None),
            ("Lovelace,", None),
            ("Ada N/A", None),
            ("-, Ada", None),
        ] {
            assert_eq!(split(text), expected, "{text:?}");
        }
    }
}
