//! The data folder: the paths in it, how it is created, and the lock under which one program at a time prepares it.

use std::convert::Infallible;
use std::fmt;
use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant};

use anyhow::Context;
use intake_infra::embedded::become_owner;

use crate::settings::certificate_files::TlsFiles;

/// A longer wait for the lock is logged.
const SILENT_WAIT: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(20);

/// The folder in which the program keeps its own files.
pub(crate) struct DataDir(PathBuf);

impl fmt::Display for DataDir {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A folder of the current one, and no setting.
        let dot = if self.0.is_relative() && !self.0.starts_with(".") { "./" } else { "" };
        write!(f, "{dot}{}", self.0.display())
    }
}

impl FromStr for DataDir {
    type Err = Infallible;

    fn from_str(path: &str) -> Result<Self, Self::Err> {
        path.parse().map(Self)
    }
}

impl DataDir {
    /// The embedded database.
    pub(crate) fn postgres(&self) -> PathBuf {
        self.0.join("postgres")
    }

    /// The key of the demo clinic.
    pub(crate) fn demo_key(&self) -> PathBuf {
        self.0.join("demo-key")
    }

    /// The certificate of the local certificate authority, which clients trust.
    pub(crate) fn authority(&self) -> PathBuf {
        self.tls().join("ca.pem")
    }

    /// The private key of the local certificate authority.
    pub(crate) fn authority_key(&self) -> PathBuf {
        self.tls().join("ca-key.pem")
    }

    /// The certificate that the local certificate authority has signed for the service, and its key.
    pub(crate) fn certificate(&self) -> TlsFiles {
        TlsFiles { certificate: self.tls().join("cert.pem"), key: self.tls().join("key.pem") }
    }

    /// The folder of the development certificates, which only its owner can read.
    pub(crate) fn tls(&self) -> PathBuf {
        self.0.join("tls")
    }

    /// As root, becomes the account to which the folder belongs.
    pub(crate) fn become_owner(&self) -> anyhow::Result<()> {
        become_owner(&self.0).with_context(|| format!("INTAKE_DATA_DIR: {self} cannot be used as its owner"))
    }

    /// Creates the folder. Other accounts can pass through it, as the database's must, but not list it.
    pub(crate) fn make(&self) -> anyhow::Result<()> {
        let made = fs::DirBuilder::new().recursive(true).mode(0o711).create(&self.0);
        made.with_context(|| format!("INTAKE_DATA_DIR: {self} cannot be made"))
    }

    /// Waits for the lock, so that services which start together on one data folder prepare it one after the other.
    /// Other accounts cannot take it.
    pub(crate) async fn lock(&self) -> anyhow::Result<File> {
        self.make()?;
        let path = self.0.join("lock");
        let lock = open_lock(&path)?;
        let since = Instant::now();
        let mut is_logged = false;
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(lock),
                Err(TryLockError::Error(error)) => return Err(error.into()),
                Err(TryLockError::WouldBlock) => {}
            }
            if !is_logged && since.elapsed() >= SILENT_WAIT {
                is_logged = true;
                tracing::warn!(lock = %path.display(), "waiting for another program that prepares the data folder");
            }
            tokio::time::sleep(POLL).await;
        }
    }
}

fn open_lock(path: &Path) -> anyhow::Result<File> {
    let opened = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path);
    let lock = opened.with_context(|| format!("INTAKE_DATA_DIR: {} cannot be opened", path.display()))?;
    if lock.metadata()?.permissions().mode() & 0o077 != 0 {
        let closed = lock.set_permissions(Permissions::from_mode(0o600));
        closed.with_context(|| format!("INTAKE_DATA_DIR: {} belongs to another account", path.display()))?;
    }
    Ok(lock)
}
