//! Patients as FHIR R4 resources, one in each line, and erased ones as FHIR's bulk export reports them: a Bundle
//! that deletes them.

use intake_domain::{Erasure, FeedToken, Field, StoredPatient, timestamp};
use serde_json::{Map, Value, json};

pub(crate) fn patient(patient: &StoredPatient) -> String {
    // FHIR knows no empty text, and takes white space alone for one.
    let value = |field: Field| patient.values[field].as_deref().filter(|text| !text.trim().is_empty());
    let texts = |fields: &[Field]| fields.iter().copied().filter_map(value).collect::<Vec<_>>();
    let contact = |system, field| value(field).map(|text| json!({ "system": system, "value": text }));
    let telecom: Vec<_> =
        [contact("phone", Field::PhoneNumber), contact("email", Field::Email)].into_iter().flatten().collect();
    let mut address = Map::new();
    let lines = texts(&[Field::AddressLine1, Field::AddressLine2]);
    if !lines.is_empty() {
        address.insert("line".to_owned(), json!(lines));
    }
    for (name, field) in
        [("city", Field::Suburb), ("state", Field::State), ("postalCode", Field::Postcode), ("country", Field::Country)]
    {
        if let Some(text) = value(field) {
            address.insert(name.to_owned(), json!(text));
        }
    }
    let mut resource = json!({
        "resourceType": "Patient",
        "id": patient.id.to_string(),
        "meta": { "lastUpdated": timestamp(patient.updated_at) },
        "name": [{ "family": value(Field::LastName), "given": texts(&[Field::FirstName]) }],
        "telecom": telecom,
        "birthDate": value(Field::DateOfBirth),
        "managingOrganization": { "reference": format!("Organization/{}", patient.organisation_id) },
    });
    if let (false, Some(members)) = (address.is_empty(), resource.as_object_mut()) {
        members.insert("address".to_owned(), Value::Array(vec![Value::Object(address)]));
    }
    format!("{resource}\n")
}

pub(crate) fn erasure(erasure: &Erasure) -> String {
    let bundle = json!({
        "resourceType": "Bundle",
        "type": "transaction",
        "timestamp": timestamp(erasure.erased_at),
        "entry": [{ "request": { "method": "DELETE", "url": format!("Patient/{}", erasure.id) } }],
    });
    format!("{bundle}\n")
}

/// A stream of resources holds nothing else, so a token is one, too.
pub(crate) fn token(token: FeedToken) -> String {
    let parameter = json!({ "name": "next", "valueString": token.to_string() });
    format!("{}\n", json!({ "resourceType": "Parameters", "parameter": [parameter] }))
}
