//! The register against a real PostgreSQL: who may create, what is stored, and that sending again creates nothing
//! twice.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::sync::Arc;
use std::time::Duration;

use diesel::prelude::*;
use diesel::sql_types::Text;
use intake_domain::{
    Actor, AllowedNetworks, AnswerCode, AuditContext, AuditEntryId, Caller, CheckedFor, Environment, Field,
    IdempotencyKey, KeyActivity, KeyCheck, KeyContact, KeyFormat, KeyId, KeyList, KeyRefusal, KeyRequest, KeySecret,
    KeyStateStore, Name, Organisation, OrganisationId, PatientDraft, PatientId, PatientRegister, Refusal,
    RefusalReason, Registered, Registration, RequestDigest, SafeRetry, StoreError, create_key,
};
use intake_infra::{
    Database, DatabaseUrl, KeyDirectory, KeyUseWriter, KeyUses, PostgresKeyActivity, PostgresKeyStore,
    PostgresOrganisations, PostgresPatientRegister,
};
use intake_test_support::TestDatabase;
use time::OffsetDateTime;
use time::macros::datetime;
use uuid::Uuid;

const NOW: OffsetDateTime = datetime!(2025-12-03 10:30:00.123 UTC);
const DEADLINE: Duration = Duration::from_secs(5);

struct Clinic {
    database: TestDatabase,
    keys: PostgresKeyStore,
    register: PostgresPatientRegister,
    directory: KeyDirectory,
    uses: KeyUses,
    organisation: OrganisationId,
}

async fn add(database: &TestDatabase, organisation: &Organisation) {
    PostgresOrganisations::new(Database::new(&database.service, DEADLINE)).add(organisation).await.unwrap();
}

impl Clinic {
    async fn open() -> Self {
        let database = TestDatabase::new();
        let (directory, uses) = (KeyDirectory::default(), KeyUses::default());
        let keys = PostgresKeyStore::new(Database::new(&database.service, DEADLINE));
        let register = PostgresPatientRegister::start(&database.service, None, DEADLINE, &directory, &uses).unwrap();
        let organisation = Organisation { id: Uuid::from_u128(1).into(), name: Name::new("Clinic").unwrap() };
        add(&database, &organisation).await;
        Self { database, keys, register, directory, uses, organisation: organisation.id }
    }

    async fn key(&self, number: u8, expires_at: Option<OffsetDateTime>) -> (KeyId, intake_domain::KeyDigest) {
        let request = KeyRequest {
            organisation_id: self.organisation,
            name: Name::new("Key").unwrap(),
            expires_at,
            allowed_networks: AllowedNetworks::default(),
            contact: KeyContact::default(),
            replaces: None,
            id: KeyId::new(NOW, [number; 10]),
            secret: KeySecret::new([number; 32]),
        };
        let issued = create_key(&self.keys, &format(), request, &audit(number)).await.unwrap();
        (issued.id, issued.key.digest())
    }

    fn patients(&self) -> i64 {
        self.database.count("patients")
    }
}

fn audit(number: u8) -> AuditContext {
    AuditContext {
        entry_id: AuditEntryId::new(NOW, [number; 10]),
        actor: Actor::Operator(intake_domain::Operator::default()),
        address: None,
        at: NOW,
        confirmed_in: None,
    }
}

fn format() -> KeyFormat {
    KeyFormat::new(&"intake".parse().unwrap(), Environment::Development)
}

fn registration(key: intake_domain::KeyDigest, number: u8, retry: Option<&str>) -> Arc<Registration> {
    let fields = [
        (Field::FirstName, "Zoë"),
        (Field::LastName, "O'Brien"),
        (Field::PhoneNumber, "+61412345678"),
        (Field::DateOfBirth, "2000-02-29"),
        (Field::Email, "zoe@example.com"),
        (Field::AddressLine1, ""),
        (Field::Suburb, "Carlton"),
        (Field::State, "VIC"),
        (Field::Postcode, "3053"),
        (Field::Country, "AU"),
    ];
    let draft: PatientDraft<'_> = fields.into_iter().collect();
    let id = PatientId::new(NOW, [number; 10]);
    let patient = draft.validate(NOW).unwrap();
    let digest = RequestDigest::new(id, &patient);
    let retry = retry.map(|key| SafeRetry { key: key.parse::<IdempotencyKey>().unwrap(), digest });
    let caller = Caller { key, address: None };
    Arc::new(Registration { caller, id, patient, created_at: NOW, retry })
}

#[tokio::test]
async fn an_active_key_creates_in_its_own_organisation() {
    let clinic = Clinic::open().await;
    let (_, key) = clinic.key(1, None).await;
    let create = |number| clinic.register.create(registration(key, number, None));
    // One alone, and several at once: both forms of the statement store the same.
    let alone = create(1).await;
    let (a, b, c, d) = tokio::join!(create(2), create(3), create(4), create(5));
    for created in [alone, a, b, c, d] {
        assert_eq!(created.unwrap(), Registered::Created(clinic.organisation));
    }

    #[derive(QueryableByName)]
    struct Row {
        #[diesel(sql_type = Text)]
        text: String,
    }
    let query = "SELECT concat_ws('|', organisation_id, id, first_name, last_name, phone_number, date_of_birth, email,
        address_line1, address_line2 IS NULL, suburb, state, postcode, country, created_at = updated_at,
        created_at AT TIME ZONE 'UTC', idempotency_key, request_digest) AS text FROM patients ORDER BY id";
    let rows: Vec<Row> = diesel::sql_query(query).load(&mut clinic.database.connect()).unwrap();
    let texts: Vec<_> = rows.into_iter().map(|row| row.text).collect();
    let expected = (1..=5).map(|number| {
        let id = PatientId::new(NOW, [number; 10]);
        format!(
            "00000000-0000-0000-0000-000000000001|{id}|Zoë|O'Brien|+61412345678|2000-02-29|zoe@example.com||t|Carlton|VIC|3053|AU|t|2025-12-03 10:30:00.123"
        )
    });
    assert_eq!(texts, expected.collect::<Vec<_>>());
}

#[tokio::test]
async fn a_key_that_is_not_active_creates_nothing() {
    let clinic = Clinic::open().await;
    let (revoked_id, revoked) = clinic.key(1, None).await;
    clinic.keys.revoke(revoked_id, None, &audit(100)).await.unwrap();
    let (_, expired) = clinic.key(2, Some(datetime!(2020-01-01 0:00 UTC))).await;
    let unknown = format().mint([9; 32]).digest();
    for (key, refusal) in
        [(revoked, KeyRefusal::Revoked), (expired, KeyRefusal::Expired), (unknown, KeyRefusal::Unknown)]
    {
        assert_eq!(clinic.register.create(registration(key, 1, None)).await.unwrap(), Registered::Refused(refusal));
        assert_eq!(
            clinic.register.check_key(&Caller { key, address: None }, CheckedFor::Answer).await.unwrap(),
            KeyCheck::Refused(refusal)
        );
    }
    assert_eq!(clinic.patients(), 0);
}

/// The insert asks PostgreSQL whether the address lies in a network, and all other checks ask the domain.
#[tokio::test]
async fn both_forms_of_the_insert_and_the_check_agree_on_where_a_key_is_accepted() {
    let clinic = Clinic::open().await;
    let (key_id, key) = clinic.key(1, None).await;
    let mut number = 0;
    for (networks, address, is_accepted) in [
        ("any", None, true),
        ("203.0.113.0/24, 2001:db8::/32", Some("203.0.113.255"), true),
        ("203.0.113.0/24, 2001:db8::/32", Some("2001:db8:ffff::1"), true),
        ("203.0.113.0/24, 2001:db8::/32", Some("203.0.114.0"), false),
        ("203.0.113.0/24, 2001:db8::/32", Some("2001:db9::"), false),
        ("203.0.113.0/24, 2001:db8::/32", None, false),
        ("203.0.113.7", Some("203.0.113.7"), true),
        ("203.0.113.7", Some("203.0.113.8"), false),
        ("0.0.0.0/0", Some("203.0.113.8"), true),
        ("0.0.0.0/0", Some("::1"), false),
        ("::/0", Some("::1"), true),
        ("::/0", Some("203.0.113.8"), false),
    ] {
        let networks: AllowedNetworks = networks.parse().unwrap();
        clinic.keys.set_allowed_networks(key_id, None, &networks, &audit(number + 2)).await.unwrap();
        let stored = clinic.keys.key(clinic.organisation, key_id).await.unwrap().unwrap();
        assert_eq!(stored.allowed_networks, networks);
        let caller = Caller { key, address: address.map(|address| address.parse().unwrap()) };
        let create = |number| {
            let Ok(registration) = Arc::try_unwrap(registration(key, number, None)) else { panic!("one owner") };
            clinic.register.create(Arc::new(Registration { caller, ..registration }))
        };
        number += 3;
        let alone = create(number - 2).await.unwrap();
        let (a, b) = tokio::join!(create(number - 1), create(number));
        let created = match is_accepted {
            true => Registered::Created(clinic.organisation),
            false => Registered::Refused(KeyRefusal::Elsewhere),
        };
        assert_eq!(
            (alone, a.unwrap(), b.unwrap()),
            (created.clone(), created.clone(), created),
            "{networks} {caller:?}"
        );
        let check = clinic.register.check_key(&caller, CheckedFor::Answer).await.unwrap();
        assert_eq!(matches!(check, KeyCheck::Active(_)), is_accepted, "{networks} {caller:?}");
    }
}

#[tokio::test]
async fn a_key_with_time_left_is_active() {
    let clinic = Clinic::open().await;
    let (key_id, key) = clinic.key(1, Some(datetime!(2999-01-01 0:00 UTC))).await;
    let created = clinic.register.create(registration(key, 1, None)).await.unwrap();
    assert_eq!(created, Registered::Created(clinic.organisation));
    match clinic.register.check_key(&Caller { key, address: None }, CheckedFor::Answer).await.unwrap() {
        KeyCheck::Active(holder) => {
            assert_eq!((holder.key_id, holder.organisation_id), (key_id, clinic.organisation));
        }
        KeyCheck::Refused(refusal) => panic!("{refusal:?}"),
    }
}

#[tokio::test]
async fn a_registration_sent_again_creates_one_patient() {
    let clinic = Clinic::open().await;
    let (key_id, key) = clinic.key(1, None).await;
    for _ in 0..3 {
        let created = clinic.register.create(registration(key, 1, Some("once"))).await.unwrap();
        assert_eq!(created, Registered::Created(clinic.organisation));
    }
    assert_eq!(clinic.patients(), 1);
    clinic.keys.revoke(key_id, None, &audit(100)).await.unwrap();
    let again = clinic.register.create(registration(key, 1, Some("once"))).await.unwrap();
    assert_eq!(
        again,
        Registered::Created(clinic.organisation),
        "that very patient is stored, whatever its key is worth now"
    );
    let answer = clinic.register.create(registration(key, 2, Some("once"))).await.unwrap();
    assert_eq!(answer, Registered::Refused(KeyRefusal::Revoked), "a new request with that key is refused");
    assert_eq!(clinic.patients(), 1);
}

#[tokio::test]
async fn an_idempotency_key_is_good_for_one_patient_of_the_organisation() {
    let clinic = Clinic::open().await;
    let (_, key) = clinic.key(1, None).await;
    let (_, rotated) = clinic.key(2, None).await;
    let first = registration(key, 1, Some("once"));
    clinic.register.create(Arc::clone(&first)).await.unwrap();
    match clinic.register.create(registration(rotated, 2, Some("once"))).await.unwrap() {
        Registered::Before { organisation_id, id, created_at, digest } => {
            assert_eq!((organisation_id, id, created_at), (clinic.organisation, first.id, NOW));
            assert_eq!(digest, *first.retry.as_ref().unwrap().digest.as_bytes());
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(clinic.patients(), 1);
}

#[tokio::test]
async fn racing_requests_with_one_idempotency_key_create_one_patient() {
    let clinic = Arc::new(Clinic::open().await);
    let (_, key) = clinic.key(1, None).await;
    let race = (0..64).map(|number| {
        let clinic = Arc::clone(&clinic);
        tokio::spawn(async move { clinic.register.create(registration(key, number, Some("race"))).await.unwrap() })
    });
    let mut winners = 0;
    for racer in race.collect::<Vec<_>>() {
        winners += usize::from(matches!(racer.await.unwrap(), Registered::Created(_)));
    }
    assert_eq!(winners, 1);
    assert_eq!(clinic.patients(), 1);
}

#[tokio::test]
async fn a_batch_answers_each_of_its_requests() {
    let clinic = Arc::new(Clinic::open().await);
    let (_, key) = clinic.key(1, None).await;
    let unknown = format().mint([9; 32]).digest();
    let all = (0..200_u8).map(|number| {
        let clinic = Arc::clone(&clinic);
        let key = if number % 4 == 0 { unknown } else { key };
        tokio::spawn(async move { (number, clinic.register.create(registration(key, number, None)).await.unwrap()) })
    });
    for one in all.collect::<Vec<_>>() {
        let (number, registered) = one.await.unwrap();
        let expected = match number % 4 {
            0 => Registered::Refused(KeyRefusal::Unknown),
            _ => Registered::Created(clinic.organisation),
        };
        assert_eq!(registered, expected, "{number}");
    }
    assert_eq!(clinic.patients(), 150);
}

#[tokio::test]
async fn a_request_past_its_deadline_learns_that_the_database_is_away() {
    let nobody = tempfile::tempdir().unwrap();
    let url = DatabaseUrl::on_socket(&nobody.path().to_string_lossy(), "intake_service", "intake");
    let deadline = Duration::from_millis(100);
    let (directory, uses) = (KeyDirectory::default(), KeyUses::default());
    let register = Arc::new(PostgresPatientRegister::start(&url, None, deadline, &directory, &uses).unwrap());
    let key = format().mint([1; 32]).digest();
    // Enough for the writer to drop some in the very moment in which their time is over here.
    let asked = (0..300).map(|number| {
        let register = Arc::clone(&register);
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_micros(number * 700)).await;
            register.check_key(&Caller { key, address: None }, CheckedFor::Answer).await
        })
    });
    for answer in asked.collect::<Vec<_>>() {
        let answer = answer.await.unwrap();
        assert!(matches!(answer, Err(StoreError::Unavailable(_))), "{answer:?}");
    }
}

#[tokio::test]
async fn the_use_of_a_key_is_written_at_the_end() {
    let clinic = Clinic::open().await;
    let (_, key) = clinic.key(1, None).await;
    let (_, idle) = clinic.key(2, None).await;
    let writer =
        KeyUseWriter::start(clinic.database.service.clone(), clinic.directory.clone(), clinic.uses.clone(), "a".into())
            .unwrap();
    clinic.register.create(registration(key, 1, None)).await.unwrap();
    let database = Database::new(&clinic.database.service, DEADLINE);
    let activity = PostgresKeyActivity::new(database, clinic.directory.clone(), clinic.uses.clone());
    let reason = Some(RefusalReason::Unencrypted);
    let (code, request_id) = (AnswerCode(426), "the-one".to_owned());
    let refusal = Refusal { at: NOW, code, reason, fields: vec![], is_simulated: false, address: None, request_id };
    activity.note_sent_in_clear(&idle, refusal);
    drop(writer);
    let keys = clinic.keys.keys(clinic.organisation).await.unwrap().expect("the organisation exists");
    // By the database's clock, whatever moment the request had.
    let used = "key_uses WHERE last_used_at BETWEEN now() - interval '10 minutes' AND now()";
    assert_eq!((clinic.database.count(used), keys[0].sent_in_clear_at), (1, None));
    assert_eq!((keys[1].last_used_at, keys[1].sent_in_clear_at), (None, Some(NOW)));
}

/// Judged by the transactions that stored them, not by time: the patient of the quiet organisation is in one of the
/// first two.
#[tokio::test]
async fn a_quiet_organisation_does_not_wait_for_all_requests_of_another() {
    use diesel::connection::SimpleConnection;

    let clinic = Clinic::open().await;
    let (_, busy) = clinic.key(1, None).await;
    let quiet = Organisation { id: Uuid::from_u128(2).into(), name: Name::new("Quiet").unwrap() };
    add(&clinic.database, &quiet).await;
    let request = KeyRequest {
        organisation_id: quiet.id,
        name: Name::new("Key").unwrap(),
        expires_at: None,
        allowed_networks: AllowedNetworks::default(),
        contact: KeyContact::default(),
        replaces: None,
        id: KeyId::new(NOW, [2; 10]),
        secret: KeySecret::new([2; 32]),
    };
    let quiet_key = create_key(&clinic.keys, &format(), request, &audit(2)).await.unwrap().key.digest();
    // Both keys are known.
    for (key, number) in [(busy, 200), (quiet_key, 201)] {
        clinic.register.create(registration(key, number, None)).await.unwrap();
    }
    let mut holder = clinic.database.connect();
    holder.batch_execute("BEGIN; LOCK TABLE patients IN ACCESS EXCLUSIVE MODE").unwrap();
    let register = Arc::new(clinic.register);
    let create = |key, random: [u8; 10]| {
        let mut registration = Arc::try_unwrap(registration(key, 0, None)).unwrap();
        registration.id = PatientId::new(NOW, random);
        let register = Arc::clone(&register);
        tokio::spawn(async move { register.create(Arc::new(registration)).await.unwrap() })
    };
    let numbered = |number: u16| {
        let mut random = [7; 10];
        random[..2].copy_from_slice(&number.to_be_bytes());
        random
    };
    let mut creates: Vec<_> = (0..1_000).map(|number| create(busy, numbered(number))).collect();
    tokio::time::sleep(Duration::from_millis(200)).await;
    creates.push(create(quiet_key, [8; 10]));
    tokio::time::sleep(Duration::from_millis(200)).await;
    holder.batch_execute("ROLLBACK").unwrap();
    for create in creates {
        create.await.unwrap();
    }
    let last = "SELECT min(created_in) FROM patients WHERE id::text LIKE '%0808080808'";
    let before = format!(
        "(SELECT DISTINCT created_in FROM patients WHERE id::text LIKE '%0707070707' AND created_in < ({last})) AS batches"
    );
    let (before, all) = (
        clinic.database.count(&before),
        clinic
            .database
            .count("(SELECT DISTINCT created_in FROM patients WHERE id::text LIKE '%0707070707') AS batches"),
    );
    assert!(before <= 1 && all >= 4, "{before} of {all}");
}
