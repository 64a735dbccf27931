//! `POST /api/v1/patients`: the checks in their order, the first failure answers. A request that fails after its key was
//! read costs one look at the key first, because a stranger is told nothing but 401.

use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use actix_web::web::{Bytes, Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use intake_domain::{
    IdempotencyKey, KeyDigest, KeyFormat, KeyStore, PatientDraft, PatientId, PatientRegister, PatientRequest,
    authenticate, create_patient,
};

use crate::edge;
use crate::patients::rate_limit::{RateLimiter, Standing};
use crate::patients::{bearer, body, content_type, created, decode};
use crate::problem::Problem;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

pub(crate) async fn create(
    request: HttpRequest,
    payload: Payload,
    register: Data<dyn PatientRegister>,
    keys: Data<dyn KeyStore>,
    format: Data<KeyFormat>,
    limiter: Data<Option<RateLimiter>>,
) -> HttpResponse {
    let headers = request.headers();
    let key = match bearer::key(headers, &format) {
        Ok(key) => key,
        Err(problem) => return refuse(&problem, &request, payload).await,
    };
    let digest = key.digest();
    let standing = limiter.as_ref().as_ref().map(|limiter| (limiter.policy(), limiter.take(&digest)));
    let answer = match standing {
        Some((_, Standing { wait: Some(wait), .. })) => {
            body::discard(payload).await;
            Err(Problem::RateExceeded(wait))
        }
        _ => serve(headers, payload, register.as_ref(), &digest).await,
    };
    let fields = answer.as_ref().err().map(Problem::fields).unwrap_or_default();
    let mut response = answer.unwrap_or_else(|problem| problem.respond(headers));
    keys.note_answer(&digest, edge::now(), response.status().as_u16(), &fields);
    if let Some((policy, standing)) = standing {
        add_header(&mut response, RATE_LIMIT_POLICY, policy);
        add_header(&mut response, RATE_LIMIT, &standing.header());
    }
    response
}

/// Refuses a request whose body nobody has looked at.
pub(crate) async fn refuse(problem: &Problem, request: &HttpRequest, payload: Payload) -> HttpResponse {
    body::discard(payload).await;
    problem.respond(request.headers())
}

async fn serve(
    headers: &HeaderMap,
    payload: Payload,
    register: &dyn PatientRegister,
    key: &KeyDigest,
) -> Result<HttpResponse, Problem> {
    let body = match receive(headers, payload).await {
        Ok(body) => body,
        Err(problem) => return Err(after_authentication(register, key, problem).await),
    };
    let (draft, idempotency_key) = match understand(headers, &body) {
        Ok(understood) => understood,
        Err(problem) => return Err(after_authentication(register, key, problem).await),
    };
    let now = edge::now();
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

fn understand<'a>(headers: &HeaderMap, body: &'a [u8]) -> Result<(PatientDraft<'a>, Option<IdempotencyKey>), Problem> {
    let draft = decode::draft(body);
    // Syntax first, of the body and of the header: JSON that is no object is a matter of the fields.
    if let Err(problem @ Problem::Malformed(_)) = draft {
        return Err(problem);
    }
    let idempotency_key = idempotency_key(headers)?;
    Ok((draft?, idempotency_key))
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

/// What to tell a caller whose request failed: that, or, to one whose key opens nothing, only so.
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
