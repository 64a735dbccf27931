//! Events: what happened to a patient, in the form that a target takes.

use intake_domain::{Change, Erasure, PatientId, StoredPatient, timestamp};
use intake_edge as edge;
use serde_json::{Value, json};

use crate::export::fhir;
use crate::export::jsonl::Returned;

/// An event of one patient.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) id: PatientId,
    pub(crate) is_erased: bool,
    /// Empty where the id says everything, and for a patient until the event is sent: it is read then.
    pub(crate) body: String,
}

/// Form of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// An envelope with type, time and the patient as the API returned it.
    Message,
    /// The same with nothing but the id.
    ThinMessage,
    /// A FHIR resource without an id, which the server gives.
    Fhir,
    /// The patient as the API returned it.
    File,
}

impl Event {
    pub(crate) fn new(form: Form, change: &Change) -> Self {
        match change {
            Change::Stored(patient) => Self { id: patient.id, is_erased: false, body: String::new() },
            Change::Erased(erasure) => Self::of_erasure(form, erasure),
        }
    }

    pub(crate) fn of_patient(form: Form, patient: &StoredPatient) -> anyhow::Result<Self> {
        let created = |data: Value| message("patient.created", &timestamp(patient.created_at), &data);
        let body = match form {
            Form::Message => created(serde_json::to_value(Returned(patient))?),
            Form::ThinMessage => created(json!({ "id": patient.id.to_string() })),
            Form::File => serde_json::to_string(&Returned(patient))?,
            Form::Fhir => unnamed(patient),
        };
        Ok(Self { id: patient.id, is_erased: false, body })
    }

    fn of_erasure(form: Form, erasure: &Erasure) -> Self {
        let id = erasure.id.to_string();
        let body = match form {
            Form::Message | Form::ThinMessage => {
                message("patient.erased", &timestamp(erasure.erased_at), &json!({ "id": id }))
            }
            Form::Fhir | Form::File => String::new(),
        };
        Self { id: erasure.id, is_erased: true, body }
    }

    /// An event about nobody, by which a receiver is tried.
    pub(crate) fn test() -> Self {
        let id = PatientId::new(edge::now(), edge::random());
        let body = message("test", &timestamp(edge::now()), &json!({}));
        Self { id, is_erased: false, body }
    }

    /// The same each time that the event is sent.
    pub(crate) fn name(&self) -> String {
        format!("{}.{}", if self.is_erased { "erased" } else { "created" }, self.id)
    }
}

fn message(kind: &str, timestamp: &str, data: &Value) -> String {
    // The members in the order of the specification of Standard Webhooks.
    format!("{{\"type\":\"{kind}\",\"timestamp\":\"{timestamp}\",\"data\":{data}}}")
}

/// The resource without what only the register's own export has: its id, and a reference to a file beside it.
fn unnamed(patient: &StoredPatient) -> String {
    let mut resource = fhir::resource(patient);
    if let Some(members) = resource.as_object_mut() {
        members.remove("id");
        let organisation = json!({ "identifier": fhir::identifier(patient.organisation_id) });
        members.insert("managingOrganization".to_owned(), organisation);
    }
    resource.to_string()
}
