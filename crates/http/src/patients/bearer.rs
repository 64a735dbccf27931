//! Finds the API key in a request's headers and checks its shape, environment and checksum, without the database.

use actix_web::http::header::{AUTHORIZATION, HeaderMap};
use intake_domain::{ApiKey, KeyFormat, MalformedKey};

use crate::misplaced_key::MisplacedKey;
use crate::problem::Problem;

const SCHEME: &str = "bearer";

/// Headers in which other services expect a key.
const OTHER_HEADERS: [&str; 4] = ["x-api-key", "api-key", "apikey", "x-auth-token"];
/// Parameters of a URL in which other services expect a key.
const PARAMETERS: [&str; 6] = ["key", "apikey", "api_key", "api-key", "access_token", "token"];

/// The key of the one `Authorization: Bearer <key>` header.
pub(crate) fn key(headers: &HeaderMap, format: &KeyFormat) -> Result<ApiKey, Problem> {
    let mut values = headers.get_all(AUTHORIZATION);
    let misplaced = |place| Problem::NoKey(Some(place));
    let value = match (values.next(), values.next()) {
        (Some(value), None) => value,
        (Some(_), Some(_)) => return Err(misplaced(MisplacedKey::Repeated)),
        _ if OTHER_HEADERS.iter().any(|name| headers.contains_key(*name)) => {
            return Err(misplaced(MisplacedKey::OtherHeader));
        }
        _ => return Err(Problem::NoKey(None)),
    };
    let value = value.to_str().map_err(|_| Problem::MalformedKey(MalformedKey::Shape))?;
    let (scheme, rest) = value.split_once(' ').unwrap_or((value, ""));
    let is_bearer = scheme.eq_ignore_ascii_case(SCHEME);
    match value.contains(' ') {
        true if is_bearer => match rest.trim_start_matches(' ') {
            rest if rest.split(' ').next().is_some_and(|word| word.eq_ignore_ascii_case(SCHEME)) => {
                Err(misplaced(MisplacedKey::SchemeTwice))
            }
            key => format.parse(key).map_err(Problem::MalformedKey),
        },
        true => Err(misplaced(MisplacedKey::OtherScheme)),
        false if is_bearer || value.is_empty() => Err(misplaced(MisplacedKey::Missing)),
        false => Err(misplaced(MisplacedKey::NoScheme)),
    }
}

/// Returns whether a URL's query has a parameter that is named like a key.
pub(crate) fn is_in_query(query: &str) -> bool {
    let mut names = query.split('&').filter_map(|pair| pair.split('=').next());
    names.any(|name| PARAMETERS.iter().any(|parameter| name.eq_ignore_ascii_case(parameter)))
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
            assert!(matches!(key_in(values), Err(Problem::NoKey(_))), "{values:?}");
        }
        for value in ["Bearer ", "Bearer x", "Bearer \t", &format!("{bearer} "), "Bearer \u{e9}"] {
            assert!(matches!(key_in(&[value]), Err(Problem::MalformedKey(MalformedKey::Shape))), "{value:?}");
        }
    }
}
