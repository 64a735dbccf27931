//! Whether a request's headers say that its body is JSON in UTF-8 without a content encoding.

use actix_web::http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap};

/// Returns whether these headers announce plain JSON. Repeated headers are allowed if they are equal.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    if headers.contains_key(CONTENT_ENCODING) {
        return false;
    }
    let mut values = headers.get_all(CONTENT_TYPE);
    let Some(first) = values.next() else {
        return false;
    };
    values.all(|other| other == first) && first.to_str().is_ok_and(is_json_type)
}

fn is_json_type(value: &str) -> bool {
    let mut parts = value.split(';');
    let is_json = parts.next().is_some_and(|media_type| media_type.trim().eq_ignore_ascii_case("application/json"));
    is_json && parts.all(is_acceptable_parameter)
}

/// Returns whether this is any parameter but a charset other than UTF-8.
fn is_acceptable_parameter(parameter: &str) -> bool {
    let Some((name, value)) = parameter.split_once('=') else {
        return true;
    };
    let value = value.trim();
    let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value);
    !name.trim().eq_ignore_ascii_case("charset") || value.eq_ignore_ascii_case("utf-8")
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;

    use super::*;

    fn is_taken(values: &[&str]) -> bool {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(CONTENT_TYPE, HeaderValue::from_str(value).unwrap());
        }
        is_json(&headers)
    }

    #[test]
    fn json_in_utf_8_is_taken() {
        for value in [
            "application/json",
            "Application/JSON",
            "application/json; charset=utf-8",
            "application/json;charset=\"UTF-8\"",
            "application/json ; v=1; x",
            "application/json;",
        ] {
            assert!(is_taken(&[value]), "{value}");
        }
        assert!(is_taken(&["application/json", "application/json"]));
    }

    #[test]
    fn anything_else_is_not() {
        for value in [
            "",
            "text/json",
            "application/json5",
            "application/problem+json",
            "application/json; charset=latin1",
            "application/json; Charset=utf-16",
            "application/json, text/plain",
            "json",
            "application/x-www-form-urlencoded",
        ] {
            assert!(!is_taken(&[value]), "{value}");
        }
        assert!(!is_taken(&[]));
        assert!(!is_taken(&["application/json", "text/plain"]));
        assert!(!is_taken(&["application/json", "application/json; charset=utf-8"]));
    }

    #[test]
    fn an_encoded_body_is_not_taken() {
        let mut headers = HeaderMap::new();
        headers.append(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.append(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        assert!(!is_json(&headers));
    }
}
