//! The program's commands and their arguments.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Parser, Subcommand, ValueEnum};
use intake_domain::{EmailAddress, KeyId, OrganisationId, Role};

use crate::settings::Flags;
use crate::settings::arguments::{Brakes, Output, Run, parse_id, parse_time};
use crate::settings::key_command::KeyCommand;
use crate::settings::patient_command::PatientCommand;

/// The front door of a clinic's patient register.
#[derive(Parser)]
#[command(name = "intake", version = env!("BUILD_VERSION"), disable_help_subcommand = true)]
#[command(after_help = "Settings are flags or variables; a flag wins. Without a command, intake serves.")]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    /// Installs PostgreSQL without asking, if it is missing and no database is named
    #[arg(long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) flags: Flags,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Serves (the default); in development it migrates first
    Serve,
    #[command(flatten)]
    Operator(OperatorCommand),
    /// Asks the service beside it whether it lives: exit 0 if so
    Probe {
        /// Asks whether it is ready to store patients instead
        #[arg(long)]
        ready: bool,
    },
    /// Prints the OpenAPI 3.1 document of the interface
    Openapi {
        #[command(flatten)]
        output: Output,
    },
}

/// Commands of operators for the database.
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
        /// Lets this role read patients through the view `patients_v1`, and nothing else
        #[arg(long, value_name = "NAME")]
        reader_role: Option<String>,
        /// Lets the reader's role read this organisation's patients only
        #[arg(long, value_name = "ID", value_parser = parse_id::<OrganisationId>, requires = "reader_role")]
        organisation: Option<OrganisationId>,
        /// Lets the reader's role read the patients of every organisation, if it was limited to one before
        #[arg(long, requires = "reader_role", conflicts_with = "organisation")]
        all_organisations: bool,
        #[command(flatten)]
        output: Output,
    },
    /// Spreads a migrated database over the nodes of a Citus cluster
    Spread {
        /// Number of parts into which the tables that grow are divided [default: 32, or two for each worker if that is
        /// more]
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
        shards: Option<u32>,
        #[command(flatten)]
        output: Output,
    },
    /// Looks at each part that the service needs, and says whether it is in order
    Doctor {
        #[command(flatten)]
        output: Output,
    },
    /// Prints the record of what members and operators did, the oldest first
    Audit(AuditArguments),
    /// Makes, lists, renames, suspends and closes organisations
    #[command(subcommand)]
    Organisation(OrganisationCommand),
    /// Makes, replaces, lists and revokes API keys, and says how they are used
    #[command(subcommand)]
    Key(KeyCommand),
    /// Invites people to an organisation's dashboard, lists and removes them
    #[command(subcommand)]
    Member(MemberCommand),
    /// Writes an organisation's patients, or what was committed since an earlier export, as a reader
    Export(ExportArguments),
    /// Says that a database which was restored or moved is the register from here on, and tells what to look at
    Restored(RestoredArguments),
    /// Shows or erases what is stored about a patient, as the owner of the database
    #[command(subcommand)]
    Patient(PatientCommand),
}

/// Steps for a restored database.
#[derive(Args)]
pub(crate) struct RestoredArguments {
    /// Output of `intake audit --json` from the database that was lost
    #[arg(long, value_name = "FILE")]
    pub(crate) audit: Option<PathBuf>,
    /// Revokes every key that is in the database
    #[arg(long)]
    pub(crate) revoke_keys: bool,
    /// Carries out the commands that it prints, except those by which someone gets a key or a link
    #[arg(long, requires = "audit")]
    pub(crate) apply: bool,
    #[command(flatten)]
    pub(crate) brakes: Brakes,
    #[command(flatten)]
    pub(crate) run: Run,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// Part of the record to print.
#[derive(Args)]
pub(crate) struct AuditArguments {
    /// Only what concerns this organisation
    #[arg(long, value_name = "ID", value_parser = parse_id::<OrganisationId>)]
    pub(crate) organisation: Option<OrganisationId>,
    /// Only what was recorded since: RFC 3339, or YYYY-MM-DD for 00:00 UTC of that day
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) since: Option<time::OffsetDateTime>,
    /// Goes on with whatever is recorded, until SIGTERM or Ctrl-C; with --json, one JSON object in each line
    #[arg(long)]
    pub(crate) follow: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// Content and target of an export.
#[derive(Args)]
pub(crate) struct ExportArguments {
    /// The organisation whose patients are exported
    #[arg(long, value_name = "ID", value_parser = parse_id::<OrganisationId>)]
    pub(crate) organisation: OrganisationId,
    /// The form of the output
    #[arg(long)]
    pub(crate) format: Format,
    /// Only what was committed since the run that printed this token
    #[arg(long, value_name = "TOKEN", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) since: Option<String>,
    /// A file that keeps the token from run to run; while there is none, everything is exported
    #[arg(long, value_name = "FILE", conflicts_with = "since")]
    pub(crate) state: Option<PathBuf>,
    /// The file to write instead of standard output (-); it appears when it is complete
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Only patients that this API key created
    #[arg(long, value_name = "ID", value_parser = parse_id::<KeyId>)]
    pub(crate) key: Option<KeyId>,
    /// Goes on with whatever is committed, until SIGTERM or Ctrl-C
    #[arg(long)]
    pub(crate) follow: bool,
}

/// The form of an export.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Format {
    /// A JSON object in each line, as the API returned it
    Jsonl,
    /// A table that spreadsheets open safely and intake-import reads back
    Csv,
    /// FHIR R4 Patient resources, one in each line
    Fhir,
}

#[derive(Subcommand)]
pub(crate) enum OrganisationCommand {
    /// Makes an organisation
    Create {
        /// 1 to 100 characters
        #[arg(long)]
        name: String,
        #[command(flatten)]
        run: Run,
        #[command(flatten)]
        output: Output,
    },
    /// Lists all organisations, the oldest first
    List {
        #[command(flatten)]
        output: Output,
    },
    /// Gives an organisation another name
    Rename {
        /// 1 to 100 characters
        #[arg(long)]
        name: String,
        #[command(flatten)]
        of: OrganisationArguments,
    },
    /// Refuses all keys of an organisation at once, until it is resumed; nothing is lost
    Suspend(OrganisationArguments),
    /// Accepts the keys of a suspended organisation again
    Resume(OrganisationArguments),
    /// Revokes all keys of an organisation and removes its members, for good; its patients are kept
    Close {
        #[command(flatten)]
        of: OrganisationArguments,
        #[command(flatten)]
        brakes: Brakes,
    },
    /// Erases the patients of a closed organisation for good, as the owner of the database
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

#[derive(Subcommand)]
pub(crate) enum MemberCommand {
    /// Prints a one-time link for a new member
    Invite {
        #[command(flatten)]
        member: MemberArguments,
        /// Role of the member: administrators manage members and keys, key managers keys; auditors only look
        #[arg(long, value_name = "ROLE", default_value = Role::Administrator.as_str(), value_parser = Role::from_str)]
        role: Role,
    },
    /// Lists the members of an organisation
    List {
        /// The organisation
        #[arg(long, value_name = "ID", value_parser = parse_id::<OrganisationId>)]
        organisation: OrganisationId,
        #[command(flatten)]
        output: Output,
    },
    /// Withdraws an invitation that was not accepted: its link stops working at once
    WithdrawInvitation(MemberArguments),
    /// Removes a member, who is signed out everywhere at once; the last administrator stays
    Remove(MemberArguments),
    /// Prints a one-time link for a member who forgot the password
    ResetPassword(MemberArguments),
    /// Lets single sign-on find a member's account by its address, which you confirm; ends the password, the second
    /// factors and all sessions
    Link(MemberArguments),
    /// Turns off two-step sign-in, and removes the passkeys, of a member who has lost them
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
    pub(crate) run: Run,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[cfg(test)]
mod tests {
    use std::fs;

    use clap::CommandFactory;
    use intake_test_support::{completed_by_bash, write_manual};

    use super::*;
    use crate::settings::SETTINGS;

    #[test]
    fn the_command_line_is_consistent() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn man_pages_and_completions_are_made_from_the_command_line() {
        let sections: [(&str, &[&str]); 4] = [
            (
                "NOTES",
                &[
                    "Settings can be given to every command, as flags or as variables; a flag wins. Without a command, intake serves.",
                ],
            ),
            (
                "EXIT STATUS",
                &["0: done, or stopped by a signal. 1: failed; one line on standard error says why. 2: wrong usage. \
                     70: a part of the running service failed."],
            ),
            (
                "FILES",
                &[
                    "/etc/intake/intake.env: the settings of the service that systemd runs, one variable in each line.",
                    "/usr/share/doc/intake/docs/operations.md: how to run it.",
                ],
            ),
            ("SEE ALSO", &["intake-import(1), systemctl(1)"]),
        ];
        let folder = write_manual(&CommandLine::command(), &sections);
        let page = fs::read_to_string(folder.join("man/intake.1")).unwrap().replace("\\-", "-");
        for setting in SETTINGS {
            assert!(page.contains(setting.variable), "{}", setting.variable);
        }
        let mut commands = vec![("intake".to_owned(), CommandLine::command())];
        while let Some((name, command)) = commands.pop() {
            assert!(folder.join(format!("man/{name}.1")).is_file(), "{name}");
            let below = command.get_subcommands().map(|below| (format!("{name}-{}", below.get_name()), below.clone()));
            commands.extend(below);
        }
        let completed = |words: &[&str]| completed_by_bash(&folder, "intake", words);
        assert_eq!(completed(&["mig"]), ["migrate"]);
        assert_eq!(completed(&["migrate", "--service"]), ["--service-role"]);
        assert_eq!(completed(&["key", "cr"]), ["create"]);
        assert_eq!(completed(&["key", "rep"]), ["replace"]);
        assert_eq!(completed(&["key", "replace", "--ends-after", "2"]), ["24h"]);
        assert_eq!(completed(&["member", "with"]), ["withdraw-invitation"]);
        assert_eq!(completed(&["export", "--format", "c"]), ["csv"]);
    }
}
