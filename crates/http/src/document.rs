//! Texts that are the same for everybody. Who has one already asks with its tag, and is told whether it is still current.

use actix_web::HttpResponse;
use actix_web::http::header::{ETag, EntityTag, IfNoneMatch};
use actix_web::web::Bytes;
use sha2::{Digest, Sha256};

use crate::envelope::Revalidated;

/// A text with the tag by which it is known again.
#[derive(Clone, Debug)]
pub struct Document {
    media_type: &'static str,
    text: Bytes,
    etag: EntityTag,
}

impl Document {
    /// A document of this media type.
    #[must_use]
    pub fn new(media_type: &'static str, text: String) -> Self {
        let digest: String = Sha256::digest(&text).iter().map(|byte| format!("{byte:02x}")).collect();
        Self { media_type, text: text.into(), etag: EntityTag::new_strong(digest) }
    }

    /// The document, or nothing but its tag for who has it, as the header `If-None-Match` says.
    #[must_use]
    pub fn answer(&self, known: Option<&IfNoneMatch>) -> HttpResponse {
        let is_known = known.is_some_and(|known| match known {
            IfNoneMatch::Any => true,
            IfNoneMatch::Items(tags) => tags.iter().any(|tag| tag.weak_eq(&self.etag)),
        });
        let mut response = if is_known { HttpResponse::NotModified() } else { HttpResponse::Ok() };
        response.insert_header(ETag(self.etag.clone())).content_type(self.media_type);
        let mut response = response.body(if is_known { Bytes::new() } else { self.text.clone() });
        response.extensions_mut().insert(Revalidated);
        response
    }
}
