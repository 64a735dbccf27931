//! Every setting, each defined once: its flag, its variable, its line of help, its default and its row in
//! docs/operations/settings.md all come from here. Reading gives a value, or a line that names the variable.

pub(crate) mod arguments;
pub(crate) mod audit_arguments;
pub(crate) mod backup_arguments;
pub(crate) mod certificate_files;
pub(crate) mod command_line;
pub(crate) mod configuration;
pub(crate) mod data_dir;
pub(crate) mod database_addresses;
pub(crate) mod deliver_command;
pub(crate) mod help;
pub(crate) mod key_command;
pub(crate) mod organisation_command;
pub(crate) mod pairs_arguments;
pub(crate) mod patient_command;
pub(crate) mod private_file;
pub(crate) mod single_sign_on;
pub(crate) mod values;

use std::collections::HashMap;
use std::env::VarError;
use std::ffi::OsString;
use std::fmt::{self, Display};
use std::str::FromStr;

use anyhow::anyhow;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use intake_domain::Environment;

/// A setting: a variable, and a flag of the same name.
pub(crate) struct Setting {
    pub(crate) variable: &'static str,
    /// Form of a value, in a word.
    value: &'static str,
    default: DefaultValue,
    /// Purpose, in Markdown.
    help: &'static str,
}

enum DefaultValue {
    Text(&'static str),
    ByEnvironment {
        development: &'static str,
        production: &'static str,
    },
    /// No value; the text says what applies instead.
    Absent(&'static str),
}

use DefaultValue::{Absent, ByEnvironment, Text};

/// In the order of the help.
pub(crate) const SETTINGS: [&Setting; 35] = [
    &ENVIRONMENT,
    &DATABASE_URL,
    &DATABASE_URL_FILE,
    &MIGRATION_DATABASE_URL,
    &MIGRATION_DATABASE_URL_FILE,
    &DATA_DIR,
    &HTTPS_ADDR,
    &TLS_CERT,
    &TLS_KEY,
    &HTTP_ADDR,
    &TRUSTED_PROXIES,
    &HSTS,
    &ADMIN_ADDR,
    &KEY_PREFIX,
    &RATE_LIMIT,
    &DEADLINE,
    &DRAIN_DELAY,
    &PUBLIC_URL,
    &SMTP_URL,
    &SMTP_URL_FILE,
    &MAIL_FROM,
    &SUPPORT,
    &OIDC_ISSUER,
    &OIDC_CLIENT_ID,
    &OIDC_CLIENT_SECRET,
    &OIDC_CLIENT_SECRET_FILE,
    &OIDC_NAME,
    &PASSWORDS,
    &LOG,
    &DURABILITY,
    &WRITERS,
    &POSTGRES_BIN,
    &BACKUP_MARK,
    &AUDIT_COPIES,
    &OPERATOR,
];

pub(crate) const ENVIRONMENT: Setting = Setting {
    variable: "INTAKE_ENVIRONMENT",
    value: "NAME",
    default: Text("development"),
    help: "`development` takes `_demo_` keys, `production` takes `_live_` keys. \
           A database belongs to the environment it was first used in",
};
pub(crate) const DATABASE_URL: Setting = Setting {
    variable: "DATABASE_URL",
    value: "URL",
    default: Absent("none"),
    help: "URL of the service's database role. Without it, in development: an embedded PostgreSQL",
};
pub(crate) const DATABASE_URL_FILE: Setting = Setting {
    variable: "DATABASE_URL_FILE",
    value: "FILE",
    default: Absent("none"),
    help: "File with that URL, instead of `DATABASE_URL`; read again for each new connection, so its password can change",
};
pub(crate) const MIGRATION_DATABASE_URL: Setting = Setting {
    variable: "INTAKE_MIGRATION_DATABASE_URL",
    value: "URL",
    default: Absent("`DATABASE_URL`"),
    help: "URL of the owner's role, for migrations",
};
pub(crate) const MIGRATION_DATABASE_URL_FILE: Setting = Setting {
    variable: "INTAKE_MIGRATION_DATABASE_URL_FILE",
    value: "FILE",
    default: Absent("none"),
    help: "File with that URL, instead of `INTAKE_MIGRATION_DATABASE_URL`",
};
pub(crate) const DATA_DIR: Setting = Setting {
    variable: "INTAKE_DATA_DIR",
    value: "FOLDER",
    default: Text(".intake"),
    help: "Folder of the embedded database and of development certificates",
};
pub(crate) const HTTPS_ADDR: Setting = Setting {
    variable: "INTAKE_HTTPS_ADDR",
    value: "ADDR",
    default: Text("127.0.0.1:8443"),
    help: "Address for HTTPS: TLS 1.2 and 1.3, HTTP/1.1",
};
pub(crate) const TLS_CERT: Setting = Setting {
    variable: "INTAKE_TLS_CERT",
    value: "FILE",
    default: Absent("in development, made by a local authority"),
    help: "Certificate chain, a PEM file, read again when it changes",
};
pub(crate) const TLS_KEY: Setting = Setting {
    variable: "INTAKE_TLS_KEY",
    value: "FILE",
    default: Absent("in development, made by a local authority"),
    help: "Private key of the certificate, a PEM file, read again when it changes",
};
pub(crate) const HTTP_ADDR: Setting = Setting {
    variable: "INTAKE_HTTP_ADDR",
    value: "ADDR",
    default: ByEnvironment { development: "127.0.0.1:8080", production: "off" },
    help: "Address for plain HTTP, or `off`. It answers 426, except to trusted proxies",
};
pub(crate) const TRUSTED_PROXIES: Setting = Setting {
    variable: "INTAKE_TRUSTED_PROXIES",
    value: "CIDR,…",
    default: Absent("none"),
    help: "Addresses of proxies in front, a CIDR list: only their `X-Forwarded-Proto` and `X-Forwarded-For` are believed, \
           on the plain listener",
};
pub(crate) const HSTS: Setting = Setting {
    variable: "INTAKE_HSTS",
    value: "HOSTS",
    default: Text("host"),
    help: "Hosts for which browsers must use HTTPS, for a year from each answer: `host`, or `subdomains` to include all \
           hosts below it",
};
pub(crate) const ADMIN_ADDR: Setting = Setting {
    variable: "INTAKE_ADMIN_ADDR",
    value: "ADDR",
    default: Text("127.0.0.1:9464"),
    help: "Address for `/livez`, `/readyz` and `/metrics`, over plain HTTP",
};
pub(crate) const KEY_PREFIX: Setting = Setting {
    variable: "INTAKE_KEY_PREFIX",
    value: "PREFIX",
    default: Text("intake"),
    help: "Beginning of every key. Keys with another prefix are refused from then on",
};
pub(crate) const RATE_LIMIT: Setting = Setting {
    variable: "INTAKE_RATE_LIMIT",
    value: "RATE/BURST",
    default: Text("100/1000"),
    help: "Sustained requests per second / burst size, for each key and instance; or `off`",
};
pub(crate) const DEADLINE: Setting = Setting {
    variable: "INTAKE_DEADLINE",
    value: "TIME",
    default: Text("5s"),
    help: "Longest wait of a request for the database, and of a password to be checked, before 503 \
        (`500ms`, `5s`, `1m`)",
};
pub(crate) const DRAIN_DELAY: Setting = Setting {
    variable: "INTAKE_DRAIN_DELAY",
    value: "TIME",
    default: ByEnvironment { development: "0s", production: "5s" },
    help: "Time for which a stopping service still accepts connections, while `/readyz` says `draining`: longer than a \
           load balancer needs to notice",
};
pub(crate) const PUBLIC_URL: Setting = Setting {
    variable: "INTAKE_PUBLIC_URL",
    value: "URL",
    default: Absent("`https://localhost:8443`, or the port that HTTPS is served on"),
    help: "Public base URL of the dashboard, used in links",
};
pub(crate) const SMTP_URL: Setting = Setting {
    variable: "INTAKE_SMTP_URL",
    value: "URL",
    default: Absent("none: links are shown instead"),
    help: "Mail server for emails to members: `smtps://USER:PASSWORD@HOST`, or `smtp://HOST`, which begins unencrypted",
};
pub(crate) const SMTP_URL_FILE: Setting = Setting {
    variable: "INTAKE_SMTP_URL_FILE",
    value: "FILE",
    default: Absent("none"),
    help: "File with that URL, instead of `INTAKE_SMTP_URL`; read at the start",
};
pub(crate) const MAIL_FROM: Setting = Setting {
    variable: "INTAKE_MAIL_FROM",
    value: "ADDRESS",
    default: Absent("`intake@` and the host of `INTAKE_PUBLIC_URL`"),
    help: "Sender of emails, such as `Patient register <noreply@clinic.example>`",
};
pub(crate) const SUPPORT: Setting = Setting {
    variable: "INTAKE_SUPPORT",
    value: "TEXT",
    default: Absent("an administrator"),
    help: "Whom members ask, such as `the IT desk, it@clinic.example`: in emails, Help and error pages",
};
pub(crate) const OIDC_ISSUER: Setting = Setting {
    variable: "INTAKE_OIDC_ISSUER",
    value: "URL",
    default: Absent("none: no single sign-on"),
    help: "Issuer URL of the OpenID Connect provider for single sign-on, exactly as the provider states it, with \
           `https://`, unless it is on this machine in development",
};
pub(crate) const OIDC_CLIENT_ID: Setting = Setting {
    variable: "INTAKE_OIDC_CLIENT_ID",
    value: "ID",
    default: Absent("none"),
    help: "Client id of this service at the provider",
};
pub(crate) const OIDC_CLIENT_SECRET: Setting = Setting {
    variable: "INTAKE_OIDC_CLIENT_SECRET",
    value: "SECRET",
    default: Absent("none"),
    help: "Client secret of this service at the provider",
};
pub(crate) const OIDC_CLIENT_SECRET_FILE: Setting = Setting {
    variable: "INTAKE_OIDC_CLIENT_SECRET_FILE",
    value: "FILE",
    default: Absent("none"),
    help: "File with that secret, instead of `INTAKE_OIDC_CLIENT_SECRET`; read at the start",
};
pub(crate) const OIDC_NAME: Setting = Setting {
    variable: "INTAKE_OIDC_NAME",
    value: "NAME",
    default: Text("single sign-on"),
    help: "Name of the provider for members, as in \"Sign in with Harbour Login\"",
};
pub(crate) const PASSWORDS: Setting = Setting {
    variable: "INTAKE_PASSWORDS",
    value: "SWITCH",
    default: Text("on"),
    help: "`off`: members sign in by single sign-on only, not with passwords or passkeys alone",
};
pub(crate) const LOG: Setting = Setting {
    variable: "INTAKE_LOG",
    value: "FILTER",
    default: Text("info"),
    help: "Log level, or levels by module (`info,intake_infra=debug`, and `info,intake::requests=info` for a line for each \
           request); text on a terminal, JSON lines elsewhere",
};
pub(crate) const DURABILITY: Setting = Setting {
    variable: "INTAKE_DURABILITY",
    value: "NAME",
    default: Text("full"),
    help: "`none` lets the database lose acknowledged patients: for tests; production refuses it",
};
pub(crate) const WRITERS: Setting = Setting {
    variable: "INTAKE_WRITERS",
    value: "COUNT",
    default: Absent("one for each four cores, at most 4"),
    help: "Connections that store patients; more make smaller batches",
};
pub(crate) const BACKUP_MARK: Setting = Setting {
    variable: "INTAKE_BACKUP_MARK",
    value: "FILE",
    default: Absent("none"),
    help: "File that each backup touches when it is complete; `intake doctor` reports its age",
};
pub(crate) const AUDIT_COPIES: Setting = Setting {
    variable: "INTAKE_AUDIT_COPIES",
    value: "FOLDER",
    default: Absent("none"),
    help: "Folder of the script `audit-copy`; `intake doctor` reports the age of the newest copy",
};
pub(crate) const OPERATOR: Setting = Setting {
    variable: "INTAKE_OPERATOR",
    value: "NAME",
    default: Absent("the value of `SUDO_USER`, or of `USER`"),
    help: "Operator's name for the audit log, where `--as` gives none",
};
pub(crate) const POSTGRES_BIN: Setting = Setting {
    variable: "INTAKE_POSTGRES_BIN",
    value: "FOLDER",
    default: Absent("found in the usual places"),
    help: "Folder of PostgreSQL's programs, for the embedded database",
};

impl Setting {
    /// As it is typed: `--https-addr`.
    pub(crate) fn flag_name(&self) -> String {
        format!("--{}", self.variable.trim_start_matches("INTAKE_").to_ascii_lowercase().replace('_', "-"))
    }

    /// As `intake help settings` shows it.
    fn paragraph(&self) -> String {
        format!("{}  {}\n    {}", self.flag_name(), self.value, self.described())
    }

    fn described(&self) -> String {
        format!("{} [variable: {}] [default: {}]", self.help, self.variable, self.default).replace('`', "")
    }

    fn flag(&self) -> Arg {
        let name = self.flag_name().trim_start_matches('-').to_owned();
        let help = self.described();
        let arg = Arg::new(self.variable).long(name).value_name(self.value).help(help).help_heading("Settings");
        // Listed by `intake help settings` and in the man page: below each command they would bury its own options.
        arg.global(true).hide_short_help(true)
    }
}

/// As docs/operations/settings.md says it.
impl Display for DefaultValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Text(text) => write!(f, "`{text}`"),
            ByEnvironment { development, production } => write!(f, "`{development}`; in production `{production}`"),
            Absent(words) => f.write_str(words),
        }
    }
}

/// The texts of the settings that were given as flags, by variable. They are parsed in the same way as variables.
#[derive(Default)]
pub(crate) struct Flags(HashMap<&'static str, String>);

impl Args for Flags {
    fn augment_args(command: Command) -> Command {
        command.args(SETTINGS.map(Setting::flag))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Flags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let text = |setting: &Setting| matches.get_one::<String>(setting.variable).cloned();
        Ok(Self(SETTINGS.iter().filter_map(|setting| Some((setting.variable, text(setting)?))).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Variables of the clients in docs/integrating.md.
const CLIENTS_VARIABLES: [&str; 2] = ["INTAKE_URL", "INTAKE_KEY"];

/// The variables that look like settings and are none: misspelt, or of another version.
pub(crate) fn unknown_variables(names: impl Iterator<Item = OsString>) -> Vec<String> {
    let is_clients = |name: &str| CLIENTS_VARIABLES.contains(&name) || name.starts_with("INTAKE_TEST_");
    let is_setting = |name: &str| SETTINGS.iter().any(|setting| setting.variable == name);
    let is_unknown = |name: &String| name.starts_with("INTAKE_") && !is_setting(name) && !is_clients(name);
    names.filter_map(|name| name.into_string().ok()).filter(is_unknown).collect()
}

/// Sources of settings.
pub(crate) struct Settings<'a> {
    pub(crate) flags: &'a Flags,
    pub(crate) variable: &'a dyn Fn(&str) -> Result<String, VarError>,
}

impl Settings<'_> {
    /// The value of a setting: the flag, else the variable, else the default.
    pub(crate) fn get<T: FromStr<Err: Display>>(&self, setting: &Setting) -> anyhow::Result<T> {
        self.get_as(setting, str::parse)
    }

    /// The value of a setting that may have none.
    pub(crate) fn optional<T: FromStr<Err: Display>>(&self, setting: &Setting) -> anyhow::Result<Option<T>> {
        self.optional_as(setting, str::parse)
    }

    /// The value of a setting, by this parser.
    pub(crate) fn get_as<T, E: Display>(
        &self,
        setting: &Setting,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> anyhow::Result<T> {
        self.optional_as(setting, parse)?.ok_or_else(|| anyhow!("{} must be set", setting.variable))
    }

    /// The value of a setting that may have none, by this parser.
    pub(crate) fn optional_as<T, E: Display>(
        &self,
        setting: &Setting,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> anyhow::Result<Option<T>> {
        let text = match self.given(setting)? {
            Some(text) => Some(text),
            None => self.default(setting)?.map(str::to_owned),
        };
        text.map(|text| parse(&text).map_err(|reason| anyhow!("{} is wrong: {reason}", setting.variable))).transpose()
    }

    /// Returns whether the setting is given as a flag, which every user of the machine can read.
    pub(crate) fn is_flag(&self, setting: &Setting) -> bool {
        self.flags.0.contains_key(setting.variable)
    }

    fn given(&self, setting: &Setting) -> anyhow::Result<Option<String>> {
        let name = setting.variable;
        if let Some(text) = self.flags.0.get(name) {
            return Ok(Some(text.clone()));
        }
        match (self.variable)(name) {
            // Compose files set variables to nothing to leave them unset.
            Ok(text) => Ok(Some(text).filter(|text| !text.is_empty())),
            Err(VarError::NotPresent) => Ok(None),
            Err(VarError::NotUnicode(_)) => Err(anyhow!("{name} is not valid UTF-8")),
        }
    }

    fn default(&self, setting: &Setting) -> anyhow::Result<Option<&'static str>> {
        Ok(match setting.default {
            Text(text) => Some(text),
            ByEnvironment { development, production } => Some(match self.get(&ENVIRONMENT)? {
                Environment::Development => development,
                Environment::Production => production,
            }),
            Absent(_) => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;
    use std::fs;

    use super::*;

    /// The settings that most operators need; `intake help settings` lists all.
    const COMMON: [&Setting; 13] = [
        &ENVIRONMENT,
        &DATABASE_URL,
        &DATABASE_URL_FILE,
        &MIGRATION_DATABASE_URL,
        &HTTPS_ADDR,
        &TLS_CERT,
        &TLS_KEY,
        &HTTP_ADDR,
        &TRUSTED_PROXIES,
        &RATE_LIMIT,
        &PUBLIC_URL,
        &SMTP_URL,
        &SUPPORT,
    ];
    const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operations/settings.md");
    const BEGIN: &str =
        "<!-- settings: made from crates/server/src/settings/mod.rs by `UPDATE_DOCS=1 cargo test` -->\n";
    const END: &str = "<!-- end of settings -->\n";

    #[test]
    fn the_packages_file_of_settings_names_those_that_exist() {
        let file = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/packaging/intake.env")).unwrap();
        let is_variable =
            |name: &&str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
        let names = file.lines().filter_map(|line| line.trim_start_matches('#').split_once('=')).map(|(name, _)| name);
        let named: Vec<_> = names.filter(is_variable).collect();
        assert!(named.len() > 5, "{named:?}");
        for name in named {
            assert!(SETTINGS.iter().any(|setting| setting.variable == name), "{name}");
        }
    }

    impl<const N: usize> From<[(&Setting, &str); N]> for Flags {
        fn from(flags: [(&Setting, &str); N]) -> Self {
            Self(flags.into_iter().map(|(setting, text)| (setting.variable, text.to_owned())).collect())
        }
    }

    #[test]
    fn a_variable_that_is_misspelt_is_noticed() {
        let set =
            ["INTAKE_RATELIMIT", "INTAKE_RATE_LIMIT", "INTAKE_KEY", "INTAKE_TEST_ROOT", "PATH", "INTAKE_TRUSTED_PROXY"];
        let unknown = unknown_variables(set.map(OsString::from).into_iter());
        assert_eq!(unknown, ["INTAKE_RATELIMIT", "INTAKE_TRUSTED_PROXY"]);
    }

    #[test]
    fn the_table_of_common_settings_in_the_documents_is_made_from_the_settings() {
        let mut table = "| Variable | Default | Meaning |\n|---|---|---|\n".to_owned();
        for Setting { variable, default, help, .. } in COMMON {
            writeln!(table, "| `{variable}` | {default} | {help} |").unwrap();
        }
        let document = fs::read_to_string(DOCUMENT).unwrap();
        let (before, rest) = document.split_once(BEGIN).expect("the marker before the table");
        let (_, after) = rest.split_once(END).expect("the marker after the table");
        let expected = format!("{before}{BEGIN}{table}{END}{after}");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            fs::write(DOCUMENT, expected).unwrap();
        } else {
            assert_eq!(document, expected, "UPDATE_DOCS=1 cargo test rewrites docs/operations/settings.md");
        }
    }
}
