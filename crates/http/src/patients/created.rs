//! The answer of 201: the request's own values, its id, organisation and timestamps.

use actix_web::HttpResponse;
use intake_domain::{CreatedPatient, Field, Patient, Source, timestamp};
use serde::ser::{Serialize, SerializeMap, Serializer};
use uuid::fmt::Hyphenated;

use crate::problem::Problem;

/// The size of an ordinary answer, so that the buffer seldom grows.
const USUAL_SIZE: usize = 640;

#[derive(serde::Serialize)]
struct Body<'a> {
    data: Data<'a>,
    meta: Meta,
}

#[derive(serde::Serialize)]
struct Meta {}

/// The patient's members: the id, the fields as they were sent, then what else the service adds.
struct Data<'a>(&'a Patient<'a>);

impl Serialize for Data<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let patient = self.0;
        let (mut id, mut organisation_id) = ([0; Hyphenated::LENGTH], [0; Hyphenated::LENGTH]);
        let mut data = serializer.serialize_map(None)?;
        data.serialize_entry("id", patient.id.as_uuid().hyphenated().encode_lower(&mut id))?;
        for field in Field::RETURNED {
            data.serialize_entry(field.name(), &patient.details.get(field))?;
        }
        let organisation_id = patient.organisation_id.as_uuid().hyphenated().encode_lower(&mut organisation_id);
        data.serialize_entry("organisationId", organisation_id)?;
        data.serialize_entry("isIdentified", &Patient::IS_IDENTIFIED)?;
        data.serialize_entry("createdAt", &timestamp(patient.created_at))?;
        data.serialize_entry("updatedAt", &timestamp(patient.updated_at))?;
        data.end()
    }
}

/// Answers with the patient, byte for byte the same each time it is asked for.
pub(crate) fn respond(created: &CreatedPatient) -> Result<HttpResponse, Problem> {
    let body = body(&created.patient()).map_err(Problem::Unexpected)?;
    let mut response = HttpResponse::Created();
    if created.replayed() {
        response.insert_header(("Idempotent-Replayed", "true"));
    }
    Ok(response.content_type("application/json").body(body))
}

pub(crate) fn body(patient: &Patient<'_>) -> Result<Vec<u8>, Source> {
    let mut body = Vec::with_capacity(USUAL_SIZE);
    serde_json::to_writer(&mut body, &Body { data: Data(patient), meta: Meta {} })?;
    Ok(body)
}
