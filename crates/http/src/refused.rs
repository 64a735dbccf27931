//! What is noted of a request with a key that was refused: the answer carries it up to where the id of the request is known.
//! An accepted request carries nothing.

use actix_web::body::MessageBody;
use actix_web::dev::ServiceResponse;
use actix_web::http::header::HeaderValue;
use actix_web::web::Data;
use intake_domain::{KeyDigest, KeyRefusal, KeyStore, Refusal, RefusalReason};

use crate::edge;
use crate::problem::Problem;

/// Marks an answer, in its extensions, that refused a request with this key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refused {
    pub(crate) key: KeyDigest,
    pub(crate) reason: RefusalReason,
}

/// Notes the refusal that the answer is, if it is one.
pub(crate) fn note_refusal(response: &ServiceResponse<impl MessageBody>, request_id: &HeaderValue) {
    let refused = response.response().extensions().get::<Refused>().copied();
    let keys = response.request().app_data::<Data<dyn KeyStore>>();
    if let (Some(Refused { key, reason }), Some(keys)) = (refused, keys) {
        let (status, request_id) = (response.status().as_u16(), request_id.to_str().unwrap_or_default().to_owned());
        keys.note_refusal(&key, Refusal { at: edge::now(), status, reason: Some(reason), request_id });
    }
}

impl Refused {
    /// The mark of an answer to a request with this key. None: the problem says that there is no such key.
    pub(crate) fn new(key: KeyDigest, problem: &Problem) -> Option<Self> {
        let reason = match problem {
            Problem::NotHttps => RefusalReason::Unencrypted,
            Problem::KeyRefused(KeyRefusal::Revoked) => RefusalReason::Revoked,
            Problem::KeyRefused(KeyRefusal::Expired) => RefusalReason::Expired,
            Problem::RateExceeded(_) => RefusalReason::RateExceeded,
            Problem::UnsupportedMediaType => RefusalReason::MediaType,
            Problem::ContentTooLarge | Problem::HeadTooLarge => RefusalReason::TooLarge,
            Problem::BodyTooSlow | Problem::HeadTooSlow => RefusalReason::TooSlow,
            Problem::Malformed(_) | Problem::AfterConnectionClose => RefusalReason::Malformed,
            Problem::Invalid(_) => RefusalReason::Invalid,
            Problem::UnknownMembers(..) => RefusalReason::UnknownMembers,
            Problem::DifferentPatient => RefusalReason::DifferentPatient,
            Problem::Erased => RefusalReason::Erased,
            Problem::Full => RefusalReason::Full,
            Problem::Unavailable(_) => RefusalReason::Unavailable,
            Problem::Unexpected(_) => RefusalReason::Unexpected,
            Problem::KeyRefused(KeyRefusal::Unknown)
            | Problem::NoKey
            | Problem::MalformedKey(_)
            | Problem::NotFound
            | Problem::PostOnly
            | Problem::GetOnly => return None,
        };
        Some(Self { key, reason })
    }
}
