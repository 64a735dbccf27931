//! The HTTP interface through which integrations create patients: thin, and free of rules about patients and of SQL. It
//! turns requests into calls of the domain's use cases, and whatever comes of them into answers of one shape.

mod answer_counts;
mod connection;
pub mod edge;
mod envelope;
mod openapi;
mod patients;
mod problem;

use actix_web::http::header;
use actix_web::{HttpRequest, HttpResponse, web};

pub use answer_counts::AnswerCounts;
pub use connection::crowd::{Connections, Place};
pub use connection::stream::Connection;
pub use envelope::{TrustedProxies, envelope};
pub use openapi::{fields_table, openapi};
pub use patients::body::in_time;
pub use patients::rate_limit::{Rate, RateLimit, RateLimitError, RateLimiter, Standing, TokenBuckets};
pub use problem::Cause;

use patients::create;
use problem::Problem;

/// Two parts for the benchmarks, which see what is public alone.
#[cfg(feature = "bench")]
#[doc(hidden)]
pub mod bench {
    use intake_domain::{NewPatient, Patient};
    use time::OffsetDateTime;

    pub fn decode_and_validate(body: &[u8], now: OffsetDateTime) -> Option<NewPatient> {
        crate::patients::decode::draft(body).ok()?.validate(now).ok()
    }

    pub fn write_answer(patient: &Patient<'_>) -> Option<Vec<u8>> {
        crate::patients::created::body(patient).ok()
    }
}

/// Adds the interface to an application, which must hold, as `web::Data`: a `dyn PatientRegister`, a `dyn KeyStore`, a
/// `KeyFormat`, an `Option<RateLimiter>` and `TrustedProxies`; which must be wrapped in [`envelope`], and whose connections
/// are each a [`Connection`].
pub fn configure(application: &mut web::ServiceConfig) {
    let patients = web::resource("/api/v1/patients")
        .route(web::post().to(create::create))
        .route(web::method(actix_web::http::Method::OPTIONS).to(options))
        .default_service(web::to(method_not_allowed));
    application.service(patients);
}

/// Answers for every path that nothing is at.
pub async fn not_found(request: HttpRequest, payload: web::Payload) -> HttpResponse {
    create::refuse(&Problem::NotFound, &request, payload).await
}

async fn options() -> HttpResponse {
    HttpResponse::NoContent().insert_header((header::ALLOW, problem::ALLOWED_METHODS)).finish()
}

async fn method_not_allowed(request: HttpRequest, payload: web::Payload) -> HttpResponse {
    create::refuse(&Problem::MethodNotAllowed, &request, payload).await
}
