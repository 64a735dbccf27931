//! Texts without what people write differently: case, accents, punctuation, spaces.

/// Letters with marks, as ranges of lower-case characters, and the letter without.
const PLAIN: [(char, char, &str); 46] = [
    ('à', 'å', "a"),
    ('æ', 'æ', "ae"),
    ('ç', 'ç', "c"),
    ('è', 'ë', "e"),
    ('ì', 'ï', "i"),
    ('ð', 'ð', "d"),
    ('ñ', 'ñ', "n"),
    ('ò', 'ö', "o"),
    ('ø', 'ø', "o"),
    ('ù', 'ü', "u"),
    ('ý', 'ý', "y"),
    ('þ', 'þ', "th"),
    ('ÿ', 'ÿ', "y"),
    ('ß', 'ß', "ss"),
    ('ā', 'ą', "a"),
    ('ć', 'č', "c"),
    ('ď', 'đ', "d"),
    ('ē', 'ě', "e"),
    ('ĝ', 'ģ', "g"),
    ('ĥ', 'ħ', "h"),
    ('ĩ', 'ı', "i"),
    ('ĵ', 'ĵ', "j"),
    ('ķ', 'ĸ', "k"),
    ('ĺ', 'ł', "l"),
    ('ń', 'ŋ', "n"),
    ('ō', 'ő', "o"),
    ('œ', 'œ', "oe"),
    ('ŕ', 'ř', "r"),
    ('ś', 'š', "s"),
    ('ţ', 'ŧ', "t"),
    ('ũ', 'ų', "u"),
    ('ŵ', 'ŵ', "w"),
    ('ŷ', 'ŷ', "y"),
    ('ź', 'ž', "z"),
    ('ơ', 'ơ', "o"),
    ('ư', 'ư', "u"),
    ('ǎ', 'ǎ', "a"),
    ('ǐ', 'ǐ', "i"),
    ('ǒ', 'ǒ', "o"),
    ('ǔ', 'ǜ', "u"),
    ('ạ', 'ặ', "a"),
    ('ẹ', 'ệ', "e"),
    ('ỉ', 'ị', "i"),
    ('ọ', 'ợ', "o"),
    ('ụ', 'ự', "u"),
    ('ỳ', 'ỹ', "y"),
];
/// Characters within a word: apostrophes, and accents that are characters of their own.
const WITHIN_WORDS: [char; 6] = ['\'', '’', '‘', 'ʼ', '`', '´'];

/// The words of a text, folded.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut folded = String::with_capacity(text.len());
    for letter in text.chars().flat_map(char::to_lowercase) {
        match letter {
            'a'..='z' | '0'..='9' => folded.push(letter),
            '\u{300}'..='\u{36F}' | '\u{200B}'..='\u{200D}' => {}
            _ if WITHIN_WORDS.contains(&letter) => {}
            _ if letter.is_alphanumeric() => push_plain(&mut folded, letter),
            _ => folded.push(' '),
        }
    }
    folded.split_whitespace().map(str::to_owned).collect()
}

fn push_plain(folded: &mut String, letter: char) {
    match PLAIN.iter().find(|(first, last, _)| (*first..=*last).contains(&letter)) {
        Some((_, _, plain)) => folded.push_str(plain),
        None => folded.push(letter),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_neither_case_nor_accents_nor_punctuation() {
        for (text, expected) in [
            ("Mary-Jane", "mary jane"),
            (" ZOË  O’Brien ", "zoe obrien"),
            ("Nguyễn Thị Phượng", "nguyen thi phuong"),
            ("Jose\u{301} Núñez", "jose nunez"),
            ("Łukasz Wójcik-Dvořák", "lukasz wojcik dvorak"),
            ("Weiß, Æsa", "weiss aesa"),
            ("Петрова 李", "петрова 李"),
            ("--", ""),
        ] {
            assert_eq!(words(text).join(" "), expected, "{text}");
        }
    }
}
