//! `POST /api/v1/patients`, and the same without creating anything. The checks run in a fixed order and the first
//! failure is answered. When a later check fails, the key is looked up first: a caller without an active key gets 401
//! and nothing else.

use actix_web::http::StatusCode;
use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use intake_domain::{
    Caller, Environment, IdempotencyKey, JsonPatient, KeyFormat, PatientId, PatientRegister, PatientRequest,
    create_patient, validate_patient,
};

use crate::answer_note::Note;
use crate::patients::admission::{admit, after_authentication};
use crate::patients::body::ReceivedBody;
use crate::patients::ordered_failures::Simulated;
use crate::patients::prefer::{PREFERENCE_APPLIED, STRICT, is_strict};
use crate::patients::rate_limit::RateLimiter;
use crate::patients::{body, content_type, created};
use crate::problem::Problem;
use intake_edge as edge;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Unknown members that are compared with the fields that are missing: more than a patient of any other interface has.
const UNKNOWN_EXPLAINED_MAX: usize = 64;

/// Parameters of the handlers.
type Parts = (Data<dyn PatientRegister>, Data<KeyFormat>, Data<Option<RateLimiter>>);

/// Treatment of a patient that keeps every rule.
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
    (register, format, limiter): Parts,
) -> HttpResponse {
    let serve = async |payload, caller: &Caller| {
        serve(purpose, request, payload, register.as_ref(), caller, format.environment()).await
    };
    let mut response = admit(request, payload, &format, limiter.as_ref().as_ref(), serve).await;
    if is_strict(request.headers()) && was_judged(response.status()) {
        response.headers_mut().insert(PREFERENCE_APPLIED, STRICT);
    }
    response
}

/// Returns whether the members of the body were checked for an answer with this status.
fn was_judged(status: StatusCode) -> bool {
    status.is_success() || status == StatusCode::UNPROCESSABLE_ENTITY
}

async fn serve(
    purpose: Purpose,
    request: &HttpRequest,
    payload: Payload,
    register: &dyn PatientRegister,
    caller: &Caller,
    environment: Environment,
) -> Result<HttpResponse, Problem> {
    let headers = request.headers();
    let body = match receive(request, payload).await {
        Ok(body) => body,
        Err(problem) => return Err(after_authentication(register, caller, problem).await),
    };
    let (JsonPatient { draft, unknown }, idempotency_key) = match understand(headers, &body) {
        Ok(understood) => understood,
        Err(problem) => return Err(after_authentication(register, caller, problem).await),
    };
    let now = edge::now();
    if !unknown.is_empty() && is_strict(headers) {
        let problem = Problem::UnknownMembers(draft.validate(now).err(), JsonPatient::explain(&body, &unknown));
        return Err(after_authentication(register, caller, problem).await);
    }
    let explained = |error| {
        let first = unknown.get(..UNKNOWN_EXPLAINED_MAX).unwrap_or(&unknown);
        Problem::from(error).with_unknown(|| JsonPatient::explain(&body, first))
    };
    if purpose == Purpose::Validate {
        validate_patient(register, caller, draft, now).await.map_err(explained)?;
        return Ok(HttpResponse::Ok().content_type("application/json").body(r#"{"data":null,"meta":{}}"#));
    }
    let simulated = Simulated::of(environment, idempotency_key.as_ref());
    if let Some((ordered, key)) = simulated.filter(|simulated| simulated.refuses()).zip(idempotency_key.as_ref()) {
        validate_patient(register, caller, draft.clone(), now).await.map_err(explained)?;
        if let Some(problem) = ordered.problem(&caller.key, key) {
            let mut response = problem.respond(headers);
            Note::mark_simulated(&mut response);
            return Ok(response);
        }
    }
    let id = PatientId::new(now, edge::random());
    let patient = PatientRequest { caller: *caller, draft, idempotency_key, id, now };
    let created = create_patient(register, patient).await.map_err(explained)?;
    if let Some(simulated) = simulated.filter(|_| !created.replayed()) {
        simulated.withhold_answer(request).await;
    }
    created::respond(&created)
}

async fn receive(request: &HttpRequest, payload: Payload) -> Result<ReceivedBody, Problem> {
    if content_type::is_json(request.headers()) {
        return body::read(request, payload).await;
    }
    body::discard(request, payload).await;
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
