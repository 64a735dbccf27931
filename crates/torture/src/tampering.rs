//! Controls: the register, or what a reader remembers, is changed behind the audit's back, which must notice it.

use std::time::Duration;

use diesel::RunQueryDsl;
use intake_domain::Field;

use crate::audit::Findings;
use crate::journal::{Erasure, read};
use crate::people::{Row, patient};
use crate::postgres_server::PostgresServer;
use crate::run::{History, Refusals, Run};
use crate::test_bed::TestBed;
use crate::verdict::MustSee;

/// Time for which clients work before.
const WORK: Duration = Duration::from_secs(2);

/// Change that is made to the register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tampering {
    LoseRow,
    DoubleRow,
    BringErasedRowBack,
    SkipByToken,
}

impl Tampering {
    pub(crate) const ALL: [Self; 4] = [Self::LoseRow, Self::DoubleRow, Self::BringErasedRowBack, Self::SkipByToken];

    /// Its name in the table, and what must be seen of it.
    pub(crate) fn title(self) -> (&'static str, MustSee) {
        match self {
            Self::LoseRow => ("a row is deleted", MustSee::Lost),
            Self::DoubleRow => ("a row is doubled", MustSee::Doubled),
            Self::BringErasedRowBack => ("an erased row returns", MustSee::Returned),
            Self::SkipByToken => ("a token skips rows", MustSee::Misread),
        }
    }
}

impl Run<'_> {
    /// Lets clients and operations work undisturbed, then tampers with the register.
    pub(crate) fn control_tampering(&self, server: &PostgresServer, tampering: Tampering) -> anyhow::Result<Findings> {
        let name = format!("{tampering:?}").to_lowercase();
        let bed = TestBed::open(server, &self.plan(&name, &[]))?;
        let skips = tampering == Tampering::SkipByToken;
        let (_, mut history) = self.record(&bed, Refusals::Expected, |fault| {
            fault.wait_for_erasure(WORK);
            Ok(1)
        })?;
        if skips {
            history.readers.iter_mut().try_for_each(|reader| reader.finish(&history.journal))?;
            history.add_patient()?;
            history.readers.iter_mut().try_for_each(crate::reader::Reader::skip)?;
        } else {
            history.tamper(tampering)?;
        }
        history.audit()
    }
}

impl History<'_> {
    fn tamper(&self, tampering: Tampering) -> anyhow::Result<()> {
        let mut register = self.bed.register()?;
        let columns = Field::ALL.iter().copied().map(Field::column).collect::<Vec<_>>().join(", ");
        let copy = format!("organisation_id, {columns}, created_at, updated_at");
        let sql = match tampering {
            Tampering::LoseRow => "DELETE FROM patients WHERE id = (SELECT id FROM patients LIMIT 1)".to_owned(),
            Tampering::DoubleRow => {
                format!("INSERT INTO patients (id, {copy}) SELECT gen_random_uuid(), {copy} FROM patients LIMIT 1")
            }
            // The details do not matter, but the name has the number.
            Tampering::BringErasedRowBack | Tampering::SkipByToken => {
                let operations = read(self.journal.path())?;
                let erased = operations.iter().filter(|(_, operation)| operation.erasure == Erasure::Done);
                let found = erased.filter_map(|(number, operation)| Some((number, operation.created.as_ref()?))).next();
                let Some((number, (id, _))) = found else { return Ok(()) };
                insert(&format!("'{id}'"), &patient(*number))
            }
        };
        diesel::sql_query(sql).execute(&mut register)?;
        Ok(())
    }

    /// Adds a patient that no reader has read.
    fn add_patient(&self) -> anyhow::Result<()> {
        let mut register = self.bed.register()?;
        for row in Row::all(&mut register)?.iter().take(1) {
            let Some(number) = row.number() else { continue };
            diesel::sql_query(insert("gen_random_uuid()", &patient(number))).execute(&mut register)?;
        }
        Ok(())
    }
}

/// A statement that adds a patient to the organisation of any other.
fn insert(id: &str, patient: &serde_json::Value) -> String {
    let value = |field: Field| match patient.get(field.name()).and_then(serde_json::Value::as_str) {
        Some(text) => format!("'{}'", text.replace('\'', "''")),
        None => "NULL".to_owned(),
    };
    let columns = Field::ALL.iter().copied().map(Field::column).collect::<Vec<_>>().join(", ");
    let values = Field::ALL.iter().copied().map(value).collect::<Vec<_>>().join(", ");
    format!(
        "INSERT INTO patients (organisation_id, id, {columns}, created_at, updated_at)
         SELECT organisation_id, {id}, {values}, created_at, created_at FROM patients LIMIT 1"
    )
}
