//! Probes and metrics of a delivery.

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, OnceLock};
use std::thread::Builder;

use actix_web::rt::System;
use actix_web::{App, HttpResponse, HttpServer, web};
use anyhow::Context as _;
use intake_edge as edge;
use intake_metrics::{Kind, MEDIA_TYPE, MetricsText};
use serde_json::json;

use crate::commands::deliver::workers::Shared;
use crate::process_metrics;

const CONNECTIONS_MAX: usize = 20;

/// A delivery, from the start of the program on.
pub(crate) struct Watched {
    /// In seconds since 1970.
    started_at: i64,
    /// None until the database can be read.
    delivery: OnceLock<Arc<Shared>>,
}

impl Watched {
    pub(crate) fn begin(&self, delivery: &Arc<Shared>) {
        self.delivery.get_or_init(|| Arc::clone(delivery));
    }

    /// Reason why the target gets nothing at present.
    fn fault(&self) -> Option<String> {
        self.delivery.get().map_or_else(|| Some("the database was not read yet".to_owned()), |shared| shared.fault())
    }
}

/// Serves them for as long as the program runs, also while it waits for the database.
pub(crate) fn serve(address: SocketAddr) -> anyhow::Result<Arc<Watched>> {
    let listener = TcpListener::bind(address).with_context(|| format!("--monitor: {address}"))?;
    let started_at = edge::now().unix_timestamp();
    let watched = Arc::new(Watched { started_at, delivery: OnceLock::new() });
    let shared = web::Data::from(Arc::clone(&watched));
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
    Ok(watched)
}

async fn ready(watched: web::Data<Watched>) -> HttpResponse {
    match watched.fault() {
        None => HttpResponse::Ok().json(json!({ "ready": true })),
        Some(reason) => HttpResponse::ServiceUnavailable().json(json!({ "ready": false, "reason": reason })),
    }
}

async fn metrics(watched: web::Data<Watched>) -> HttpResponse {
    let mut text = MetricsText::default();
    let is_ready = u8::from(watched.fault().is_none());
    text.gauge("intake_deliver_ready", "Whether the target takes events, as /readyz says.", is_ready);
    let help = "When the target had taken all that there was, or the delivery began, in seconds since 1970.";
    let up_to_date_at = watched.delivery.get().map_or(watched.started_at, |shared| shared.figures.up_to_date_at());
    text.gauge("intake_deliver_up_to_date_seconds", help, up_to_date_at);
    if let Some(shared) = watched.delivery.get() {
        write_counts(shared, &mut text);
    }
    process_metrics::write_metrics(&mut text);
    HttpResponse::Ok().content_type(MEDIA_TYPE).body(text.into_text())
}

fn write_counts(shared: &Shared, text: &mut MetricsText) {
    let mut taken = text.family("intake_deliver_taken_total", "Events that the target has taken.", Kind::Counter);
    let figures = &shared.figures;
    taken.sample(&[("kind", "patient")], figures.delivered());
    taken.sample(&[("kind", "erasure")], figures.erased());
    let backlog = figures.backlog();
    text.gauge("intake_deliver_backlog", "Events that wait in the feed, counted up to 100,000.", backlog.count);
    let age = backlog.oldest_at.map_or(0, |at| (edge::now() - at).whole_seconds());
    text.gauge("intake_deliver_oldest_age_seconds", "Age of the oldest of them, in seconds.", age);
    let answer = figures.answer_time().unwrap_or_default().as_secs_f64();
    text.gauge("intake_deliver_answer_seconds", "Time that the target takes to answer, on average.", answer);
    if let Ok(waiting) = shared.folder.waiting() {
        text.gauge("intake_deliver_waiting", "Events that failed and are tried again.", waiting);
    }
    if let Ok(refused) = shared.folder.refused() {
        text.gauge("intake_deliver_refused", "Events that the target refused, and nobody had sent again.", refused);
    }
}
