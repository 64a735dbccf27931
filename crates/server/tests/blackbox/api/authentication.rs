//! Who may come in: one Bearer header with a well-formed, active key of this environment; everyone else gets 401.

use intake_test_support::{Response, patient, request};
use time::OffsetDateTime;

use crate::assert_unauthorised;
use crate::fixtures::TestApp;

const CHALLENGE: &str = r#"Bearer realm="intake""#;

fn send(app: &TestApp, headers: &[(&str, &str)]) -> Response {
    let mut headers = headers.to_vec();
    headers.push(("Content-Type", "application/json"));
    app.service.client().send(&request("POST", "/api/v1/patients", &headers, patient().to_string().as_bytes()))
}

fn assert_told_why(response: &Response, reason: &str) {
    assert_unauthorised(response);
    let expected = format!(r#"{CHALLENGE}, error="invalid_token", error_description="{reason}""#);
    assert_eq!(response.header("www-authenticate"), Some(expected.as_str()));
}

#[test]
fn the_scheme_is_read_in_any_case_with_any_number_of_spaces() {
    let app = TestApp::start();
    for scheme in ["Bearer ", "bearer ", "BEARER   ", "bEARER  "] {
        let value = format!("{scheme}{}", app.key().expose());
        assert_eq!(send(&app, &[("Authorization", &value)]).status, 201, "{scheme}");
    }
}

#[test]
fn a_request_without_a_key_is_challenged_and_learns_where_a_misplaced_key_belongs() {
    let app = TestApp::start();
    let key = app.key().expose();
    let (bearer, token) = (format!("Bearer {key}"), format!("Token {key}"));
    let twice = format!("Bearer {bearer}");
    let cases: [(&[(&str, &str)], &str); 13] = [
        (&[("Authorization", "")], "The key is missing: send "),
        (&[("Authorization", "Bearer")], "The key is missing: send "),
        (&[("Authorization", "bearer ")], "The key is missing: send "),
        (&[("Authorization", "Basic aW50YWtlOmludGFrZQ==")], "The scheme must be Bearer: send "),
        (&[("Authorization", &twice)], "The scheme is there twice: send "),
        (&[("Authorization", "Bearer bearer")], "The scheme is there twice: send "),
        (&[("Authorization", &token)], "The scheme must be Bearer: send "),
        (&[("Authorization", key)], "The scheme is missing: send "),
        (&[("Authorization", &bearer), ("Authorization", &bearer)], "Send one Authorization header: "),
        (&[("Authorization", key), ("X-API-Key", key)], "The scheme is missing: send "),
        (&[("X-Api-Key", key)], "The key is in another header: send "),
        (&[("apikey", key)], "The key is in another header: send "),
        (&[("X-Auth-Token", key)], "The key is in another header: send "),
    ];
    for (headers, hint) in cases {
        let response = send(&app, headers);
        assert_unauthorised(&response);
        assert_eq!(response.header("www-authenticate"), Some(misplaced(hint).as_str()), "{headers:?}");
    }
    let nothing = send(&app, &[]);
    assert_unauthorised(&nothing);
    assert_eq!(nothing.header("www-authenticate"), Some(CHALLENGE));
    assert_eq!(app.patients(), 0);
}

fn misplaced(hint: &str) -> String {
    format!(r#"{CHALLENGE}, error="invalid_request", error_description="{hint}Authorization: Bearer KEY""#)
}

#[test]
fn a_key_in_the_query_is_no_key() {
    let app = TestApp::start();
    let key = app.key().expose();
    let headers = [("Content-Type", "application/json")];
    let post = |query: &str| {
        let path = format!("/api/v1/patients?{query}");
        app.service.client().send(&request("POST", &path, &headers, patient().to_string().as_bytes()))
    };
    for query in [format!("access_token={key}"), format!("a=1&API_KEY={key}"), format!("key={key}")] {
        let response = post(&query);
        assert_unauthorised(&response);
        let expected = misplaced("The key is in the URL: send ");
        assert_eq!(response.header("www-authenticate"), Some(expected.as_str()), "{query}");
    }
    assert_eq!(post("a=1&monkey=2").header("www-authenticate"), Some(CHALLENGE));
}

#[test]
fn only_the_header_says_why_a_key_was_refused() {
    let app = TestApp::start();
    let key = app.key().expose();
    let last = if key.ends_with('0') { "1" } else { "0" };
    let mistyped = format!("{}{last}", &key[..key.len() - 1]);
    let live = key.replace("_demo_", "_live_");
    let foreign = key.replace("intake_", "outtake_");
    let (revoked_id, revoked) = app.clinic.key();
    app.clinic.revoke(revoked_id);
    let (_, expired) = app.clinic.key_until(Some(OffsetDateTime::UNIX_EPOCH));
    let unknown = app.clinic.unknown_key();
    let cases = [
        ("x", "The API key is malformed"),
        (foreign.as_str(), "The API key is malformed"),
        (&mistyped, "The API key has a wrong checksum"),
        (&live, "The API key belongs to the other environment"),
        (unknown.expose(), "The API key is unknown"),
        (revoked.expose(), "The API key was revoked"),
        (expired.expose(), "The API key has expired"),
    ];
    for (key, reason) in cases {
        assert_told_why(&send(&app, &[("Authorization", &format!("Bearer {key}"))]), reason);
    }
    assert_eq!(app.patients(), 0);
}

#[test]
fn a_key_creates_in_its_own_organisation_alone() {
    let app = TestApp::start();
    let other = app.other_clinic();
    let (_, other_key) = other.key();
    for (key, organisation) in [(app.key(), app.clinic.organisation), (&other_key, other.organisation)] {
        let created = app.service.create(key, &patient());
        assert_eq!(created.json()["data"]["organisationId"], organisation.to_string());
    }
}
