//! The clock of a program, which can be wrong by hours or days and jump while the program runs. Needs libfaketime.

use std::fs;
use std::path::{Path, PathBuf};

use time::OffsetDateTime;

use crate::random::Random;

/// Offset in the format of libfaketime: less than the local certificate allows for.
const OFFSETS: [&str; 6] = ["-2d", "-3h", "-90s", "+90s", "+3h", "+2d"];
/// Folder of the library on Debian.
const FOLDER: &str = "/usr/lib";

/// The clock of a program, which can be set while it runs.
pub(crate) struct Clock {
    library: String,
    file: PathBuf,
}

/// The time by this machine's clock, which PostgreSQL has, too, unless it is set wrong.
#[expect(clippy::disallowed_methods, reason = "the edge of these programs")]
pub(crate) fn now() -> OffsetDateTime {
    OffsetDateTime::now_utc()
}

/// The library for programs with threads, if it is there.
fn library() -> Option<String> {
    let folders = fs::read_dir(FOLDER).into_iter().flatten().flatten();
    let mut paths = folders.map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"));
    paths.find(|path| path.exists()).map(|path| path.to_string_lossy().into_owned())
}

/// Returns why clocks cannot be wrong on this machine, if so.
pub(crate) fn is_missing() -> Option<&'static str> {
    library().is_none().then_some("it needs libfaketime (Debian: apt install libfaketime)")
}

impl Clock {
    /// A clock that is set by a file in this folder, if this machine can have one.
    pub(crate) fn in_folder(folder: &Path) -> anyhow::Result<Option<Self>> {
        let Some(library) = library() else { return Ok(None) };
        fs::create_dir_all(folder)?;
        let clock = Self { library, file: folder.join("clock") };
        clock.set("+0")?;
        Ok(Some(clock))
    }

    /// Sets it wrong by an offset.
    pub(crate) fn set(&self, offset: &str) -> anyhow::Result<()> {
        let unfinished = self.file.with_extension("unfinished");
        fs::write(&unfinished, format!("{offset}\n"))?;
        Ok(fs::rename(unfinished, &self.file)?)
    }

    /// The variables with which a program that has this clock is started.
    pub(crate) fn variables(&self) -> [(&'static str, String); 4] {
        [
            ("LD_PRELOAD", self.library.clone()),
            ("FAKETIME_NO_CACHE", "1".to_owned()),
            ("FAKETIME_TIMESTAMP_FILE", self.file.to_string_lossy().into_owned()),
            // Without a thread that sleeps by a false clock.
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
        ]
    }
}

/// An offset of a clock.
pub(crate) fn offset(random: &mut Random) -> &'static str {
    let choice = usize::try_from(random.below(OFFSETS.len() as u64)).unwrap_or_default();
    OFFSETS.get(choice).copied().unwrap_or("+3h")
}
