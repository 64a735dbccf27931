//! The page Help: the guide for people at a clinic, who need no technical knowledge. Everybody may read it, because
//! it says what to do when signing in fails.

use std::sync::LazyLock;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use askama::Template;

use crate::docs::{markdown, outline};
use crate::mails::Mails;
use crate::page::error::PageError;
use crate::page::part::Part;
use crate::page::router::Pages;
use crate::page::shell::{Shell, render};
use crate::page::visitor::Onlooker;

const TEXT: &str = include_str!("../../../docs/clinics.md");

#[derive(Template)]
#[template(path = "help.html")]
struct HelpPage<'a> {
    /// None: nobody is signed in.
    shell: Option<Shell>,
    guide: &'static Guide,
    /// Whom members ask, as the service operator says.
    contact: Option<&'a str>,
}

/// The guide as HTML, made once.
struct Guide {
    sections: Vec<outline::Heading>,
    html: String,
}

static GUIDE: LazyLock<Guide> = LazyLock::new(|| {
    let text = sections();
    let outlines = outline::of_files(&[("clinics.md", text.clone())]);
    let html = outlines.iter().map(|outline| markdown::to_html(&text, outline, &outlines)).collect();
    Guide { sections: outlines.into_iter().flat_map(|outline| outline.headings).collect(), html }
});

/// Adds the page.
pub(crate) fn routes(pages: Pages) -> Pages {
    pages.get("/help", help)
}

async fn help(onlooker: Option<Onlooker>, mails: Part<Mails>) -> Result<HttpResponse, PageError> {
    let shell = onlooker.map(|Onlooker(visitor)| Shell::new("help", &visitor));
    render(StatusCode::OK, &HelpPage { shell, guide: &GUIDE, contact: mails.contact.as_deref() })
}

/// The guide without its title, which the page has itself, and with headings of the level below that.
fn sections() -> String {
    TEXT.split_once('\n').map_or(TEXT, |(_, text)| text).replace("\n## ", "\n# ")
}
