//! Probes and metrics for operators: whether the process is alive, whether it can work, and how much it does.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use actix_web::dev::Server;
use actix_web::{App, HttpResponse, HttpServer, web};
use intake_http::{AnswerCounts, Connections};
use intake_infra::Database;

use crate::certificates::CurrentCertificate;

/// A probe that takes longer counts as failed anyway.
const READY_TIMEOUT: Duration = Duration::from_secs(2);

/// Probes and metrics, on a listener of their own.
pub(crate) fn serve(
    listener: TcpListener,
    database: Database,
    counts: Arc<AnswerCounts>,
    connections: Connections,
    certificate: Option<Arc<CurrentCertificate>>,
) -> std::io::Result<Server> {
    let (database, counts) = (web::Data::new(database), web::Data::from(counts));
    let (connections, certificate) = (web::Data::new(connections), web::Data::new(certificate));
    let application = move || {
        App::new()
            .app_data(database.clone())
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

async fn ready(database: web::Data<Database>) -> HttpResponse {
    let is_ready = tokio::time::timeout(READY_TIMEOUT, database.is_reachable()).await.unwrap_or(false);
    if is_ready {
        HttpResponse::Ok().content_type("text/plain").body("ready\n")
    } else {
        HttpResponse::ServiceUnavailable().content_type("text/plain").body("the database cannot be reached\n")
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
