//! The few files that pages load, built into the program.

use actix_web::HttpResponse;
use actix_web::web::Path;

use crate::page::error::PageError;

const FILES: [(&str, &str, &str); 7] = [
    ("style.css", "text/css; charset=utf-8", include_str!("../../assets/style.css")),
    ("script.js", "text/javascript; charset=utf-8", include_str!("../../assets/script.js")),
    ("docs.css", "text/css; charset=utf-8", include_str!("../../assets/docs.css")),
    ("docs.js", "text/javascript; charset=utf-8", include_str!("../../assets/docs.js")),
    ("try-it.js", "text/javascript; charset=utf-8", include_str!("../../assets/try-it.js")),
    ("passkey.js", "text/javascript; charset=utf-8", include_str!("../../assets/passkey.js")),
    ("icon.svg", "image/svg+xml", include_str!("../../assets/icon.svg")),
];

pub(crate) async fn asset(name: Path<String>) -> Result<HttpResponse, PageError> {
    let file = FILES.iter().find(|(known, ..)| *known == name.as_str()).ok_or(PageError::NotFound)?;
    let (_, media_type, content) = *file;
    Ok(HttpResponse::Ok().content_type(media_type).body(content))
}
