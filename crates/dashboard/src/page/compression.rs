//! Compresses what browsers load. A page that another site has asked for is sent uncompressed: its length would reveal
//! secrets to a person who watches the connection and can put text into the page by its address.

use std::io::Write;

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::ServiceResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, VARY,
};
use actix_web::web::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Shorter texts hardly become shorter.
const LENGTH_MIN: usize = 512;

/// The same content, compressed before.
pub(crate) struct Compressed(pub(crate) Bytes);

/// The content in the format gzip. None: it would become longer.
pub(crate) fn gzip(content: &[u8]) -> Option<Vec<u8>> {
    if content.len() < LENGTH_MIN {
        return None;
    }
    let mut encoder = GzEncoder::new(Vec::with_capacity(content.len() / 4), Compression::default());
    encoder.write_all(content).ok()?;
    encoder.finish().ok().filter(|compressed| compressed.len() < content.len())
}

/// Compresses an answer, if its reader takes that.
pub(crate) fn compress(response: ServiceResponse<BoxBody>) -> ServiceResponse<BoxBody> {
    if response.status() == StatusCode::NOT_MODIFIED || !is_text(response.headers()) {
        return response;
    }
    let may_compress =
        accepts_gzip(response.request().headers()) && is_from_elsewhere(response.request().headers()) != Some(true);
    let (request, mut response) = response.into_parts();
    let before = response.extensions_mut().remove::<Compressed>();
    let (mut response, body) = response.into_parts();
    response.headers_mut().insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    let body = match body.try_into_bytes() {
        Ok(body) => body,
        Err(body) => return ServiceResponse::new(request, response.set_body(body)),
    };
    let compressed = match before {
        _ if !may_compress => None,
        Some(Compressed(before)) => Some(before),
        None => gzip(&body).map(Bytes::from),
    };
    if compressed.is_some() {
        response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    ServiceResponse::new(request, response.set_body(BoxBody::new(compressed.unwrap_or(body))))
}

fn is_text(headers: &HeaderMap) -> bool {
    let media_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    media_type.starts_with("text/") || media_type.starts_with("image/svg")
}

fn accepts_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT_ENCODING).filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|coding| {
        let (coding, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let weight = weight.trim().strip_prefix("q=").map(str::trim);
        let is_refused = weight.is_some_and(|weight| weight.parse::<f32>().is_ok_and(|weight| weight <= 0.0));
        coding.trim().eq_ignore_ascii_case("gzip") && !is_refused
    })
}

/// Returns whether another site asks for it; none: the browser does not say.
pub(crate) fn is_from_elsewhere(headers: &HeaderMap) -> Option<bool> {
    headers.get(SEC_FETCH_SITE).map(|site| site != "same-origin" && site != "none")
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use actix_web::HttpResponse;
    use actix_web::test::TestRequest;

    use super::*;

    fn answer(headers: &[(&'static str, &'static str)], text: &str) -> (bool, Vec<u8>) {
        let request = headers.iter().fold(TestRequest::get(), |request, header| request.insert_header(*header));
        let response = HttpResponse::Ok().content_type("text/html; charset=utf-8").body(text.to_owned());
        let response = compress(ServiceResponse::new(request.to_http_request(), response));
        assert_eq!(response.headers().get(VARY).unwrap(), "Accept-Encoding");
        let is_compressed = response.headers().get(CONTENT_ENCODING).is_some();
        (is_compressed, response.into_body().try_into_bytes().unwrap().to_vec())
    }

    #[test]
    fn a_page_is_compressed_for_readers_who_take_it() {
        let text = "<p>A page of a dashboard.</p>".repeat(100);
        for accepted in ["gzip", "deflate, GZIP;q=0.5", "br;q=1.0, gzip;q=0.8, *;q=0.1"] {
            let (is_compressed, body) = answer(&[("accept-encoding", accepted)], &text);
            assert!(is_compressed && body.len() < text.len() / 10, "{accepted}");
            let mut found = String::new();
            flate2::read::GzDecoder::new(body.as_slice()).read_to_string(&mut found).unwrap();
            assert_eq!(found, text);
        }
        for refused in [&[][..], &[("accept-encoding", "br")], &[("accept-encoding", "gzip;q=0")]] {
            assert_eq!(answer(refused, &text), (false, text.clone().into_bytes()), "{refused:?}");
        }
        assert_eq!(answer(&[("accept-encoding", "gzip")], "short"), (false, b"short".to_vec()));
    }

    #[test]
    fn a_page_that_another_site_asks_for_shows_nothing_by_its_length() {
        let text = "<p>A page of a dashboard.</p>".repeat(100);
        for (site, expected) in [("cross-site", false), ("same-site", false), ("same-origin", true), ("none", true)] {
            let headers = [("accept-encoding", "gzip"), ("sec-fetch-site", site)];
            assert_eq!(answer(&headers, &text).0, expected, "{site}");
        }
    }
}
