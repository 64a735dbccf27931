//! Compares the register with the journal.

use std::collections::HashMap;
use std::fmt;
use std::ops::AddAssign;
use std::time::Duration;

use diesel::pg::PgConnection;
use intake_domain::timestamp;

use crate::journal::{Erasure, Journal, Kind, Operation, read};
use crate::people::Row;
use crate::traffic::retry_key;

/// Examples of what is wrong that are kept.
const EXAMPLES_MAX: usize = 5;

/// The findings of an audit.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// Patients that were acknowledged to a client.
    pub acknowledged: u64,
    /// Requests whose outcome the client did not learn.
    pub unknown: u64,
    /// Patients that were acknowledged and are not stored.
    pub lost: u64,
    /// Patients that are stored more than once.
    pub doubled: u64,
    /// Patients that are stored although they were refused or never sent.
    pub phantom: u64,
    /// Patients that are not stored as sent, or not as acknowledged.
    pub altered: u64,
    /// Patients that are stored in another organisation.
    pub misplaced: u64,
    /// Patients that are stored although they were erased.
    pub returned: u64,
    /// Patients and erasures that a reader missed, got twice, or got although they do not exist.
    pub misread: u64,
    /// Requests that were accepted although their API key was blocked, or the member had no right to them, before they
    /// began.
    pub admitted: u64,
    /// Services that ran on although their database was replaced.
    pub unnoticed: u64,
    /// Entries of the audit log that its follower missed, or printed twice.
    pub unfollowed: u64,
    /// Other answers that must never come, and limits that were exceeded.
    pub wrong: u64,
    /// The longest time until every service acknowledged patients again, if the fault has a limit for that.
    pub away: Option<Duration>,
    /// The most memory that a service has used, in bytes.
    pub memory: Option<u64>,
    /// A few of the findings in words.
    pub examples: Vec<String>,
}

impl Findings {
    /// Returns whether all promises were kept.
    #[must_use]
    pub fn is_good(&self) -> bool {
        let Self { lost, doubled, phantom, altered, misplaced, returned, misread, .. } = self;
        let Self { admitted, unnoticed, unfollowed, wrong, .. } = self;
        [lost, doubled, phantom, altered, misplaced, returned, misread, admitted, unnoticed, unfollowed, wrong]
            .iter()
            .all(|bad| **bad == 0)
    }

    /// Adds a broken promise other than one about the content of the register.
    pub(crate) fn is_wrong(&mut self, what: impl fmt::Display) {
        self.wrong += 1;
        self.complain(what);
    }

    /// Adds something that a reader of the register got wrong.
    pub(crate) fn is_misread(&mut self, what: impl fmt::Display) {
        self.misread += 1;
        self.complain(what);
    }

    /// Adds what was done with a blocked key, or by a member without the right.
    pub(crate) fn is_admitted(&mut self, what: impl fmt::Display) {
        self.admitted += 1;
        self.complain(what);
    }

    /// Adds a service that ran on.
    pub(crate) fn is_unnoticed(&mut self, what: impl fmt::Display) {
        self.unnoticed += 1;
        self.complain(what);
    }

    /// Adds an entry that the follower of the audit log got wrong.
    pub(crate) fn is_unfollowed(&mut self, what: impl fmt::Display) {
        self.unfollowed += 1;
        self.complain(what);
    }

    pub(crate) fn complain(&mut self, what: impl fmt::Display) {
        if self.examples.len() < EXAMPLES_MAX {
            self.examples.push(what.to_string());
        }
    }
}

impl AddAssign for Findings {
    fn add_assign(&mut self, other: Self) {
        self.acknowledged += other.acknowledged;
        self.unknown += other.unknown;
        self.lost += other.lost;
        self.doubled += other.doubled;
        self.phantom += other.phantom;
        self.altered += other.altered;
        self.misplaced += other.misplaced;
        self.returned += other.returned;
        self.misread += other.misread;
        self.admitted += other.admitted;
        self.unnoticed += other.unnoticed;
        self.unfollowed += other.unfollowed;
        self.wrong += other.wrong;
        self.away = self.away.max(other.away);
        self.memory = self.memory.max(other.memory);
        for example in other.examples {
            self.complain(example);
        }
    }
}

/// Reads the journal and the register. No client may be working any more.
pub(crate) fn audit(journal: &Journal, register: &mut PgConnection) -> anyhow::Result<Findings> {
    let operations = read(journal.path())?;
    let mut found = Findings::default();
    let mut rows: HashMap<u64, Vec<Row>> = HashMap::new();
    for row in Row::all(register)? {
        match row.number() {
            Some(number) if operations.contains_key(&number) => rows.entry(number).or_default().push(row),
            _ => {
                found.phantom += 1;
                found.complain(format!("patient {} was never sent", row.id));
            }
        }
    }
    for (&number, operation) in &operations {
        let rows = rows.get(&number).map_or(&[][..], Vec::as_slice);
        hold_against(&mut found, number, operation, rows);
    }
    Ok(found)
}

fn hold_against(found: &mut Findings, number: u64, operation: &Operation, rows: &[Row]) {
    found.unknown += operation.unknown;
    found.wrong += operation.wrong.len() as u64;
    for what in &operation.wrong {
        found.complain(format!("number {number}: {what}"));
    }
    let is_never_stored = matches!(operation.kind, Kind::Faulty | Kind::Stranger | Kind::OtherPatient);
    let is_refused = operation.refused.is_some() || is_never_stored;
    if is_refused && !rows.is_empty() {
        found.phantom += 1;
        found.complain(format!("number {number} was refused and is there"));
    }
    if rows.len() > 1 {
        found.doubled += 1;
        found.complain(format!("number {number} is there {} times", rows.len()));
    }
    if operation.erasure == Erasure::Done && !rows.is_empty() {
        found.returned += 1;
        found.complain(format!("number {number} was erased and is there"));
    }
    if let Some((id, at)) = &operation.created {
        found.acknowledged += 1;
        match rows.iter().find(|row| row.id.to_string() == *id) {
            None if operation.erasure != Erasure::None => {}
            None => {
                found.lost += 1;
                found.complain(format!("number {number} was acknowledged as {id} and is not there"));
            }
            Some(row) if at != "-" && timestamp(row.created_at) != *at => {
                found.altered += 1;
                found.complain(format!("number {number} was acknowledged at another moment"));
            }
            Some(_) => {}
        }
    }
    hold_rows_against(found, number, operation, rows);
}

/// Compares each row with what was sent.
fn hold_rows_against(found: &mut Findings, number: u64, operation: &Operation, rows: &[Row]) {
    for row in rows {
        let is_same_key = match operation.kind {
            Kind::Safe => row.idempotency_key.as_deref() == Some(&retry_key(number)),
            // The program makes it.
            Kind::Imported => row.idempotency_key.is_some(),
            _ => row.idempotency_key.is_none(),
        };
        if !row.is_as_sent(number) || !is_same_key {
            found.altered += 1;
            found.complain(format!("number {number} is not as it was sent"));
        }
        if row.organisation_id != operation.organisation {
            found.misplaced += 1;
            found.complain(format!("number {number} is in another organisation"));
        }
    }
}

#[cfg(test)]
mod tests {
    use time::OffsetDateTime;
    use uuid::Uuid;

    use super::*;
    use crate::people::as_stored;

    const CLINIC: Uuid = Uuid::from_u128(1);

    fn row(number: u64) -> Row {
        Row {
            organisation_id: CLINIC,
            id: Uuid::from_u128(number.into()),
            created_at: OffsetDateTime::UNIX_EPOCH,
            idempotency_key: Some(retry_key(number)),
            patient: as_stored(number).to_string(),
        }
    }

    fn acknowledged(number: u64) -> Operation {
        let created = (row(number).id.to_string(), timestamp(OffsetDateTime::UNIX_EPOCH));
        let (kind, refused, erasure) = (Kind::Safe, None, Erasure::None);
        Operation {
            organisation: CLINIC,
            kind,
            created: Some(created),
            refused,
            erasure,
            unknown: 0,
            wrong: Vec::new(),
        }
    }

    fn held(operation: &Operation, rows: &[Row]) -> Findings {
        let mut found = Findings::default();
        hold_against(&mut found, 7, operation, rows);
        found
    }

    #[test]
    fn a_correct_register_passes() {
        assert!(held(&acknowledged(7), &[row(7)]).is_good());
        let erased = Operation { erasure: Erasure::Done, ..acknowledged(7) };
        assert!(held(&erased, &[]).is_good());
        let begun = Operation { erasure: Erasure::Begun, ..acknowledged(7) };
        assert!(held(&begun, &[]).is_good() && held(&begun, &[row(7)]).is_good());
        let unknown = Operation { created: None, unknown: 1, ..acknowledged(7) };
        assert!(held(&unknown, &[]).is_good() && held(&unknown, &[row(7)]).is_good());
    }

    #[test]
    fn everything_else_is_seen() {
        assert_eq!(held(&acknowledged(7), &[]).lost, 1);
        assert_eq!(held(&acknowledged(7), &[Row { id: Uuid::nil(), ..row(7) }]).lost, 1);
        assert_eq!(held(&acknowledged(7), &[row(7), row(7)]).doubled, 1);
        let refused = Operation { created: None, refused: Some(401), ..acknowledged(7) };
        assert_eq!(held(&refused, &[row(7)]).phantom, 1);
        let faulty = Operation { created: None, kind: Kind::Faulty, ..acknowledged(7) };
        assert_eq!(held(&faulty, &[row(7)]).phantom, 1);
        let erased = Operation { erasure: Erasure::Done, ..acknowledged(7) };
        assert_eq!(held(&erased, &[row(7)]).returned, 1);
        let altered = [
            Row { patient: as_stored(8).to_string(), ..row(7) },
            Row { idempotency_key: None, ..row(7) },
            Row { created_at: OffsetDateTime::UNIX_EPOCH + time::Duration::SECOND, ..row(7) },
        ];
        for row in altered {
            assert_eq!(held(&acknowledged(7), &[row]).altered, 1);
        }
        assert_eq!(held(&acknowledged(7), &[Row { organisation_id: Uuid::nil(), ..row(7) }]).misplaced, 1);
        assert_eq!(held(&Operation { wrong: vec!["500".to_owned()], ..acknowledged(7) }, &[row(7)]).wrong, 1);
    }
}
