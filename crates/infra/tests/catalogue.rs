//! The schema as PostgreSQL holds it: fit for being spread over nodes, and what Diesel believes it to be.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::collections::{BTreeMap, BTreeSet};

use diesel::prelude::*;
use diesel::sql_types::Text;
use intake_infra::spread::{COPIED, HOMES, KEPT, KEYS_BESIDE_PATIENTS};
use intake_test_support::TestDatabase;

#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = Text)]
    line: String,
}

fn lines(database: &TestDatabase, query: &str) -> Vec<String> {
    let rows: Vec<Line> = diesel::sql_query(query).load(&mut database.connect()).unwrap();
    rows.into_iter().map(|row| row.line).collect()
}

fn is_small(name: &str) -> bool {
    COPIED.contains(&name) || KEPT.contains(&name) || name == HOMES
}

/// The register as `intake spread` shapes it before it divides it.
fn ready_to_be_spread() -> TestDatabase {
    use diesel::connection::SimpleConnection;

    let database = TestDatabase::new();
    database.connect().batch_execute(KEYS_BESIDE_PATIENTS).unwrap();
    database
}

#[test]
fn every_table_that_grows_is_led_by_its_organisation() {
    let database = ready_to_be_spread();
    let tables = lines(&database, "SELECT tablename::text AS line FROM pg_tables WHERE schemaname = 'public'");
    let leading = lines(
        &database,
        "SELECT conrelid::regclass || ' ' || attname AS line FROM pg_constraint
         JOIN pg_attribute ON attrelid = conrelid AND attnum = conkey[1] WHERE contype = 'p' AND connamespace = 'public'::regnamespace",
    );
    let growing: Vec<_> = tables.iter().filter(|table| !is_small(table)).collect();
    assert!(!growing.is_empty());
    for table in growing {
        assert!(leading.contains(&format!("{table} organisation_id")), "{table}: {leading:?}");
    }
}

#[test]
fn every_unique_rule_and_foreign_key_of_a_growing_table_names_the_organisation() {
    let database = ready_to_be_spread();
    let unique = lines(
        &database,
        "SELECT indrelid::regclass || ' ' || string_agg(attname, ',') AS line FROM pg_index
         JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY (indkey)
         WHERE indisunique AND indrelid::regclass::text NOT LIKE 'pg_%' GROUP BY indexrelid, indrelid",
    );
    let foreign = lines(
        &database,
        "SELECT conrelid::regclass || ' ' || string_agg(attname, ',') AS line FROM pg_constraint
         JOIN pg_attribute ON attrelid = conrelid AND attnum = ANY (conkey) WHERE contype = 'f' GROUP BY pg_constraint.oid, conrelid",
    );
    for rule in unique.iter().chain(&foreign) {
        let (table, columns) = rule.split_once(' ').unwrap();
        assert!(is_small(table) || columns.split(',').any(|column| column == "organisation_id"), "{rule}");
    }
}

#[test]
fn there_are_no_triggers_and_no_sequences() {
    let database = TestDatabase::new();
    assert_eq!(lines(&database, "SELECT tgname::text AS line FROM pg_trigger WHERE NOT tgisinternal"), [""; 0]);
    assert_eq!(lines(&database, "SELECT relname::text AS line FROM pg_class WHERE relkind = 'S'"), [""; 0]);
}

/// The newest migration of the first release. Rules for upgrades apply to later ones.
const BASELINE: &str = "20261122233000";

/// Version and SQL of every migration.
/// They run as the owner, so each role that calls one is granted it by name.
#[test]
fn no_function_can_be_called_by_everybody() {
    let open = "SELECT proname::text AS line FROM pg_proc
        WHERE pronamespace = 'public'::regnamespace AND prosecdef AND has_function_privilege('public', oid, 'EXECUTE')";
    assert_eq!(lines(&TestDatabase::new(), open), [""; 0]);
}

fn migrations() -> Vec<(String, String)> {
    let entries = std::fs::read_dir("../../migrations").unwrap().map(|entry| entry.unwrap().path());
    let folders = entries.filter(|path| path.is_dir());
    let migration = |folder: std::path::PathBuf| {
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let version = name.split('_').next().unwrap().replace('-', "");
        (version, std::fs::read_to_string(folder.join("up.sql")).unwrap())
    };
    folders.map(migration).collect()
}

/// The number of statements, without those in the bodies of functions.
fn statements(sql: &str) -> usize {
    let outside: String = sql.split("$$").step_by(2).collect();
    let lines = outside.lines().filter(|line| !line.trim_start().starts_with("--"));
    lines.filter(|line| line.trim_end().ends_with(';')).count()
}

/// Diesel takes migrations with the same version for one, and applies only one of them.
#[test]
fn every_migration_has_a_version_of_its_own() {
    let migrations = migrations();
    let versions: BTreeSet<_> = migrations.iter().map(|(version, _)| version).collect();
    assert_eq!(versions.len(), migrations.len(), "{versions:?}");
    assert!(versions.contains(&BASELINE.to_owned()));
}

/// Citus accepts most changes of distributed tables only as the only statement of a transaction.
#[test]
fn every_migration_after_the_baseline_is_one_statement() {
    let migrations = migrations();
    let (later, baseline): (Vec<_>, Vec<_>) = migrations.iter().partition(|(version, _)| version.as_str() > BASELINE);
    assert!(baseline.iter().all(|(_, sql)| statements(sql) > 1), "statements are counted");
    let many: Vec<_> = later.iter().filter(|(_, sql)| statements(sql) != 1).map(|(version, _)| version).collect();
    assert_eq!(many, [""; 0]);
}

#[test]
fn diesel_knows_the_tables_as_they_are() {
    let database = ready_to_be_spread();
    let columns = lines(
        &database,
        "SELECT table_name || ' ' || column_name || ' ' || udt_name || ' ' || is_nullable AS line
         FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)
         WHERE table_schema = 'public' AND table_type = 'BASE TABLE' AND table_name NOT LIKE '\\_\\_%'
         ORDER BY table_name, ordinal_position",
    );
    let mut tables: BTreeMap<&str, String> = BTreeMap::new();
    for column in &columns {
        let parts: Vec<_> = column.split(' ').collect();
        let &[table, name, kind, nullable] = parts.as_slice() else {
            panic!("{column}");
        };
        let kind = match kind {
            "bool" => "Bool",
            "bytea" => "Binary",
            "int4" => "Integer",
            "int8" => "BigInt",
            "_int8" => "Array<BigInt>",
            "_cidr" => "Array<Cidr>",
            "_text" => "Array<Text>",
            "_uuid" => "Array<Uuid>",
            "date" => "Date",
            "interval" => "Interval",
            "text" => "Text",
            "timestamptz" => "Timestamptz",
            "uuid" => "Uuid",
            other => panic!("no Diesel type is known for {other}"),
        };
        let kind = if nullable == "YES" { format!("Nullable<{kind}>") } else { kind.to_owned() };
        tables.entry(table).or_default().push_str(&format!("        {name} -> {kind},\n"));
    }
    let known = include_str!("../src/schema.rs");
    assert_eq!(known.matches("diesel::table!").count(), tables.len());
    for (table, columns) in tables {
        let start = known.find(&format!("    {table} (")).unwrap_or_else(|| panic!("{table} is unknown"));
        let body = known[start..].split_once("{\n").unwrap().1;
        assert!(body.starts_with(&format!("{columns}    }}")), "{table} is\n{columns}");
    }
}

#[test]
fn migrations_can_be_taken_back_and_applied_again() {
    use diesel_migrations::{FileBasedMigrations, MigrationHarness};

    let database = TestDatabase::new();
    let mut connection = database.connect();
    let migrations = FileBasedMigrations::find_migrations_directory_in_path("../../migrations").unwrap();
    let tables = "SELECT tablename::text AS line FROM pg_tables
        WHERE schemaname = 'public' AND tablename NOT LIKE '\\_\\_%' ORDER BY 1";
    let made = lines(&database, tables);
    connection.revert_all_migrations(migrations.clone()).unwrap();
    assert_eq!(lines(&database, tables), [""; 0]);
    connection.run_pending_migrations(migrations).unwrap();
    assert_eq!(lines(&database, tables), made);
}

/// Returns what programs that were built for a schema may rely on, as far as a later migration could break it: tables,
/// columns with their types, which columns an insert may leave out, and what values are refused.
fn relied_on(database: &TestDatabase) -> BTreeSet<String> {
    let facts = [
        "SELECT 'table ' || tablename AS line FROM pg_tables WHERE schemaname = 'public'",
        "SELECT 'column ' || attrelid::regclass || '.' || attname || ' ' || format_type(atttypid, atttypmod) AS line
         FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
         WHERE attnum > 0 AND NOT attisdropped AND relkind IN ('r', 'v') AND relnamespace = 'public'::regnamespace",
        "SELECT 'may be left out ' || attrelid::regclass || '.' || attname AS line
         FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
         WHERE attnum > 0 AND NOT attisdropped AND relkind = 'r' AND relnamespace = 'public'::regnamespace
            AND (atthasdef OR NOT attnotnull)",
        "SELECT 'index ' || indexrelid::regclass || ' ' || indisunique AS line FROM pg_index
         JOIN pg_class ON pg_class.oid = indexrelid WHERE relnamespace = 'public'::regnamespace",
    ];
    facts.iter().flat_map(|query| lines(database, query)).collect()
}

/// Returns what may refuse a row, or hide it, of each table: rules that a later migration must not add to a table that
/// was there.
fn rules(database: &TestDatabase) -> BTreeSet<(String, String)> {
    let rules = [
        "SELECT conrelid::regclass || ' ' || conname AS line FROM pg_constraint
         WHERE connamespace = 'public'::regnamespace AND contype IN ('c', 'x')",
        "SELECT conrelid::regclass || ' ' || attname || ' must exist' AS line FROM pg_constraint
         JOIN pg_attribute ON attrelid = conrelid AND attnum = ANY (conkey)
         WHERE connamespace = 'public'::regnamespace AND contype = 'f'",
        "SELECT indrelid::regclass || ' ' || indexrelid::regclass AS line FROM pg_index
         JOIN pg_class ON pg_class.oid = indexrelid WHERE indisunique AND relnamespace = 'public'::regnamespace",
        "SELECT polrelid::regclass || ' ' || polname AS line FROM pg_policy",
        "SELECT attrelid::regclass || ' ' || attname AS line FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
         WHERE attnum > 0 AND attnotnull AND NOT atthasdef AND relkind = 'r' AND relnamespace = 'public'::regnamespace",
    ];
    let found = rules.iter().flat_map(|query| lines(database, query));
    found.map(|rule| rule.split_once(' ').map(|(table, rule)| (table.to_owned(), rule.to_owned())).unwrap()).collect()
}

/// Returns what a change takes from programs that were built before it.
fn broken_by(database: &TestDatabase, change: impl FnOnce()) -> Vec<String> {
    let (relied_before, rules_before) = (relied_on(database), rules(database));
    change();
    let relied_after = relied_on(database);
    let gone = relied_before.difference(&relied_after).map(|fact| format!("gone: {fact}"));
    let was_there = |table: &str| relied_before.contains(&format!("table {table}"));
    let rules_after = rules(database);
    // A column that comes with a foreign key is null for programs that do not know it.
    let is_of_a_new_column = |(table, rule): &&(String, String)| {
        let column = rule.strip_suffix(" must exist").map(|column| format!("column {table}.{column} "));
        column.is_some_and(|column| !relied_before.iter().any(|fact| fact.starts_with(&column)))
    };
    let added = rules_after.difference(&rules_before);
    let added = added.filter(|(table, _)| was_there(table)).filter(|rule| !is_of_a_new_column(rule));
    gone.chain(added.map(|(table, rule)| format!("added to {table}: {rule}"))).collect()
}

#[test]
fn every_migration_leaves_the_programs_before_it_working() {
    use diesel::migration::MigrationSource;
    use diesel::pg::Pg;
    use diesel_migrations::{FileBasedMigrations, MigrationHarness};

    let database = TestDatabase::empty();
    let source = FileBasedMigrations::find_migrations_directory_in_path("../../migrations").unwrap();
    let mut migrations = MigrationSource::<Pg>::migrations(&source).unwrap();
    migrations.sort_by_key(|migration| migration.name().version().to_string());
    let mut connection = database.connect();
    // Makes the table of what was applied.
    assert!(connection.applied_migrations().unwrap().is_empty());
    let mut broken = Vec::new();
    for migration in migrations {
        let version = migration.name().version().to_string();
        let by_this = broken_by(&database, || drop(connection.run_migration(migration.as_ref()).unwrap()));
        if version.as_str() > BASELINE {
            broken.extend(by_this.into_iter().map(|what| format!("{version}: {what}")));
        }
    }
    assert_eq!(broken, [""; 0], "migrations/README.md says how to divide a change among releases");
}

/// Else the test above could not fail.
#[test]
fn a_change_that_breaks_earlier_programs_is_seen() {
    use diesel::connection::SimpleConnection;

    let database = TestDatabase::new();
    let broken_by = |sql: &str| broken_by(&database, || database.connect().batch_execute(sql).unwrap());
    for (sql, what) in [
        ("ALTER TABLE patients DROP COLUMN email CASCADE", "gone: column patients.email text"),
        ("ALTER TABLE patients RENAME COLUMN state TO region", "gone: column patients.state text"),
        ("ALTER TABLE api_keys ALTER hint TYPE varchar(4)", "gone: column api_keys.hint text"),
        ("ALTER TABLE patients ALTER suburb SET NOT NULL", "gone: may be left out patients.suburb"),
        ("ALTER TABLE patients ADD COLUMN sex text NOT NULL", "added to patients: sex"),
        ("ALTER TABLE patients ADD CONSTRAINT adult CHECK (date_of_birth < '2000-01-01')", "added to patients: adult"),
        (
            "CREATE UNIQUE INDEX one_of_a_name ON patients (organisation_id, last_name)",
            "added to patients: one_of_a_name",
        ),
        ("DROP INDEX patients_by_idempotency_key", "gone: index patients_by_idempotency_key true"),
        ("CREATE POLICY none ON patients USING (false)", "added to patients: none"),
        (
            "ALTER TABLE key_uses ADD FOREIGN KEY (key_id) REFERENCES api_keys (id)",
            "added to key_uses: key_id must exist",
        ),
        ("DROP TABLE sessions CASCADE", "gone: table sessions"),
    ] {
        let broken = broken_by(sql);
        assert!(broken.iter().any(|found| found == what), "{sql}: {broken:?}");
    }
    for harmless in [
        "ALTER TABLE patients ADD COLUMN nickname text",
        "ALTER TABLE patients ADD COLUMN is_checked boolean NOT NULL DEFAULT false",
        "CREATE INDEX patients_by_last_name ON patients (organisation_id, last_name)",
        "CREATE TABLE notes (organisation_id uuid, id uuid, text text NOT NULL, PRIMARY KEY (organisation_id, id))",
        "CREATE VIEW names AS SELECT last_name FROM patients",
        "ALTER TABLE members ALTER name DROP NOT NULL",
        "ALTER TABLE members ADD COLUMN invited_by uuid REFERENCES members (id)",
    ] {
        assert_eq!(broken_by(harmless), [""; 0], "{harmless}");
    }
}
