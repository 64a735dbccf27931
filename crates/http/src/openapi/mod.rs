//! The OpenAPI document: a template that says what is so for every field alike, filled with the schemas of the fields,
//! which are made from their definitions.

use actix_web::HttpResponse;
use actix_web::http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue, IfNoneMatch};
use actix_web::web::{Data, Header};
use intake_domain::{Definition, Doubt, Field, Rule};
use serde::Serialize;

use crate::document::Document;

const TEMPLATE: &str = include_str!("template.json");
/// Control characters, bidirectional overrides and isolates, for the inside of a class of a regular expression.
const FORBIDDEN: &str = r"\u0000-\u001F\u007F-\u009F\u202A-\u202E\u2066-\u2069";
/// White space, and characters that draw nothing, apart from those that are forbidden anyway. Those beyond U+FFFF are
/// left out: where regular expressions know UTF-16 alone (.NET, JavaScript without the flag `u`), a class cannot name
/// them.
const BLANK: &str = concat!(
    r" \u00A0\u00AD\u034F\u061C\u115F\u1160\u1680\u17B4\u17B5\u180B-\u180F\u2000-\u200F\u2028\u2029\u202F\u205F-\u2065",
    r"\u206A-\u206F\u2800\u3000\u3164\uFE00-\uFE0F\uFEFF\uFFA0\uFFF0-\uFFFB",
);
const EMAIL: &str = concat!(
    r"^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?",
    r"(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?)+$"
);

/// The document of one service.
pub(crate) struct OpenApiDocument(Document);

impl OpenApiDocument {
    /// The document of a service that is reached at this address.
    pub(crate) fn new(base_url: String) -> Self {
        Self(Document::new("application/json", move || openapi(&base_url)))
    }
}

/// `GET /api/v1/openapi.json`: for everybody, from any page.
pub(crate) async fn document(document: Data<OpenApiDocument>, known: Option<Header<IfNoneMatch>>) -> HttpResponse {
    let mut response = document.0.answer(known.as_deref());
    response.headers_mut().insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    response
}

/// The document of a service that is reached at this address.
#[must_use]
pub fn openapi(base_url: &str) -> String {
    let names = |fields: &[Field]| fields.iter().map(|field| text(field.name())).collect::<Vec<_>>().join(", ");
    let required = required_fields();
    let returned =
        format!(r#"["id", {}, "organisationId", "isIdentified", "createdAt", "updatedAt"]"#, names(Field::RETURNED));
    let sent =
        Field::ALL.iter().map(|field| property(field.name(), &sent_schema(field.definition()))).collect::<Vec<_>>();
    let blanks = [
        ("@server", text(&format!("{base_url}/api/v1"))),
        ("@documentation", text(&format!("{base_url}/docs"))),
        ("@required_example", example(&required, ": ", ", ")),
        ("@whole_example", example(Field::ALL, ": ", ", ")),
        ("@required", format!("[{}]", names(&required))),
        ("@sent_properties", object(&sent)),
        ("@returned", returned),
        ("@marks", text(&marks())),
        ("@returned_properties", object(&returned_properties())),
    ];
    blanks.iter().fold(TEMPLATE.to_owned(), |document, (blank, value)| document.replace(&text(blank), value))
}

/// A patient with what is required, as one line of JSON.
#[must_use]
pub fn example_patient() -> String {
    example(&required_fields(), ":", ",")
}

/// A patient with every field, a line for each.
#[must_use]
pub fn whole_example_patient() -> String {
    let members = example(Field::ALL, ": ", ",\n  ");
    format!("{{\n  {}\n}}", members.trim_matches(['{', '}']))
}

/// Each mark with its meaning and its remedy, for people.
fn marks() -> String {
    let marks = Doubt::all().map(|mark| format!("`{}`: {}. {}", mark.name(), mark.meaning(), mark.remedy()));
    format!("Others may come.\n\n{}", marks.map(|mark| format!("- {mark}")).collect::<Vec<_>>().join("\n"))
}

fn required_fields() -> Vec<Field> {
    Field::ALL.iter().copied().filter(|field| field.definition().is_required).collect()
}

/// The least that is sent, or every field, with the fields' own examples.
fn example(fields: &[Field], colon: &str, comma: &str) -> String {
    let member = |field: &Field| format!("{}{colon}{}", text(field.name()), text(field.definition().example));
    format!("{{{}}}", fields.iter().map(member).collect::<Vec<_>>().join(comma))
}

fn sent_schema(field: &Definition) -> Vec<String> {
    let kind = match field.rule {
        Rule::OneOf(values) => one_of(field, values),
        _ => kind(!field.is_required),
    };
    let mut members = described(field, kind);
    let forbidden_anywhere = format!("^[^{FORBIDDEN}]*$");
    match field.rule {
        Rule::Name { max } => members.extend([
            member("minLength", 1),
            member("maxLength", max),
            member("pattern", format!("^[^{FORBIDDEN}]*[^{FORBIDDEN}{BLANK}][^{FORBIDDEN}]*$")),
        ]),
        Rule::Text { max } => members.extend([member("maxLength", max), member("pattern", forbidden_anywhere)]),
        Rule::Email { max } => members.extend([member("maxLength", max), member("pattern", EMAIL)]),
        Rule::Pattern { pattern, .. } => members.push(member("pattern", pattern)),
        // Without a pattern: clients that make a date of it compare the pattern with something other than a text.
        Rule::BirthDate { .. } => members.push(member("format", "date")),
        _ => {}
    }
    members
}

/// Returns what an answer holds: only the kind, because what is sent may change within the version.
fn returned_properties() -> Vec<String> {
    let own = |name, kind: &[String]| property(name, kind);
    let identifier =
        |description| vec![member("type", "string"), member("format", "uuid"), member("description", description)];
    let moment = |description| {
        vec![
            member("type", "string"),
            member("format", "date-time"),
            member("description", description),
            member("examples", ["2025-12-03T10:30:00.000Z"]),
        ]
    };
    let fields = Field::RETURNED.iter().map(|field| {
        let definition = field.definition();
        // SPEC 2.1 calls the date of birth nullable though every patient of this interface has one.
        let is_nullable = !definition.is_required || matches!(definition.rule, Rule::BirthDate { .. });
        let mut members = described(definition, kind(is_nullable));
        if matches!(definition.rule, Rule::BirthDate { .. }) {
            members.push(member("format", "date"));
        }
        property(definition.name, &members)
    });
    let is_identified = [
        member("type", "boolean"),
        member("description", "Always true. Nobody has checked the identity: staff do that at the first visit"),
    ];
    let mut properties = vec![own("id", &identifier("Given by the service: a UUID version 7"))];
    properties.extend(fields);
    properties.extend([
        own("organisationId", &identifier("The organisation that owns the calling key")),
        own("isIdentified", &is_identified),
        own("createdAt", &moment("When the patient was created: UTC, in milliseconds")),
        own("updatedAt", &moment("When the patient was last changed: UTC, in milliseconds")),
    ]);
    properties
}

fn kind(is_nullable: bool) -> String {
    if is_nullable { r#""type": ["string", "null"]"# } else { r#""type": "string""# }.to_owned()
}

/// One of these values. Generators of clients make three types of an enumeration with null in it, but one, named by the
/// title, where null stands beside it.
fn one_of(field: &Definition, values: &[&str]) -> String {
    let (first, rest) = field.name.split_at(1);
    let members = [kind(false), member("title", first.to_uppercase() + rest), member("enum", values)].join(", ");
    if field.is_required { members } else { format!(r#""anyOf": [{{{members}}}, {{"type": "null"}}]"#) }
}

fn described(field: &Definition, kind: String) -> Vec<String> {
    let description = format!("{}: {}", field.description, field.rule);
    vec![kind, member("description", description), member("examples", [field.example])]
}

fn property(name: &str, members: &[String]) -> String {
    format!("{}: {{{}}}", text(name), members.join(", "))
}

/// The members of an object that stands in the template, a line for each.
fn object(members: &[String]) -> String {
    let indent = " ".repeat(8);
    let lines: Vec<_> = members.iter().map(|member| format!("{indent}  {member}")).collect();
    format!("{{\n{}\n{indent}}}", lines.join(",\n"))
}

fn member(name: &str, value: impl Serialize) -> String {
    format!("{}: {}", text(name), serde_json::to_string(&value).unwrap_or_default())
}

fn text(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_blank_of_the_template_is_filled() {
        let document = openapi("https://intake.example");
        assert!(!document.contains("\"@"), "{document}");
        let document: serde_json::Value = serde_json::from_str(&document).unwrap();
        assert_eq!(document["servers"][0]["url"], "https://intake.example/api/v1");
        let properties = &document["components"]["schemas"]["PatientToCreate"]["properties"];
        assert_eq!(properties["suburb"]["maxLength"], 100);
        assert_eq!(properties["country"]["anyOf"][0]["enum"], serde_json::json!(["AU"]));
    }
}
