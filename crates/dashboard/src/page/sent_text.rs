//! The queries and forms that are sent to pages, refused as a whole where they hold what is no text: NUL, which the
//! database refuses, and bytes that are not UTF-8, which would otherwise be replaced without a word.

use actix_web::HttpMessage;
use actix_web::dev::{Payload, ServiceRequest};
use actix_web::error::PayloadError;
use actix_web::web::{self, Bytes};
use percent_encoding::percent_decode;

use crate::page::error::PageError;

/// Larger than any form here.
pub(crate) const FORM_MAX: usize = 16 * 1024;
const FORM: &str = "application/x-www-form-urlencoded";

/// Refuses an address with a query that is no text.
pub(crate) fn assert_query(request: &ServiceRequest) -> Result<(), PageError> {
    if is_text(request.query_string().as_bytes()) { Ok(()) } else { Err(PageError::BadAddress) }
}

/// Reads the form that a request carries, and leaves it there for its handler. None: it carries something else.
pub(crate) async fn read_form(request: &mut ServiceRequest) -> Result<Option<Bytes>, PageError> {
    if !request.content_type().eq_ignore_ascii_case(FORM) {
        return Ok(None);
    }
    let is_utf8 = request.encoding().is_ok_and(|encoding| encoding.name() == "UTF-8");
    let body = request.extract::<web::Payload>().await.map_err(|_| PageError::BadForm)?;
    let form = body.to_bytes_limited(FORM_MAX).await.map_err(|_| PageError::BadForm)?.map_err(|error| {
        let is_without_room = matches!(error.as_error(), Some(PayloadError::Overflow));
        if is_without_room { PageError::Full } else { PageError::BadForm }
    })?;
    if !is_utf8 || !is_text(&form) {
        return Err(PageError::BadForm);
    }
    request.set_payload(Payload::from(form.clone()));
    Ok(Some(form))
}

fn is_text(encoded: &[u8]) -> bool {
    percent_decode(encoded).decode_utf8().is_ok_and(|text| !text.contains('\0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_utf8_without_nul_is_text() {
        for text in ["", "a=b&c=%E2%80%A8", "q=%", "q=%zz", "q=%2500", "q=\u{e9}"] {
            assert!(is_text(text.as_bytes()), "{text}");
        }
        for other in [&b"q=%00"[..], b"%00=a", b"q=\0", b"q=%FF", b"q=\xFF", b"q=%ED%A0%80", b"q=%C0%80"] {
            assert!(!is_text(other), "{other:?}");
        }
    }
}
