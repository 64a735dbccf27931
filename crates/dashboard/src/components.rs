//! The page of the dashboard's components in all their states, for people who work on its looks. Tests photograph it.
//! It exists only in development.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use askama::Template;
use intake_domain::{AnswerCode, AnswerCount};
use intake_edge as edge;
use time::Duration;

use crate::api_keys::chart::Chart;
use crate::api_keys::sparkline::Sparkline;
use crate::page::environment::is_development;
use crate::page::error::PageError;
use crate::page::router::Pages;
use crate::page::shell::render;

/// The classes of a status, each with a word that it is used for.
const STATUSES: [(&str, &str); 8] = [
    ("active", "Active"),
    ("paused", "Paused"),
    ("warn", "Often refused"),
    ("bad", "Only refusals"),
    ("expired", "Expired"),
    ("suspended", "Suspended"),
    ("revoked", "Revoked"),
    ("done", "Done"),
];

#[derive(Template)]
#[template(path = "components.html")]
struct ComponentsPage {
    statuses: &'static [(&'static str, &'static str)],
    /// The chart of a key, and the numbers above it.
    chart: Chart,
    accepted: &'static str,
    refused: &'static str,
    spark: Sparkline,
}

/// Adds the page.
pub(crate) fn routes(pages: Pages) -> Pages {
    pages.get("/components", components)
}

async fn components() -> Result<HttpResponse, PageError> {
    if !is_development() {
        return Err(PageError::NotFound);
    }
    let since = edge::now().date() - Duration::days(29);
    let answer = |day: u32, status: u16, count: u32| AnswerCount {
        day: since + Duration::days(day.into()),
        code: AnswerCode(status),
        field: None,
        count: count.into(),
    };
    let accepted = (0..30).map(|day| answer(day, 201, 40 + day * 37 % 90));
    let answers: Vec<_> = accepted.chain((0..30).step_by(4).map(|day| answer(day, 422, 3 + day % 11))).collect();
    let page = ComponentsPage {
        statuses: &STATUSES,
        chart: Chart::new(&answers, since),
        accepted: "2,505",
        refused: "52",
        spark: Sparkline::new(&answers, since),
    };
    render(StatusCode::OK, &page)
}
