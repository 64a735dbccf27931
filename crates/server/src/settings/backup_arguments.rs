//! Arguments of `intake backup`.

use std::path::PathBuf;

use clap::Args;

use crate::settings::arguments::Output;

/// The folder of the backups.
#[derive(Args)]
pub(crate) struct BackupArguments {
    /// Folder of the backups, on another disk, which only this account may enter
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// Number of backups to keep; older ones are deleted when a new one is complete
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub(crate) keep: u16,
    /// Restore the newest backup into a temporary folder (TMPDIR) instead, and report what is missing
    #[arg(long, conflicts_with = "keep")]
    pub(crate) check: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}
