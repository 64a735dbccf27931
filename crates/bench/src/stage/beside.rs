//! What runs beside the load: another clinic, another service on the same database.

use std::time::Duration;

use anyhow::Context;
use intake_domain::Environment;
use intake_infra::DatabaseUrl;
use intake_test_support::{Client, Clinic, Service};

use super::Stage;
use crate::{open_loop, requests};

/// The other service's name in PostgreSQL's list of sessions.
const NEIGHBOUR: &str = "neighbour";

/// Another service on the same database.
pub(crate) struct Neighbour {
    service: Service,
}

impl Stage<'_> {
    /// Sends valid patients at a fixed rate over plain HTTP, and checks that all acknowledged ones are stored.
    pub(crate) fn beside(&self, rate: f64, connections: usize, time: Duration) -> anyhow::Result<open_loop::Outcome> {
        let requests = requests::valid(&self.keys, &[("X-Forwarded-Proto", "https")]);
        let rows = self.own_rows()?;
        let outcome = open_loop::run(self.plain()?, &requests, rate, connections, time)?;
        let (created, rows) = (outcome.created, self.own_rows()? - rows);
        anyhow::ensure!(created <= rows, "{created} patients were acknowledged and {rows} are stored");
        Ok(outcome)
    }

    /// Another service on the same database.
    pub(crate) fn neighbour(&self) -> anyhow::Result<Neighbour> {
        let url = format!("{} application_name={NEIGHBOUR}", self.urls.service.expose());
        let data = self.folder.join(NEIGHBOUR);
        // The last value given for a setting counts.
        let builder = (self.builder)().setting("DATABASE_URL", url).data_folder(&data);
        let service =
            builder.try_start().map_err(|output| anyhow::anyhow!("another service did not start: {output}"))?;
        Ok(Neighbour { service })
    }

    /// One more clinic, whose patients are not counted here.
    pub(crate) fn clinic(&self) -> Clinic {
        Clinic::open(&self.urls.service, Environment::Development)
    }

    /// The address for the owner of the schema.
    pub(crate) fn owner(&self) -> &DatabaseUrl {
        &self.urls.owner
    }

    fn own_rows(&self) -> anyhow::Result<u64> {
        self.count(&format!("organisation_id IN ({})", self.organisations))
    }
}

impl Neighbour {
    pub(crate) fn application_name(&self) -> &'static str {
        NEIGHBOUR
    }

    /// A client of its plain listener.
    pub(crate) fn client(&self) -> anyhow::Result<Client> {
        Ok(Client::plain(self.service.http.context("no plain HTTP")?))
    }

    pub(crate) fn stop(mut self) -> anyhow::Result<()> {
        anyhow::ensure!(self.service.stop().success(), "another service did not stop well");
        Ok(())
    }
}
