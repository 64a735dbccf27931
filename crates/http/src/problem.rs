//! Every answer that is not 2xx: one shape, and one table from what went wrong to status, title and detail. Details
//! name fields and rules, never a value, and never come from a source error.

use std::borrow::Cow;
use std::fmt::Display;
use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderMap, HeaderValue};
use actix_web::{HttpResponse, HttpResponseBuilder};
use intake_domain::{
    AskKeyError, CreatePatientError, FaultKind, Field, FieldFault, FieldFaults, JsonError, KeyRefusal, MalformedKey,
    RefusalReason, Source, StoreError, UnknownField,
};
use serde::Serialize;

use crate::answer_note::{Cause, Note};
use crate::methods::Methods;
use crate::misplaced_key::MisplacedKey;

const CHALLENGE: &str = r#"Bearer realm="intake""#;
/// The header's name in the path of a fault.
const IDEMPOTENCY_KEY: &str = "Idempotency-Key";
const PROBLEM_JSON: &str = "application/problem+json";
/// Long enough for a queue of requests to drain.
const RETRY_SOON: Duration = Duration::from_secs(1);

/// Fault, for the client.
#[derive(Debug)]
pub(crate) enum Problem {
    /// The request did not come over HTTPS.
    NotHttps,
    /// Nothing is at this path.
    NotFound,
    /// The path takes other methods: these.
    WrongMethod(Methods),
    /// No key was sent where it belongs, and perhaps one elsewhere.
    NoKey(Option<MisplacedKey>),
    /// A text that is no key of this service.
    MalformedKey(MalformedKey),
    /// A well-formed key that is unknown, revoked or expired.
    KeyRefused(KeyRefusal),
    /// The key's rate limit is exceeded; the next request is allowed after this time.
    RateExceeded(Duration),
    /// The body is not said to be JSON.
    UnsupportedMediaType,
    /// The body is larger than any patient.
    ContentTooLarge,
    /// The body did not arrive in time.
    BodyTooSlow,
    /// The head did not arrive in time.
    HeadTooSlow,
    /// The head is larger than any that is needed here.
    HeadTooLarge,
    /// A request came after one with `Connection: close`.
    AfterConnectionClose,
    /// The body, or a header, is not well formed.
    Malformed(Cow<'static, str>),
    /// Fields break rules. Members that are no fields may have been meant as those that are missing.
    Invalid(FieldFaults, Vec<UnknownField>),
    /// The body has members that are no fields, which the caller does not want, and perhaps fields that break rules.
    UnknownMembers(Option<FieldFaults>, Vec<UnknownField>),
    /// The idempotency key belongs to a different patient.
    DifferentPatient,
    /// The patient of the idempotency key was erased.
    Erased,
    /// More requests are waiting than the service accepts.
    Full,
    /// The bodies of other requests hold all the memory that bodies may have.
    BodiesFull,
    /// The database cannot be reached.
    Unavailable(Source),
    /// Anything else.
    Unexpected(Source),
}

#[derive(Serialize)]
struct Body<'a> {
    r#type: &'static str,
    title: &'static str,
    status: u16,
    detail: &'a str,
    instance: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    errors: Option<Vec<FieldError<'a>>>,
}

#[derive(Serialize)]
struct FieldError<'a> {
    path: Vec<&'a str>,
    message: Cow<'static, str>,
}

impl Problem {
    /// The answer, in the media type that these request headers ask for.
    pub(crate) fn respond(&self, request: &HeaderMap) -> HttpResponse {
        self.respond_as(media_type(request))
    }

    pub(crate) fn respond_as(&self, media_type: &'static str) -> HttpResponse {
        let (status, title, detail) = self.status_title_detail();
        let (status_number, errors) = (status.as_u16(), self.errors());
        let body = Body { r#type: "about:blank", title, status: status_number, detail, instance: None, errors };
        let mut response = HttpResponse::build(status);
        response.reason(title).content_type(media_type);
        self.add_headers(&mut response);
        let mut response = response.body(serde_json::to_vec(&body).unwrap_or_default());
        response.extensions_mut().insert(self.note());
        response
    }

    fn errors(&self) -> Option<Vec<FieldError<'_>>> {
        let unknown: &[UnknownField] = match self {
            Self::UnknownMembers(_, unknown) => unknown,
            Self::Invalid(..) => &[],
            Self::DifferentPatient => {
                let message = "was already used for a different patient".into();
                return Some(vec![FieldError { path: vec![IDEMPOTENCY_KEY], message }]);
            }
            _ => return None,
        };
        let faults = self.faults().iter().map(|fault| {
            let path = fault.field.map(Field::name).into_iter().collect();
            FieldError { path, message: self.message(*fault) }
        });
        let unknown =
            unknown.iter().map(|unknown| FieldError { path: vec![unknown.name.as_str()], message: unknown.message() });
        Some(faults.chain(unknown).collect())
    }

    fn message(&self, fault: FieldFault) -> Cow<'static, str> {
        if let (Self::Invalid(_, unknown), FaultKind::Missing, Some(field)) = (self, fault.kind, fault.field)
            && let Some(message) = unknown.iter().find_map(|unknown| unknown.message_of_missing(field))
        {
            return message.into();
        }
        fault.kind.to_string().into()
    }

    /// Adds what was sent in place of fields, if some are missing.
    pub(crate) fn with_unknown(self, unknown: impl FnOnce() -> Vec<UnknownField>) -> Self {
        match self {
            Self::Invalid(faults, _) if faults.as_slice().iter().any(|fault| fault.kind == FaultKind::Missing) => {
                Self::Invalid(faults, unknown())
            }
            other => other,
        }
    }

    fn faults(&self) -> &[FieldFault] {
        match self {
            Self::Invalid(faults, _) | Self::UnknownMembers(Some(faults), _) => faults.as_slice(),
            _ => &[],
        }
    }

    /// Returns what is recorded of the answer. The key of the request is not known here.
    fn note(&self) -> Note {
        use RefusalReason as Reason;

        let (refusal, key_fault, cause) = match self {
            Self::NotFound | Self::WrongMethod(_) => (None, None, None),
            Self::NoKey(_) => (None, Some("missing"), None),
            Self::MalformedKey(MalformedKey::Shape) => (None, Some("malformed"), None),
            Self::MalformedKey(MalformedKey::OtherEnvironment) => (None, Some("other-environment"), None),
            Self::MalformedKey(MalformedKey::Checksum) => (None, Some("checksum"), None),
            Self::KeyRefused(KeyRefusal::Unknown) => (None, Some("unknown"), None),
            Self::KeyRefused(KeyRefusal::Revoked) => (Some(Reason::Revoked), Some("revoked"), None),
            Self::KeyRefused(KeyRefusal::Suspended) => (Some(Reason::Suspended), Some("suspended"), None),
            Self::KeyRefused(KeyRefusal::Expired) => (Some(Reason::Expired), Some("expired"), None),
            Self::KeyRefused(KeyRefusal::Paused) => (Some(Reason::Paused), Some("paused"), None),
            Self::KeyRefused(KeyRefusal::Elsewhere) => (Some(Reason::Elsewhere), Some("elsewhere"), None),
            Self::NotHttps => (Some(Reason::Unencrypted), None, None),
            Self::RateExceeded(_) => (Some(Reason::RateExceeded), None, None),
            Self::UnsupportedMediaType => (Some(Reason::MediaType), None, None),
            Self::ContentTooLarge | Self::HeadTooLarge => (Some(Reason::TooLarge), None, None),
            Self::BodyTooSlow | Self::HeadTooSlow => (Some(Reason::TooSlow), None, None),
            Self::Malformed(_) | Self::AfterConnectionClose => (Some(Reason::Malformed), None, None),
            Self::Invalid(..) => (Some(Reason::Invalid), None, None),
            Self::UnknownMembers(..) => (Some(Reason::UnknownMembers), None, None),
            Self::DifferentPatient => (Some(Reason::DifferentPatient), None, None),
            Self::Erased => (Some(Reason::Erased), None, None),
            Self::Full | Self::BodiesFull => (Some(Reason::Full), None, Some(Cause::full())),
            Self::Unavailable(source) => (Some(Reason::Unavailable), None, Some(Cause::of(source))),
            Self::Unexpected(source) => (Some(Reason::Unexpected), None, Some(Cause::of(source))),
        };
        Note { refusal, key_fault, fields: self.fields(), cause, help: Some(self.help()), ..Note::default() }
    }

    /// The anchor of the reference at which the answer is explained.
    fn help(&self) -> &'static str {
        match self {
            Self::Malformed(_) | Self::AfterConnectionClose => "400-bad-request",
            Self::NoKey(_) | Self::MalformedKey(_) | Self::KeyRefused(_) => "401-unauthorized",
            Self::NotFound | Self::WrongMethod(_) => "every-status-404-405",
            Self::BodyTooSlow | Self::HeadTooSlow => "every-status-408",
            Self::Erased => "every-status-410",
            Self::ContentTooLarge => "every-status-413",
            Self::UnsupportedMediaType => "every-status-415",
            Self::Invalid(..) | Self::UnknownMembers(..) | Self::DifferentPatient => "422-validation-error",
            Self::NotHttps => "every-status-426",
            Self::RateExceeded(_) => "every-status-429",
            Self::HeadTooLarge => "every-status-431",
            Self::Unexpected(_) => "every-status-500",
            Self::Full | Self::BodiesFull | Self::Unavailable(_) => "every-status-503",
        }
    }

    /// The fields that the answer names.
    fn fields(&self) -> Vec<&'static str> {
        match self {
            Self::DifferentPatient => vec![IDEMPOTENCY_KEY],
            _ => self.faults().iter().filter_map(|fault| fault.field.map(Field::name)).collect(),
        }
    }

    fn status_title_detail(&self) -> (StatusCode, &'static str, &str) {
        let unauthorised = (StatusCode::UNAUTHORIZED, "Unauthorized", "Missing or invalid API key");
        match self {
            Self::NotHttps => (StatusCode::UPGRADE_REQUIRED, "Upgrade Required", "Requests must use HTTPS"),
            Self::NotFound => (StatusCode::NOT_FOUND, "Not Found", "No such path"),
            Self::WrongMethod(methods) => (StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed", methods.detail()),
            Self::NoKey(_) | Self::MalformedKey(_) | Self::KeyRefused(_) => unauthorised,
            Self::RateExceeded(_) => {
                (StatusCode::TOO_MANY_REQUESTS, "Too Many Requests", "The API key's rate limit is exceeded")
            }
            Self::UnsupportedMediaType => (
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "Unsupported Media Type",
                "The body must be sent as application/json in UTF-8, without a content encoding",
            ),
            Self::ContentTooLarge => {
                (StatusCode::PAYLOAD_TOO_LARGE, "Content Too Large", "The body must not be larger than 64 KiB")
            }
            Self::BodyTooSlow => (StatusCode::REQUEST_TIMEOUT, "Request Timeout", "The body did not arrive in time"),
            Self::HeadTooSlow => {
                (StatusCode::REQUEST_TIMEOUT, "Request Timeout", "The request headers did not arrive in time")
            }
            Self::HeadTooLarge => (
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                "Request Header Fields Too Large",
                "The request headers are too large",
            ),
            Self::AfterConnectionClose => {
                (StatusCode::BAD_REQUEST, "Bad Request", "Request sent after Connection: close")
            }
            Self::Malformed(detail) => (StatusCode::BAD_REQUEST, "Bad Request", detail),
            Self::Invalid(..) | Self::UnknownMembers(..) | Self::DifferentPatient => {
                (StatusCode::UNPROCESSABLE_ENTITY, "Validation Error", "Validation failed")
            }
            Self::Erased => {
                (StatusCode::GONE, "Gone", "The patient that was created with this Idempotency-Key has been erased")
            }
            Self::Full | Self::BodiesFull => {
                (StatusCode::SERVICE_UNAVAILABLE, "Service Unavailable", "The service is overloaded; try again shortly")
            }
            Self::Unavailable(_) => (
                StatusCode::SERVICE_UNAVAILABLE,
                "Service Unavailable",
                "The service cannot reach its database; try again shortly",
            ),
            Self::Unexpected(_) => {
                (StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error", "An unexpected error occurred")
            }
        }
    }

    fn add_headers(&self, response: &mut HttpResponseBuilder) {
        match self {
            Self::NotHttps => {
                // actix-http adds the fitting Connection header by itself.
                response.insert_header((header::UPGRADE, "TLS/1.2, HTTP/1.1"));
            }
            Self::WrongMethod(methods) => {
                response.insert_header((header::ALLOW, methods.allow()));
            }
            Self::NoKey(None) => {
                response.insert_header((header::WWW_AUTHENTICATE, CHALLENGE));
            }
            Self::NoKey(Some(misplaced)) => add_challenge(response, "invalid_request", misplaced),
            Self::MalformedKey(reason) => add_challenge(response, "invalid_token", reason),
            Self::KeyRefused(reason) => add_challenge(response, "invalid_token", reason),
            Self::RateExceeded(wait) => add_retry_after(response, *wait),
            Self::Full | Self::Unavailable(_) => add_retry_after(response, RETRY_SOON),
            Self::BodiesFull => {
                add_retry_after(response, RETRY_SOON);
                response.force_close();
            }
            Self::UnsupportedMediaType => {
                response.insert_header((header::ACCEPT, "application/json"));
            }
            Self::ContentTooLarge | Self::BodyTooSlow | Self::AfterConnectionClose => {
                // Nothing more of the request is read.
                response.force_close();
            }
            Self::HeadTooSlow
            | Self::HeadTooLarge
            | Self::NotFound
            | Self::Malformed(_)
            | Self::Invalid(..)
            | Self::UnknownMembers(..)
            | Self::DifferentPatient
            | Self::Erased
            | Self::Unexpected(_) => {}
        }
    }
}

impl From<CreatePatientError> for Problem {
    fn from(error: CreatePatientError) -> Self {
        match error {
            CreatePatientError::KeyRefused(refusal) => Self::KeyRefused(refusal),
            CreatePatientError::Invalid(faults) => Self::Invalid(faults, Vec::new()),
            CreatePatientError::DifferentPatient => Self::DifferentPatient,
            CreatePatientError::Erased => Self::Erased,
            CreatePatientError::Store(error) => error.into(),
        }
    }
}

impl From<AskKeyError> for Problem {
    fn from(error: AskKeyError) -> Self {
        match error {
            AskKeyError::KeyRefused(refusal) => Self::KeyRefused(refusal),
            AskKeyError::Store(error) => error.into(),
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Overloaded => Self::Full,
            StoreError::Unavailable(source) | StoreError::Locked(source) => Self::Unavailable(source),
            StoreError::Unexpected(source) => Self::Unexpected(source),
            // Of members: no store that a key reaches returns them.
            error @ (StoreError::SessionEnded | StoreError::RoleTakenAway) => Self::Unexpected(error.into()),
        }
    }
}

impl From<JsonError> for Problem {
    fn from(error: JsonError) -> Self {
        match error {
            JsonError::NotAnObject => Self::Invalid(FieldFault::whole(FaultKind::NotAnObject).into(), Vec::new()),
            error => Self::Malformed(format!("The body {}", error.message()).into()),
        }
    }
}

fn add_challenge(response: &mut HttpResponseBuilder, error: &str, description: &dyn Display) {
    let challenge = format!(r#"{CHALLENGE}, error="{error}", error_description="{description}""#);
    response.insert_header((header::WWW_AUTHENTICATE, challenge));
}

/// Whole seconds, rounded up: a client that comes back then is let in.
fn add_retry_after(response: &mut HttpResponseBuilder, wait: Duration) {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    response.insert_header((header::RETRY_AFTER, seconds.max(1)));
}

/// The media type of an answer that is not 2xx, as these request headers ask for it.
pub(crate) fn media_type(request: &HeaderMap) -> &'static str {
    let named = |value: &HeaderValue| {
        let accepted = value.to_str().unwrap_or_default().split(',');
        accepted
            .filter_map(|range| range.split(';').next())
            .any(|range| range.trim().eq_ignore_ascii_case(PROBLEM_JSON))
    };
    if request.get_all(header::ACCEPT).any(named) { PROBLEM_JSON } else { "application/json" }
}
