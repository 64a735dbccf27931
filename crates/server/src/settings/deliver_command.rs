//! The command `deliver` and its arguments.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use intake_domain::OrganisationId;

use crate::settings::arguments::{Output, parse_id};

/// The patients to deliver, and where to.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct DeliverArguments {
    #[command(subcommand)]
    pub(crate) action: Option<DeliverAction>,
    /// The organisation
    #[arg(long, value_name = "ID", required = true, value_parser = parse_id::<OrganisationId>)]
    pub(crate) organisation: Option<OrganisationId>,
    #[command(flatten)]
    pub(crate) target: TargetArguments,
    /// Folder that keeps the position in the feed, and the events that the target refused
    #[arg(long, value_name = "FOLDER", required = true)]
    pub(crate) state: Option<PathBuf>,
    /// Send only the ids of patients to a webhook
    #[arg(long)]
    pub(crate) thin: bool,
    /// Number of events sent at a time
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) in_flight: u8,
    /// Address for /livez, /readyz and /metrics, over plain HTTP, such as 127.0.0.1:9465
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) monitor: Option<SocketAddr>,
}

/// A target and its secrets.
#[derive(Args)]
pub(crate) struct TargetArguments {
    /// URL of a webhook, fhir+ and the base URL of a FHIR server, or a folder
    #[arg(long, value_name = "TARGET", required = true)]
    pub(crate) to: Option<String>,
    /// File with the secrets that sign a webhook's messages, one in each line, such as whsec_…; all of them sign
    #[arg(long, value_name = "FILE")]
    pub(crate) secrets: Option<PathBuf>,
    /// File with headers for the target, one in each line, such as "Authorization: Bearer …"
    #[arg(long, value_name = "FILE")]
    pub(crate) headers: Option<PathBuf>,
    /// Time to wait for an answer
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u16).range(1..=300))]
    pub(crate) timeout: u16,
}

#[derive(Subcommand)]
pub(crate) enum DeliverAction {
    /// Report how far a delivery has come; exit status 1 if an operator has to act
    Status {
        /// The delivery's folder
        #[arg(long, value_name = "FOLDER")]
        state: PathBuf,
        #[command(flatten)]
        output: Output,
    },
    /// Send refused events again
    Retry {
        /// The delivery's folder
        #[arg(long, value_name = "FOLDER")]
        state: PathBuf,
    },
    /// Send a test event to a target
    Test {
        #[command(flatten)]
        target: TargetArguments,
    },
}
