//! The data folder: made, and held by one program at a time while it is prepared.

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;

/// Whoever waits longer wants to know what for.
const SILENT_WAIT: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(20);

/// Makes the data folder. Others may pass through it, as the database's account must, but not look into it.
pub(crate) fn make(folder: &Path) -> anyhow::Result<()> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o711).create(folder);
    made.with_context(|| format!("INTAKE_DATA_DIR: {} cannot be made", folder.display()))
}

/// Services that start together on one data folder prepare it one after the other. Nobody else's account may hold it.
pub(crate) async fn lock(folder: &Path) -> anyhow::Result<File> {
    make(folder)?;
    let path = folder.join("lock");
    let opened = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path);
    let lock = opened.with_context(|| format!("INTAKE_DATA_DIR: {} cannot be opened", path.display()))?;
    if lock.metadata()?.permissions().mode() & 0o077 != 0 {
        let closed = lock.set_permissions(Permissions::from_mode(0o600));
        closed.with_context(|| format!("INTAKE_DATA_DIR: {} belongs to another account", path.display()))?;
    }
    let since = Instant::now();
    let mut is_told = false;
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(TryLockError::Error(error)) => return Err(error.into()),
            Err(TryLockError::WouldBlock) => {}
        }
        if !is_told && since.elapsed() >= SILENT_WAIT {
            is_told = true;
            tracing::warn!(lock = %path.display(), "waiting for another program that prepares the data folder");
        }
        tokio::time::sleep(POLL).await;
    }
}
