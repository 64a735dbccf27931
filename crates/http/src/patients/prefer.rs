//! The header `Prefer` (RFC 7240): whether a caller wants unknown members refused.

use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};

const PREFER: HeaderName = HeaderName::from_static("prefer");
pub(crate) const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");
pub(crate) const STRICT: HeaderValue = HeaderValue::from_static("handling=strict");

/// Returns whether unknown members are to be refused. Of several `handling` preferences the first counts; others are
/// ignored.
pub(crate) fn is_strict(headers: &HeaderMap) -> bool {
    let values = headers.get_all(PREFER).filter_map(|value| value.to_str().ok());
    let handling = values.flat_map(preferences).find_map(|preference| {
        // Parameters follow a semicolon.
        let (name, value) = preference.split(';').next()?.split_once('=')?;
        name.trim().eq_ignore_ascii_case("handling").then(|| value.trim().trim_matches('"'))
    });
    handling.is_some_and(|value| value.eq_ignore_ascii_case("strict"))
}

/// The parts between commas, except commas within quotes.
fn preferences(value: &str) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    value.split(move |c| {
        is_quoted ^= c == '"';
        c == ',' && !is_quoted
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strict(values: &[&str]) -> bool {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(PREFER, HeaderValue::from_str(value).unwrap());
        }
        is_strict(&headers)
    }

    #[test]
    fn the_first_handling_counts() {
        for values in [
            &["handling=strict"][..],
            &["Handling = Strict"],
            &["handling=\"strict\""],
            &["respond-async, handling=strict; a=b"],
            &["wait=10", "handling=strict, handling=lenient"],
            &["x=\"a,handling=lenient\", handling=strict"],
        ] {
            assert!(strict(values), "{values:?}");
        }
        for values in [
            &[][..],
            &["handling"],
            &["handling=lenient, handling=strict"],
            &["handling=stricter"],
            &["strict"],
            &["x=\"a, handling=strict\""],
        ] {
            assert!(!strict(values), "{values:?}");
        }
    }
}
