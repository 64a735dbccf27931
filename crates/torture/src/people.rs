//! The patients that are sent. Each has a number in its name from which it can be made again, so that what is stored
//! can be compared with what was sent.

use diesel::prelude::*;
use diesel::sql_types::{Nullable, Text, Timestamptz, Uuid as SqlUuid};
use intake_domain::Field;
use serde_json::{Value, json};
use time::OffsetDateTime;
use uuid::Uuid;

const NAMES: [&str; 5] = ["Ada", "Zoë", "Nguyễn Thị", "O'Brien \"Bo\"", "Ōtani\\"];

/// The patient of a number.
pub(crate) fn patient(number: u64) -> Value {
    let name = NAMES.iter().cycle().nth(usize::try_from(number % 1_000).unwrap_or(0));
    // Two in three have an address.
    let is_short = number.is_multiple_of(3);
    let value = |field: Field| match field {
        Field::FirstName => json!(name),
        Field::LastName => json!(format!("Torture-{number}")),
        Field::PhoneNumber => json!(format!("+614{:08}", number % 100_000_000)),
        Field::DateOfBirth => json!(format!("{}-{:02}-{:02}", 1930 + number % 90, 1 + number % 12, 1 + number % 28)),
        _ if is_short => Value::Null,
        Field::Email => json!(format!("patient.{number}@example.com")),
        Field::AddressLine1 => json!(format!("{number} Rue de l'Église")),
        Field::AddressLine2 => json!(""),
        other => json!(other.definition().example),
    };
    Field::ALL.iter().copied().map(|field| (field.name(), value(field))).collect()
}

/// A row of the register.
#[derive(QueryableByName)]
pub(crate) struct Row {
    #[diesel(sql_type = SqlUuid)]
    pub(crate) organisation_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    pub(crate) id: Uuid,
    #[diesel(sql_type = Timestamptz)]
    pub(crate) created_at: OffsetDateTime,
    #[diesel(sql_type = Nullable<Text>)]
    pub(crate) idempotency_key: Option<String>,
    #[diesel(sql_type = Text)]
    pub(crate) patient: String,
}

impl Row {
    /// Reads all rows of a register. Only its owner may.
    pub(crate) fn all(connection: &mut PgConnection) -> QueryResult<Vec<Self>> {
        let pair = |field: Field| format!("'{}', {}::text", field.name(), field.column());
        let fields = Field::ALL.iter().copied().map(pair).collect::<Vec<_>>().join(", ");
        let as_sent = format!("jsonb_build_object({fields}, 'isUpdated', created_at <> updated_at)");
        diesel::sql_query(format!(
            "SELECT organisation_id, id, created_at, idempotency_key, {as_sent}::text AS patient FROM patients"
        ))
        .load(connection)
    }

    /// The number in its name.
    pub(crate) fn number(&self) -> Option<u64> {
        let patient: Value = serde_json::from_str(&self.patient).ok()?;
        patient.pointer("/lastName")?.as_str()?.strip_prefix("Torture-")?.parse().ok()
    }

    pub(crate) fn is_as_sent(&self, number: u64) -> bool {
        serde_json::from_str::<Value>(&self.patient).is_ok_and(|stored| stored == as_stored(number))
    }
}

/// The patient of a number as it must be stored.
pub(crate) fn as_stored(number: u64) -> Value {
    let mut expected = patient(number);
    if let Some(members) = expected.as_object_mut() {
        members.insert("isUpdated".to_owned(), false.into());
    }
    expected
}
