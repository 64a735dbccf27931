//! The patients that are sent: each is known by a number in its name, and can be made again from it, so that what is stored
//! can be compared with what was sent.

use diesel::prelude::*;
use diesel::sql_types::{Nullable, Text, Timestamptz, Uuid as SqlUuid};
use serde_json::{Value, json};
use time::OffsetDateTime;
use uuid::Uuid;

const NAMES: [&str; 5] = ["Ada", "Zoë", "Nguyễn Thị", "O'Brien \"Bo\"", "Ōtani\\"];

/// The patient of a number.
pub(crate) fn patient(number: u64) -> Value {
    let name = NAMES.iter().cycle().nth(usize::try_from(number % 1_000).unwrap_or(0));
    // Two in three say where they live and how to write to them.
    let told = |value: String| (!number.is_multiple_of(3)).then_some(value);
    json!({
        "firstName": name,
        "lastName": format!("Torture-{number}"),
        "phoneNumber": format!("+614{:08}", number % 100_000_000),
        "dateOfBirth": format!("{}-{:02}-{:02}", 1930 + number % 90, 1 + number % 12, 1 + number % 28),
        "email": told(format!("patient.{number}@example.com")),
        "addressLine1": told(format!("{number} Rue de l'Église")),
        "addressLine2": told(String::new()),
        "suburb": told("Carlton".to_owned()),
        "state": told("VIC".to_owned()),
        "postcode": told("3053".to_owned()),
        "country": told("AU".to_owned()),
    })
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
    /// All rows of a register. Who asks must own it.
    pub(crate) fn all(connection: &mut PgConnection) -> QueryResult<Vec<Self>> {
        let as_sent = "jsonb_build_object('firstName', first_name, 'lastName', last_name, 'phoneNumber', phone_number,
            'dateOfBirth', date_of_birth::text, 'email', email, 'addressLine1', address_line1,
            'addressLine2', address_line2, 'suburb', suburb, 'state', state, 'postcode', postcode, 'country', country,
            'isUpdated', created_at <> updated_at)";
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

/// The patient of a number as a row must hold it.
pub(crate) fn as_stored(number: u64) -> Value {
    let mut expected = patient(number);
    if let Some(members) = expected.as_object_mut() {
        members.insert("isUpdated".to_owned(), false.into());
    }
    expected
}
