//! `intake patient`: what the owner of the register does when a person asks to see what is stored about them, or to be
//! erased.

use anyhow::bail;
use intake_domain::{EraseOutcome, Field, Lookup, PatientRights, StoredRecord, timestamp};
use intake_infra::PostgresPatientRights;
use serde_json::{Value, json};

use crate::backend::Backend;
use crate::commands::operator::audit;
use crate::commands::output::print_result;
use crate::export::jsonl::Returned;
use crate::settings::command_line::{PatientArguments, PatientCommand};
use crate::settings::configuration::Configuration;

/// Where copies of an erased patient may still be.
pub(crate) const OUT_OF_REACH: &str = "\
No statement can return what was erased. This command cannot reach:
- the bytes of the row in the table's files, until VACUUM has freed their place and another row takes it.
- the database's log (WAL), until it is recycled, and where it is archived.
- backups of the database, until you delete them. After restoring one, repeat this command.
- standbys that have not caught up, and subscribers of logical replication that do not apply deletions.
- exports, and whatever was fed from them. The next `intake export --since` tells of the erasure.
- the systems that sent the patient.";

pub(crate) fn patient(command: PatientCommand, configuration: &Configuration) -> anyhow::Result<()> {
    let backend = Backend::open(configuration)?;
    backend.assert_owner()?;
    let mut rights = PostgresPatientRights::new(&backend.owner);
    match command {
        PatientCommand::Show(arguments) => show(&mut rights, &arguments),
        PatientCommand::Erase(arguments) => erase(&mut rights, &arguments),
    }
}

fn show(rights: &mut dyn PatientRights, arguments: &PatientArguments) -> anyhow::Result<()> {
    let PatientArguments { organisation, patient, run, output } = arguments;
    match rights.show(*organisation, *patient, &audit(run))? {
        Lookup::Patient(held) => print_result(output, &value_of(&held)?, &text_of(&held)),
        Lookup::Erased { at } => bail!("the patient {patient} was erased at {}; nothing is stored", timestamp(at)),
        Lookup::Nothing => bail!("the organisation {organisation} has no patient {patient}"),
    }
}

fn erase(rights: &mut dyn PatientRights, arguments: &PatientArguments) -> anyhow::Result<()> {
    let PatientArguments { organisation, patient, run, output } = arguments;
    let (at, outcome) = match rights.erase(*organisation, *patient, &audit(run))? {
        EraseOutcome::Erased { at } => (at, "was erased"),
        EraseOutcome::AlreadyErased { at } => (at, "was already erased"),
        EraseOutcome::NotFound => bail!("the organisation {organisation} has no patient {patient}"),
    };
    let at = timestamp(at);
    let value = json!({ "id": patient.to_string(), "erasedAt": at });
    print_result(output, &value, &format!("The patient {patient} {outcome} at {at}.\n\n{OUT_OF_REACH}"))
}

fn value_of(held: &StoredRecord) -> anyhow::Result<Value> {
    let mut value = serde_json::to_value(Returned(&held.patient))?;
    if let Some(members) = value.as_object_mut() {
        members.insert("keyId".to_owned(), json!(held.patient.key_id.map(|id| id.to_string())));
        members.insert("keyName".to_owned(), json!(held.key_name));
        members.insert("idempotencyKey".to_owned(), json!(held.idempotency_key));
    }
    Ok(value)
}

fn text_of(held: &StoredRecord) -> String {
    let StoredRecord { patient, idempotency_key, key_name } = held;
    let by = match (patient.key_id, key_name) {
        (Some(id), Some(name)) => format!("the API key {id} ({name})"),
        (Some(id), None) => format!("the API key {id}"),
        (None, _) => "an API key that was not kept at that time".to_owned(),
    };
    let fields = Field::RETURNED.map(|field| {
        let value = patient.values[field].as_deref().unwrap_or("(none)");
        format!("{}: {value}\n", field.definition().description)
    });
    format!(
        "Patient {} of the organisation {}\nCreated {} by {by}\nIdempotency-Key: {}\n{}",
        patient.id,
        patient.organisation_id,
        timestamp(patient.created_at),
        idempotency_key.as_deref().unwrap_or("(none)"),
        fields.concat().trim_end()
    )
}
