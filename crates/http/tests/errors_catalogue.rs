//! The catalogue of errors, docs/errors.md. Messages are read from the sources that make them, so that none can be
//! added, reworded or dropped without its entry. And the list of all of them, which do not change within version 1 of
//! the interface.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking and say why")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use intake_domain::IdempotencyKey;

/// Texts of `problem.rs` that are for logs, or for headers of their own.
const NO_MESSAGES: [&str; 7] = [
    "POST, OPTIONS",
    "GET, HEAD, OPTIONS",
    r#"Bearer realm="intake""#,
    "TLS/1.2, HTTP/1.1",
    r#"{CHALLENGE}, error="{error}", error_description="{description}""#,
    "the service is full",
    "{text}: {source}",
];

#[test]
fn every_message_has_an_entry_and_every_entry_is_a_message() {
    let (messages, entries) = (messages(), entries());
    let missing: Vec<_> =
        messages.iter().filter(|message| !entries.iter().any(|entry| is_like(entry, message))).collect();
    assert!(missing.is_empty(), "docs/errors.md has no entry, with cause and what to do, for {missing:#?}");
    let stale: Vec<_> =
        entries.iter().filter(|entry| !messages.iter().any(|message| is_like(entry, message))).collect();
    assert!(stale.is_empty(), "docs/errors.md explains what nothing says any more: {stale:#?}");
}

/// A client may compare these texts. Within version 1 of the interface one may be added to this list, and none changed.
const STABLE: [&str; 76] = [
    "An unexpected error occurred",
    "E.164 format is required, for example +61491570006",
    "Each header of the request must be on one line",
    "Missing or invalid API key",
    "No such path",
    "Request sent after Connection: close",
    "Requests must use HTTPS",
    "Send one Authorization header: Authorization: Bearer KEY",
    "The API key belongs to the other environment",
    "The API key has a wrong checksum",
    "The API key has expired",
    "The API key is malformed",
    "The API key is not allowed from this address",
    "The API key is paused",
    "The API key is unknown",
    "The API key was revoked",
    "The API key's rate limit is exceeded",
    "The body contains the property {name} twice",
    "The body could not be read",
    "The body did not arrive in time",
    "The body is not valid JSON, because it begins with a byte order mark: error at line {line} column {column}",
    "The body is not valid JSON, because it has a line break or another control character inside a text: error at line {line} column {column}",
    "The body is not valid JSON, because it has single or typographic quotes in place of double quotes: error at line {line} column {column}",
    "The body is not valid JSON, because it is empty: error at line {line} column {column}",
    "The body is not valid JSON, because it is not in UTF-8: error at line {line} column {column}",
    "The body is not valid JSON: error at line {line} column {column}",
    "The body must be sent as application/json in UTF-8, without a content encoding",
    "The body must not be larger than 64 KiB",
    "The day must be a date in the form YYYY-MM-DD, for example 2025-12-03",
    "The header Idempotency-Key must be 1 to 255 visible ASCII characters",
    "The header Idempotency-Key must be sent once",
    "The key is in another header: send Authorization: Bearer KEY",
    "The key is in the URL: send Authorization: Bearer KEY",
    "The key is missing: send Authorization: Bearer KEY",
    "The only parameters are after and until",
    "The organisation is suspended",
    "The parameters after and until must be ids of patients, each sent once",
    "The patient that was created with this Idempotency-Key has been erased",
    "The request headers are too large",
    "The request headers did not arrive in time",
    "The request is not well-formed HTTP",
    "The request must be HTTP/1.1",
    "The request must have one Host header",
    "The request must state its length once, as Content-Length or Transfer-Encoding: chunked",
    "The request target and the Host header name different hosts",
    "The scheme is missing: send Authorization: Bearer KEY",
    "The scheme is there twice: send Authorization: Bearer KEY",
    "The scheme must be Bearer: send Authorization: Bearer KEY",
    "The service cannot reach its database; try again shortly",
    "The service is overloaded; try again shortly",
    "This path accepts only GET and HEAD requests",
    "This path accepts only GET, HEAD and POST requests",
    "This path accepts only POST requests",
    "Validation failed",
    "is not a field of a patient",
    "is not a field of a patient: did you mean {}?",
    "is not a field of a patient: send the fields in it without it",
    "is not a field of a patient: split it into firstName and lastName",
    "is required",
    "is required: send {name} under this name",
    "is required: split {name} into firstName and lastName",
    "is required: take it out of {name}",
    "must be 1 to {max} characters long",
    "must be a JSON object",
    "must be a date in the form YYYY-MM-DD, for example 1985-03-21",
    "must be a real date",
    "must be a string",
    "must be a valid email address",
    "must be at most {max} characters long",
    "must be {}",
    "must not be before {earliest}",
    "must not be blank",
    "must not be blank: leave the field out, or send null",
    "must not be in the future",
    "must not contain control characters or bidirectional overrides",
    "was already used for a different patient",
];

#[test]
fn no_message_is_another_one_than_it_was() {
    assert_eq!(messages().iter().map(String::as_str).collect::<Vec<_>>(), STABLE);
}

#[test]
fn messages_are_found_in_every_file_that_makes_some() {
    let messages = messages();
    for known in [
        "must be 1 to {max} characters long",
        "must not contain control characters or bidirectional overrides",
        "E.164 format is required, for example +61491570006",
        "is not a field of a patient: did you mean {}?",
        "The body is not valid JSON: error at line {line} column {column}",
        "The header Idempotency-Key must be 1 to 255 visible ASCII characters",
        "The request is not well-formed HTTP",
        "The API key was revoked",
        "The API key has a wrong checksum",
        "must be a JSON object",
        "No such path",
    ] {
        assert!(messages.contains(known), "{known} is not among {messages:#?}");
    }
    assert!(!messages.contains("Not Found"), "titles are no messages");
}

#[test]
fn an_entry_matches_a_message_with_its_blanks_filled() {
    assert!(is_like("must be MIN to MAX characters long", "must be {min} to {max} characters long"));
    assert!(is_like("must be VALUES", "must be {}"));
    assert!(!is_like("must be a string", "must be {}"), "words are no blank");
    assert!(!is_like("is required", "is required here") && !is_like("is required here", "is required"));
    assert!(!is_like("must be at most MAX", "must be at most {max} characters long"));
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Whatever the answers to requests can say, with braces where a value comes in.
fn messages() -> BTreeSet<String> {
    let faults = code("crates/domain/src/patients/fault.rs");
    let faults = faults.split_once("impl fmt::Display for FaultKind {").unwrap().1.split_once("\n}").unwrap().0;
    let mut found: BTreeSet<String> = texts(faults).map(|(_, text)| text).collect();
    // The one text that patients and names have in common.
    let common = code("crates/domain/src/text.rs");
    found.extend(texts(&common).map(|(_, text)| text).filter(|text| text.starts_with("must ")));
    let json = code("crates/domain/src/patients/json_error.rs");
    let of_json = json.split_once("impl JsonError {").unwrap().1.split_once("Self::NotAnObject").unwrap().0;
    found.extend(texts(of_json).map(|(_, text)| format!("The body {text}")));
    let because = found.iter().find(|text| text.contains("{cause}")).cloned().unwrap();
    found.remove(&because);
    let causes = json.split_once("impl fmt::Display for JsonCause {").unwrap().1.split_once("\n}").unwrap().0;
    found.extend(texts(causes).map(|(_, text)| because.replace("{cause}", &text)));
    let misplaced = code("crates/http/src/misplaced_key.rs");
    found.extend(texts(&misplaced).map(|(_, text)| text).filter(|text| text.contains("Authorization: Bearer KEY")));
    let unknown = code("crates/domain/src/patients/unknown_field.rs");
    found.extend(texts(&unknown).map(|(_, text)| text).filter(|text| text.starts_with("is ")));
    found.extend(refusals("crates/domain/src/keys/api_key.rs", "pub enum MalformedKey {"));
    found.extend(refusals("crates/domain/src/keys/check.rs", "pub enum KeyRefusal {"));
    found.extend(
        texts(&code("crates/http/src/problem.rs")).filter(|(before, _)| !is_title(before)).map(|(_, text)| text),
    );
    found.extend(texts(&code("crates/http/src/methods.rs")).map(|(_, text)| text).filter(|text| text.contains("path")));
    for path in sources("crates/http/src") {
        found.extend(made_on_the_spot(&code(&path)));
    }
    assert!(found.remove("The body {}"));
    let wrong_key = "".parse::<IdempotencyKey>().unwrap_err();
    assert!(found.remove("The header Idempotency-Key {reason}"));
    found.insert(format!("The header Idempotency-Key {wrong_key}"));
    found.retain(|text| text.split_whitespace().count() > 1 && !NO_MESSAGES.contains(&text.as_str()));
    found
}

/// The first cells of the tables that make up the catalogue.
fn entries() -> Vec<String> {
    let guide = fs::read_to_string(root().join("docs/errors.md")).unwrap();
    let tables =
        guide.split("<!-- messages -->\n").skip(1).map(|rest| rest.split_once("<!-- /messages -->").unwrap().0);
    let entries: Vec<_> = tables
        .flat_map(|table| table.lines().skip(2))
        .map(|row| {
            let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
            assert!(cells.iter().all(|cell| !cell.is_empty()), "{row}");
            cells.into_iter().next().unwrap().to_owned()
        })
        .collect();
    assert_eq!(entries.iter().collect::<BTreeSet<_>>().len(), entries.len(), "an entry stands twice");
    entries
}

/// Returns whether an entry is this message with something in its blanks: a number, or what is written in capitals.
fn is_like(entry: &str, message: &str) -> bool {
    let mut parts = message.split('{').enumerate().map(|(index, part)| match index {
        0 => part,
        _ => part.split_once('}').unwrap().1,
    });
    let Some(mut rest) = entry.strip_prefix(parts.next().unwrap()) else { return false };
    let mut is_over = !message.contains('{');
    for part in parts {
        let end = if part.is_empty() { Some(rest.len()) } else { rest.find(part) };
        let Some(end) = end else { return false };
        let (blank, others) = rest.split_at(end);
        if !blank.contains(|c: char| c.is_ascii_uppercase() || c.is_ascii_digit()) {
            return false;
        }
        rest = others.strip_prefix(part).unwrap();
        is_over = true;
    }
    is_over && rest.is_empty()
}

/// A source without its tests, comments and attributes.
fn code(path: &str) -> String {
    let text = fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
    let is_code = |line: &&str| !["//", "#["].iter().any(|start| line.trim_start().starts_with(start));
    code.lines().filter(is_code).map(|line| format!("{line}\n")).collect::<String>().replace("'\"'", "' '")
}

/// The texts in a source, each with what stands before it.
fn texts(code: &str) -> impl Iterator<Item = (&str, String)> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let start = from + code.get(from..)?.find('"')?;
        let before = code.get(..start)?;
        let (end, length) = if before.ends_with("r#") {
            (code.get(start + 1..)?.find("\"#")?, 2)
        } else {
            let mut is_escaped = false;
            let end = code.get(start + 1..)?.find(|c| {
                let is_end = c == '"' && !is_escaped;
                is_escaped = c == '\\' && !is_escaped;
                is_end
            })?;
            (end, 1)
        };
        from = start + 1 + end + length;
        Some((before, code.get(start + 1..start + 1 + end)?.to_owned()))
    })
}

/// The reasons for which a key is refused, as the errors of an enum.
fn refusals(path: &str, declaration: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join(path)).unwrap();
    let body = text.split_once(declaration).unwrap().1.split_once("\n}").unwrap().0;
    let found: Vec<_> =
        body.split("#[error(\"").skip(1).map(|rest| rest.split_once("\")]").unwrap().0.to_owned()).collect();
    assert_eq!(found.len(), body.lines().filter(|line| line.trim_end().ends_with(',')).count(), "{declaration}");
    found
}

/// A title follows the status.
fn is_title(before: &str) -> bool {
    let last =
        before.trim_end().trim_end_matches(',').rsplit(|c: char| !c.is_alphanumeric() && !"_:".contains(c)).next();
    last.is_some_and(|word| word.starts_with("StatusCode::"))
}

/// The details of malformed requests, which are written where they are found.
fn made_on_the_spot(code: &str) -> Vec<String> {
    let is_one = |before: &str| {
        let before = before.trim_end().trim_end_matches("format!(").trim_end();
        before.ends_with("Problem::Malformed(")
    };
    let found: Vec<_> = texts(code).filter(|(before, _)| is_one(before)).map(|(_, text)| text).collect();
    let made = code.matches("Problem::Malformed(").count();
    let matched = code.matches("Problem::Malformed(_)").count();
    assert_eq!(found.len(), made - matched, "a message that is made in another way in\n{code}");
    found
}

fn sources(folder: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root().join(folder)).unwrap() {
        let entry = entry.unwrap();
        let path = format!("{folder}/{}", entry.file_name().into_string().unwrap());
        if entry.file_type().unwrap().is_dir() {
            found.extend(sources(&path));
        } else if path.ends_with(".rs") {
            found.push(path);
        }
    }
    found
}
