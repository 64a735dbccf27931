//! The documentation for those who build an integration: Markdown files of the project as one page, with the service's
//! own address and kind of key in their examples. Everybody may read it.

mod markdown;
mod outline;
pub(crate) mod samples;

use std::sync::{Arc, OnceLock};

use actix_web::http::header::IfNoneMatch;
use actix_web::web::{self, Bytes, Header};
use actix_web::{HttpResponse, Scope};
use askama::Template;
use intake_domain::{Environment, KeyFormat};
use intake_http::{Document, whole_example_patient};

use crate::page::compression::{self, Compressed};
use crate::page::environment;
use crate::page::part;
use crate::page::shell::Shell;
use crate::page::visitor::Onlooker;
use outline::Outline;

/// The files in the order of the page, each with the name by which the others link to it.
const FILES: &[(&str, &str)] = &[
    (GUIDE, include_str!("../../../../docs/integrating.md")),
    (REFERENCE, include_str!("../../../../docs/api.md")),
    ("CHANGELOG.md", include_str!("../../../../CHANGELOG.md")),
];
const HTML: &str = "text/html; charset=utf-8";
const GUIDE: &str = "integrating.md";
const REFERENCE: &str = "api.md";
/// The address in the files, at which a service on the reader's own machine is reached.
const ADDRESS_IN_FILES: &str = "https://localhost:8443";
/// A key in the files.
const KEY_IN_FILES: &str = "intake_demo_…";

/// Text for programs that read pages for people.
const LLMS: &str = "# intake\n\n> Creates patients in a clinic's register, over HTTPS, with an API key.\n\n";

/// The page of one service, and its text.
pub(crate) struct Documentation {
    page: Text,
    markdown: Text,
    llms: Text,
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
pub(crate) fn routes(pages: Scope) -> Scope {
    pages
        .route("/docs", web::get().to(page))
        .route("/docs.md", web::get().to(markdown))
        .route("/llms.txt", web::get().to(llms))
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

/// The text where language models look for it.
async fn llms(documentation: part::Part<Documentation>, known: Option<Header<IfNoneMatch>>) -> HttpResponse {
    documentation.llms.answer(known.as_deref())
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
            llms: document("text/plain; charset=utf-8", |texts| format!("{LLMS}{}", texts.markdown())),
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
        FILES.iter().map(|(name, text)| (*name, own(name, text))).collect()
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
        let page = DocumentationPage { version: env!("CARGO_PKG_VERSION"), parts: parts.collect(), try_it };
        environment::within_now(environment, || page.render()).unwrap_or_default()
    }

    fn markdown(&self) -> String {
        let texts: Vec<_> = self.files().into_iter().map(|(_, text)| text).collect();
        // All of these files are on the one page.
        FILES.iter().fold(texts.join("\n"), |text, (name, _)| {
            let text = text.replace("](../", "](");
            text.replace(&format!("]({name}#"), "](/docs#").replace(&format!("]({name})"), "](/docs)")
        })
    }
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
        let (guide, reference) = page.split_once("id=\"api-reference\"").unwrap();
        assert!(reference.contains("https://intake.example/api/v1") && reference.contains("Bearer clinic_live_…"));
        assert!(guide.contains("INTAKE_URL=https://localhost:8443/api/v1") && !guide.contains("intake.example"));
        // The page of a new key leads there.
        assert!(guide.contains("id=\"4-send-each-patient-once\""));
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
