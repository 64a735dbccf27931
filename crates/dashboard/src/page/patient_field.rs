//! The names of a patient's fields on pages: developers know the names in JSON, everyone else the fields themselves.

use intake_domain::Field;

/// The field as people at a clinic call it. Anything else that a refusal can name, such as a header, stays as it is.
pub(crate) fn field_in_words(name: &str) -> &str {
    name.parse::<Field>().map_or(name, |field| field.definition().description)
}

/// The same for several, separated by commas.
pub(crate) fn fields_in_words<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(field_in_words).collect::<Vec<_>>().join(", ")
}
