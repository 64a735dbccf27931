//! What every request and answer has in common: HTTPS is required, and each answer carries a request id and the same
//! headers.

use std::borrow::Cow;
use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::time::Instant;

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::error::InternalError;
use actix_web::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use actix_web::http::{ConnectionType, StatusCode};
use actix_web::middleware::Next;
use actix_web::{Error, HttpMessage, HttpResponse, web};
use futures_util::FutureExt;
use intake_domain::{AnswerCode, KeyActivity, KeyAnswer, KeyFormat, Refusal, RefusalReason, timestamp};
use intake_metrics::RequestSpan;
use uuid::Uuid;
use uuid::fmt::Simple;

use crate::answer_note::Note;
use crate::client_address::client;
use crate::connection::pieces::Pieces;
use crate::connection::progress::Progress;
use crate::failure_log;
use crate::metrics;
use crate::patients::{bearer, body};
use crate::problem::{self, Problem};
use crate::request_log::{self, Asked};
use crate::route_name::Route;
use crate::trusted_proxies::TrustedProxies;
use intake_edge as edge;

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const INTAKE_KEY_EXPIRES: HeaderName = HeaderName::from_static("intake-key-expires");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
/// Long enough for the ids of every tracing system.
const REQUEST_ID_MAX: usize = 128;

/// Marks an answer, in its extensions, that is the same for everyone: caches may keep it if they revalidate it. No
/// answer without a mark may be kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Revalidated;

/// Marks an answer, in its extensions, that is the same for everyone and for ever: caches may keep it for a year.
#[derive(Clone, Copy, Debug)]
pub struct Immutable;

/// The id of a request, in the extensions of one that is not for the API.
#[derive(Clone, Debug)]
pub struct RequestId(HeaderValue);

impl RequestId {
    /// The id as its answer has it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }
}

/// The middleware around the whole application.
pub async fn envelope(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    let progress = request.conn_data::<Rc<Progress>>().cloned();
    let progress = progress.as_deref();
    let is_https = is_https(&request, progress);
    let route = Route::of(&request);
    let trace_parent = || request_log::trace_parent(request.headers());
    // A create is spared what only a page shows.
    let is_page = !matches!(route, Route::Api(_));
    let span = RequestSpan::start(request_log::name(request.method()), route.as_str(), trace_parent);
    let exchange = Exchange::with_request(is_https, route, &request, &span);
    if is_page {
        request.extensions_mut().insert(RequestId(exchange.request_id.clone()));
    }
    let asks_for_upgrade = request.headers().contains_key(header::UPGRADE);
    let media_type = problem::media_type(request.headers());
    let is_last = request.head().connection_type() == ConnectionType::Close;
    let is_after_close = progress.is_some_and(|progress| progress.request_begins(is_last));
    if !is_https {
        note_key_sent_in_clear(&request, &exchange.request_id);
    }
    if let Some(problem) = reason_to_refuse(&request, is_https, is_after_close) {
        let (request, payload) = request.into_parts();
        body::discard(&request, payload).await;
        let mut refusal = problem.respond(request.headers());
        finish(&mut refusal, exchange, progress);
        return Ok(ServiceResponse::new(request, refusal).map_into_right_body());
    }
    // A panic must not end the connection, or the worker and its other requests.
    let called = AssertUnwindSafe(span.around(next.call(request))).catch_unwind().await;
    let mut failure = match called {
        Ok(Ok(mut response)) => {
            if asks_for_upgrade {
                // actix-http reads nothing more from a connection that asked for another protocol.
                response.response_mut().head_mut().set_connection_type(ConnectionType::Close);
            }
            finish(response.response_mut(), exchange, progress);
            return Ok(response.map_body(|_, body| Pieces::of(body)).map_into_left_body());
        }
        Ok(Err(error)) => error.error_response(),
        Err(_panic) => Problem::Unexpected("a part of the program panicked".into()).respond_as(media_type),
    };
    finish(&mut failure, exchange, progress);
    Err(InternalError::from_response("", failure).into())
}

fn reason_to_refuse(request: &ServiceRequest, is_https: bool, is_after_close: bool) -> Option<Problem> {
    if !is_https {
        Some(Problem::NotHttps)
    } else if is_after_close {
        Some(Problem::AfterConnectionClose)
    } else if names_another_host(request) {
        Some(Problem::Malformed("The request target and the Host header name different hosts".into()))
    } else {
        None
    }
}

/// The middleware of an application that is served over connections of this crate without the envelope. The id tells
/// its answers from those that actix-http makes by itself.
pub async fn note_progress(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    let progress = request.conn_data::<Rc<Progress>>().cloned();
    let is_last = request.head().connection_type() == ConnectionType::Close;
    let id = request_id(request.headers());
    progress.iter().for_each(|progress| {
        let _ = progress.request_begins(is_last);
    });
    let mut answered = next.call(request).await;
    progress.iter().for_each(|progress| progress.request_ends());
    if let Ok(response) = &mut answered {
        response.headers_mut().insert(X_REQUEST_ID, id);
    }
    answered
}

/// Facts about a request when it is answered.
pub(crate) struct Exchange {
    request_id: HeaderValue,
    is_https: bool,
    /// None: what came was no request.
    request: Option<Begun>,
}

/// A request that is being served.
struct Begun {
    route: Route,
    at: Instant,
    /// None: requests are not logged.
    asked: Option<Asked>,
    activity: Option<web::Data<dyn KeyActivity>>,
    span: RequestSpan,
}

impl Exchange {
    fn with_request(is_https: bool, route: Route, request: &ServiceRequest, span: &RequestSpan) -> Self {
        let begun = Begun {
            route,
            at: Instant::now(),
            asked: Asked::of(request.request(), span),
            activity: request.app_data::<web::Data<dyn KeyActivity>>().cloned(),
            span: span.clone(),
        };
        Self { request_id: request_id(request.headers()), is_https, request: Some(begun) }
    }

    /// The answer to something that is no request.
    pub(crate) fn without_request(is_https: bool) -> Self {
        Self { request_id: new_request_id(), is_https, request: None }
    }
}

/// Adds what every answer has, and records it.
pub(crate) fn finish<B>(response: &mut HttpResponse<B>, exchange: Exchange, progress: Option<&Progress>) {
    let Exchange { request_id, is_https, request } = exchange;
    if let Some(progress) = progress {
        progress.request_ends();
        if progress.is_ending() {
            response.head_mut().set_connection_type(ConnectionType::Close);
        }
    }
    let note = response.extensions_mut().remove::<Note>().unwrap_or_default();
    record(&note, request_id.to_str().unwrap_or_default(), response.status(), request.as_ref());
    let key_expires = key_end(&note, response.status(), request.as_ref());
    let caching = match response.extensions() {
        extensions if extensions.contains::<Immutable>() => "public, max-age=31536000, immutable",
        extensions if extensions.contains::<Revalidated>() => "no-cache",
        _ => "no-store",
    };
    let headers = response.headers_mut();
    headers.insert(X_REQUEST_ID, request_id);
    key_expires.into_iter().for_each(|end| drop(headers.insert(INTAKE_KEY_EXPIRES, end)));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(caching));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Some(link) = note.help.zip(progress).and_then(|(anchor, progress)| progress.help_link(anchor)) {
        headers.insert(header::LINK, link);
    }
    if is_https {
        let hsts = progress.map(Progress::hsts).unwrap_or_default();
        headers.insert(header::STRICT_TRANSPORT_SECURITY, HeaderValue::from_static(hsts.value()));
    }
}

/// The end of the request's key. None: it has none, or was refused.
fn key_end(note: &Note, status: StatusCode, request: Option<&Begun>) -> Option<HeaderValue> {
    let activity = request?.activity.as_ref().filter(|_| status != StatusCode::UNAUTHORIZED)?;
    HeaderValue::from_str(&timestamp(activity.known_end(&note.key?.0)?)).ok()
}

/// Counts an answer, for its key, too, and logs it.
fn record(note: &Note, request_id: &str, status: StatusCode, request: Option<&Begun>) {
    let timed = request.map(|begun| (&begun.route, begun.at.elapsed()));
    metrics::note_answer(note, status, timed);
    let number = status.as_u16();
    request.iter().for_each(|begun| begun.span.end(number));
    let activity = request.and_then(|begun| begun.activity.as_ref());
    if let (Some((key, sender)), Some(activity)) = (note.key, activity) {
        let (at, code, is_simulated) = (edge::now(), AnswerCode(number), note.is_simulated);
        let client = status.is_success().then_some(sender);
        // What a key learns about itself is no use of it, and a failure that the sender has asked for says nothing.
        if !is_simulated && (client.is_none() || matches!(timed, Some((Route::Api(_), _)))) {
            activity.note_answer(&key, KeyAnswer { at, code, client }, &note.fields);
        }
        // Those beyond the rate are counted alone: a flood of them would leave none of the others.
        if note.refusal.is_some_and(|reason| is_simulated || reason != RefusalReason::RateExceeded) {
            let (request_id, address, reason) = (request_id.to_owned(), sender.address, note.refusal);
            let fields = note.fields.iter().copied().map(Cow::Borrowed).collect();
            activity.note_refusal(&key, Refusal { at, code, reason, fields, is_simulated, address, request_id });
        }
    }
    if let (Some(asked), Some((route, time))) = (request.and_then(|begun| begun.asked.as_ref()), timed) {
        let holder = note.key.zip(activity).and_then(|((key, _), activity)| activity.known_holder(&key));
        asked.log(route, request_id, number, note, holder, time);
    }
    if status.is_server_error() {
        failure_log::log(note, request_id, status);
    }
}

/// An absolute target must name the same host as the header, or programs that read one of them would disagree with
/// those that read the other about which site was asked.
fn names_another_host(request: &ServiceRequest) -> bool {
    let Some(named) = request.uri().authority() else { return false };
    let host = request.headers().get(header::HOST);
    host.is_some_and(|host| !host.as_bytes().eq_ignore_ascii_case(named.as_str().as_bytes()))
}

/// The listener decides; a forwarded header counts only when a trusted proxy sends it.
fn is_https(request: &ServiceRequest, progress: Option<&Progress>) -> bool {
    if progress.is_some_and(|progress| progress.is_secure) {
        return true;
    }
    let proxies = request.app_data::<web::Data<TrustedProxies>>();
    let is_trusted = |peer: std::net::SocketAddr| proxies.is_some_and(|proxies| proxies.contain(peer.ip()));
    if !request.peer_addr().is_some_and(is_trusted) {
        return false;
    }
    // The nearest proxy writes last.
    let protocols = request.headers().get_all(X_FORWARDED_PROTO).last();
    let nearest = protocols.and_then(|value| value.to_str().ok()).and_then(|list| list.rsplit(',').next());
    nearest.is_some_and(|protocol| protocol.trim().eq_ignore_ascii_case("https"))
}

fn note_key_sent_in_clear(request: &ServiceRequest, request_id: &HeaderValue) {
    let format = request.app_data::<web::Data<KeyFormat>>();
    let activity = request.app_data::<web::Data<dyn KeyActivity>>();
    if let (Some(format), Some(activity)) = (format, activity)
        && let Ok(key) = bearer::key(request.headers(), format)
    {
        metrics::note_sent_in_clear();
        let code = AnswerCode(StatusCode::UPGRADE_REQUIRED.as_u16());
        let request_id = request_id.to_str().unwrap_or_default().to_owned();
        let reason = Some(RefusalReason::Unencrypted);
        let address = client(request.request()).address;
        let (at, fields, is_simulated) = (edge::now(), Vec::new(), false);
        let refusal = Refusal { at, code, reason, fields, is_simulated, address, request_id };
        activity.note_sent_in_clear(&key.digest(), refusal);
    }
}

/// The caller's request id if it is well formed, else a new one.
fn request_id(headers: &HeaderMap) -> HeaderValue {
    let is_well_formed = |value: &&HeaderValue| {
        let bytes = value.as_bytes();
        let is_allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
        (1..=REQUEST_ID_MAX).contains(&bytes.len()) && bytes.iter().all(is_allowed)
    };
    headers.get(X_REQUEST_ID).filter(is_well_formed).cloned().unwrap_or_else(new_request_id)
}

fn new_request_id() -> HeaderValue {
    let (id, mut text) = (Uuid::from_bytes(edge::random()), [0; Simple::LENGTH]);
    HeaderValue::from_str(id.simple().encode_lower(&mut text)).unwrap_or_else(|_| HeaderValue::from_static("unknown"))
}
