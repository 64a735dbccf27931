//! A first and a last name that stand in one column.

use intake_domain::conversions::{Conversion, is_placeholder, is_title, unquoted};

use crate::arguments::{Arguments, Comma};

/// Titles that are never names, in lower case.
const PLAIN_TITLES: [&str; 13] =
    ["mr", "mrs", "ms", "miss", "mx", "mst", "mstr", "dr", "doctor", "prof", "professor", "rev", "reverend"];

/// Words besides titles that are no part of a name, in lower case. Some are names too; nobody can tell.
const NOTES: [&str; 17] = [
    "baby",
    "twin",
    "and",
    "or",
    "aka",
    "nee",
    "née",
    "deceased",
    "estate",
    "inactive",
    "archived",
    "duplicate",
    "tba",
    "tbc",
    "ii",
    "iii",
    "iv",
];

/// Parts of a text that the options let it have besides two names, and what the column shows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Splitting {
    are_quotes_plain: bool,
    are_titles_dropped: bool,
    are_nicknames_dropped: bool,
    pub(crate) comma: Comma,
}

impl Splitting {
    pub(crate) fn of(arguments: &Arguments) -> Self {
        let Arguments { plain_quotes, drop_titles, drop_nicknames, .. } = *arguments;
        Self {
            are_quotes_plain: plain_quotes,
            are_titles_dropped: drop_titles,
            are_nicknames_dropped: drop_nicknames,
            comma: Comma::default(),
        }
    }
}

/// The name without the title before it; none where there is no title, or nothing after it.
pub(crate) fn without_title(name: &str) -> Option<&str> {
    let (word, rest) = name.trim().split_once(char::is_whitespace)?;
    let is_one = PLAIN_TITLES.contains(&word.trim_end_matches('.').to_lowercase().as_str());
    Some(rest.trim_start()).filter(|_| is_one)
}

/// The first name without another one in brackets after it; none where there is no other. A word that is no name, such
/// as `(deceased)`, is not one.
pub(crate) fn without_nickname(name: &str) -> Option<&str> {
    let (before, word) = name.trim_end().strip_suffix(')')?.rsplit_once('(')?;
    let is_name = word.starts_with(char::is_uppercase) && word.contains(char::is_lowercase);
    let is_one = is_name && disturbing(word).is_none() && !word.contains(char::is_whitespace);
    Some(before.trim_end()).filter(|before| is_one && !before.is_empty())
}

/// The first and the last name, where nothing has to be guessed: two words, or `Last, First`. Otherwise the reason,
/// without the names. What will be dropped, a title or a name in brackets, stays beside the first name, so that the
/// report names the row.
pub(crate) fn split(text: &str, splitting: Splitting) -> Result<[String; 2], String> {
    let whole = match unquoted(text) {
        Conversion::Converted(plain) if splitting.are_quotes_plain => plain,
        _ => text.trim().to_owned(),
    };
    let (before, titled) = match whole.split_once(',') {
        Some((last, first)) => (Some(last.trim()), first.trim()),
        None => (None, whole.as_str()),
    };
    if before.is_none() && splitting.comma != Comma::Optional {
        let why = "the names have no comma, and the column has \"Last, First\": write this one so too";
        let other = if splitting.comma == Comma::Usual { ", or say --first-name-first" } else { "" };
        return Err(format!("{why}{other}"));
    }
    let untitled = |text| without_title(text).filter(|_| splitting.are_titles_dropped).unwrap_or(text);
    let noted = untitled(titled);
    let mut title = titled.strip_suffix(noted).unwrap_or_default();
    let plain = without_nickname(noted).filter(|_| splitting.are_nicknames_dropped).unwrap_or(noted);
    let nickname = noted.strip_prefix(plain).unwrap_or_default();
    let (mut last, first) = before.map_or((plain, None), |last| (last, Some(plain)));
    if let (Some(_), "") = (first, title) {
        // Mrs Doyle, Eileen
        (title, last) = (last.strip_suffix(untitled(last)).unwrap_or_default(), untitled(last));
    }
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
        .map(|(first, last)| [format!("{title}{}{nickname}", first.trim()), last.trim().to_owned()])
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
            assert_eq!(split(text, Splitting::default()), Ok([first, last].map(str::to_owned)), "{text:?}");
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
            let why = split(text, Splitting::default()).unwrap_err();
            assert!(why.starts_with(&format!("the names hold {disturbing}, ")), "{text:?}: {why}");
        }
        for text in ["Ada van Dyke", "Ada", "", "Lovelace,", "Ada unknown"] {
            let why = "the names are neither two words nor \"Last, First\"".to_owned();
            assert_eq!(split(text, Splitting::default()), Err(why), "{text:?}");
        }
    }

    #[test]
    fn quotes_are_removed_first_where_that_is_said() {
        let plain = Splitting { are_quotes_plain: true, ..Splitting::default() };
        let names = |first: &str, last: &str| Ok([first, last].map(str::to_owned));
        assert_eq!(split("'Aroha Parata'", plain), names("Aroha", "Parata"));
        assert_eq!(split("“Parata, Aroha” ", plain), names("Aroha", "Parata"));
        assert!(split("\"Aroha\" \"Parata\"", plain).is_err());
    }

    #[test]
    fn beside_names_with_a_comma_those_without_one_have_no_order() {
        let splitting = Splitting { comma: Comma::Usual, ..Splitting::default() };
        assert_eq!(split("Lovelace, Ada", splitting), Ok(["Ada", "Lovelace"].map(str::to_owned)));
        let why = split("Nguyen Anh", splitting).unwrap_err();
        assert!(why.starts_with("the names have no comma, and the column has \"Last, First\""), "{why}");
        assert!(why.ends_with("or say --first-name-first"), "{why}");
        let why = split("Nguyen Anh", Splitting { comma: Comma::Named, ..Splitting::default() }).unwrap_err();
        assert!(why.ends_with("write this one so too"), "no option is named that the header overrules: {why}");
    }

    #[test]
    fn a_nickname_that_will_be_dropped_stays_after_the_first_name() {
        let dropped = Splitting { are_nicknames_dropped: true, are_titles_dropped: true, ..Splitting::default() };
        for (text, first, last) in [
            ("Smith, Robert (Bob)", "Robert (Bob)", "Smith"),
            ("Robert Smith (Bob)", "Robert (Bob)", "Smith"),
            ("Smith, Mr Robert James  (Bob) ", "Mr Robert James  (Bob)", "Smith"),
        ] {
            assert_eq!(split(text, dropped), Ok([first, last].map(str::to_owned)), "{text:?}");
            assert!(split(text, Splitting { are_titles_dropped: true, ..Splitting::default() }).is_err(), "{text:?}");
        }
        for text in [
            "Smith, Robert (deceased)",
            "Smith, Robert (Deceased)",
            "Smith, Robert (Twin A)",
            "Smith, Robert (DVA)",
            "Smith (Bob), Robert",
            "Smith, (Bob)",
            "Smith, Robert (Bob",
            "Smith, Robert (Dr)",
            "Smith, Robert (Bob) (Rob)",
        ] {
            assert!(split(text, dropped).is_err(), "{text:?}");
        }
        assert_eq!(without_nickname("Robert (Bob)"), Some("Robert"));
        assert_eq!(["Robert", "(Bob)", "Bob)"].map(without_nickname), [None; 3]);
    }

    #[test]
    fn a_title_that_will_be_dropped_stays_before_the_first_name() {
        let dropped = Splitting { are_titles_dropped: true, ..Splitting::default() };
        for (text, first, last) in [
            ("Mr Gavin Prowse", "Mr Gavin", "Prowse"),
            ("Smythe, Mr. Julian", "Mr. Julian", "Smythe"),
            ("Mrs Doyle, Eileen", "Mrs Eileen", "Doyle"),
            ("Mrs. O’Neill , Zoë", "Mrs. Zoë", "O’Neill"),
            ("Ada Lovelace", "Ada", "Lovelace"),
        ] {
            assert_eq!(split(text, dropped), Ok([first, last].map(str::to_owned)), "{text:?}");
        }
        for text in
            ["Mr Prowse", "Father Brown", "Hon Wai Chan", "Mr Dr Gavin Prowse", "Mr Smythe, Dr Julian", "Smythe, Mr"]
        {
            assert!(split(text, dropped).is_err(), "{text:?}");
        }
        assert_eq!(without_title("Mr Nadia"), Some("Nadia"));
        assert_eq!(["Mr", "Nadia", "Hon Wai"].map(without_title), [None; 3]);
    }
}
