//! Australian phone numbers as people write them, rewritten in E.164.

/// Characters that people put between the digits of a phone number.
const BETWEEN_DIGITS: [char; 9] = [' ', '\u{a0}', '-', '\u{2010}', '\u{2011}', '\u{2013}', '(', ')', '.'];

/// The number in E.164; none where it is not a number that can only be meant as one of Australia, or one of any country
/// that is in E.164 but for spaces and the like.
pub(crate) fn rewrite(text: &str) -> Option<String> {
    let compact: String = text.chars().filter(|character| !BETWEEN_DIGITS.contains(character)).collect();
    let digits = compact.strip_prefix('+').unwrap_or(&compact);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    if compact.starts_with('+') {
        // +61 (0) 2 5550 1234: the zero is for calls from within the country.
        return Some(match digits.strip_prefix("610") {
            Some(national) if national.len() == 9 => format!("+61{national}"),
            _ => compact,
        });
    }
    let national = match digits {
        _ if digits.len() == 10 => digits.strip_prefix('0')?,
        _ if digits.len() == 11 => digits.strip_prefix("61")?,
        _ if digits.len() == 13 => digits.strip_prefix("0061")?,
        _ => return None,
    };
    // 2, 3, 7 and 8 are areas, 4 and 5 mobiles.
    let is_geographic_or_mobile = national.len() == 9 && national.starts_with(['2', '3', '4', '5', '7', '8']);
    is_geographic_or_mobile.then(|| format!("+61{national}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_can_only_be_australian_are_rewritten() {
        for (text, expected) in [
            ("0491 570 006", Some("+61491570006")),
            ("(02) 5550 1234", Some("+61255501234")),
            ("02-5550-1234", Some("+61255501234")),
            ("61 491 570 006", Some("+61491570006")),
            ("+61 491 570 006", Some("+61491570006")),
            ("+61 (0)2 5550 1234", Some("+61255501234")),
            ("0061 491 570 006", Some("+61491570006")),
            ("+61491570006", Some("+61491570006")),
            ("+44 20 7946 0000", Some("+442079460000")),
            // Without its area, with too many digits, of no country, with an extension.
            ("5550 1234", None),
            ("04915700061", None),
            ("0191 570 006", None),
            ("1300 975 707", None),
            ("0491 570 006 ext 3", None),
            ("", None),
            ("+", None),
            ("٠٤٩١570006", None),
        ] {
            assert_eq!(rewrite(text).as_deref(), expected, "{text}");
        }
    }
}
