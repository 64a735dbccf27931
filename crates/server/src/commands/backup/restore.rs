//! What a backup says about itself, and the script that restores it.

use std::path::Path;

use intake_infra::embedded::BaseBackupSource;
use serde_json::json;

use super::folder;
use crate::commands::output::quoted;
use crate::settings::SETTINGS;
use crate::settings::configuration::Configuration;

/// Name of the copy of the audit log, which the script finds in every backup.
pub(super) const RECORD: &str = "audit.json";
/// Name of the file from which the drill takes role, database and environment.
pub(super) const ORIGIN: &str = "backup.json";
const SCRIPT: &str = include_str!("../../../packaging/restore");

/// Writes the script and the files that describe the backup.
pub(super) fn write(backup: &Path, source: &BaseBackupSource, configuration: &Configuration) -> anyhow::Result<()> {
    let (version, is_embedded) = (source.version, configuration.database.is_none());
    let origin = json!({
        "postgres": version, "role": source.role, "database": source.database, "embedded": is_embedded,
        "environment": configuration.environment.as_str(), "intake": env!("BUILD_VERSION"),
    });
    folder::write(&backup.join(ORIGIN), &format!("{origin}\n"), folder::PRIVATE)?;
    folder::write(&backup.join("restore"), SCRIPT, 0o700)?;
    let set = SETTINGS.iter().map(|setting| setting.variable).filter(|name| std::env::var_os(name).is_some());
    let names: Vec<_> = set.collect();
    let usage = command(Path::new("."), is_embedded);
    let text = format!(
        "A backup of intake's database, with every patient in it. Needs PostgreSQL {version} and intake.\n\n\
         To restore it, in this folder:\n\n    {usage}\n\n\
         The command refuses a folder that is not empty, uses the newest copy of the audit log among the backups\n\
         beside this one, and revokes every key. docs/operations/restoring.md says more.\n\n\
         Not in here, keep it elsewhere: the settings (/etc/intake/intake.env) and the files that they name, such as\n\
         certificates and passwords{}. Set when this backup was made: {}.\n",
        if is_embedded { "" } else { ",\nand PostgreSQL's own configuration, which Debian has in /etc/postgresql" },
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    );
    folder::write(&backup.join("README"), &text, folder::PRIVATE)
}

/// The command that restores a backup.
pub(super) fn command(backup: &Path, is_embedded: bool) -> String {
    let script = if backup == Path::new(".") {
        "./restore".to_owned()
    } else {
        quoted(&backup.join("restore").display().to_string())
    };
    if is_embedded {
        format!("{script} NEW_DATA_DIR")
    } else {
        format!("{script} POSTGRESQL_DATA_FOLDER COMMAND_THAT_STARTS_POSTGRESQL")
    }
}
