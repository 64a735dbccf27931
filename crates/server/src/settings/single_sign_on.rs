//! Where members sign in by single sign-on: the provider's address, and how this service is known there.

use std::path::PathBuf;

use anyhow::{Context, bail, ensure};
use intake_domain::{Environment, Passwords};
use intake_infra::{OpenIdProvider, OpenIdSettings};

use crate::settings::private_file;
use crate::settings::values::Link;
use crate::settings::{
    ENVIRONMENT, OIDC_CLIENT_ID, OIDC_CLIENT_SECRET, OIDC_CLIENT_SECRET_FILE, OIDC_ISSUER, OIDC_NAME, PASSWORDS,
    PUBLIC_URL, Setting, Settings,
};

/// Path to which the provider sends browsers back, behind the service's own address.
const RETURN_PATH: &str = "/sign-in/provider/return";
/// Longer names do not fit on a button.
const NAME_MAX: usize = 40;

/// The provider of single sign-on, as set.
pub(crate) struct SingleSignOnSettings {
    issuer: String,
    client_id: String,
    client_secret: String,
    /// Name by which members know it.
    pub(crate) name: String,
    pub(crate) passwords: Passwords,
}

impl SingleSignOnSettings {
    /// Returns what asks the provider, for the service at this address.
    pub(crate) fn provider(&self, base: &str) -> anyhow::Result<OpenIdProvider> {
        OpenIdProvider::new(OpenIdSettings {
            issuer: self.issuer.clone(),
            client_id: self.client_id.clone(),
            client_secret: self.client_secret.clone(),
            return_address: format!("{base}{RETURN_PATH}"),
        })
    }
}

/// Reads all of it. None: there is no single sign-on.
pub(crate) fn read(settings: &Settings<'_>) -> anyhow::Result<Option<SingleSignOnSettings>> {
    let issuer = settings.optional_as(&OIDC_ISSUER, issuer)?;
    let client_id: Option<String> = settings.optional(&OIDC_CLIENT_ID)?;
    let secret = secret(settings)?;
    let name = settings.get_as(&OIDC_NAME, button_name)?;
    let passwords = settings.get_as(&PASSWORDS, passwords)?;
    let has_address = settings.optional::<Link>(&PUBLIC_URL)?.is_some();
    let environment: Environment = settings.get(&ENVIRONMENT)?;
    let (issuer, client_id, client_secret) = match (issuer, client_id, secret) {
        (None, None, None) => {
            let nobody = "INTAKE_PASSWORDS is off, and there is no single sign-on, so nobody could sign in: set INTAKE_OIDC_ISSUER";
            ensure!(passwords.are_on(), nobody);
            return Ok(None);
        }
        (Some(issuer), Some(client_id), Some(secret)) => (issuer, client_id, secret),
        (None, ..) => bail!("{}", missing(&OIDC_ISSUER)),
        (_, None, _) => bail!("{}", missing(&OIDC_CLIENT_ID)),
        (.., None) => bail!("{}", missing(&OIDC_CLIENT_SECRET)),
    };
    if environment == Environment::Production {
        ensure!(issuer.starts_with("https://"), "INTAKE_OIDC_ISSUER must begin with https:// in production");
        ensure!(
            has_address,
            "INTAKE_PUBLIC_URL must be set for single sign-on in production: browsers come back there"
        );
    }
    Ok(Some(SingleSignOnSettings { issuer, client_id, client_secret, name, passwords }))
}

fn missing(setting: &Setting) -> String {
    format!("{} must be set as well, because another setting of single sign-on is", setting.variable)
}

fn secret(settings: &Settings<'_>) -> anyhow::Result<Option<String>> {
    let secret: Option<String> = settings.optional(&OIDC_CLIENT_SECRET)?;
    let file: Option<PathBuf> = settings.optional(&OIDC_CLIENT_SECRET_FILE)?;
    match (secret, file) {
        (Some(_), Some(_)) => {
            bail!("INTAKE_OIDC_CLIENT_SECRET and INTAKE_OIDC_CLIENT_SECRET_FILE must not both be set")
        }
        (Some(_), None) if settings.is_flag(&OIDC_CLIENT_SECRET) => bail!(
            "{}: a secret in a flag can be read by every user of this machine: set the variable, or {} to a file",
            OIDC_CLIENT_SECRET.flag_name(),
            OIDC_CLIENT_SECRET_FILE.variable
        ),
        (secret, None) => Ok(secret),
        (None, Some(file)) => {
            let about = || format!("INTAKE_OIDC_CLIENT_SECRET_FILE: {}", file.display());
            private_file::read(&file).with_context(about).map(Some)
        }
    }
}

/// Parses the address of a provider: over TLS, or on this machine.
fn issuer(text: &str) -> Result<String, &'static str> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic()) && !text.contains(['?', '#', '@']);
    let is_host = |rest: &str| !rest.is_empty() && !rest.starts_with(['/', ':']);
    let is_here = |rest: &str| matches!(rest.split(['/', ':']).next(), Some("127.0.0.1" | "localhost"));
    let is_good = match (text.strip_prefix("https://"), text.strip_prefix("http://")) {
        (Some(rest), _) => is_host(rest),
        (None, Some(rest)) => is_here(rest),
        (None, None) => false,
    };
    if is_good && is_plain {
        Ok(text.to_owned())
    } else {
        Err("must be the provider's address, like https://login.example or https://login.example/realms/clinic")
    }
}

/// Parses the name by which members know the provider.
fn button_name(text: &str) -> Result<String, String> {
    let is_good = text.trim() == text && !text.chars().any(char::is_control) && text.chars().count() <= NAME_MAX;
    if is_good { Ok(text.to_owned()) } else { Err(format!("must be a name of at most {NAME_MAX} characters")) }
}

/// Parses the setting that decides if members sign in with passwords, too.
fn passwords(text: &str) -> Result<Passwords, &'static str> {
    match text {
        "on" => Ok(Passwords::On),
        "off" => Ok(Passwords::Off),
        _ => Err("must be on or off"),
    }
}

#[cfg(test)]
mod tests {
    use std::env::VarError;

    use super::*;
    use crate::settings::Flags;

    const ALL: [(&str, &str); 3] = [
        ("INTAKE_OIDC_ISSUER", "https://login.example/realms/clinic"),
        ("INTAKE_OIDC_CLIENT_ID", "intake"),
        ("INTAKE_OIDC_CLIENT_SECRET", "secret"),
    ];

    fn read_with(flags: &Flags, variables: &[(&str, &str)]) -> Result<Option<SingleSignOnSettings>, String> {
        let variable = |name: &str| {
            let found = variables.iter().rev().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned()).ok_or(VarError::NotPresent)
        };
        read(&Settings { flags, variable: &variable }).map_err(|error| format!("{error:#}"))
    }

    fn complaint(variables: &[(&str, &str)]) -> String {
        read_with(&Flags::default(), &[&ALL[..], variables].concat()).err().unwrap_or_default()
    }

    #[test]
    fn single_sign_on_is_set_as_a_whole_or_not_at_all() {
        assert!(read_with(&Flags::default(), &[]).unwrap().is_none());
        let found = read_with(&Flags::default(), &ALL).unwrap().unwrap();
        assert_eq!((found.client_id.as_str(), found.name.as_str()), ("intake", "single sign-on"));
        for (missing, _) in ALL {
            let given: Vec<_> = ALL.into_iter().filter(|(name, _)| *name != missing).collect();
            let complaint = read_with(&Flags::default(), &given).err().unwrap();
            assert!(complaint.starts_with(missing), "{complaint}");
        }
    }

    #[test]
    fn the_provider_is_reached_over_tls_or_on_this_machine_in_development() {
        for good in
            ["https://login.example", "http://127.0.0.1:3000", "http://localhost:3000/x", "https://login.example:8443/"]
        {
            assert_eq!(complaint(&[("INTAKE_OIDC_ISSUER", good)]), "", "{good}");
        }
        for bad in [
            "http://login.example",
            "http://127.0.0.1.login.example",
            "http://localhost@login.example",
            "login.example",
            "https://",
            "https:///x",
            "https://login.example/?a=b",
            "https://user:secret@login.example",
            "ftp://localhost",
        ] {
            assert!(complaint(&[("INTAKE_OIDC_ISSUER", bad)]).starts_with("INTAKE_OIDC_ISSUER"), "{bad}");
        }
        let production = [("INTAKE_ENVIRONMENT", "production")];
        assert!(complaint(&production).starts_with("INTAKE_PUBLIC_URL"));
        let production = [production[0], ("INTAKE_PUBLIC_URL", "https://intake.example")];
        assert_eq!(complaint(&production), "");
        let here = [production[0], production[1], ("INTAKE_OIDC_ISSUER", "http://127.0.0.1:3000")];
        assert!(complaint(&here).starts_with("INTAKE_OIDC_ISSUER"));
    }

    #[test]
    fn the_secret_comes_from_one_place_which_is_no_flag() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        let file = file.to_str().unwrap();
        let in_file = [ALL[0], ALL[1], ("INTAKE_OIDC_CLIENT_SECRET_FILE", file)];
        let read = || read_with(&Flags::default(), &in_file).map(|found| found.unwrap().client_secret);
        assert!(read().unwrap_err().starts_with("INTAKE_OIDC_CLIENT_SECRET_FILE"), "there is no file");
        std::fs::write(file, "s3cret\n").unwrap();
        assert_eq!(read().unwrap(), "s3cret");
        for bad in ["", "\n", "one\ntwo\n"] {
            std::fs::write(file, bad).unwrap();
            assert!(read().unwrap_err().contains("one line"), "{bad:?}");
        }
        assert!(complaint(&in_file).contains("must not both be set"));
        let flag = Flags::from([(&OIDC_CLIENT_SECRET, "s3cret")]);
        let refusal = read_with(&flag, &ALL[..2]).err().unwrap();
        assert!(refusal.starts_with("--oidc-client-secret") && !refusal.contains("s3cret"), "{refusal}");
    }

    #[test]
    fn passwords_can_be_turned_off_only_where_there_is_something_else() {
        let off = [("INTAKE_PASSWORDS", "off")];
        let refusal = read_with(&Flags::default(), &off).err().unwrap();
        assert!(refusal.contains("nobody could sign in") && refusal.contains("INTAKE_OIDC_ISSUER"), "{refusal}");
        let read = |more: &[(&str, &str)]| read_with(&Flags::default(), &[&ALL[..], more].concat()).unwrap().unwrap();
        assert_eq!((read(&[]).passwords, read(&off).passwords), (Passwords::On, Passwords::Off));
        for bad in ["no", "OFF", "false"] {
            assert!(complaint(&[("INTAKE_PASSWORDS", bad)]).starts_with("INTAKE_PASSWORDS"), "{bad}");
        }
    }

    #[test]
    fn the_name_fits_on_a_button() {
        assert_eq!(complaint(&[("INTAKE_OIDC_NAME", "Harbour Login")]), "");
        for bad in [" x", "a\nb", &"x".repeat(41)] {
            assert!(complaint(&[("INTAKE_OIDC_NAME", bad)]).starts_with("INTAKE_OIDC_NAME"), "{bad:?}");
        }
    }
}
