//! `POST /api/v1/patients`, and the same without creating anything. The checks run in a fixed order and the first
//! failure is answered. When a later check fails, the key is looked up first: a caller without an active key gets 401
//! and nothing else.

use actix_web::http::StatusCode;
use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use actix_web::web::{Bytes, Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use intake_domain::{
    IdempotencyKey, JsonPatient, KeyDigest, KeyFormat, KeyStore, PatientId, PatientRegister, PatientRequest,
    UnknownField, authenticate, create_patient, validate_patient,
};

use crate::edge;
use crate::patients::prefer::{PREFERENCE_APPLIED, STRICT, is_strict};
use crate::patients::rate_limit::{Allowance, RateLimiter};
use crate::patients::{bearer, body, content_type, created};
use crate::problem::Problem;
use crate::refused::Refused;
use crate::request_log;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// What the handlers need.
type Parts = (Data<dyn PatientRegister>, Data<dyn KeyStore>, Data<KeyFormat>, Data<Option<RateLimiter>>);

/// What is done with a patient that keeps every rule.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Create,
    Validate,
}

/// `POST /api/v1/patients`
pub(crate) async fn create(request: HttpRequest, payload: Payload, parts: Parts) -> HttpResponse {
    answer(Purpose::Create, &request, payload, parts).await
}

/// `POST /api/v1/patients/validate`
pub(crate) async fn validate(request: HttpRequest, payload: Payload, parts: Parts) -> HttpResponse {
    answer(Purpose::Validate, &request, payload, parts).await
}

async fn answer(
    purpose: Purpose,
    request: &HttpRequest,
    payload: Payload,
    (register, keys, format, limiter): Parts,
) -> HttpResponse {
    let headers = request.headers();
    let key = match bearer::key(headers, &format) {
        Ok(key) => key,
        Err(problem) => return refuse(&problem, request, payload).await,
    };
    let digest = key.digest();
    let limited = limiter.as_ref().as_ref().map(|limiter| (limiter.policy(), limiter.take(&digest)));
    let answer = match limited {
        Some((_, Allowance { wait: Some(wait), .. })) => {
            body::discard(payload).await;
            Err(Problem::RateExceeded(wait))
        }
        _ => serve(purpose, headers, payload, register.as_ref(), &digest).await,
    };
    let fields = answer.as_ref().err().map(Problem::fields).unwrap_or_default();
    let mut response = answer.unwrap_or_else(|problem| {
        let mut response = problem.respond(headers);
        if let Some(refused) = Refused::new(digest, &problem) {
            response.extensions_mut().insert(refused);
        }
        response
    });
    let holder = keys.note_answer(&digest, edge::now(), response.status().as_u16(), &fields);
    if let Some(holder) = holder.filter(|_| request_log::is_on()) {
        response.extensions_mut().insert(holder);
    }
    if let Some((policy, allowance)) = limited {
        add_header(&mut response, RATE_LIMIT_POLICY, policy);
        add_header(&mut response, RATE_LIMIT, &allowance.header());
    }
    if is_strict(headers) && was_judged(response.status()) {
        response.headers_mut().insert(PREFERENCE_APPLIED, STRICT);
    }
    response
}

/// Whether the members of the body were checked for an answer with this status.
fn was_judged(status: StatusCode) -> bool {
    status.is_success() || status == StatusCode::UNPROCESSABLE_ENTITY
}

/// Refuses a request without looking at its body.
pub(crate) async fn refuse(problem: &Problem, request: &HttpRequest, payload: Payload) -> HttpResponse {
    body::discard(payload).await;
    problem.respond(request.headers())
}

async fn serve(
    purpose: Purpose,
    headers: &HeaderMap,
    payload: Payload,
    register: &dyn PatientRegister,
    key: &KeyDigest,
) -> Result<HttpResponse, Problem> {
    let body = match receive(headers, payload).await {
        Ok(body) => body,
        Err(problem) => return Err(after_authentication(register, key, problem).await),
    };
    let (JsonPatient { draft, unknown }, idempotency_key) = match understand(headers, &body) {
        Ok(understood) => understood,
        Err(problem) => return Err(after_authentication(register, key, problem).await),
    };
    let now = edge::now();
    if !unknown.is_empty() && is_strict(headers) {
        let unknown = unknown.into_iter().map(UnknownField::new).collect();
        let problem = Problem::UnknownMembers(draft.validate(now).err(), unknown);
        return Err(after_authentication(register, key, problem).await);
    }
    if purpose == Purpose::Validate {
        validate_patient(register, key, &draft, now).await?;
        return Ok(HttpResponse::Ok().content_type("application/json").body(r#"{"data":null,"meta":{}}"#));
    }
    let id = PatientId::new(now, edge::random());
    let request = PatientRequest { key: *key, draft, idempotency_key, id, now };
    let created = create_patient(register, request).await?;
    created::respond(&created)
}

async fn receive(headers: &HeaderMap, payload: Payload) -> Result<Bytes, Problem> {
    if content_type::is_json(headers) {
        return body::read(headers, payload).await;
    }
    body::discard(payload).await;
    Err(Problem::UnsupportedMediaType)
}

fn understand<'a>(headers: &HeaderMap, body: &'a [u8]) -> Result<(JsonPatient<'a>, Option<IdempotencyKey>), Problem> {
    let patient = JsonPatient::from_slice(body).map_err(Problem::from);
    // Syntax comes first, that of the header included. JSON that is not an object is a fault of the fields.
    if let Err(problem @ Problem::Malformed(_)) = patient {
        return Err(problem);
    }
    let idempotency_key = idempotency_key(headers)?;
    Ok((patient?, idempotency_key))
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<IdempotencyKey>, Problem> {
    let mut values = headers.get_all(IDEMPOTENCY_KEY);
    let (value, None) = (values.next(), values.next()) else {
        return Err(Problem::Malformed("The header Idempotency-Key must be sent once".into()));
    };
    let parse = |value: &HeaderValue| value.to_str().unwrap_or_default().parse();
    let key = value.map(parse).transpose();
    key.map_err(|reason| Problem::Malformed(format!("The header Idempotency-Key {reason}").into()))
}

/// The problem to answer a failed request with: its own, or only the key's if that is not active.
async fn after_authentication(register: &dyn PatientRegister, key: &KeyDigest, problem: Problem) -> Problem {
    match authenticate(register, key, edge::now()).await {
        Ok(_) => problem,
        Err(refused) => refused.into(),
    }
}

fn add_header(response: &mut HttpResponse, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}
