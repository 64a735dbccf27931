//! `intake audit`: prints the audit log, for people, or as JSON for a program that collects such logs.

mod entry;
mod follow;

use std::io::{BufWriter, Write, stdout};

use anyhow::{Context, anyhow};
use intake_domain::ManageKeysError;
use intake_infra::{AuditSelection, AuditStream, Database, FollowError, PostgresKeyStore};

use self::entry::{line_of, value_of};
use self::follow::follow;
use super::database::with_database;
use super::organisation::assert_organisation;
use crate::export::Stop;
use crate::settings::audit_arguments::AuditArguments;
use crate::settings::configuration::Configuration;

pub(crate) fn run(arguments: &AuditArguments, configuration: &Configuration) -> anyhow::Result<()> {
    let stop = if arguments.follow { Stop::listen()? } else { Stop::default() };
    with_database(configuration, async |database| {
        assert_organisation(&database, arguments.organisation).await?;
        if let Some(key) = arguments.key {
            let found = PostgresKeyStore::new(database.clone()).find(key).await?;
            found.ok_or(ManageKeysError::NoSuchKey(key))?;
        }
        if arguments.follow || arguments.state.is_some() {
            return follow(arguments, database, &stop).await;
        }
        let entries = AuditStream::open(&database, arguments.selection(), arguments.limit).await.map_err(explain)?;
        let unprinted = || "the result cannot be printed";
        let mut output = BufWriter::new(stdout().lock());
        if arguments.output.json {
            write_json(entries, &mut output, unprinted)?;
        } else {
            for entry in entries {
                writeln!(output, "{}", line_of(&entry?)).with_context(unprinted)?;
            }
        }
        output.flush().with_context(unprinted)
    })
}

/// Writes the whole log, as `--json` prints it.
pub(super) async fn write_whole(
    database: &Database,
    output: &mut impl Write,
    unwritten: impl Fn() -> String,
) -> anyhow::Result<()> {
    let entries = AuditStream::open(database, AuditSelection::default(), None).await.map_err(explain)?;
    write_json(entries, output, unwritten)
}

/// Writes the entries as one array.
fn write_json<C: std::fmt::Display + Send + Sync + 'static>(
    entries: AuditStream,
    output: &mut impl Write,
    unwritten: impl Fn() -> C,
) -> anyhow::Result<()> {
    let mut before = "[";
    for entry in entries {
        write!(output, "{before}{}", value_of(&entry?)).with_context(&unwritten)?;
        before = ",";
    }
    let end = if before == "[" { "[]" } else { "]" };
    writeln!(output, "{end}").with_context(unwritten)
}

fn explain(error: FollowError) -> anyhow::Error {
    match error {
        FollowError::Unreadable => anyhow!("{error}: `intake migrate --service-role NAME` lets a role read it"),
        error => error.into(),
    }
}
