//! The port [`PairRegister`] over the feed's connection. Each call looks once through the organisation's rows: an
//! index would make every create dearer, and a search at night is in no hurry.

use std::sync::LazyLock;

use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Nullable, Text, Uuid as SqlUuid};
use intake_domain::{FeedError, FeedScope, Mark, Page, PairClues, PairRegister, PatientId, Span, StoredPatient};
use uuid::Uuid;

use crate::feed::PostgresPatientFeed;
use crate::feed::page::{PAGE_MAX, PATIENT, PatientRow, in_span, within_span};

/// Parts of a birth date in the order of [`PairClues`].
const DATE_PARTS: [&str; 4] = ["YYYY-MM", "YYYY DD", "MM-DD", "YYYY-MM-DD"];
/// Their contacts, without regular expressions, which would take most of the time.
const CONTACTS: [&str; 3] = [
    "replace(phone_number, '+610', '+61')",
    "lower(email)",
    "translate(concat(address_line1, address_line2),
        translate(concat(address_line1, address_line2), '0123456789', ''), '')",
];

static RESEMBLING: LazyLock<String> = LazyLock::new(|| {
    let clue = |contact: &str| {
        let clue = |part| format!("to_char(date_of_birth, '{part}') || '/' || {contact} = ANY ($10)");
        // Few have a contact that is asked for, and of the others nothing more is computed.
        format!("{contact} = ANY ($9) AND ({})", DATE_PARTS.map(clue).join(" OR "))
    };
    format!(
        "{} WHERE {} AND (to_char(date_of_birth, 'YYYY-MM-DD') = ANY ($8) OR {}) ORDER BY id LIMIT {PAGE_MAX}",
        *PATIENT,
        within_span("(created_in + 0)"),
        CONTACTS.map(clue).join(" OR ")
    )
});

static FIRST_NAMES: LazyLock<String> = LazyLock::new(|| {
    // The letters of this collation are those from A to Z.
    format!(
        r#"SELECT first_name, count(*) AS count FROM patients_v1 WHERE {}
            AND (lower(left(first_name, 1) COLLATE "C") = ANY ($8) OR first_name COLLATE "C" !~ '^[A-Za-z0-9]')
            GROUP BY first_name"#,
        within_span("(created_in + 0)")
    )
});

impl PairRegister for PostgresPatientFeed {
    fn resembling(
        &mut self,
        scope: &FeedScope,
        until: &Mark,
        clues: &PairClues,
        after: Option<PatientId>,
    ) -> Result<Page<StoredPatient>, FeedError> {
        let span = all_until(until);
        let contacts: Vec<_> = clues.contacts.iter().filter_map(|clue| Some(clue.split_once('/')?.1)).collect();
        let rows: Vec<PatientRow> = self.read(scope, |connection| {
            let query = in_span!(&*RESEMBLING, scope, span, after).bind::<Array<Text>, _>(&clues.birth_dates);
            query.bind::<Array<Text>, _>(&contacts).bind::<Array<Text>, _>(&clues.contacts).load(connection)
        })?;
        let items: Vec<StoredPatient> = rows.into_iter().map(Into::into).collect();
        let continued_after = if items.len() < PAGE_MAX { None } else { items.last().map(|last| last.id) };
        Ok(Page { items, continued_after })
    }

    fn first_names(
        &mut self,
        scope: &FeedScope,
        until: &Mark,
        initials: &[String],
    ) -> Result<Vec<(String, u64)>, FeedError> {
        #[derive(QueryableByName)]
        struct NameCount {
            #[diesel(sql_type = Text)]
            first_name: String,
            #[diesel(sql_type = BigInt)]
            count: i64,
        }

        let span = all_until(until);
        let rows: Vec<NameCount> = self.read(scope, |connection| {
            let query = in_span!(&*FIRST_NAMES, scope, span, None::<PatientId>);
            query.bind::<Array<Text>, _>(initials).load(connection)
        })?;
        Ok(rows.into_iter().map(|row| (row.first_name, u64::try_from(row.count).unwrap_or_default())).collect())
    }
}

/// Everything that the mark saw.
fn all_until(until: &Mark) -> Span {
    Span { since: Mark { token: None, next: 0, running: Vec::new() }, until: until.clone() }
}
