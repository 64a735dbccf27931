//! Clocks of services that are wrong by hours or days, each by something else. Needs libfaketime.

use crate::audit::Findings;
use crate::postgres_server::PostgresServer;
use crate::random::Random;
use crate::run::Run;
use crate::test_bed::INSTANCES;

/// Offset in the format of libfaketime: less than the local certificate allows for.
const OFFSETS: [&str; 6] = ["-2d", "-3h", "-90s", "+90s", "+3h", "+2d"];
/// Folder of the library on Debian.
const FOLDER: &str = "/usr/lib";
/// Time for which services work with the wrong clock, in milliseconds.
const WRONG: (u64, u64) = (300, 1_500);

/// The library for programs with threads, if it is there.
pub(crate) fn library() -> Option<String> {
    let folders = std::fs::read_dir(FOLDER).into_iter().flatten().flatten();
    let mut paths = folders.map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"));
    paths.find(|path| path.exists()).map(|path| path.to_string_lossy().into_owned())
}

/// Returns why clocks cannot be wrong on this machine, if so.
pub(crate) fn is_missing() -> Option<&'static str> {
    library().is_none().then_some("it needs libfaketime (Debian: apt install libfaketime)")
}

/// An offset of a clock.
pub(crate) fn offset(random: &mut Random) -> &'static str {
    let choice = usize::try_from(random.below(OFFSETS.len() as u64)).unwrap_or_default();
    OFFSETS.get(choice).copied().unwrap_or("+3h")
}

impl Run<'_> {
    /// Starts services with wrong clocks, in turns, and then with right ones.
    pub(crate) fn set_clocks_wrong(&self, server: &PostgresServer, times: u64) -> anyhow::Result<(u64, Findings)> {
        let library = library().unwrap_or_default();
        self.run_fault(server, "clocks", |fault| {
            for time in 0..times {
                fault.rest();
                let offset = offset(&mut fault.random);
                fault.bed.start_with_clock(usize::try_from(time)? % INSTANCES, &library, offset)?;
                std::thread::sleep(fault.random.milliseconds(WRONG.0, WRONG.1));
            }
            (0..INSTANCES).try_for_each(|instance| fault.bed.kill_service(instance))?;
            Ok(times)
        })
    }
}
