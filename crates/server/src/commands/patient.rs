//! `intake patient`: what the owner of the register does when a person asks to see what is stored about them, or to be
//! erased.

use anyhow::bail;
use intake_domain::{
    AuditContext, Erasable, EraseOutcome, Field, Lookup, OrganisationId, PatientId, PatientRights, Presence,
    StoredRecord, timestamp,
};
use intake_infra::PostgresPatientRights;
use serde_json::{Value, json};
use time::OffsetDateTime;

use crate::backend::Backend;
use crate::commands::confirm::goes_on;
use crate::commands::operator::audit;
use crate::commands::output::{print_change, print_result};
use crate::export::jsonl::Returned;
use crate::settings::arguments::Brakes;
use crate::settings::configuration::Configuration;
use crate::settings::patient_command::{KnownDigest, PatientArguments, PatientCommand};

/// Text about copies of an erased patient that may still exist.
pub(crate) const OUT_OF_REACH: &str = "\
No statement can return what was erased. This command cannot reach:
- the bytes of the row in the table's files, until VACUUM has freed their place and another row takes it.
- the database's log (WAL), until it is recycled, and where it is archived.
- backups of the database, until you delete them. After restoring one, `intake restored --audit` repeats this command.
- standbys that have not caught up, and subscribers of logical replication that do not apply deletions.
- exports, and whatever was fed from them. The next `intake export --since` reports the erasure.
- the systems that sent the patient.";

pub(crate) fn patient(command: PatientCommand, configuration: &Configuration) -> anyhow::Result<()> {
    let backend = Backend::open(configuration)?;
    backend.assert_owner()?;
    let mut rights = PostgresPatientRights::new(&backend.owner);
    match command {
        PatientCommand::Show(arguments) => show(&mut rights, &arguments, configuration),
        PatientCommand::Erase { arguments, idempotency_digest, brakes } => {
            if may_erase(&mut rights, &arguments, idempotency_digest, &brakes)? {
                erase(&mut rights, &arguments, idempotency_digest, configuration)
            } else {
                Ok(())
            }
        }
    }
}

fn show(
    rights: &mut dyn PatientRights,
    arguments: &PatientArguments,
    configuration: &Configuration,
) -> anyhow::Result<()> {
    let PatientArguments { organisation, patient, run, output } = arguments;
    match rights.show(*organisation, *patient, &audit(run, configuration))? {
        Lookup::Patient(held) => print_result(output, &value_of(&held)?, &text_of(&held)),
        Lookup::Erased { at } => bail!("the patient {patient} was erased at {}; nothing is stored", timestamp(at)),
        Lookup::Nothing => bail!("the organisation {organisation} has no patient {patient}"),
    }
}

/// Shows whom the command erases, and asks. A patient that is not there is refused before, unless it may be lost.
fn may_erase(
    rights: &mut dyn PatientRights,
    arguments: &PatientArguments,
    digest: Option<KnownDigest>,
    brakes: &Brakes,
) -> anyhow::Result<bool> {
    let PatientArguments { organisation, patient, output, .. } = arguments;
    let found = rights.find(*organisation, *patient)?;
    let preview = match (found, digest) {
        (Presence::Stored { created_at, key_id }, _) => {
            let by = key_id.map(|id| format!(" by the API key {id}")).unwrap_or_default();
            format!("This erases the patient {patient}, created {}{by}, for good.", timestamp(created_at))
        }
        (Presence::Erased { at }, _) => format!("The patient {patient} was already erased at {}.", timestamp(at)),
        (Presence::Nothing, Some(_)) => format!("The patient {patient} is not stored. This records the erasure."),
        (Presence::Nothing, None) => bail!("the organisation {organisation} has no patient {patient}"),
    };
    let again = match digest {
        Some(KnownDigest(Some(digest))) => rights.sent_again(*organisation, &digest)?.filter(|again| again != patient),
        _ => None,
    };
    let sent_again =
        again.map(|again| format!("\nIt was sent again as {again}, who is erased, too.")).unwrap_or_default();
    if matches!(found, Presence::Erased { .. }) && again.is_none() && !brakes.dry_run {
        return Ok(true);
    }
    let stored = match found {
        Presence::Stored { created_at, key_id } => Some((created_at, key_id)),
        _ => None,
    };
    let value = json!({
        "id": patient.to_string(),
        "isStored": stored.is_some(),
        "createdAt": stored.map(|(created_at, _)| timestamp(created_at)),
        "keyId": stored.and_then(|(_, key_id)| key_id).map(|id| id.to_string()),
        "sentAgainAs": again.map(|again| again.to_string()),
    });
    goes_on(brakes, output, &value, &format!("{preview}{sent_again}"))
}

fn erase(
    rights: &mut dyn PatientRights,
    arguments: &PatientArguments,
    digest: Option<KnownDigest>,
    configuration: &Configuration,
) -> anyhow::Result<()> {
    let PatientArguments { organisation, patient, run, output } = arguments;
    let audit = || audit(run, configuration);
    let Some(erased) = erase_for_good(rights, *organisation, *patient, digest, audit)? else {
        bail!("the organisation {organisation} has no patient {patient}");
    };
    let at = timestamp(erased.at);
    let mut value = json!({ "id": patient.to_string(), "erasedAt": at });
    let outcome = if erased.is_new { "was erased" } else { "was already erased" };
    let mut text = format!("The patient {patient} {outcome} at {at}.\n");
    if let (Some(again), Some(members)) = (erased.sent_again, value.as_object_mut()) {
        members.insert("sentAgainAs".to_owned(), again.to_string().into());
        text += &format!("It had been sent again since, as {again}, which was erased too.\n");
    }
    print_change(output, &value, &format!("{text}\n{OUT_OF_REACH}"))
}

/// Patient that was erased.
pub(crate) struct Erased {
    pub(crate) at: OffsetDateTime,
    pub(crate) is_new: bool,
    /// The id under which the same patient had come back after a restore, and was erased too.
    pub(crate) sent_again: Option<PatientId>,
}

/// Erases a patient, and with a known digest the one who was created since with that idempotency key. None: there is no
/// such patient.
pub(crate) fn erase_for_good(
    rights: &mut dyn PatientRights,
    organisation: OrganisationId,
    patient: PatientId,
    digest: Option<KnownDigest>,
    audit: impl Fn() -> AuditContext,
) -> anyhow::Result<Option<Erased>> {
    let erasable =
        digest.map_or(Erasable::Stored(patient), |KnownDigest(digest)| Erasable::PerhapsLost(patient, digest));
    let (at, is_new) = match rights.erase(organisation, erasable, &audit())? {
        Some(EraseOutcome::Erased { at }) => (at, true),
        Some(EraseOutcome::AlreadyErased { at }) => (at, false),
        None => return Ok(None),
    };
    // From the first erasure on nobody comes back under this key.
    let again = match digest {
        Some(KnownDigest(Some(digest))) => rights.sent_again(organisation, &digest)?,
        _ => None,
    };
    if let Some(again) = again {
        rights.erase(organisation, Erasable::Stored(again), &audit())?;
    }
    Ok(Some(Erased { at, is_new, sent_again: again }))
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
    let fields = Field::RETURNED.iter().map(|&field| {
        let value = patient.values[field].as_deref().unwrap_or("(none)");
        format!("{}: {value}\n", field.definition().description)
    });
    format!(
        "Patient {} of the organisation {}\nCreated {} by {by}\nIdempotency-Key: {}\n{}",
        patient.id,
        patient.organisation_id,
        timestamp(patient.created_at),
        idempotency_key.as_deref().unwrap_or("(none)"),
        fields.collect::<String>().trim_end()
    )
}
