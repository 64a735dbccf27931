//! Finds the API key in a request's headers and checks its shape, environment and checksum, without the database.

use actix_web::http::header::{AUTHORIZATION, HeaderMap};
use intake_domain::{ApiKey, KeyFormat, MalformedKey};

use crate::problem::Problem;

const SCHEME: &str = "bearer";

/// The key of the one `Authorization: Bearer <key>` header.
pub(crate) fn key(headers: &HeaderMap, format: &KeyFormat) -> Result<ApiKey, Problem> {
    let mut values = headers.get_all(AUTHORIZATION);
    let (Some(value), None) = (values.next(), values.next()) else {
        return Err(Problem::NoKey);
    };
    let value = value.to_str().map_err(|_| Problem::MalformedKey(MalformedKey::Shape))?;
    let (scheme, rest) = value.split_once(' ').ok_or(Problem::NoKey)?;
    if !scheme.eq_ignore_ascii_case(SCHEME) {
        return Err(Problem::NoKey);
    }
    format.parse(rest.trim_start_matches(' ')).map_err(Problem::MalformedKey)
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;
    use intake_domain::Environment;

    use super::*;

    fn format() -> KeyFormat {
        KeyFormat::new(&"intake".parse().unwrap(), Environment::Development)
    }

    fn key_in(values: &[&str]) -> Result<ApiKey, Problem> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        key(&headers, &format())
    }

    #[test]
    fn the_scheme_may_be_in_any_case_with_any_number_of_spaces() {
        let key = format().mint([1; 32]);
        for scheme in ["Bearer ", "bearer ", "BEARER   ", "bEaReR  "] {
            assert_eq!(key_in(&[&format!("{scheme}{}", key.expose())]).unwrap(), key);
        }
    }

    #[test]
    fn anything_but_one_bearer_header_is_no_key() {
        let key = format().mint([1; 32]);
        let bearer = format!("Bearer {}", key.expose());
        let bearer = bearer.as_str();
        for values in [&[][..], &[bearer, bearer], &["Basic YTpi"], &[key.expose()], &["Bearer"], &[""]] {
            assert!(matches!(key_in(values), Err(Problem::NoKey)), "{values:?}");
        }
        for value in ["Bearer ", "Bearer x", "Bearer \t", &format!("{bearer} "), "Bearer \u{e9}"] {
            assert!(matches!(key_in(&[value]), Err(Problem::MalformedKey(MalformedKey::Shape))), "{value:?}");
        }
    }
}
