//! What every operation with a key begins and ends with: a well-formed key and its rate, before anything else is looked
//! at, and the headers of that rate on the answer.

use actix_web::http::header::HeaderName;
use actix_web::web::Payload;
use actix_web::{HttpRequest, HttpResponse};
use intake_domain::{Caller, KeyFormat, PatientRegister, authenticate};

use crate::answer_note::Note;
use crate::client_address::client;
use crate::misplaced_key::MisplacedKey;
use crate::patients::rate_limit::{Allowance, RateLimiter};
use crate::patients::{bearer, body};
use crate::problem::Problem;

const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// Serves a request whose key is well formed and within its rate. Whether the key is active is left to `serve`.
pub(crate) async fn admit(
    request: &HttpRequest,
    payload: Payload,
    format: &KeyFormat,
    limiter: Option<&RateLimiter>,
    serve: impl AsyncFnOnce(Payload, &Caller) -> Result<HttpResponse, Problem>,
) -> HttpResponse {
    let headers = request.headers();
    let key = match bearer::key(headers, format) {
        Ok(key) => key,
        Err(problem) => return refuse(&problem, request, payload).await,
    };
    let (digest, client) = (key.digest(), client(request));
    let limited = limiter.map(|limiter| (limiter.policy(), limiter.take(&digest)));
    let answer = match limited {
        Some((_, Allowance { wait: Some(wait), .. })) => {
            body::discard(request, payload).await;
            Err(Problem::RateExceeded(wait))
        }
        _ => serve(payload, &Caller { key: digest, address: client.address }).await,
    };
    let mut response = answer.unwrap_or_else(|problem| problem.respond(headers));
    Note::add_key(&mut response, (digest, client));
    if let Some((policy, allowance)) = limited {
        response.headers_mut().insert(RATE_LIMIT_POLICY, policy.clone());
        response.headers_mut().insert(RATE_LIMIT, allowance.header());
    }
    response
}

/// Refuses a request without looking at its body.
pub(crate) async fn refuse(problem: &Problem, request: &HttpRequest, payload: Payload) -> HttpResponse {
    body::discard(request, payload).await;
    let problem = match problem {
        Problem::NoKey(None) if bearer::is_in_query(request.query_string()) => {
            &Problem::NoKey(Some(MisplacedKey::Query))
        }
        problem => problem,
    };
    problem.respond(request.headers())
}

/// The problem to answer a failed request with: its own, or only the key's if that is not active.
pub(crate) async fn after_authentication(register: &dyn PatientRegister, caller: &Caller, problem: Problem) -> Problem {
    match authenticate(register, caller).await {
        Ok(_) => problem,
        Err(refused) => refused.into(),
    }
}
