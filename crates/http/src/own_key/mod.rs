//! `GET /api/v1/key` and what is below it: what a key may ask about itself. The same checks, in the same order, as for
//! a patient that it creates.

mod data;
mod part;

use actix_web::http::StatusCode;
use actix_web::web::{Data, Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use intake_domain::{
    AnswerCode, Caller, KeyActivity, KeyFormat, OwnKeyStore, PatientRegister, Refusal, assess_quality, count_created,
    describe_key, list_refusals,
};
use intake_edge as edge;
use serde::Serialize;

use crate::own_key::data::{DayData, KeyData, MarkData, RefusalData};
use crate::own_key::part::part;
use crate::patients::admission::{admit, after_authentication};
use crate::patients::body;
use crate::patients::rate_limit::RateLimiter;
use crate::problem::Problem;

/// Parameters of the handlers.
type Parts = (Data<dyn PatientRegister>, Data<KeyFormat>, Data<Option<RateLimiter>>);

/// The envelope of every answer.
#[derive(Serialize)]
struct Envelope<T> {
    data: T,
    meta: Meta,
}

#[derive(Serialize)]
struct Meta {}

/// `GET /api/v1/key`
pub(crate) async fn key(
    request: HttpRequest,
    payload: Payload,
    parts: Parts,
    keys: Data<dyn OwnKeyStore>,
) -> HttpResponse {
    let (environment, rate) = (parts.1.environment(), parts.2.as_ref().as_ref().map(RateLimiter::rate));
    answer(&request, payload, &parts, async |register, caller| {
        let key = describe_key(register, keys.as_ref(), caller).await?;
        respond(KeyData::new(&key, environment, rate))
    })
    .await
}

/// `GET /api/v1/key/refusals`
pub(crate) async fn refusals(
    request: HttpRequest,
    payload: Payload,
    parts: Parts,
    activity: Data<dyn KeyActivity>,
) -> HttpResponse {
    answer(&request, payload, &parts, async |register, caller| {
        let refusals: Vec<Refusal> = list_refusals(register, activity.as_ref(), caller).await?;
        respond(refusals.iter().map(RefusalData::from).collect::<Vec<_>>())
    })
    .await
}

/// `GET /api/v1/key/days/{date}`
pub(crate) async fn day(
    request: HttpRequest,
    payload: Payload,
    parts: Parts,
    keys: Data<dyn OwnKeyStore>,
    day: Path<String>,
) -> HttpResponse {
    answer(&request, payload, &parts, async |register, caller| {
        let part = match part(&day, request.query_string()) {
            Ok(part) => part,
            Err(problem) => return Err(after_authentication(register, caller, problem).await),
        };
        let created = count_created(register, keys.as_ref(), caller, part).await?;
        respond(DayData::new(part, &created))
    })
    .await
}

/// `GET /api/v1/key/quality`
pub(crate) async fn quality(
    request: HttpRequest,
    payload: Payload,
    parts: Parts,
    keys: Data<dyn OwnKeyStore>,
    activity: Data<dyn KeyActivity>,
) -> HttpResponse {
    answer(&request, payload, &parts, async |register, caller| {
        let created = AnswerCode(StatusCode::CREATED.as_u16());
        let (keys, activity) = (keys.as_ref(), activity.as_ref());
        let counted = assess_quality(register, keys, activity, caller, created, edge::now()).await?;
        respond(counted.iter().map(MarkData::from).collect::<Vec<_>>())
    })
    .await
}

async fn answer(
    request: &HttpRequest,
    payload: Payload,
    (register, format, limiter): &Parts,
    ask: impl AsyncFnOnce(&dyn PatientRegister, &Caller) -> Result<HttpResponse, Problem>,
) -> HttpResponse {
    admit(request, payload, format, limiter.as_ref().as_ref(), async |payload, caller| {
        body::discard(request, payload).await;
        ask(register.as_ref(), caller).await
    })
    .await
}

fn respond(data: impl Serialize) -> Result<HttpResponse, Problem> {
    let body =
        serde_json::to_vec(&Envelope { data, meta: Meta {} }).map_err(|error| Problem::Unexpected(error.into()))?;
    Ok(HttpResponse::Ok().content_type("application/json").body(body))
}
