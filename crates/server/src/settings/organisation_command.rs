//! `intake organisation` and its arguments.

use clap::{Args, Subcommand};
use intake_domain::{OrganisationId, Zone};

use crate::settings::arguments::{Brakes, Output, Run, parse_id};

#[derive(Subcommand)]
pub(crate) enum OrganisationCommand {
    /// Create an organisation
    Create {
        /// 1 to 100 characters
        #[arg(long)]
        name: String,
        #[command(flatten)]
        run: Run,
        #[command(flatten)]
        output: Output,
    },
    /// List all organisations, oldest first
    List {
        #[command(flatten)]
        output: Output,
    },
    /// Rename an organisation
    Rename {
        /// 1 to 100 characters
        #[arg(long)]
        name: String,
        #[command(flatten)]
        of: OrganisationArguments,
    },
    /// Change the zone in which members see days and times; UTC, unless it was chosen
    TimeZone {
        /// A name of the tz database, such as Australia/Sydney
        #[arg(long)]
        zone: Zone,
        #[command(flatten)]
        of: OrganisationArguments,
    },
    /// Refuse all keys of an organisation until it is resumed; nothing is lost
    Suspend(OrganisationArguments),
    /// Accept the keys of a suspended organisation again
    Resume(OrganisationArguments),
    /// Revoke all keys and remove all members of an organisation for good; its patients are kept
    Close {
        #[command(flatten)]
        of: OrganisationArguments,
        #[command(flatten)]
        brakes: Brakes,
    },
    /// Erase the patients of a closed organisation for good, as the owner
    Erase {
        #[command(flatten)]
        of: OrganisationArguments,
        #[command(flatten)]
        brakes: Brakes,
    },
}

#[derive(Args)]
pub(crate) struct OrganisationArguments {
    /// The organisation's id, as `organisation list` shows it
    #[arg(value_name = "ID", value_parser = parse_id::<OrganisationId>)]
    pub(crate) organisation: OrganisationId,
    #[command(flatten)]
    pub(crate) run: Run,
    #[command(flatten)]
    pub(crate) output: Output,
}
