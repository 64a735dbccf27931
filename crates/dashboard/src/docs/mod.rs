//! The documentation for those who build an integration: Markdown files of the project as one page, with the service's
//! own address and kind of key in their examples. Everybody may read it.

mod changes;
mod files;
mod first_call;
pub(crate) mod markdown;
pub(crate) mod outline;
pub(crate) mod samples;

use std::sync::{Arc, OnceLock};

use actix_web::HttpResponse;
use actix_web::http::header::IfNoneMatch;
use actix_web::web::{Bytes, Header};
use askama::Template;
use intake_domain::{Environment, KeyFormat};
use intake_http::{Document, postman_collection, whole_example_patient};

use crate::page::compression::{self, Compressed};
use crate::page::environment;
use crate::page::part;
use crate::page::router::Pages;
use crate::page::shell::Shell;
use crate::page::visitor::Onlooker;
use files::{CHANGELOG, GUIDE, REFERENCE};
use first_call::FirstCall;
use outline::Outline;

const HTML: &str = "text/html; charset=utf-8";
/// The address in the files, at which a service on the reader's own machine is reached.
const ADDRESS_IN_FILES: &str = "https://localhost:8443";
/// A key in the files.
const KEY_IN_FILES: &str = "intake_demo_…";

/// The beginning of the index for language models.
const LLMS: &str = "# intake\n\n> Creates patients in a clinic's register, over HTTPS, with an API key.\n\n## Docs\n\n";
/// The documents of the index, each with its path.
const INDEX: [(&str, &str, &str); 3] = [
    ("Guide, reference and changelog", "/docs.md", "programs in eight languages, every field, status and message"),
    ("OpenAPI 3.1 document", "/api/v1/openapi.json", "operations, schemas and examples"),
    ("Postman collection", "/docs/postman.json", "requests to try"),
];

/// The page of one service, and its text.
pub(crate) struct Documentation {
    page: Text,
    markdown: Text,
    collection: Text,
    llms: Text,
    changes: Text,
}

/// One of these, compressed once for all readers.
struct Text {
    document: Document,
    compressed: OnceLock<Option<Bytes>>,
}

/// Writes the texts of a service that is reached at this address and takes these keys.
struct Texts {
    base_url: String,
    format: KeyFormat,
}

#[derive(Template)]
#[template(path = "docs/page.html")]
struct DocumentationPage<'a> {
    version: &'static str,
    first: FirstCall,
    parts: Vec<Part>,
    try_it: Option<TryIt<'a>>,
}

struct Part {
    outline: Outline,
    html: String,
}

/// The form that sends a request from the page.
struct TryIt<'a> {
    key_head: &'a str,
    example: String,
}

/// The header of a member who is signed in.
#[derive(Template)]
#[template(path = "page/bar.html")]
struct Bar {
    shell: Shell,
}

/// Adds the page and its texts.
pub(crate) fn routes(pages: Pages) -> Pages {
    pages
        .get("/docs", page)
        .get("/docs.md", markdown)
        .get("/docs/postman.json", collection)
        .get("/docs/changes.atom", changes)
        .get("/llms.txt", llms)
}

async fn page(
    documentation: part::Part<Documentation>,
    onlooker: Option<Onlooker>,
    known: Option<Header<IfNoneMatch>>,
) -> HttpResponse {
    let bar = onlooker.and_then(|Onlooker(visitor)| Bar { shell: Shell::new("docs", &visitor) }.render().ok());
    let text = bar.and_then(|bar| {
        let (before, after) = around_header(std::str::from_utf8(documentation.page.document.text()).ok()?)?;
        Some(format!("{before}{bar}{after}"))
    });
    match text {
        Some(text) => Document::new(HTML, move || text).answer(known.as_deref()),
        None => documentation.page.answer(known.as_deref()),
    }
}

/// The text of the page.
async fn markdown(documentation: part::Part<Documentation>, known: Option<Header<IfNoneMatch>>) -> HttpResponse {
    documentation.markdown.answer(known.as_deref())
}

/// The collection for Postman.
async fn collection(documentation: part::Part<Documentation>, known: Option<Header<IfNoneMatch>>) -> HttpResponse {
    documentation.collection.answer(known.as_deref())
}

/// The index where language models look for it.
async fn llms(documentation: part::Part<Documentation>, known: Option<Header<IfNoneMatch>>) -> HttpResponse {
    documentation.llms.answer(known.as_deref())
}

/// The changes as a feed.
async fn changes(documentation: part::Part<Documentation>, known: Option<Header<IfNoneMatch>>) -> HttpResponse {
    documentation.changes.answer(known.as_deref())
}

impl Documentation {
    /// The page of a service that is reached at this address and takes these keys.
    pub(crate) fn new(base_url: &str, format: &KeyFormat) -> Self {
        let texts = Arc::new(Texts { base_url: base_url.to_owned(), format: format.clone() });
        let document = |media_type, write: fn(&Texts) -> String| {
            let texts = Arc::clone(&texts);
            Text { document: Document::new(media_type, move || write(&texts)), compressed: OnceLock::new() }
        };
        Self {
            page: document(HTML, Texts::page),
            markdown: document("text/markdown; charset=utf-8", Texts::markdown),
            collection: document("application/json", |texts| {
                postman_collection(&texts.base_url, texts.format.environment())
            }),
            llms: document("text/plain; charset=utf-8", Texts::index),
            changes: document("application/atom+xml; charset=utf-8", |texts| changes::feed(CHANGELOG, &texts.base_url)),
        }
    }
}

impl Text {
    fn answer(&self, known: Option<&IfNoneMatch>) -> HttpResponse {
        let mut response = self.document.answer(known);
        let compress = || compression::gzip(self.document.text()).map(Bytes::from);
        if let Some(compressed) = self.compressed.get_or_init(compress) {
            response.extensions_mut().insert(Compressed(compressed.clone()));
        }
        response
    }
}

impl Texts {
    /// The files, each with its name.
    fn files(&self) -> Vec<(&'static str, String)> {
        let own_key = format!("{}…", self.format.head());
        let own = |name: &str, text: &str| match (name, self.format.environment()) {
            // The examples of the guide create made-up patients: never in a real register.
            (GUIDE, Environment::Production) => text.to_owned(),
            _ => text.replace(ADDRESS_IN_FILES, &self.base_url).replace(KEY_IN_FILES, &own_key),
        };
        files::files().map(|(name, text)| (name, own(name, text))).into()
    }

    fn page(&self) -> String {
        let (files, environment) = (self.files(), self.format.environment());
        let outlines = outline::of_files(&files);
        let parts = files.iter().zip(outlines.iter()).map(|((_, text), outline)| Part {
            outline: outline.clone(),
            html: markdown::to_html(text, outline, &outlines),
        });
        let try_it = match environment {
            Environment::Development => Some(TryIt { key_head: self.format.head(), example: whole_example_patient() }),
            // A form for trying things out has no place where patients are real.
            Environment::Production => None,
        };
        let first = FirstCall::new(&self.base_url, &self.format);
        let page = DocumentationPage { version: env!("CARGO_PKG_VERSION"), first, parts: parts.collect(), try_it };
        environment::within_now(environment, || page.render()).unwrap_or_default()
    }

    fn index(&self) -> String {
        let line = |(title, path, what): &(&str, &str, &str)| format!("- [{title}]({}{path}): {what}\n", self.base_url);
        INDEX.iter().map(line).fold(LLMS.to_owned(), |text, line| text + &line)
    }

    fn markdown(&self) -> String {
        let files = self.files();
        let outlines = outline::of_files(&files);
        let texts = files.iter().zip(&outlines).map(|((_, text), outline)| with_own_links(text, outline, &outlines));
        texts.collect::<Vec<_>>().join("\n")
    }
}

/// The text with links to the one page that all of it is on. A link to a file that is not there becomes its text.
fn with_own_links(text: &str, from: &Outline, all: &[Outline]) -> String {
    let (mut written, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("](") {
        let Some((link, following)) = after.split_once(')') else { break };
        rest = following;
        let is_of_file = link.starts_with('#') || link.contains(".md");
        match (outline::target(link, from, all), before.rsplit_once('[')) {
            (Some(target), _) if is_of_file => written.push_str(&format!("{before}](/docs{target})")),
            (None, Some((before, text))) if is_of_file => written.extend([before, text]),
            _ => written.push_str(&format!("{before}]({link})")),
        }
    }
    written + rest
}

fn around_header(page: &str) -> Option<(&str, &str)> {
    let (before, rest) = page.split_once("<header class=\"bar\">")?;
    let (_, after) = rest.split_once("</header>")?;
    Some((before, after))
}

impl Part {
    fn is_reference(&self) -> bool {
        self.outline.file == REFERENCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(environment: Environment) -> String {
        let format = KeyFormat::new(&"clinic".parse().unwrap(), environment);
        let documentation = Documentation::new("https://intake.example", &format);
        let body = documentation.page.answer(None).into_body();
        String::from_utf8(actix_web::body::MessageBody::try_into_bytes(body).unwrap().to_vec()).unwrap()
    }

    #[test]
    fn the_examples_are_those_of_the_service() {
        let page = page(Environment::Development);
        assert!(page.contains("https://intake.example/api/v1") && page.contains("Bearer clinic_demo_…"));
        assert!(!page.contains("localhost:8443") && !page.contains("Bearer intake_demo_"));
    }

    #[test]
    fn no_guide_leads_made_up_patients_into_a_real_register() {
        let page = page(Environment::Production);
        let (first, page) = page.split_once("id=\"integrate-in-a-morning\"").unwrap();
        assert!(first.contains("curl https://intake.example/api/v1/key ") && !first.contains("/patients"), "{first}");
        let (guide, reference) = page.split_once("id=\"connect-a-form-or-an-automation-service\"").unwrap();
        assert!(reference.contains("https://intake.example/api/v1") && reference.contains("Bearer clinic_live_…"));
        assert!(guide.contains("INTAKE_URL=https://localhost:8443/api/v1") && !guide.contains("intake.example"));
        // The page of a new key leads there.
        assert!(guide.contains("id=\"4-send-each-patient-once\""));
    }

    #[test]
    fn every_link_of_the_text_leads_to_the_page_or_out() {
        let format = KeyFormat::new(&"clinic".parse().unwrap(), Environment::Development);
        let text = Texts { base_url: "https://intake.example".to_owned(), format }.markdown();
        let links: Vec<_> = text.split("](").skip(1).filter_map(|after| after.split_once(')')).collect();
        let own = links.iter().filter(|(link, _)| link.starts_with("/docs#")).count();
        assert!(own > 20, "{own}");
        for (link, _) in links {
            assert!(!link.contains(".md") && !link.starts_with('#'), "{link}");
        }
        let page = page(Environment::Development);
        for (link, _) in text.split("](/docs#").skip(1).filter_map(|after| after.split_once(')')) {
            assert!(page.contains(&format!("id=\"{link}\"")), "{link}");
        }
    }

    #[test]
    fn the_page_is_compressed_once() {
        let format = KeyFormat::new(&"clinic".parse().unwrap(), Environment::Development);
        let documentation = Documentation::new("https://intake.example", &format);
        let [first, second] = [(); 2].map(|()| {
            let mut response = documentation.page.answer(None);
            response.extensions_mut().remove::<Compressed>().unwrap().0
        });
        assert_eq!(first.as_ptr(), second.as_ptr());
        let mut text = Vec::new();
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&*first), &mut text).unwrap();
        assert_eq!(text, documentation.page.document.text());
    }

    #[test]
    fn requests_are_tried_in_development_alone() {
        assert!(page(Environment::Development).contains("id=\"try-it\""));
        let production = page(Environment::Production);
        assert!(!production.contains("try-it"), "{production}");
    }

    #[test]
    fn the_form_begins_with_a_patient_of_every_field_a_line_for_each() {
        let page = page(Environment::Development);
        let body = page.split_once("id=\"try-it-body\"").unwrap().1.split_once('>').unwrap().1;
        let body = body.split("</textarea>").next().unwrap().replace("&#34;", "\"");
        assert!(body.starts_with("{\n  \"firstName\": \"Ada\",\n") && body.ends_with("\"AU\"\n}"), "{body}");
        assert_eq!(body.lines().count(), intake_domain::Field::ALL.len() + 2);
        assert!(
            intake_domain::JsonPatient::from_slice(body.as_bytes()).unwrap().draft.validate(intake_edge::now()).is_ok()
        );
    }
}
