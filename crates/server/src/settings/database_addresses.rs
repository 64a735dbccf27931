//! The addresses of the database: each from a setting, or from a file that another setting names, so that a password
//! need not stand where others could read it.

use std::path::PathBuf;

use anyhow::{anyhow, bail};
use intake_infra::DatabaseUrl;

use crate::settings::values;
use crate::settings::{
    DATABASE_URL, DATABASE_URL_FILE, DURABILITY, MIGRATION_DATABASE_URL, MIGRATION_DATABASE_URL_FILE, Setting, Settings,
};

/// The two addresses of an external database.
#[derive(Clone)]
pub(crate) struct DatabaseUrls {
    pub(crate) service: DatabaseUrl,
    pub(crate) owner: DatabaseUrl,
    /// The variables that were set to them.
    pub(crate) service_variable: &'static str,
    pub(crate) owner_variable: &'static str,
}

/// Reads both. None: the embedded database.
pub(crate) fn read(settings: &Settings<'_>) -> anyhow::Result<Option<DatabaseUrls>> {
    let service = address(settings, &DATABASE_URL, &DATABASE_URL_FILE)?;
    let owner = address(settings, &MIGRATION_DATABASE_URL, &MIGRATION_DATABASE_URL_FILE)?;
    match (service, owner) {
        (Some((service, service_variable)), owner) => {
            let durability = settings.get_as(&DURABILITY, values::durability)?;
            let (owner, owner_variable) = owner.unwrap_or_else(|| (service.clone(), service_variable));
            let (owner, service) = (owner.with_durability(durability), service.with_durability(durability));
            Ok(Some(DatabaseUrls { service, owner, service_variable, owner_variable }))
        }
        (None, Some((_, variable))) => {
            bail!("{} must be set where {variable} is", variable.trim_start_matches("INTAKE_MIGRATION_"))
        }
        (None, None) => Ok(None),
    }
}

/// An address, and the variable that was set to it.
fn address(
    settings: &Settings<'_>,
    setting: &Setting,
    in_file: &Setting,
) -> anyhow::Result<Option<(DatabaseUrl, &'static str)>> {
    let url: Option<DatabaseUrl> = settings.optional(setting)?;
    let file: Option<PathBuf> = settings.optional(in_file)?;
    let Some(file) = file else {
        if settings.is_flag(setting) && url.as_ref().is_some_and(DatabaseUrl::has_password) {
            bail!(
                "{}: a password in a flag can be read by every user of this machine: set the variable, or {} to a file",
                setting.flag_name(),
                in_file.variable
            );
        }
        return Ok(url.map(|url| (url, setting.variable)));
    };
    if url.is_some() {
        bail!("{} and {} must not both be set", setting.variable, in_file.variable);
    }
    let url = DatabaseUrl::in_file(&file);
    url.map(|url| Some((url, in_file.variable)))
        .map_err(|reason| anyhow!("{}: {}: {reason}", in_file.variable, file.display()))
}

#[cfg(test)]
mod tests {
    use std::env::VarError;
    use std::fs::write;

    use super::*;
    use crate::settings::Flags;

    const URL: &str = "postgres://intake:secret@localhost/intake";

    fn read_with(flags: &Flags, variables: &[(&str, &str)]) -> anyhow::Result<Option<DatabaseUrls>> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned()).ok_or(VarError::NotPresent)
        };
        read(&Settings { flags, variable: &variable })
    }

    fn complaint(flags: &Flags, variables: &[(&str, &str)]) -> String {
        match read_with(flags, variables) {
            Ok(_) => panic!("accepted: {variables:?}"),
            Err(error) => format!("{error:#}"),
        }
    }

    fn in_file(text: impl AsRef<[u8]>) -> (tempfile::TempDir, String) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("address");
        write(&file, text).unwrap();
        let file = file.to_str().unwrap().to_owned();
        (folder, file)
    }

    #[test]
    fn an_address_in_a_file_is_the_same_as_in_a_variable() {
        let expected: DatabaseUrl = URL.parse().unwrap();
        for text in [URL.to_owned(), format!("{URL}\n"), format!("{URL}\r\n"), format!("  {URL}\n\n")] {
            let (_folder, file) = in_file(&text);
            let found = read_with(&Flags::default(), &[("DATABASE_URL_FILE", &file)]).unwrap().unwrap();
            let found = [&found.service, &found.owner].map(DatabaseUrl::expose);
            assert_eq!(found, [expected.expose(); 2], "{text:?}");
            let migration =
                [("DATABASE_URL", "postgres://s@localhost/i"), ("INTAKE_MIGRATION_DATABASE_URL_FILE", &file)];
            let found = read_with(&Flags::default(), &migration).unwrap().unwrap();
            assert_eq!((found.owner.expose(), found.service == expected), (expected.expose(), false));
            let flag = Flags::from([(&DATABASE_URL_FILE, file.as_str())]);
            assert_eq!(read_with(&flag, &[]).unwrap().unwrap().service.expose(), expected.expose());
        }
    }

    #[test]
    fn a_file_that_holds_no_address_is_named_and_never_quoted() {
        let long = URL.repeat(1_000);
        for (bytes, words) in [
            (&b""[..], "is empty"),
            (b" \n", "is empty"),
            (b"secret\n", "must be like"),
            (b"postgres://secret@localhost/i\npostgres://other@localhost/i\n", "has more than one line"),
            (b"postgres://secret\xff@localhost/i", "is not UTF-8"),
            (long.as_bytes(), "is too large"),
        ] {
            let (_folder, file) = in_file(bytes);
            let complaint = complaint(&Flags::default(), &[("DATABASE_URL_FILE", &file)]);
            assert!(complaint.starts_with("DATABASE_URL_FILE") && complaint.contains(words), "{complaint}");
            assert!(complaint.contains(&file) && !complaint.contains("secret"), "{complaint}");
        }
        let missing = complaint(&Flags::default(), &[("DATABASE_URL_FILE", "/no/such/file")]);
        assert_eq!(missing, "DATABASE_URL_FILE: /no/such/file: cannot be read: there is no such file");
    }

    #[test]
    fn an_address_comes_from_one_place() {
        let (_folder, file) = in_file(URL);
        for (variable, in_file) in [
            ("DATABASE_URL", "DATABASE_URL_FILE"),
            ("INTAKE_MIGRATION_DATABASE_URL", "INTAKE_MIGRATION_DATABASE_URL_FILE"),
        ] {
            let both = complaint(&Flags::default(), &[("DATABASE_URL", URL), (variable, URL), (in_file, &file)]);
            assert_eq!(both, format!("{variable} and {in_file} must not both be set"));
        }
        let flag = Flags::from([(&DATABASE_URL, "postgres://localhost/i")]);
        assert!(complaint(&flag, &[("DATABASE_URL_FILE", &file)]).contains("must not both be set"));
    }

    #[test]
    fn a_password_in_a_flag_is_refused_and_not_repeated() {
        for url in [URL, "host=localhost user=intake password=secret", "postgres:///intake?password=secret"] {
            let refusal = complaint(&Flags::from([(&DATABASE_URL, url)]), &[]);
            assert!(refusal.starts_with("--database-url: a password") && !refusal.contains("secret"), "{refusal}");
            assert!(refusal.contains("DATABASE_URL_FILE"), "{refusal}");
            assert!(read_with(&Flags::default(), &[("DATABASE_URL", url)]).is_ok(), "a variable may have one");
        }
        assert!(read_with(&Flags::from([(&DATABASE_URL, "postgres://intake@localhost/intake")]), &[]).is_ok());
    }
}
