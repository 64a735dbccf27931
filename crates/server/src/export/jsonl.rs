//! Patients as lines of JSON: the object that the API answered, byte for byte.

use intake_domain::{Erasure, FeedToken, Field, Patient, StoredPatient, timestamp};
use serde::ser::{Serialize, SerializeMap, Serializer};

/// A patient as the API returned it.
pub(crate) struct Returned<'a>(pub(crate) &'a StoredPatient);

impl Serialize for Returned<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let patient = self.0;
        let mut members = serializer.serialize_map(None)?;
        members.serialize_entry("id", &patient.id.to_string())?;
        for &field in Field::RETURNED {
            members.serialize_entry(field.name(), &patient.values[field])?;
        }
        members.serialize_entry("organisationId", &patient.organisation_id.to_string())?;
        members.serialize_entry("isIdentified", &Patient::IS_IDENTIFIED)?;
        members.serialize_entry("createdAt", &timestamp(patient.created_at))?;
        members.serialize_entry("updatedAt", &timestamp(patient.updated_at))?;
        members.end()
    }
}

pub(crate) fn patient(patient: &StoredPatient) -> anyhow::Result<String> {
    Ok(serde_json::to_string(&Returned(patient))? + "\n")
}

pub(crate) fn erasure(erasure: &Erasure) -> String {
    format!("{{\"id\":\"{}\",\"erasedAt\":\"{}\"}}\n", erasure.id, timestamp(erasure.erased_at))
}

pub(crate) fn token(token: FeedToken) -> String {
    format!("{{\"next\":\"{token}\"}}\n")
}
