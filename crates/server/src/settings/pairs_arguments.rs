//! Arguments of `intake pairs`.

use std::path::PathBuf;

use clap::Args;
use intake_domain::{OrganisationId, PatientId};

use crate::settings::arguments::{Output, parse_id};

/// Patients to compare, and what was decided about them.
#[derive(Args)]
pub(crate) struct PairsArguments {
    /// The organisation
    #[arg(long, value_name = "ID", value_parser = parse_id::<OrganisationId>)]
    pub(crate) organisation: OrganisationId,
    /// File with the position of the last run: list only pairs with patients that came since
    #[arg(long, value_name = "FILE", conflicts_with = "two_persons")]
    pub(crate) state: Option<PathBuf>,
    /// File of pairs that are two persons, which are left out
    #[arg(long, value_name = "FILE")]
    pub(crate) decided: Option<PathBuf>,
    /// Add two patients, who are two persons, to the file of --decided
    #[arg(long = "not", value_name = "ID", num_args = 2, value_parser = parse_id::<PatientId>, requires = "decided")]
    pub(crate) two_persons: Option<Vec<PatientId>>,
    #[command(flatten)]
    pub(crate) output: Output,
}
