//! Arguments of `intake audit`.

use std::path::PathBuf;

use clap::Args;
use intake_domain::{Action, KeyId, OrganisationId, RecordedAction};
use intake_infra::AuditSelection;
use time::OffsetDateTime;

use crate::settings::arguments::{Output, parse_id, parse_time};

/// Part of the audit log to print.
#[derive(Args)]
pub(crate) struct AuditArguments {
    /// Only entries of this organisation
    #[arg(long, value_name = "ID", value_parser = parse_id::<OrganisationId>)]
    pub(crate) organisation: Option<OrganisationId>,
    /// Only entries since this time: RFC 3339, or YYYY-MM-DD for 00:00 UTC
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    since: Option<OffsetDateTime>,
    /// Only entries before this time, given as for --since
    #[arg(long, value_name = "TIME", value_parser = parse_time, conflicts_with = "follow")]
    until: Option<OffsetDateTime>,
    /// Only entries about this API key
    #[arg(long, value_name = "ID", value_parser = parse_id::<KeyId>)]
    pub(crate) key: Option<KeyId>,
    /// Only entries of what a person did, or of what was done to one: part of a name or an email address
    #[arg(long, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    member: Option<String>,
    /// Only entries of this action, such as `key_revoked`; repeat it for several
    #[arg(long, value_name = "NAME", value_parser = parse_action)]
    action: Vec<Action>,
    /// Number of entries, the newest
    #[arg(long, value_name = "NUMBER", conflicts_with = "follow", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: Option<u32>,
    /// Keep running and print new entries until SIGTERM or Ctrl-C; with --json, one JSON object in each line
    #[arg(long)]
    pub(crate) follow: bool,
    /// File that keeps what was printed from run to run, so that each run prints what is new; with --json, one JSON
    /// object in each line
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["organisation", "since", "until", "key", "member", "action", "limit"]
    )]
    pub(crate) state: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: Output,
}

impl AuditArguments {
    pub(crate) fn selection(&self) -> AuditSelection {
        AuditSelection {
            organisation: self.organisation,
            since: self.since,
            until: self.until,
            key: self.key,
            member: self.member.clone(),
            actions: self.action.clone(),
        }
    }
}

fn parse_action(text: &str) -> Result<Action, String> {
    match RecordedAction::named(text.to_owned()) {
        RecordedAction::Known(action) => Ok(action),
        RecordedAction::Unknown(_) => {
            let all: Vec<_> = Action::ALL.iter().map(|action| action.as_str()).collect();
            Err(format!("must be one of {}", all.join(", ")))
        }
    }
}
