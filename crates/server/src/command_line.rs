//! The program's commands and their arguments.

use std::str::FromStr;

use clap::{Args, Parser, Subcommand};
use intake_domain::{EmailAddress, KeyId, OrganisationId};

use crate::settings::Flags;

/// The front door of a clinic's patient register.
#[derive(Parser)]
#[command(name = "intake", version, disable_help_subcommand = true)]
#[command(after_help = "Settings are flags or variables; a flag wins. Without a command, intake serves.")]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) flags: Flags,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Serves (the default); in development it migrates first
    Serve,
    #[command(flatten)]
    Operator(OperatorCommand),
    /// Prints the OpenAPI 3.1 document of the interface
    Openapi {
        #[command(flatten)]
        output: Output,
    },
}

/// What operators do to the database.
#[derive(Subcommand)]
pub(crate) enum OperatorCommand {
    /// Brings the database's schema up to date, as its owner
    Migrate {
        /// Lets this role do what the service needs, and nothing else
        #[arg(long, value_name = "NAME")]
        service_role: Option<String>,
        /// Says what would be done, and changes nothing
        #[arg(long)]
        check: bool,
        #[command(flatten)]
        output: Output,
    },
    /// Makes and lists organisations
    #[command(subcommand)]
    Organisation(OrganisationCommand),
    /// Makes, lists and revokes API keys
    #[command(subcommand)]
    Key(KeyCommand),
    /// Invites people to an organisation's dashboard
    #[command(subcommand)]
    Member(MemberCommand),
}

#[derive(Subcommand)]
pub(crate) enum OrganisationCommand {
    /// Makes an organisation
    Create {
        /// 1 to 100 characters
        #[arg(long)]
        name: String,
        #[command(flatten)]
        output: Output,
    },
    /// Lists all organisations, the oldest first
    List {
        #[command(flatten)]
        output: Output,
    },
}

#[derive(Subcommand)]
pub(crate) enum KeyCommand {
    /// Makes an API key and prints it, this once
    Create {
        /// The organisation it belongs to
        #[arg(long, value_name = "ID", value_parser = parse_id::<OrganisationId>)]
        organisation: OrganisationId,
        /// 1 to 100 characters, to tell it from other keys
        #[arg(long)]
        name: String,
        /// When it expires: RFC 3339, or YYYY-MM-DD for 00:00 UTC of that day
        #[arg(long, value_name = "TIME", value_parser = parse_time)]
        expires: Option<time::OffsetDateTime>,
        #[command(flatten)]
        output: Output,
    },
    /// Lists an organisation's keys, the oldest first
    List {
        /// The organisation
        #[arg(long, value_name = "ID", value_parser = parse_id::<OrganisationId>)]
        organisation: OrganisationId,
        #[command(flatten)]
        output: Output,
    },
    /// Clears a key's mark that it was sent over plain HTTP
    ClearSentInClear {
        /// The key's id, as `key list` shows it
        #[arg(value_name = "KEY_ID", value_parser = parse_id::<KeyId>)]
        key: KeyId,
        #[command(flatten)]
        output: Output,
    },
    /// Revokes a key at once and for good
    Revoke {
        /// The key's id, as `key list` shows it
        #[arg(value_name = "KEY_ID", value_parser = parse_id::<KeyId>)]
        key: KeyId,
        #[command(flatten)]
        output: Output,
    },
}

#[derive(Subcommand)]
pub(crate) enum MemberCommand {
    /// Prints a one-time link for a new member
    Invite(MemberArguments),
    /// Prints a one-time link for a member who forgot the password
    ResetPassword(MemberArguments),
    /// Turns off two-step sign-in for a member who lost both telephone and recovery codes
    ResetSecondFactor(MemberArguments),
}

#[derive(Args)]
pub(crate) struct MemberArguments {
    /// The member's organisation
    #[arg(long, value_name = "ID", value_parser = parse_id::<OrganisationId>)]
    pub(crate) organisation: OrganisationId,
    /// The address with which the member signs in
    #[arg(long)]
    pub(crate) email: EmailAddress,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Args)]
pub(crate) struct Output {
    /// Prints one JSON value instead of text for people
    #[arg(long)]
    pub(crate) json: bool,
}

fn parse_id<Id: FromStr>(text: &str) -> Result<Id, &'static str> {
    text.parse().map_err(|_| "must be an id, as `organisation list` and `key list` show them")
}

fn parse_time(text: &str) -> Result<time::OffsetDateTime, &'static str> {
    use time::format_description::well_known::Rfc3339;
    let day = time::macros::format_description!("[year]-[month]-[day]");
    time::OffsetDateTime::parse(text, &Rfc3339)
        .or_else(|_| time::Date::parse(text, day).map(|day| day.midnight().assume_utc()))
        .map_err(|_| "must be a time like 2026-12-31T17:00:00+10:00, or a day like 2026-12-31")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use time::macros::datetime;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn times_are_rfc_3339_or_days() {
        assert_eq!(parse_time("2026-12-31"), Ok(datetime!(2026-12-31 0:00 UTC)));
        assert_eq!(parse_time("2026-12-31T17:00:00+10:00"), Ok(datetime!(2026-12-31 17:00 +10)));
        for bad in ["", "tomorrow", "2026-02-30", "2026-12-31T17:00:00", "31-12-2026"] {
            assert!(parse_time(bad).is_err(), "{bad}");
        }
    }
}
