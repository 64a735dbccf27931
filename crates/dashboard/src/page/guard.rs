//! What surrounds every page: its environment, a policy that lets nothing foreign run, and a check that refuses changes
//! sent from other sites, and queries and forms that are no text. That a visitor is signed in, and that a form is of
//! this session, is asserted where a handler takes a `Visitor` (`visitor.rs`).

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::http::header::{HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN};
use actix_web::middleware::Next;
use actix_web::web::Bytes;
use actix_web::{Error, HttpMessage, ResponseError};
use intake_domain::{Environment, KeyFormat};

use crate::page::compression::{compress, is_from_elsewhere};
use crate::page::error::PageError;
use crate::page::part::shared;
use crate::page::{draft, environment, fault, notice, refused, sent_text};

/// Everything comes from this origin; nothing is framed, nothing is inline.
const HEADERS: [(&str, &str); 5] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
         form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    (
        "permissions-policy",
        "camera=(), geolocation=(), microphone=(), payment=(), usb=(), clipboard-write=(self), \
         publickey-credentials-create=(self), publickey-credentials-get=(self)",
    ),
    ("cross-origin-opener-policy", "same-origin"),
];

pub(crate) async fn guard(
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let checked = check(&mut request).await;
    let typed = checked.as_ref().ok().cloned().flatten();
    let format = shared::<KeyFormat>(request.request());
    let environment = format.map_or(Environment::Production, KeyFormat::environment);
    let answer = async {
        let response = match checked {
            Ok(_) => next.call(request).await?.map_into_boxed_body(),
            Err(error) => {
                error.refusal().into_iter().for_each(refused::note);
                request.into_response(error.error_response())
            }
        };
        Ok::<_, Error>(fault::frame(response).await)
    };
    let mut response = environment::within(environment, answer).await?;
    let (request, answer) = (response.request().clone(), response.response_mut());
    notice::clear(&request, answer);
    draft::clear(&request, answer);
    if let Some(typed) = typed {
        draft::keep(&request, &typed, answer);
    }
    for (name, value) in HEADERS {
        response.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    Ok(compress(response))
}

/// Refuses what no page takes. Returns the form that a change carries.
async fn check(request: &mut ServiceRequest) -> Result<Option<Bytes>, PageError> {
    let is_change = !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    if is_change {
        let form = request.take_payload();
        request.set_payload(intake_http::within_limits(form));
    }
    if request.path().starts_with("/api/") {
        return Ok(None);
    }
    sent_text::assert_query(request)?;
    if !is_change {
        return Ok(None);
    }
    if is_cross_site(request.headers()) {
        return Err(PageError::CrossSite);
    }
    sent_text::read_form(request).await
}

/// Browsers say which site a request comes from. Other programs say nothing, and have no cookie that could be abused.
fn is_cross_site(headers: &HeaderMap) -> bool {
    if let Some(is_from_elsewhere) = is_from_elsewhere(headers) {
        return is_from_elsewhere;
    }
    let Some(origin) = headers.get(ORIGIN) else {
        return false;
    };
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let authority = origin.to_str().ok().and_then(|origin| origin.strip_prefix("https://"));
    authority.is_none() || authority != host
}
