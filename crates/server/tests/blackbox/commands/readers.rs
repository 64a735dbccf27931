//! Roles that read patients: through the view, of their own organisation or of all, and nothing else.

use diesel::connection::SimpleConnection;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::{Field, OrganisationId};
use intake_infra::{DatabaseUrl, SERVICE_ROLE};
use intake_test_support::{TestDatabase, WithCount, patient};

use crate::complaint;
use crate::fixtures::{TestApp, service};

/// A role that may read patients, dropped in the end.
pub(crate) struct ReaderRole<'a> {
    pub(crate) url: DatabaseUrl,
    name: String,
    database: &'a TestDatabase,
}

impl<'a> ReaderRole<'a> {
    /// Makes a role and lets it read, as an operator does.
    pub(crate) fn make(database: &'a TestDatabase, name: &str, organisation: Option<OrganisationId>) -> Self {
        let reader = Self::make_powerless(database, name);
        let id = organisation.map(|id| id.to_string());
        let said = reader.grant(&id.iter().flat_map(|id| ["--organisation", id]).collect::<Vec<_>>());
        assert!(said.contains("may read the patients of") && said.contains("and nothing else"), "{said}");
        reader
    }

    /// Lets it read other patients than before, as an operator does; returns what was said.
    pub(crate) fn grant(&self, more: &[&str]) -> String {
        self.migrate("--reader-role", more)
    }

    /// Lets it do what the service needs.
    pub(crate) fn become_service(&self) {
        self.migrate("--service-role", &[]);
    }

    fn migrate(&self, role: &str, more: &[&str]) -> String {
        let arguments = [&["migrate", role, &self.name], more].concat();
        let output = arguments.iter().fold(service(self.database), |all, one| all.argument(one)).run();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Takes every right from it.
    pub(crate) fn drop_grants(&self) {
        self.database.on_each_node(&format!("DROP OWNED BY \"{}\"", self.name));
    }

    pub(crate) fn make_powerless(database: &'a TestDatabase, name: &str) -> Self {
        let name = format!("{name} of {}", database.name());
        database.administer(&format!("CREATE ROLE \"{name}\" LOGIN"));
        Self { url: database.as_role(&name), name, database }
    }

    pub(crate) fn connect(&self) -> PgConnection {
        PgConnection::establish(self.url.expose()).unwrap()
    }

    /// Its address at this node of a cluster.
    pub(crate) fn at(&self, node: usize) -> DatabaseUrl {
        self.database.citus().role_at(node, &self.name, self.database.name())
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns how many rows a query finds for this role.
    fn count(&self, from: &str) -> i64 {
        let query = diesel::sql_query(format!("SELECT count(*) AS count FROM {from}"));
        query.get_result::<WithCount>(&mut self.connect()).unwrap().count
    }
}

impl Drop for ReaderRole<'_> {
    fn drop(&mut self) {
        self.drop_grants();
        self.database.administer(&format!("DROP ROLE \"{}\"", self.name));
    }
}

#[test]
fn a_reader_reads_the_patients_of_its_organisation_or_of_all_and_nothing_else() {
    let app = TestApp::start();
    let other = app.other_clinic();
    assert_eq!(app.create(&patient()).status, 201);
    assert_eq!(app.create(&patient()).status, 201);
    assert_eq!(app.service.create(&other.key().1, &patient()).status, 201);
    let own = ReaderRole::make(&app.database, "own", Some(app.clinic.organisation));
    let every = ReaderRole::make(&app.database, "every", None);
    assert_eq!((own.count("patients_v1"), every.count("patients_v1")), (2, 3));
    let of_other = format!("patients_v1 WHERE organisation_id = '{}'", other.organisation);
    assert_eq!((own.count(&of_other), every.count(&of_other)), (0, 1));

    // Whatever else is in the schema, and will ever be.
    let tables = app.database.texts(
        "SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'v')",
    );
    assert!(tables.len() > 15, "{tables:?}");
    for reader in [&own, &every] {
        let mut connection = reader.connect();
        let mut is_denied = |statement: &str| {
            let denied = connection.batch_execute(statement).unwrap_err().to_string();
            assert!(denied.contains("permission denied"), "{statement}: {denied}");
        };
        for table in &tables {
            if !["patients_v1", "erasures_v1"].contains(&table.as_str()) {
                is_denied(&format!("SELECT FROM {table}"));
            }
            is_denied(&format!("DELETE FROM {table}"));
            is_denied(&format!("INSERT INTO {table} DEFAULT VALUES"));
        }
        is_denied("UPDATE patients_v1 SET first_name = ''");
        is_denied("CREATE TABLE mine (id int)");
    }
}

#[test]
fn a_role_that_inherits_a_reader_role_gets_rows_or_an_error() {
    let app = TestApp::start();
    let other = app.other_clinic();
    assert_eq!(app.create(&patient()).status, 201);
    assert_eq!(app.service.create(&other.key().1, &patient()).status, 201);
    let own = ReaderRole::make(&app.database, "own", Some(app.clinic.organisation));
    let every = ReaderRole::make(&app.database, "every", None);
    let analyst = ReaderRole::make_powerless(&app.database, "analyst");
    app.database.administer(&format!("GRANT \"{}\" TO \"{}\"", own.name, analyst.name));
    assert_eq!((analyst.count("patients_v1"), analyst.count("erasures_v1")), (1, 0));
    let export = |organisation: OrganisationId| {
        let command = crate::fixtures::program().database_urls(&analyst.url, &analyst.url);
        let organisation = organisation.to_string();
        let arguments = ["export", "--format", "jsonl", "--organisation", &organisation];
        arguments.iter().fold(command, |all, one| all.argument(one)).run()
    };
    let output = export(app.clinic.organisation);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 1);
    assert_eq!(export(other.organisation).status.code(), Some(1), "another organisation is refused");
    // What it may use is not what it inherits.
    app.database.administer(&format!("ALTER ROLE \"{}\" NOINHERIT", analyst.name));
    assert!(analyst.connect().batch_execute("SELECT FROM patients_v1").is_err());
    assert_eq!(export(app.clinic.organisation).status.code(), Some(1));
    app.database.administer(&format!("ALTER ROLE \"{}\" INHERIT", analyst.name));
    app.database.administer(&format!("GRANT \"{}\" TO \"{}\"", every.name, analyst.name));
    assert_eq!(analyst.count("patients_v1"), 2);
    // A reader that is no role any more hides nothing from the others.
    app.database.connect().batch_execute("INSERT INTO readers (role) VALUES ('gone')").unwrap();
    assert_eq!((own.count("patients_v1"), every.count("patients_v1")), (1, 2));
}

#[test]
fn a_condition_of_a_reader_sees_no_row_that_the_view_hides() {
    let app = TestApp::start();
    assert_eq!(app.service.create(&app.other_clinic().key().1, &patient()).status, 201);
    let own = ReaderRole::make(&app.database, "own", Some(app.clinic.organisation));
    let mut connection = own.connect();
    // A condition that costs nothing would be tried first, and would tell what it sees.
    connection
        .batch_execute(
            "CREATE FUNCTION pg_temp.tell(text) RETURNS boolean LANGUAGE plpgsql COST 0.0000001
             AS 'BEGIN RAISE ''seen: %'', $1; END'",
        )
        .unwrap();
    connection.batch_execute("SELECT FROM patients_v1 WHERE pg_temp.tell(last_name)").unwrap();
}

#[test]
fn a_role_that_could_do_more_becomes_no_reader() {
    let database = TestDatabase::new();
    let refusal = |arguments: &[&str]| {
        let output = arguments.iter().fold(service(&database).argument("migrate"), |all, one| all.argument(one)).run();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(refusal(&["--reader-role", "intake_owner"]).contains("needs a role of its own"));
    assert!(refusal(&["--reader-role", "nobody"]).contains("no role nobody"));
    assert!(refusal(&["--reader-role", SERVICE_ROLE]).contains("api_keys, audit_entries"));
    // Nothing was taken from it.
    service(&database).start().wait_until_ready();

    let member = ReaderRole::make_powerless(&database, "member");
    database.administer(&format!("GRANT {SERVICE_ROLE} TO \"{}\"", member.name));
    assert!(refusal(&["--reader-role", &member.name]).contains("may also use"));
    database.administer(&format!("REVOKE {SERVICE_ROLE} FROM \"{}\"", member.name));
    let nobody = uuid::Uuid::from_u128(7).to_string();
    for more in [&["--check"][..], &[]] {
        let arguments = [&["--reader-role", &member.name, "--organisation", &nobody][..], more].concat();
        let refused = refusal(&arguments);
        assert!(refused.contains("there is no organisation"), "{refused}");
    }
    assert!(member.connect().batch_execute("SELECT FROM patients_v1").is_err());
}

#[test]
fn the_next_grant_replaces_what_a_reader_may_read() {
    let app = TestApp::start();
    assert_eq!(app.create(&patient()).status, 201);
    let reader = ReaderRole::make(&app.database, "reader", None);
    assert_eq!(reader.count("patients_v1"), 1);
    let other = app.other_clinic().organisation.to_string();
    reader.grant(&["--organisation", &other]);
    assert_eq!(reader.count("patients_v1"), 0);
    // After an upgrade, say: nobody means to open the other clinics by that.
    for more in [&["--check"][..], &[]] {
        let said = reader.grant(more);
        assert!(said.contains(&format!("the patients of the organisation {other}")), "{said}");
        assert_eq!(reader.count("patients_v1"), 0);
    }
    assert!(reader.grant(&["--all-organisations", "--check"]).contains("the patients of all organisations"));
    assert_eq!(reader.count("patients_v1"), 0, "nothing was changed");
    assert!(reader.grant(&["--all-organisations"]).contains("the patients of all organisations"));
    assert_eq!(reader.count("patients_v1"), 1);
    // Both organisations when all are read, else the one that is.
    let entries = app.database.texts(
        "SELECT organisation_id || ' ' || subject || ' ' || count(*) FROM audit_entries
         WHERE action = 'reader_granted' GROUP BY organisation_id, subject",
    );
    let expected = |organisation: &str, count: u32| format!("{organisation} {} {count}", reader.name());
    assert_eq!(entries.len(), 2, "{entries:?}");
    assert!(entries.contains(&expected(&other, 3)), "{entries:?}");
    assert!(entries.contains(&expected(&app.clinic.organisation.to_string(), 2)), "{entries:?}");
}

#[test]
fn a_role_that_could_read_patients_becomes_no_service() {
    let app = TestApp::start();
    assert_eq!(app.create(&patient()).status, 201);
    // A check says what migrating would.
    let refusal = |role: &str| {
        let [check, migration] = [&["--check"][..], &[]].map(|more| {
            let command = [&["migrate", "--service-role", role], more].concat();
            complaint(command.iter().fold(service(&app.database), |all, one| all.argument(one)))
        });
        assert_eq!(check, migration);
        migration
    };
    let reader = ReaderRole::make(&app.database, "reader", None);
    let refused = refusal(&reader.name);
    assert!(refused.contains("it is a reader"), "{refused}");
    assert_eq!(reader.count("patients_v1"), 1, "nothing was taken from it");

    let role = ReaderRole::make_powerless(&app.database, "service");
    let owner = app.database.texts("SELECT quote_ident(current_user)").remove(0);
    for means in ["pg_read_all_data", &owner] {
        app.database.administer(&format!("GRANT {means} TO \"{}\"", role.name));
        let refused = refusal(&role.name);
        let said = format!("may read patients by other means (it is a member of {means})");
        assert!(refused.contains(&said), "{refused}");
        app.database.administer(&format!("REVOKE {means} FROM \"{}\"", role.name));
    }
    app.database.connect().batch_execute("GRANT SELECT (email) ON patients TO PUBLIC").unwrap();
    let refused = refusal(&role.name);
    assert!(refused.contains("(it may read what is granted to PUBLIC)"), "{refused}");
    let granted = format!("has_table_privilege('{}', 'patients', 'INSERT')", role.name);
    assert_eq!(app.database.texts(&format!("SELECT {granted}::text")), ["false"], "nothing was given to it");

    // What was granted to the role itself is taken away by migrating, which a check knows.
    let own = format!("REVOKE ALL ON patients FROM PUBLIC; GRANT SELECT ON patients TO \"{}\"", role.name);
    app.database.connect().batch_execute(&own).unwrap();
    for more in [&["--check"][..], &[]] {
        let command = ["migrate", "--service-role", &role.name];
        let command = command.iter().chain(more).fold(service(&app.database), |all, one| all.argument(one));
        assert!(command.run().status.success());
    }
    let can_read = format!("has_table_privilege('{}', 'patients', 'SELECT')", role.name);
    assert_eq!(app.database.texts(&format!("SELECT {can_read}::text")), ["false"]);
}

#[test]
fn every_field_is_in_the_view_with_its_name_in_json() {
    let database = TestDatabase::new();
    let named = database.texts(
        "SELECT attname || ' ' || coalesce(col_description(attrelid, attnum), '') FROM pg_attribute
         WHERE attrelid = 'patients_v1'::regclass AND attnum > 0",
    );
    let fields = Field::ALL.iter().map(|field| (field.column(), field.name()));
    let others = [
        ("id", "id"),
        ("organisation_id", "organisationId"),
        ("is_identified", "isIdentified"),
        ("created_at", "createdAt"),
        ("updated_at", "updatedAt"),
    ];
    for (column, name) in fields.into_iter().chain(others) {
        assert!(named.contains(&format!("{column} {name}")), "{column}: {named:?}");
    }
}
