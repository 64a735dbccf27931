//! Another build of the program, which may have another schema: its own commands make its database.

use std::path::Path;

use diesel::connection::SimpleConnection;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_infra::{Prepared, SERVICE_ROLE};

use super::clinics::Clinics;
use super::{ORGANISATIONS, PostgresServer, Stage};

impl PostgresServer {
    /// An empty database, and the role that a service connects as.
    fn make_database(&self, name: &str) -> anyhow::Result<Prepared> {
        let mut connection = PgConnection::establish(self.embedded.owner_url("postgres").expose())?;
        connection.batch_execute(&format!(
            "DO $$ BEGIN
                IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{SERVICE_ROLE}') THEN
                    CREATE ROLE {SERVICE_ROLE} LOGIN;
                END IF;
            END $$"
        ))?;
        connection.batch_execute(&format!("CREATE DATABASE {name}"))?;
        Ok(Prepared { owner: self.embedded.owner_url(name), service: self.embedded.url(SERVICE_ROLE, name) })
    }
}

impl<'a> Stage<'a> {
    /// In front of a database that the program makes itself.
    pub(crate) fn build_with_own_schema(
        postgres: &'a PostgresServer,
        database: &str,
        program: &Path,
        settings: &[String],
    ) -> anyhow::Result<Self> {
        let urls = postgres.make_database(database)?;
        let clinics = Clinics::of_program(
            ORGANISATIONS,
            program,
            &postgres.folder().join(format!("{database}-commands")),
            &urls,
        )?;
        Self::build_for_clinics(urls, vec![postgres.server()?], clinics, postgres, database, program, settings)
    }
}
