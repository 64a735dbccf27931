//! What a FHIR server must offer so that patients can be delivered to it, by its own statement of capabilities.

use anyhow::ensure;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// `CapabilityStatement` of FHIR, as far as it is needed.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Statement {
    resource_type: String,
    fhir_version: String,
    rest: Vec<Rest>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Rest {
    mode: String,
    resource: Vec<Resource>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Resource {
    r#type: String,
    interaction: Vec<Interaction>,
    conditional_update: bool,
    conditional_delete: String,
    search_param: Vec<SearchParameter>,
}

#[derive(Deserialize)]
struct Interaction {
    code: String,
}

#[derive(Deserialize)]
struct SearchParameter {
    name: String,
}

/// Answer to a search.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Bundle {
    resource_type: String,
    entry: Vec<Entry>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Entry {
    resource: Kind,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Kind {
    resource_type: String,
}

/// Names what the statement of a server lacks.
pub(crate) fn missing(statement: &[u8]) -> anyhow::Result<Vec<String>> {
    let statement: Statement = parse(statement);
    ensure!(
        statement.resource_type == "CapabilityStatement",
        "/metadata is not a CapabilityStatement in JSON: --to must be the base address of a FHIR server"
    );
    let mut missing = Vec::new();
    if !statement.fhir_version.starts_with("4.") {
        missing.push(format!("FHIR R4: the server has version {}", statement.fhir_version));
    }
    let mut servers = statement.rest.into_iter().filter(|rest| rest.mode == "server");
    let Some(patient) =
        servers.find_map(|rest| rest.resource.into_iter().find(|resource| resource.r#type == "Patient"))
    else {
        missing.push("the resource Patient".to_owned());
        return Ok(missing);
    };
    let can = |code: &str| patient.interaction.iter().any(|interaction| interaction.code == code);
    let needs = [
        ("search of Patient by identifier", patient.search_param.iter().any(|search| search.name == "identifier")),
        ("update of Patient", can("update")),
        ("conditional update of Patient", patient.conditional_update),
        ("deletion of Patient", can("delete")),
        ("conditional deletion of Patient", ["single", "multiple"].contains(&patient.conditional_delete.as_str())),
    ];
    missing.extend(needs.into_iter().filter(|(_, is_there)| !is_there).map(|(need, _)| need.to_owned()));
    Ok(missing)
}

/// Checks the answer to a search by an identifier that no patient has.
pub(crate) fn assert_found_none(found: &[u8]) -> anyhow::Result<()> {
    let bundle: Bundle = parse(found);
    ensure!(
        bundle.resource_type == "Bundle",
        "a search of Patient by identifier is not answered with a Bundle in JSON"
    );
    ensure!(
        bundle.entry.iter().all(|entry| entry.resource.resource_type != "Patient"),
        "the server ignores the identifier in a search: an erasure could delete other patients"
    );
    Ok(())
}

/// Whatever is something else counts as nothing.
fn parse<T: DeserializeOwned + Default>(text: &[u8]) -> T {
    serde_json::from_slice(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn each_thing_that_a_server_lacks_is_named() {
        let whole = json!({
            "resourceType": "CapabilityStatement", "fhirVersion": "4.0.1",
            "rest": [{ "mode": "client" }, { "mode": "server", "resource": [{ "type": "Encounter" }, {
                "type": "Patient", "conditionalUpdate": true, "conditionalDelete": "single",
                "interaction": [{ "code": "update" }, { "code": "delete" }], "searchParam": [{ "name": "identifier" }],
            }] }],
        });
        let named = |statement: &Value| missing(statement.to_string().as_bytes()).unwrap().join(", ");
        assert_eq!(named(&whole), "");
        let lacking = [
            ("/fhirVersion", json!("5.0.0"), "FHIR R4: the server has version 5.0.0"),
            ("/rest/1/mode", json!("client"), "the resource Patient"),
            ("/rest/1/resource/1/type", json!("Person"), "the resource Patient"),
            ("/rest/1/resource/1/searchParam", json!([{ "name": "name" }]), "search of Patient by identifier"),
            ("/rest/1/resource/1/interaction/0/code", json!("read"), "update of Patient"),
            ("/rest/1/resource/1/interaction/1/code", json!("read"), "deletion of Patient"),
            ("/rest/1/resource/1/conditionalUpdate", json!(false), "conditional update of Patient"),
            ("/rest/1/resource/1/conditionalDelete", json!("not-supported"), "conditional deletion of Patient"),
        ];
        for (place, value, name) in lacking {
            let mut statement = whole.clone();
            *statement.pointer_mut(place).unwrap() = value;
            assert_eq!(named(&statement), name, "{place}");
        }
        for other in ["<html>", "{}", r#"{"resourceType": "OperationOutcome"}"#] {
            assert!(missing(other.as_bytes()).is_err(), "{other}");
        }
    }

    #[test]
    fn a_server_that_ignores_the_identifier_is_refused() {
        let found = |entries: Value| {
            assert_found_none(json!({ "resourceType": "Bundle", "entry": entries }).to_string().as_bytes())
        };
        assert!(found(json!([])).is_ok());
        assert!(found(json!([{ "resource": { "resourceType": "OperationOutcome" } }])).is_ok());
        assert!(found(json!([{ "resource": { "resourceType": "Patient" } }])).is_err());
        assert!(assert_found_none(b"<html>").is_err());
    }
}
