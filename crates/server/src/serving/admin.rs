//! Probes and metrics for operators: whether the process is alive, whether it can work, and how much it does. A new
//! connection takes the place of one that is silent or idle, so that nobody who reaches this listener keeps the probes
//! out.

use std::net::TcpListener;
use std::sync::Arc;

use actix_web::dev::Server;
use actix_web::middleware::from_fn;
use actix_web::{App, HttpResponse, web};
use intake_http::{Connections, Hsts, TrustedProxies};
use intake_infra::stuck_thread;
use intake_metrics::{Kind, MEDIA_TYPE, MetricsText};
use serde_json::json;

use crate::clock;
use crate::process_metrics;
use crate::serving::certificates::CurrentCertificate;
use crate::serving::listeners::{self, ApiListeners};
use crate::serving::readiness::Readiness;
use crate::telemetry;
use crate::traces;

/// Far more than monitors need, and few beside the files of the process, which clients' connections need.
const CONNECTIONS_MAX: usize = 100;

/// Probes and metrics, on a listener of their own.
pub(crate) fn serve(
    listener: TcpListener,
    readiness: Readiness,
    connections: Connections,
    certificate: Option<Arc<CurrentCertificate>>,
) -> std::io::Result<Server> {
    let readiness = web::Data::new(readiness);
    let (connections, certificate) = (web::Data::new(connections), web::Data::new(certificate));
    let application = move || {
        App::new()
            .wrap(from_fn(intake_http::note_progress))
            .app_data(readiness.clone())
            .app_data(connections.clone())
            .app_data(certificate.clone())
            .route("/livez", web::get().to(live))
            .route("/readyz", web::get().to(ready))
            .route("/metrics", web::get().to(metrics))
    };
    let places = Connections::new(CONNECTIONS_MAX, TrustedProxies::default(), Hsts::default(), None);
    listeners::serve(ApiListeners::plain(listener), 1, CONNECTIONS_MAX, &places, application)
}

async fn live() -> HttpResponse {
    match stuck_thread() {
        None => HttpResponse::Ok().content_type("text/plain").body("ok\n"),
        Some(name) => HttpResponse::ServiceUnavailable().content_type("text/plain").body(format!("stuck: {name}\n")),
    }
}

async fn ready(readiness: web::Data<Readiness>) -> HttpResponse {
    match readiness.get().await {
        Ok(()) => HttpResponse::Ok().json(json!({ "ready": true })),
        Err(reason) => HttpResponse::ServiceUnavailable().json(json!({ "ready": false, "reason": reason.as_str() })),
    }
}

async fn metrics(
    readiness: web::Data<Readiness>,
    connections: web::Data<Connections>,
    certificate: web::Data<Option<Arc<CurrentCertificate>>>,
) -> HttpResponse {
    let mut text = MetricsText::default();
    let is_ready = u8::from(readiness.get().await.is_ok());
    text.gauge("intake_ready", "Whether the service can store patients, as /readyz says.", is_ready);
    let is_alive = u8::from(stuck_thread().is_none());
    text.gauge("intake_alive", "Whether no part of the program is stuck, as /livez says.", is_alive);
    let dropped = telemetry::dropped_lines();
    text.counter("intake_log_lines_dropped_total", "Lines that the log had no room for.", dropped);
    traces::write_metrics(&mut text);
    intake_http::write_metrics(&mut text);
    intake_dashboard::write_metrics(&mut text);
    intake_infra::write_metrics(&mut text);
    connections.write_metrics(&mut text);
    if let Some(certificate) = certificate.as_ref() {
        certificate.write_metrics(&mut text);
    }
    let build = [
        ("version", env!("CARGO_PKG_VERSION")),
        ("commit", env!("BUILD_COMMIT")),
        ("features", env!("BUILD_FEATURES")),
    ];
    text.family("intake_build_info", "The program's version, commit and features.", Kind::Gauge).sample(&build, 1);
    clock::write_metrics(&mut text);
    process_metrics::write_metrics(&mut text);
    HttpResponse::Ok().content_type(MEDIA_TYPE).body(text.into_text())
}
