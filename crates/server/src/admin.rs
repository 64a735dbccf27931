//! Probes and metrics for operators: whether the process is alive, whether it can work, and how much it does.

use std::net::TcpListener;
use std::sync::Arc;

use actix_web::dev::Server;
use actix_web::{App, HttpResponse, HttpServer, web};
use intake_http::{AnswerCounts, Connections};
use serde_json::json;

use crate::certificates::CurrentCertificate;
use crate::readiness::Readiness;

/// Probes and metrics, on a listener of their own.
pub(crate) fn serve(
    listener: TcpListener,
    readiness: Readiness,
    counts: Arc<AnswerCounts>,
    connections: Connections,
    certificate: Option<Arc<CurrentCertificate>>,
) -> std::io::Result<Server> {
    let (readiness, counts) = (web::Data::new(readiness), web::Data::from(counts));
    let (connections, certificate) = (web::Data::new(connections), web::Data::new(certificate));
    let application = move || {
        App::new()
            .app_data(readiness.clone())
            .app_data(counts.clone())
            .app_data(connections.clone())
            .app_data(certificate.clone())
            .route("/livez", web::get().to(live))
            .route("/readyz", web::get().to(ready))
            .route("/metrics", web::get().to(metrics))
    };
    let server = HttpServer::new(application).workers(1).disable_signals().shutdown_timeout(1);
    Ok(server.listen(listener)?.run())
}

async fn live() -> HttpResponse {
    HttpResponse::Ok().content_type("text/plain").body("ok\n")
}

async fn ready(readiness: web::Data<Readiness>) -> HttpResponse {
    match readiness.get().await {
        Ok(()) => HttpResponse::Ok().json(json!({ "ready": true })),
        Err(reason) => HttpResponse::ServiceUnavailable().json(json!({ "ready": false, "reason": reason.as_str() })),
    }
}

async fn metrics(
    counts: web::Data<AnswerCounts>,
    connections: web::Data<Connections>,
    certificate: web::Data<Option<Arc<CurrentCertificate>>>,
) -> HttpResponse {
    let end = certificate.as_ref().as_ref().map(|certificate| certificate.to_text()).unwrap_or_default();
    let text = counts.to_text() + &connections.to_text() + &end;
    HttpResponse::Ok().content_type("text/plain; version=0.0.4").body(text)
}
