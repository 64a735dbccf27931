//! Probes and metrics of a delivery.

use std::net::TcpListener;
use std::sync::Arc;
use std::thread::Builder;

use actix_web::rt::System;
use actix_web::{App, HttpResponse, HttpServer, web};
use intake_metrics::{Kind, MEDIA_TYPE, MetricsText};
use serde_json::json;

use crate::commands::deliver::workers::Shared;
use crate::process_metrics;

const CONNECTIONS_MAX: usize = 20;

/// Serves them for as long as the program runs.
pub(crate) fn serve(listener: TcpListener, shared: &Arc<Shared>) -> anyhow::Result<()> {
    let shared = web::Data::from(Arc::clone(shared));
    let application = move || {
        App::new()
            .app_data(shared.clone())
            .route("/livez", web::get().to(async || "ok\n"))
            .route("/readyz", web::get().to(ready))
            .route("/metrics", web::get().to(metrics))
    };
    let serve = move || {
        System::new().block_on(async {
            let server = HttpServer::new(application).workers(1).max_connections(CONNECTIONS_MAX).disable_signals();
            server.listen(listener)?.run().await
        })
    };
    Builder::new().name("probes".into()).spawn(serve)?;
    Ok(())
}

async fn ready(shared: web::Data<Shared>) -> HttpResponse {
    match shared.fault() {
        None => HttpResponse::Ok().json(json!({ "ready": true })),
        Some(reason) => HttpResponse::ServiceUnavailable().json(json!({ "ready": false, "reason": reason })),
    }
}

async fn metrics(shared: web::Data<Shared>) -> HttpResponse {
    let mut text = MetricsText::default();
    let is_ready = u8::from(shared.fault().is_none());
    text.gauge("intake_deliver_ready", "Whether the target takes events, as /readyz says.", is_ready);
    let mut taken = text.family("intake_deliver_taken_total", "Events that the target has taken.", Kind::Counter);
    taken.sample(&[("kind", "patient")], shared.delivered());
    taken.sample(&[("kind", "erasure")], shared.erased());
    let help = "When the target had taken all that there was, or the delivery began, in seconds since 1970.";
    text.gauge("intake_deliver_up_to_date_seconds", help, shared.up_to_date_at());
    if let Ok(waiting) = shared.folder.waiting() {
        text.gauge("intake_deliver_waiting", "Events that failed and are tried again.", waiting);
    }
    if let Ok(refused) = shared.folder.refused() {
        text.gauge("intake_deliver_refused", "Events that the target refused, and nobody had sent again.", refused);
    }
    process_metrics::write_metrics(&mut text);
    HttpResponse::Ok().content_type(MEDIA_TYPE).body(text.into_text())
}
