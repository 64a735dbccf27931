//! What can be asked of the program, and every setting as a flag.

use std::str::FromStr;

use clap::{Args, Parser, Subcommand};
use intake_domain::{EmailAddress, KeyId, OrganisationId};

/// The front door of a clinic's patient register.
#[derive(Parser)]
#[command(name = "intake", version, disable_help_subcommand = true)]
#[command(after_help = "Settings are flags or variables; a flag wins. Without a command, intake serves.")]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) settings: SettingFlags,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Serves (the default); in development it migrates first
    Serve,
    /// Brings the database's schema up to date, as its owner
    Migrate {
        /// Lets this role do what the service needs, and nothing else
        #[arg(long, value_name = "NAME")]
        service_role: Option<String>,
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
    /// Prints the OpenAPI 3.1 document of the interface
    Openapi {
        #[command(flatten)]
        output: Output,
    },
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
        /// From when on it is refused: RFC 3339, or YYYY-MM-DD for 00:00 UTC of that day
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
    /// Prints a one-time link by which somebody becomes a member
    Invite {
        /// Where the guest will belong
        #[arg(long, value_name = "ID", value_parser = parse_id::<OrganisationId>)]
        organisation: OrganisationId,
        /// By which the guest will sign in
        #[arg(long)]
        email: EmailAddress,
        #[command(flatten)]
        output: Output,
    },
    /// Turns off two-step sign-in for a member who lost both telephone and recovery codes
    ResetSecondFactor {
        /// Where the member belongs
        #[arg(long, value_name = "ID", value_parser = parse_id::<OrganisationId>)]
        organisation: OrganisationId,
        /// By which the member signs in
        #[arg(long)]
        email: EmailAddress,
        #[command(flatten)]
        output: Output,
    },
}

#[derive(Args)]
pub(crate) struct Output {
    /// Prints one JSON value instead of text for people
    #[arg(long)]
    pub(crate) json: bool,
}

/// Every setting as text; what it may be is decided where variables are read too.
#[derive(Args, Default)]
#[command(next_help_heading = "Settings")]
#[expect(clippy::doc_markdown, reason = "the comments are printed as help, as they are")]
pub(crate) struct SettingFlags {
    /// development or production (INTAKE_ENVIRONMENT=development)
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) environment: Option<String>,
    /// The service's database (DATABASE_URL; in development, an embedded one)
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) database_url: Option<String>,
    /// The owner's way into the database, to migrate (INTAKE_MIGRATION_DATABASE_URL=DATABASE_URL)
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) migration_database_url: Option<String>,
    /// full, or none for tests on a database that may lose everything (INTAKE_DURABILITY=full)
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) durability: Option<String>,
    /// Embedded database and development certificates (INTAKE_DATA_DIR=.intake)
    #[arg(long, global = true, value_name = "FOLDER")]
    pub(crate) data_dir: Option<String>,
    /// Where to serve HTTPS (INTAKE_HTTPS_ADDR=127.0.0.1:8443)
    #[arg(long, global = true, value_name = "ADDR")]
    pub(crate) https_addr: Option<String>,
    /// Certificate chain, PEM (INTAKE_TLS_CERT; in development, made by a local CA)
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) tls_cert: Option<String>,
    /// Private key of the certificate, PEM (INTAKE_TLS_KEY)
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) tls_key: Option<String>,
    /// Where to answer plain HTTP, or off (INTAKE_HTTP_ADDR=127.0.0.1:8080 in development, off in production)
    #[arg(long, global = true, value_name = "ADDR")]
    pub(crate) http_addr: Option<String>,
    /// Networks of proxies in front, as a list of CIDR (INTAKE_TRUSTED_PROXIES)
    #[arg(long, global = true, value_name = "CIDR,…")]
    pub(crate) trusted_proxies: Option<String>,
    /// Where to serve /livez, /readyz and /metrics (INTAKE_ADMIN_ADDR=127.0.0.1:9464)
    #[arg(long, global = true, value_name = "ADDR")]
    pub(crate) admin_addr: Option<String>,
    /// What API keys begin with (INTAKE_KEY_PREFIX=intake)
    #[arg(long, global = true, value_name = "PREFIX")]
    pub(crate) key_prefix: Option<String>,
    /// Requests a second and at once for each key, or off (INTAKE_RATE_LIMIT=100/1000)
    #[arg(long, global = true, value_name = "RATE/BURST")]
    pub(crate) rate_limit: Option<String>,
    /// How long a request may wait for the database (INTAKE_DEADLINE=5s)
    #[arg(long, global = true, value_name = "TIME")]
    pub(crate) deadline: Option<String>,
    /// Connections that store patients (INTAKE_WRITERS; one for each four cores)
    #[arg(long, global = true, value_name = "COUNT")]
    pub(crate) writers: Option<String>,
    /// The base of links that are printed (INTAKE_PUBLIC_URL=https://localhost:8443)
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) public_url: Option<String>,
    /// What to log: a level, or levels by module (INTAKE_LOG=info)
    #[arg(long, global = true, value_name = "FILTER")]
    pub(crate) log: Option<String>,
    /// The folder of PostgreSQL's programs (INTAKE_POSTGRES_BIN; looked for in the usual places)
    #[arg(long, global = true, value_name = "FOLDER")]
    pub(crate) postgres_bin: Option<String>,
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
