//! The schema as PostgreSQL holds it: fit for being spread over nodes, and what Diesel believes it to be.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::collections::BTreeMap;

use diesel::prelude::*;
use diesel::sql_types::Text;
use intake_test_support::TestDatabase;

/// Tables that every node may hold whole: written by people, not by requests.
const SMALL_TABLES: &[&str] = &[
    "organisations",
    "api_keys",
    "members",
    "invitations",
    "sessions",
    "password_resets",
    "recovery_codes",
    "waiting_sign_ins",
    "familiar_networks",
    "environment_stamp",
    "origin",
    "readers",
    "__diesel_schema_migrations",
];

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
    SMALL_TABLES.contains(&name)
}

#[test]
fn every_table_that_grows_is_led_by_its_organisation() {
    let database = TestDatabase::new();
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
    let database = TestDatabase::new();
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

#[test]
fn diesel_knows_the_tables_as_they_are() {
    let database = TestDatabase::new();
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
