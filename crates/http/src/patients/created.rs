//! The answer of 201: the request's own values, its id, organisation and timestamps.

use actix_web::HttpResponse;
use intake_domain::{CreatedPatient, Patient, Source, day, timestamp};
use serde::Serialize;
use uuid::fmt::Hyphenated;

use crate::problem::Problem;

/// An ordinary patient with its envelope, so that the buffer seldom grows.
const USUAL_SIZE: usize = 640;

#[derive(Serialize)]
struct Body<'a> {
    data: Data<'a>,
    meta: Meta,
}

#[derive(Serialize)]
struct Meta {}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Data<'a> {
    id: &'a str,
    first_name: &'a str,
    last_name: &'a str,
    phone_number: &'a str,
    email: Option<&'a str>,
    date_of_birth: String,
    #[serde(rename = "addressLine1")]
    address_line1: Option<&'a str>,
    #[serde(rename = "addressLine2")]
    address_line2: Option<&'a str>,
    suburb: Option<&'a str>,
    state: Option<&'a str>,
    postcode: Option<&'a str>,
    country: Option<&'a str>,
    organisation_id: &'a str,
    is_identified: bool,
    created_at: &'a str,
    updated_at: &'a str,
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
    let details = patient.details;
    let (mut id, mut organisation_id) = ([0; Hyphenated::LENGTH], [0; Hyphenated::LENGTH]);
    let (created_at, updated_at) = (timestamp(patient.created_at), timestamp(patient.updated_at));
    let data = Data {
        id: patient.id.as_uuid().hyphenated().encode_lower(&mut id),
        first_name: details.first_name(),
        last_name: details.last_name(),
        phone_number: details.phone_number(),
        email: details.email(),
        date_of_birth: day(details.date_of_birth()),
        address_line1: details.address_line1(),
        address_line2: details.address_line2(),
        suburb: details.suburb(),
        state: details.state(),
        postcode: details.postcode(),
        country: details.country(),
        organisation_id: patient.organisation_id.as_uuid().hyphenated().encode_lower(&mut organisation_id),
        is_identified: Patient::IS_IDENTIFIED,
        created_at: &created_at,
        updated_at: &updated_at,
    };
    let mut body = Vec::with_capacity(USUAL_SIZE);
    serde_json::to_writer(&mut body, &Body { data, meta: Meta {} })?;
    Ok(body)
}
