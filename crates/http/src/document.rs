//! Texts that are the same for everybody. A client that has one asks with its tag, and learns whether it is still
//! current.

use std::sync::LazyLock;

use actix_web::HttpResponse;
use actix_web::http::header::{ETag, EntityTag, IfNoneMatch};
use actix_web::web::Bytes;
use sha2::{Digest, Sha256};

use crate::envelope::Revalidated;

/// A text with the tag that identifies it: a weak one, because the text may be sent compressed. It is written for the
/// first reader.
pub struct Document {
    media_type: &'static str,
    written: LazyLock<Written, Box<dyn FnOnce() -> Written + Send>>,
}

struct Written {
    text: Bytes,
    etag: EntityTag,
}

impl Document {
    /// A document of this media type.
    #[must_use]
    pub fn new(media_type: &'static str, write: impl FnOnce() -> String + Send + 'static) -> Self {
        let write = || {
            let text = write();
            let digest: String = Sha256::digest(&text).iter().map(|byte| format!("{byte:02x}")).collect();
            Written { text: text.into(), etag: EntityTag::new_weak(digest) }
        };
        Self { media_type, written: LazyLock::new(Box::new(write)) }
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        &self.written.text
    }

    /// The document, or nothing but its tag for who has it, as the header `If-None-Match` says.
    #[must_use]
    pub fn answer(&self, known: Option<&IfNoneMatch>) -> HttpResponse {
        let Written { text, etag } = &*self.written;
        let is_known = known.is_some_and(|known| match known {
            IfNoneMatch::Any => true,
            IfNoneMatch::Items(tags) => tags.iter().any(|tag| tag.weak_eq(etag)),
        });
        let mut response = if is_known { HttpResponse::NotModified() } else { HttpResponse::Ok() };
        response.insert_header(ETag(etag.clone())).content_type(self.media_type);
        let mut response = response.body(if is_known { Bytes::new() } else { text.clone() });
        response.extensions_mut().insert(Revalidated);
        response
    }
}
