//! The program's commands and their arguments.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use intake_domain::{EmailAddress, KeyId, OrganisationId, Role};

use crate::settings::Flags;
use crate::settings::arguments::{Brakes, Output, Run, parse_id};
use crate::settings::audit_arguments::AuditArguments;
use crate::settings::backup_arguments::BackupArguments;
use crate::settings::deliver_command::DeliverArguments;
use crate::settings::key_command::KeyCommand;
use crate::settings::organisation_command::OrganisationCommand;
use crate::settings::pairs_arguments::PairsArguments;
use crate::settings::patient_command::PatientCommand;

/// Patient intake API for clinics.
#[derive(Parser)]
#[command(name = "intake", version = env!("BUILD_VERSION"), disable_help_flag = true, disable_help_subcommand = true)]
#[command(
    after_help = "Without a command, intake serves. Each command also takes the settings of `intake help settings`."
)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    /// Install PostgreSQL without asking, if it is missing and no database is named
    #[arg(long)]
    pub(crate) yes: bool,
    /// Print help
    #[arg(short, long, global = true, action = ArgAction::HelpShort)]
    help: Option<bool>,
    #[command(flatten)]
    pub(crate) flags: Flags,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Start the service (default); in development, migrate first
    Serve,
    #[command(flatten)]
    Operator(OperatorCommand),
    /// Check whether the service on this machine is alive: exit status 0 or 1
    Probe {
        /// Check whether it is ready to store patients instead
        #[arg(long)]
        ready: bool,
    },
    /// Print this help, or the settings that every command accepts
    Help { topic: Option<HelpTopic> },
    /// Print the OpenAPI 3.1 document of the API
    Openapi {
        #[command(flatten)]
        output: Output,
    },
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum HelpTopic {
    /// The settings, as flags and as variables
    Settings,
}

/// Commands of operators for the database.
#[derive(Subcommand)]
pub(crate) enum OperatorCommand {
    /// Apply database migrations, as the owner
    Migrate {
        /// Grant this role what the service needs, and nothing else
        #[arg(long, value_name = "NAME")]
        service_role: Option<String>,
        /// Report what would be done, and change nothing
        #[arg(long)]
        check: bool,
        /// Grant this role the reading of patients through the view `patients_v1`, and nothing else
        #[arg(long, value_name = "NAME")]
        reader_role: Option<String>,
        /// Limit the reader's role to this organisation's patients
        #[arg(long, value_name = "ID", value_parser = parse_id::<OrganisationId>, requires = "reader_role")]
        organisation: Option<OrganisationId>,
        /// Let the reader's role read the patients of every organisation again
        #[arg(long, requires = "reader_role", conflicts_with = "organisation")]
        all_organisations: bool,
        #[command(flatten)]
        run: Run,
        #[command(flatten)]
        output: Output,
    },
    /// Distribute a migrated database over the nodes of a Citus cluster
    Spread {
        /// Number of shards [default: 32, or two for each worker if that is more]
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
        shards: Option<u32>,
        #[command(flatten)]
        output: Output,
    },
    /// Check settings, database, certificate, mail, sign-on and disk
    Doctor {
        #[command(flatten)]
        output: Output,
    },
    /// Print the audit log, oldest first
    Audit(AuditArguments),
    /// Create, list, rename, suspend, close and erase organisations
    #[command(subcommand)]
    Organisation(OrganisationCommand),
    /// Create, replace, pause, revoke and list API keys, and count their use
    #[command(subcommand)]
    Key(KeyCommand),
    /// Invite, list and remove members of an organisation's dashboard
    #[command(subcommand)]
    Member(MemberCommand),
    /// Print why a request was refused
    Request {
        /// The X-Request-Id of the request's answer
        id: String,
        #[command(flatten)]
        output: Output,
    },
    /// Export an organisation's patients, or the changes since an earlier export, as a reader
    Export(ExportArguments),
    /// Deliver patients and erasures to a webhook, a FHIR server or a folder, as a reader
    Deliver(Box<DeliverArguments>),
    /// List patients that may be one person by their ids, as a reader
    Pairs(PairsArguments),
    /// Back up the database of this machine into a folder, or try the newest backup
    Backup(BackupArguments),
    /// Run after a restore: confirm that this database is the live one, and list what it lost
    Restored(RestoredArguments),
    /// Show or erase what is stored about a patient, as the owner
    #[command(subcommand)]
    Patient(PatientCommand),
}

/// Steps for a restored database.
#[derive(Args)]
pub(crate) struct RestoredArguments {
    /// Copy of the lost database's audit log (the output of `intake audit --json`)
    #[arg(long, value_name = "FILE")]
    pub(crate) audit: Option<PathBuf>,
    /// Revoke every key in the database
    #[arg(long)]
    pub(crate) revoke_keys: bool,
    /// Run the commands that it prints, except those that print a key or a link
    #[arg(long, requires = "audit")]
    pub(crate) apply: bool,
    #[command(flatten)]
    pub(crate) brakes: Brakes,
    #[command(flatten)]
    pub(crate) run: Run,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// Content and target of an export.
#[derive(Args)]
pub(crate) struct ExportArguments {
    /// The organisation
    #[arg(long, value_name = "ID", value_parser = parse_id::<OrganisationId>)]
    pub(crate) organisation: OrganisationId,
    /// Format of the output
    #[arg(long)]
    pub(crate) format: Format,
    /// Only what was committed since the run that printed this token
    #[arg(long, value_name = "TOKEN", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) since: Option<String>,
    /// File that keeps the token from run to run; without the file, everything is exported
    #[arg(long, value_name = "FILE", conflicts_with = "since")]
    pub(crate) state: Option<PathBuf>,
    /// File to write instead of standard output (-); renamed into place when complete
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace an existing file without asking at a terminal
    #[arg(long, requires = "output")]
    pub(crate) yes: bool,
    /// Only patients that this API key created
    #[arg(long, value_name = "ID", value_parser = parse_id::<KeyId>)]
    pub(crate) key: Option<KeyId>,
    /// Keep running and export new changes until SIGTERM or Ctrl-C
    #[arg(long)]
    pub(crate) follow: bool,
    /// With fhir: write the names of Australian states as codes
    #[arg(long)]
    pub(crate) australian_states: bool,
    /// With fhir: add a Provenance to each patient, with its time and API key
    #[arg(long)]
    pub(crate) provenance: bool,
}

/// Format of an export.
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
pub(crate) enum MemberCommand {
    /// Print a one-time link for a new member
    Invite {
        #[command(flatten)]
        member: MemberArguments,
        /// Role of the member: administrators manage members and keys, key managers keys; auditors can only view
        #[arg(long, value_name = "ROLE", default_value = Role::Administrator.as_str(), value_parser = Role::from_str)]
        role: Role,
    },
    /// List the members of an organisation
    List {
        /// The organisation
        #[arg(long, value_name = "ID", value_parser = parse_id::<OrganisationId>)]
        organisation: OrganisationId,
        #[command(flatten)]
        output: Output,
    },
    /// Cancel an invitation: its link stops working at once
    WithdrawInvitation(MemberArguments),
    /// Give a member another role; fails for the last administrator
    ChangeRole {
        #[command(flatten)]
        member: MemberArguments,
        /// administrator, key-manager or auditor
        #[arg(long, value_name = "ROLE", value_parser = Role::from_str)]
        role: Role,
    },
    /// Remove a member and end their sessions; fails for the last administrator
    Remove(MemberArguments),
    /// Print a one-time link for a member who forgot the password
    ResetPassword(MemberArguments),
    /// Let single sign-on find a member's account by its email address, which you confirm; ends password, second
    /// factors and sessions
    Link(MemberArguments),
    /// Turn off two-step sign-in and remove the passkeys of a member who has lost them
    ResetSecondFactor(MemberArguments),
}

#[derive(Args)]
pub(crate) struct MemberArguments {
    /// The member's organisation
    #[arg(long, value_name = "ID", value_parser = parse_id::<OrganisationId>)]
    pub(crate) organisation: OrganisationId,
    /// The member's email address
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
                    "/usr/share/doc/intake/docs/README.md: the index of the documents.",
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
