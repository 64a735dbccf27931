//! A first and a last name that stand in one column.

use intake_domain::conversions::{Conversion, is_placeholder, is_title, unquoted};

/// Words besides titles that are no part of a name, in lower case. Some are names too; nobody can tell.
const NOTES: [&str; 12] =
    ["baby", "twin", "and", "or", "aka", "nee", "née", "deceased", "estate", "inactive", "archived", "duplicate"];

/// The first and the last name, where nothing has to be guessed: two words, or `Last, First`. Otherwise the reason,
/// without the names.
pub(crate) fn split(text: &str, are_quotes_plain: bool) -> Result<[String; 2], String> {
    let plain = match unquoted(text) {
        Conversion::Converted(plain) if are_quotes_plain => plain,
        _ => text.trim().to_owned(),
    };
    let (last, first) = match plain.split_once(',') {
        Some((last, first)) => (last, Some(first)),
        None => (plain.as_str(), None),
    };
    for part in [last, first.unwrap_or_default()] {
        if let Some(disturbing) = part.split_whitespace().find_map(disturbing) {
            return Err(format!("the names hold {disturbing:?}, which is no part of a name or need not be one"));
        }
    }
    let names = match first {
        Some(first) => Some((first, last)),
        None if plain.split_whitespace().count() == 2 => plain.split_once(char::is_whitespace),
        None => None,
    };
    names
        .filter(|(first, last)| !is_placeholder(first) && !is_placeholder(last))
        .map(|(first, last)| [first, last].map(|name| name.trim().to_owned()))
        .ok_or_else(|| "the names are neither two words nor \"Last, First\"".to_owned())
}

/// The first character of a word that no name has in its place, or the whole of a word that is a title or a note.
fn disturbing(word: &str) -> Option<String> {
    let letters: Vec<_> = word.chars().collect();
    let is_letter_at = |at: Option<usize>| at.and_then(|at| letters.get(at)).is_some_and(|it| is_letter(*it));
    let is_stop_at = |at: Option<usize>| at.and_then(|at| letters.get(at)) == Some(&'.');
    let is_in_place = |at: usize, character: char| {
        let (before, next) = (at.checked_sub(1), Some(at + 1));
        match character {
            '\'' | '’' => is_letter_at(before) && is_letter_at(next),
            '-' | '\u{2010}' | '\u{2011}' => (is_letter_at(before) || is_stop_at(before)) && is_letter_at(next),
            // Of an initial.
            '.' => is_letter_at(before) && !is_letter_at(at.checked_sub(2)),
            _ => is_letter(character),
        }
    };
    let is_note = || is_title(word) || NOTES.contains(&word.trim_end_matches('.').to_lowercase().as_str());
    if is_note() {
        return Some(word.to_lowercase());
    }
    letters.iter().enumerate().find(|(at, it)| !is_in_place(*at, **it)).map(|(_, it)| it.to_string())
}

/// Letters of any script, and the marks of those that are written with marks.
fn is_letter(character: char) -> bool {
    let is_mark = || matches!(character, '\u{300}'..='\u{36f}' | '\u{900}'..='\u{17ff}' | '\u{200c}' | '\u{200d}');
    character.is_alphabetic() || is_mark() && !character.is_numeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_only_where_nothing_has_to_be_guessed() {
        for (text, first, last) in [
            ("Ada Lovelace", "Ada", "Lovelace"),
            (" Ada \u{a0}Lovelace ", "Ada", "Lovelace"),
            ("Lovelace, Ada", "Ada", "Lovelace"),
            ("van Dyke, Mary Jane", "Mary Jane", "van Dyke"),
            ("O'Neill,Zoë", "Zoë", "O'Neill"),
            ("Smith-Jones, J. R.R.", "J. R.R.", "Smith-Jones"),
            ("J.-P. D’Arcy", "J.-P.", "D’Arcy"),
            ("Zoe\u{308} Müller", "Zoe\u{308}", "Müller"),
            ("प्रिया शर्मा", "प्रिया", "शर्मा"),
            ("李 小龍", "李", "小龍"),
            ("สมชาย น้ำดี", "สมชาย", "น้ำดี"),
        ] {
            assert_eq!(split(text, false), Ok([first, last].map(str::to_owned)), "{text:?}");
        }
    }

    #[test]
    fn a_refusal_names_what_disturbs() {
        for (text, disturbing) in [
            ("Smith (deceased)", "\"(\""),
            ("Jones (Bob)", "\"(\""),
            ("Wei (interpreter needed)", "\"(\""),
            ("Smith, J & M", "\"&\""),
            ("Smith, Jane and Mark", "\"and\""),
            ("Smith deceased", "\"deceased\""),
            ("Mstr Kelly", "\"mstr\""),
            ("Father Brown", "\"father\""),
            ("Mr Lovelace", "\"mr\""),
            ("Lovelace, Mrs. Ada", "\"mrs.\""),
            ("Ada Lovelace, Jr.", "\"jr.\""),
            ("Fr Kelly", "\"fr\""),
            ("Lord Byron", "\"lord\""),
            ("'Aroha Parata'", "\"'\""),
            ("Fitzgerald; Moira", "\";\""),
            ("Carla - DO NOT CALL", "\"-\""),
            ("Ada- Lovelace", "\"-\""),
            ("Ada Lovelace2", "\"2\""),
            ("Ada Lovelace?", "\"?\""),
            ("St. John", "\".\""),
            ("Lovelace, Ada, Countess", "\",\""),
            ("Ada N/A", "\"/\""),
            ("-, Ada", "\"-\""),
        ] {
            let why = split(text, false).unwrap_err();
            assert!(why.starts_with(&format!("the names hold {disturbing}, ")), "{text:?}: {why}");
        }
        for text in ["Ada van Dyke", "Ada", "", "Lovelace,", "Ada unknown"] {
            let why = "the names are neither two words nor \"Last, First\"".to_owned();
            assert_eq!(split(text, false), Err(why), "{text:?}");
        }
    }

    #[test]
    fn quotes_are_removed_first_where_that_is_said() {
        let names = |first: &str, last: &str| Ok([first, last].map(str::to_owned));
        assert_eq!(split("'Aroha Parata'", true), names("Aroha", "Parata"));
        assert_eq!(split("“Parata, Aroha” ", true), names("Aroha", "Parata"));
        assert!(split("\"Aroha\" \"Parata\"", true).is_err());
    }
}
