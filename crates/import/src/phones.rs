//! Phone numbers with what clinics write before them.

use intake_domain::conversions::{Conversion, phone_number};

/// Kinds of phones, in lower case, that stand before a number and a colon.
const LABELS: [&str; 17] = [
    "m",
    "mob",
    "mobile",
    "cell",
    "p",
    "ph",
    "phone",
    "t",
    "tel",
    "telephone",
    "h",
    "hm",
    "home",
    "w",
    "wk",
    "work",
    "bh",
];
/// Prefix of calls from Australia to another country, or to itself.
const TO_ABROAD: &str = "0011";

/// The number in E.164, without a label, the apostrophe of a spreadsheet, or `0011` in place of `+`.
pub(crate) fn labelled_number(text: &str) -> Conversion {
    let plain = text.trim();
    let plain = plain.strip_prefix('\'').unwrap_or(plain).trim_start();
    let is_label = |label: &str| LABELS.contains(&label.trim().trim_end_matches('.').to_lowercase().as_str());
    let number = match plain.split_once(':') {
        Some((label, number)) if is_label(label) => number.trim_start(),
        _ => plain,
    };
    let number = match number.strip_prefix(TO_ABROAD) {
        Some(number) => format!("+{number}"),
        None => number.to_owned(),
    };
    match phone_number(&number) {
        Conversion::Unchanged if number != text => Conversion::Converted(number),
        conversion => conversion,
    }
}

/// End of the sentence "this one …": why no number can be read, without its text, which may hold a name.
pub(crate) fn unclear(text: &str) -> String {
    let digits = text.chars().filter(char::is_ascii_digit).count();
    let sign = text.chars().find(|sign| !sign.is_alphanumeric() && !" \u{a0}-()+.:".contains(*sign));
    match sign {
        Some(sign) => format!("holds {sign:?}"),
        None if text.chars().any(char::is_alphabetic) => "holds letters".to_owned(),
        None if digits == 8 => "lacks its area code".to_owned(),
        None => format!("has {digits} digits, and is no number of Australia"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_read_behind_a_label() {
        for (text, expected) in [
            ("M: 0491 570 006", "+61491570006"),
            ("Ph: (02) 5550 1234", "+61255501234"),
            ("W:0255501234", "+61255501234"),
            ("Mobile : 0491570006", "+61491570006"),
            ("tel:+61491570006", "+61491570006"),
            ("'0491570006", "+61491570006"),
            ("'+61491570006", "+61491570006"),
            ("0011 61 491 570 006", "+61491570006"),
            ("0011 44 20 7946 0000", "+442079460000"),
        ] {
            assert!(labelled_number(text) == Conversion::Converted(expected.to_owned()), "{text}");
        }
        assert!(labelled_number("+61491570006") == Conversion::Unchanged);
        for text in ["M: 5550 1234", "Mum: 0491 570 006", "Fax: 02 5550 1234", "M: 0491 570 006 W: 02 5550 1234", "M:"]
        {
            assert!(labelled_number(text) == Conversion::Unclear, "{text}");
        }
    }

    #[test]
    fn a_refusal_names_what_disturbs() {
        for (text, why) in [
            ("Mum: 0491 570 006", "holds letters"),
            ("0491 570 006 / 0491 570 156", "holds '/'"),
            ("5550 1234", "lacks its area code"),
            ("0491 570", "has 7 digits, and is no number of Australia"),
        ] {
            assert_eq!(unclear(text), why);
        }
    }
}
