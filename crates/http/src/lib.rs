//! The HTTP interface through which integrations create patients. It turns requests into calls of the domain's use
//! cases and their results into answers of one shape; it knows no rules about patients and no SQL.

mod answer_counts;
mod answer_note;
mod client_address;
mod connection;
mod document;
mod envelope;
mod failure_log;
mod hsts;
mod log_pace;
mod methods;
mod metrics;
mod misplaced_key;
mod openapi;
mod own_key;
mod patients;
mod postman;
mod problem;
mod request_log;
mod request_times;
mod route_name;
mod trusted_proxies;

use std::sync::Arc;

use actix_web::guard::{Any, Get, Head};
use actix_web::http::{Method, header};
use actix_web::web::{Data, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse, Resource, Route, web};
use intake_domain::{KeyActivity, KeyFormat, OwnKeyStore, PatientRegister};

pub use answer_note::{Cause, Note};
pub use connection::admission::{Connections, Slot};
pub use connection::pieces::PIECE_MAX;
pub use connection::stream::Connection;
pub use connection::turns::Turns;
pub use document::Document;
pub use envelope::{Immutable, RequestId, envelope, note_progress};
pub use hsts::Hsts;
pub use log_pace::LogPace;
pub use methods::Methods;
pub use metrics::write_metrics;
pub use openapi::{example_patient, openapi, whole_example_patient};
pub use patients::body::within_limits;
pub use patients::rate_limit::{Allowance, Rate, RateLimit, TokenBuckets};
pub use postman::postman_collection;
pub use trusted_proxies::TrustedProxies;

use openapi::OpenApiDocument;
use patients::rate_limit::RateLimiter;
use patients::{admission, create};
use problem::Problem;

/// A function for the benchmarks, which can only call what is public.
#[cfg(feature = "bench")]
#[doc(hidden)]
pub mod bench {
    use intake_domain::Patient;

    pub fn write_answer(patient: &Patient<'_>) -> Option<Vec<u8>> {
        crate::patients::created::body(patient).ok()
    }
}

/// The interface and everything that it needs. Its application must be wrapped in [`envelope()`] and served over
/// [`Connection`]s.
pub struct Api {
    /// Register of patients.
    pub register: Arc<dyn PatientRegister>,
    /// Records how requests with keys were answered.
    pub activity: Arc<dyn KeyActivity>,
    /// Answers what keys ask about themselves.
    pub own_keys: Arc<dyn OwnKeyStore>,
    /// Format of keys.
    pub format: KeyFormat,
    /// Rate at which a key may be used; none: without limit.
    pub rate: Option<Rate>,
    /// The proxies whose `X-Forwarded` headers are believed.
    pub proxies: TrustedProxies,
    /// The address by which integrations reach the service, without a slash at its end.
    pub base_url: String,
}

impl Api {
    /// Returns what adds the interface to an application. The applications of all workers share its state.
    pub fn configure(self) -> impl Fn(&mut ServiceConfig) + Clone + Send {
        let (register, activity) = (Data::from(self.register), Data::from(self.activity));
        let own_keys = Data::from(self.own_keys);
        let (format, proxies) = (Data::new(self.format), Data::new(self.proxies));
        let limiter = Data::new(self.rate.map(RateLimiter::new));
        let document = Data::new(OpenApiDocument::new(self.base_url));
        move |application| {
            application
                .app_data(register.clone())
                .app_data(activity.clone())
                .app_data(own_keys.clone())
                .app_data(format.clone())
                .app_data(proxies.clone())
                .app_data(limiter.clone())
                .app_data(document.clone())
                .configure(routes);
        }
    }
}

fn routes(application: &mut ServiceConfig) {
    let create = |path| resource(path, Methods::Post);
    let read = |path, route: Route| resource(path, Methods::Get).route(route.guard(Any(Get()).or(Head())));
    application
        .service(create("/api/v1/patients").route(web::post().to(create::create)))
        .service(create("/api/v1/patients/validate").route(web::post().to(create::validate)))
        .service(read("/api/v1/key", web::to(own_key::key)))
        .service(read("/api/v1/key/days/{date}", web::to(own_key::day)))
        .service(read("/api/v1/key/refusals", web::to(own_key::refusals)))
        .service(read("/api/v1/key/quality", web::to(own_key::quality)))
        .service(read("/api/v1/openapi.json", web::to(openapi::document)))
        // For targets that are no path, such as that of `OPTIONS *`.
        .default_service(web::to(not_found));
}

/// A path that answers OPTIONS. The answer to every method that no route is added for is 405.
pub fn resource(path: &str, methods: Methods) -> Resource {
    web::resource(path)
        .route(web::method(Method::OPTIONS).to(move || options(methods)))
        .default_service(web::to(move |request, payload| wrong_method(methods, request, payload)))
}

/// The answer to methods that a path does not take.
pub async fn wrong_method(methods: Methods, request: HttpRequest, payload: web::Payload) -> HttpResponse {
    refuse(Problem::WrongMethod(methods), request, payload).await
}

/// The answer for paths that do not exist.
pub async fn not_found(request: HttpRequest, payload: web::Payload) -> HttpResponse {
    refuse(Problem::NotFound, request, payload).await
}

async fn options(methods: Methods) -> HttpResponse {
    HttpResponse::NoContent().insert_header((header::ALLOW, methods.allow())).finish()
}

async fn refuse(problem: Problem, request: HttpRequest, payload: web::Payload) -> HttpResponse {
    admission::refuse(&problem, &request, payload).await
}
