//! Faults inside PostgreSQL: the backend of a service's writer is frozen, or a transaction holds a row.

use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use diesel::connection::SimpleConnection;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::result::{ConnectionError, Error};
use diesel::sql_types::{Binary, Integer, Text, Uuid as SqlUuid};
use intake_domain::{Field, OrganisationId, PatientDraft, PatientId, RequestDigest};
use intake_infra::DatabaseUrl;
use serde_json::Value;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::processes::Frozen;

/// Time to look for the backend of a writer.
const SEARCH: Duration = Duration::from_secs(120);
/// Time that an insert may take before all of PostgreSQL counts as blocked.
const PROBE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(20);

/// The backend of an application's writer, recognised by its last statement.
const WRITER: &str = "SELECT pid FROM pg_stat_activity
    WHERE application_name = $1 AND query LIKE '%INTO patients%' AND datname = current_database()
    ORDER BY query_start DESC LIMIT 1";
/// Takes the same locks as a create and waits for the log as it does, but stores nothing.
const CREATE_AND_FORGET: &str = "BEGIN;
    SAVEPOINT before;
    INSERT INTO patients (organisation_id, id, first_name, last_name, phone_number, date_of_birth, created_at, updated_at)
        VALUES (gen_random_uuid(), gen_random_uuid(), 'Probe', 'Probe', '+61412345678', '1985-03-21', now(), now());
    ROLLBACK TO before;
    SELECT pg_logical_emit_message(true, 'intake', 'probe');
    COMMIT";

/// Freezes the backend of a service's writer at work; `application` is the service's name in PostgreSQL. If the backend
/// happens to hold a lock that all of PostgreSQL needs, such as that of the log, it is woken and another try is made:
/// then nobody could write, which is another fault.
pub fn freeze_writer(owner: &DatabaseUrl, application: &str) -> Result<Frozen, String> {
    let until = Instant::now() + SEARCH;
    loop {
        let found = writer(owner, application);
        if let Ok(Some(backend)) = found {
            let frozen = Frozen::one(backend);
            if can_others_write(owner) {
                return Ok(frozen);
            }
        }
        if Instant::now() > until {
            return Err(match found {
                Ok(_) => format!("no writer of {application} could be frozen alone"),
                Err(error) => error.to_string(),
            });
        }
        std::thread::sleep(PAUSE);
    }
}

/// A patient in an open transaction.
pub struct HeldRow {
    connection: PgConnection,
}

impl HeldRow {
    /// Inserts, as the owner, the row that this request would create. The JSON must be valid.
    pub fn insert(
        owner: &DatabaseUrl,
        organisation: OrganisationId,
        idempotency_key: &str,
        patient: &Value,
    ) -> Result<Self, String> {
        let id = Uuid::from_bytes(crate::clinic::random());
        let digest = digest(id, patient)?;
        let columns = Field::ALL.iter().copied().map(Field::column).collect::<Vec<_>>().join(", ");
        let by_column = Field::ALL.iter().map(|field| (field.column().to_owned(), patient[field.name()].clone()));
        let by_column = Value::Object(by_column.collect());
        let mut connection =
            PgConnection::establish(owner.expose()).map_err(|error: ConnectionError| error.to_string())?;
        let inserted = connection.batch_execute("BEGIN").and_then(|()| {
            diesel::sql_query(format!(
                "INSERT INTO patients (organisation_id, id, {columns}, idempotency_key, request_digest, created_in, created_at, updated_at)
                 SELECT $1, $2, {columns}, $3, $4,
                    CASE WHEN to_regproc('citus_version') IS NULL THEN feed_number($1) ELSE 0 END, date_trunc('milliseconds', now()), date_trunc('milliseconds', now())
                 FROM jsonb_populate_record(NULL::patients, $5::jsonb)"
            ))
            .bind::<SqlUuid, _>(*organisation.as_uuid())
            .bind::<SqlUuid, _>(id)
            .bind::<Text, _>(idempotency_key)
            .bind::<Binary, _>(digest.as_bytes().as_slice())
            .bind::<Text, _>(by_column.to_string())
            .execute(&mut connection)
        });
        inserted.map(|_| Self { connection }).map_err(|error: Error| error.to_string())
    }

    /// Commits the transaction.
    pub fn commit(self) -> Result<(), String> {
        self.end("COMMIT")
    }

    /// Rolls the transaction back.
    pub fn roll_back(self) -> Result<(), String> {
        self.end("ROLLBACK")
    }

    fn end(mut self, how: &str) -> Result<(), String> {
        self.connection.batch_execute(how).map_err(|error| error.to_string())
    }
}

fn writer(owner: &DatabaseUrl, application: &str) -> Result<Option<u32>, Box<dyn std::error::Error>> {
    #[derive(QueryableByName)]
    struct Backend {
        #[diesel(sql_type = Integer)]
        pid: i32,
    }

    let mut connection = PgConnection::establish(owner.expose())?;
    let found = diesel::sql_query(WRITER).bind::<Text, _>(application).get_result::<Backend>(&mut connection);
    found.optional()?.map(|backend| Ok(u32::try_from(backend.pid)?)).transpose()
}

/// Tries on a thread that is left behind if it hangs: nothing can end the wait for a lock inside PostgreSQL.
fn can_others_write(owner: &DatabaseUrl) -> bool {
    let (done, outcome) = channel();
    let owner = owner.clone();
    std::thread::spawn(move || {
        let connection = PgConnection::establish(owner.expose());
        let tried = connection.is_ok_and(|mut connection| connection.batch_execute(CREATE_AND_FORGET).is_ok());
        let _ = done.send(tried);
    });
    outcome.recv_timeout(PROBE) == Ok(true)
}

fn digest(id: Uuid, patient: &Value) -> Result<RequestDigest, String> {
    let sent = Field::ALL.iter().copied().filter_map(|field| Some((field, patient.get(field.name())?.as_str()?)));
    let draft: PatientDraft<'_> = sent.collect();
    #[expect(clippy::disallowed_methods, reason = "the rules need the current date")]
    let patient = draft.validate(OffsetDateTime::now_utc()).map_err(|_| "the patient breaks a rule".to_owned())?;
    Ok(RequestDigest::new(PatientId::from(id), &patient))
}
