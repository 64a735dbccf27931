//! Reasons why a text is no phone number.

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
