//! The addresses of the database: each from a setting, or from a file that another setting names, so that a password need
//! not stand where others could read it.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use intake_infra::DatabaseUrl;

use crate::setting_values::Survival;
use crate::settings::{
    DATABASE_URL, DATABASE_URL_FILE, DURABILITY, MIGRATION_DATABASE_URL, MIGRATION_DATABASE_URL_FILE, Setting, Settings,
};

/// Longer than any address.
const FILE_MAX: u64 = 16 * 1024;
/// The permission of everyone to read a file.
const READABLE_BY_ALL: u32 = 0o004;

/// The two addresses of an external database.
#[derive(Clone)]
pub(crate) struct DatabaseUrls {
    pub(crate) service: DatabaseUrl,
    pub(crate) owner: DatabaseUrl,
}

/// Reads both. None: the embedded database.
pub(crate) fn read(settings: &Settings<'_>) -> anyhow::Result<Option<DatabaseUrls>> {
    let service = address(settings, &DATABASE_URL, &DATABASE_URL_FILE)?;
    let owner = address(settings, &MIGRATION_DATABASE_URL, &MIGRATION_DATABASE_URL_FILE)?;
    match (service, owner) {
        (Some(service), owner) => {
            let durability = settings.get::<Survival>(&DURABILITY)?.0;
            let owner = owner.unwrap_or_else(|| service.clone()).with_durability(durability);
            Ok(Some(DatabaseUrls { owner, service: service.with_durability(durability) }))
        }
        (None, Some(_)) => bail!("DATABASE_URL must be set where INTAKE_MIGRATION_DATABASE_URL is"),
        (None, None) => Ok(None),
    }
}

/// The files of addresses that every user of this machine can read. They are accepted, because the secrets of containers
/// are such files, and nobody else is in there.
pub(crate) fn files_open_to_all(settings: &Settings<'_>) -> anyhow::Result<Vec<PathBuf>> {
    let mut open = Vec::new();
    for setting in [&DATABASE_URL_FILE, &MIGRATION_DATABASE_URL_FILE] {
        let file: Option<PathBuf> = settings.optional(setting)?;
        let mode = |file: &PathBuf| std::fs::metadata(file).map_or(0, |found| found.permissions().mode());
        open.extend(file.filter(|file| mode(file) & READABLE_BY_ALL != 0));
    }
    Ok(open)
}

fn address(settings: &Settings<'_>, setting: &Setting, in_file: &Setting) -> anyhow::Result<Option<DatabaseUrl>> {
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
        return Ok(url);
    };
    if url.is_some() {
        bail!("{} and {} must not both be set", setting.variable, in_file.variable);
    }
    let address = read_file(&file).with_context(|| format!("{}: {}", in_file.variable, file.display()))?;
    let parsed = address.parse().map_err(|reason| anyhow!("{}: {} {reason}", in_file.variable, file.display()));
    parsed.map(Some)
}

/// The one line of a file, which may end with a newline as editors and `echo` add one.
fn read_file(path: &Path) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(FILE_MAX + 1).read_to_end(&mut bytes));
    // The word of the system alone: the path has been said.
    read.map_err(|error| anyhow!("cannot be read: {}", plain(&error)))?;
    if bytes.len() as u64 > FILE_MAX {
        bail!("is too large to be the address of a database");
    }
    let text = String::from_utf8(bytes).map_err(|_| anyhow!("is not UTF-8"))?;
    let address = text.trim();
    if address.is_empty() {
        bail!("is empty");
    }
    if address.lines().count() > 1 {
        bail!("has more than one line");
    }
    Ok(address.to_owned())
}

fn plain(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::IsADirectory => "it is a folder".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::env::VarError;
    use std::fs::{Permissions, set_permissions, write};

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
            assert!(found.service == expected && found.owner == expected, "{text:?}");
            let migration =
                [("DATABASE_URL", "postgres://s@localhost/i"), ("INTAKE_MIGRATION_DATABASE_URL_FILE", &file)];
            let found = read_with(&Flags::default(), &migration).unwrap().unwrap();
            assert!(found.owner == expected && found.service != expected);
            let flag = Flags::from([(&DATABASE_URL_FILE, file.as_str())]);
            assert!(read_with(&flag, &[]).unwrap().unwrap().service == expected);
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

    #[test]
    fn a_file_that_everyone_can_read_is_noticed() {
        let (_folder, file) = in_file(URL);
        let variable = |name: &str| {
            if name == "DATABASE_URL_FILE" { Ok(file.clone()) } else { Err(VarError::NotPresent) }
        };
        let flags = Flags::default();
        let settings = Settings { flags: &flags, variable: &variable };
        for (mode, is_open) in [(0o600, false), (0o440, false), (0o444, true), (0o644, true)] {
            set_permissions(&file, Permissions::from_mode(mode)).unwrap();
            assert_eq!(!files_open_to_all(&settings).unwrap().is_empty(), is_open, "{mode:o}");
        }
    }
}
