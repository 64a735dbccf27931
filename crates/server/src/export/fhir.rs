//! Patients as FHIR R4 resources, one in each line, in the form of the Australian profile AU Core Patient; and erased
//! ones as FHIR's bulk export reports them: a Bundle that deletes them.

use intake_domain::conversions::{Conversion, state};
use intake_domain::{Erasure, FeedToken, Field, OrganisationId, StoredPatient, timestamp};
use serde_json::{Map, Value, json};

const PROFILE: &str = "http://hl7.org.au/fhir/core/StructureDefinition/au-core-patient";

pub(crate) fn patient(patient: &StoredPatient) -> String {
    format!("{}\n", resource(patient))
}

pub(crate) fn resource(patient: &StoredPatient) -> Value {
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
        "meta": { "lastUpdated": timestamp(patient.updated_at), "profile": [PROFILE] },
        "identifier": [identifier(patient.id)],
        "name": [{ "family": value(Field::LastName), "given": texts(&[Field::FirstName]) }],
        "telecom": telecom,
        // It is not asked for, and the profile demands a value.
        "gender": "unknown",
        "birthDate": value(Field::DateOfBirth),
        "managingOrganization": { "reference": format!("Organization/{}", patient.organisation_id) },
    });
    if let (false, Some(members)) = (address.is_empty(), resource.as_object_mut()) {
        members.insert("address".to_owned(), Value::Array(vec![Value::Object(address)]));
    }
    resource
}

/// The patient with the code of an Australian state in place of its name.
pub(crate) fn with_state_code(patient: &StoredPatient) -> StoredPatient {
    let mut patient = patient.clone();
    let code = patient.values[Field::State].as_deref().map(state);
    if let Some(Conversion::Converted(code)) = code {
        patient.values[Field::State] = Some(code);
    }
    patient
}

pub(crate) fn erasure(erasure: &Erasure, has_provenance: bool) -> String {
    let kinds = if has_provenance { &["Patient", "Provenance"][..] } else { &["Patient"] };
    let delete = |kind| json!({ "request": { "method": "DELETE", "url": format!("{kind}/{}", erasure.id) } });
    let bundle = json!({
        "resourceType": "Bundle",
        "type": "transaction",
        "timestamp": timestamp(erasure.erased_at),
        "entry": kinds.iter().map(delete).collect::<Vec<_>>(),
    });
    format!("{bundle}\n")
}

/// Time and API key with which a patient came.
pub(crate) fn provenance(patient: &StoredPatient) -> String {
    let who = match patient.key_id {
        Some(key) => json!({ "identifier": identifier(key), "display": "API key" }),
        None => json!({ "display": "an API key that is not known any more" }),
    };
    let resource = json!({
        "resourceType": "Provenance",
        "id": patient.id.to_string(),
        "target": [{ "reference": format!("Patient/{}", patient.id) }],
        "recorded": timestamp(patient.created_at),
        "agent": [{ "who": who }],
    });
    format!("{resource}\n")
}

/// The organisation that the patients refer to.
pub(crate) fn organisation(id: OrganisationId) -> String {
    format!("{}\n", json!({ "resourceType": "Organization", "id": id.to_string(), "identifier": [identifier(id)] }))
}

/// A stream of resources holds nothing else, so a token is one, too.
pub(crate) fn token(token: FeedToken) -> String {
    let parameter = json!({ "name": "next", "valueString": token.to_string() });
    format!("{}\n", json!({ "resourceType": "Parameters", "parameter": [parameter] }))
}

pub(crate) fn identifier(id: impl std::fmt::Display) -> Value {
    json!({ "system": "urn:ietf:rfc:3986", "value": format!("urn:uuid:{id}") })
}
