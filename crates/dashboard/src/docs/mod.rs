//! The documentation for those who build an integration: Markdown files of the project as one page, with the service's own
//! address and kind of key in their examples. Everybody may read it.

mod markdown;
mod outline;

use actix_web::HttpResponse;
use actix_web::http::header::IfNoneMatch;
use actix_web::web::{Data, Header};
use askama::Template;
use intake_domain::{Environment, KeyFormat};
use intake_http::{Document, whole_example_patient};

use crate::page::environment;
use outline::Outline;

/// The files in the order of the page, each with the name by which the others link to it.
const FILES: &[(&str, &str)] = &[
    (GUIDE, include_str!("../../../../docs/integrating.md")),
    (REFERENCE, include_str!("../../../../docs/api.md")),
    ("CHANGELOG.md", include_str!("../../../../CHANGELOG.md")),
];
const GUIDE: &str = "integrating.md";
const REFERENCE: &str = "api.md";
/// The address in the files, at which a service on the reader's own machine is reached.
const ADDRESS_IN_FILES: &str = "https://localhost:8443";
/// A key in the files.
const KEY_IN_FILES: &str = "intake_demo_…";

/// The page of one service.
pub(crate) struct Documentation(Document);

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

/// `GET /docs`
pub(crate) async fn page(documentation: Data<Documentation>, known: Option<Header<IfNoneMatch>>) -> HttpResponse {
    documentation.0.answer(known.as_deref())
}

impl Documentation {
    /// The page of a service that is reached at this address and takes these keys.
    pub(crate) fn new(base_url: &str, format: &KeyFormat) -> Self {
        let environment = format.environment();
        let own_key = format!("{}…", format.head());
        let own = |name: &str, text: &str| match (name, environment) {
            // Whoever runs the examples of the guide creates made-up patients: never in a real register.
            (GUIDE, Environment::Production) => text.to_owned(),
            _ => text.replace(ADDRESS_IN_FILES, base_url).replace(KEY_IN_FILES, &own_key),
        };
        let files: Vec<_> = FILES.iter().map(|(name, text)| (*name, own(name, text))).collect();
        let outlines = outline::of_files(&files);
        let parts = files.iter().zip(outlines.iter()).map(|((_, text), outline)| Part {
            outline: outline.clone(),
            html: markdown::to_html(text, outline, &outlines),
        });
        let try_it = match environment {
            Environment::Development => Some(TryIt { key_head: format.head(), example: whole_example_patient() }),
            // A form for trying things out has no place where patients are real.
            Environment::Production => None,
        };
        let page = DocumentationPage { version: env!("CARGO_PKG_VERSION"), parts: parts.collect(), try_it };
        Self(Document::new(
            "text/html; charset=utf-8",
            environment::within_now(environment, || page.render()).unwrap_or_default(),
        ))
    }
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
        let body = documentation.0.answer(None).into_body();
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
        assert_eq!(body.lines().count(), intake_domain::Field::COUNT + 2);
        assert!(
            intake_domain::JsonPatient::from_slice(body.as_bytes())
                .unwrap()
                .draft
                .validate(intake_http::edge::now())
                .is_ok()
        );
    }
}
