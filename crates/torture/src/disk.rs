//! A disk for tests, a file with XFS in it: its power can be cut, so that it loses everything that was not synced, and
//! it can be filled completely. Needs root, loop devices and XFS's programs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Context;
use intake_test_support::processes::kill;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::process::geteuid;

/// The size of the sparse file, which takes only the space of what is written.
const SIZE: u64 = 4 * 1024 * 1024 * 1024;
/// Time for which killed processes may keep their files open.
const RELEASE: Duration = Duration::from_secs(120);

pub(crate) struct Disk {
    image: PathBuf,
    mount: PathBuf,
}

/// Returns why such a disk cannot be made on this machine, if so.
pub(crate) fn is_missing() -> Option<&'static str> {
    let is_there = |program: &str| Command::new(program).arg("-V").output().is_ok();
    if !geteuid().is_root() {
        return Some("it needs root");
    }
    if !is_there("mkfs.xfs") || !is_there("xfs_io") {
        return Some("it needs the programs of XFS (Debian: apt install xfsprogs)");
    }
    let has_loop_device = run("losetup", &["--find"]).is_ok();
    (!has_loop_device).then_some("it needs loop devices")
}

impl Disk {
    pub(crate) fn make(folder: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(folder)?;
        let disk = Self { image: folder.join("disk.xfs"), mount: folder.join("disk") };
        fs::File::create(&disk.image)?.set_len(SIZE)?;
        fs::create_dir(&disk.mount)?;
        run("mkfs.xfs", &["-q", &disk.image.to_string_lossy()])?;
        disk.mount()?;
        Ok(disk)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.mount
    }

    /// Cuts the power: everything that was not synced is lost, and processes that use the disk are killed. Then turns
    /// it on.
    pub(crate) fn cut_power(&self) -> anyhow::Result<()> {
        run("xfs_io", &["-x", "-c", "shutdown", &self.mount.to_string_lossy()])?;
        self.unmount()?;
        self.mount()
    }

    /// Fills the disk.
    pub(crate) fn fill(&self) -> anyhow::Result<()> {
        let ballast = fs::File::create(self.ballast())?;
        let (mut size, mut step) = (0, SIZE / 4);
        while step >= 4_096 {
            match fallocate(&ballast, FallocateFlags::empty(), size, step) {
                Ok(()) => size += step,
                Err(_) => step /= 2,
            }
        }
        Ok(())
    }

    /// Frees what [`Self::fill`] has taken. The deletion is synced: the next power cut would undo it, and the disk
    /// would be full again and stay so.
    pub(crate) fn empty(&self) -> anyhow::Result<()> {
        fs::remove_file(self.ballast())?;
        Ok(fs::File::open(&self.mount)?.sync_all()?)
    }

    fn ballast(&self) -> PathBuf {
        self.mount.join("ballast")
    }

    /// Another program may have copied the list of mounts for itself, as those do that start a container: as long as it
    /// has the disk without power, that is what is mounted again.
    fn mount(&self) -> anyhow::Result<()> {
        let until = Instant::now() + RELEASE;
        loop {
            run("mount", &["-o", "loop", &self.image.to_string_lossy(), &self.mount.to_string_lossy()])?;
            match fs::read_dir(&self.mount) {
                Ok(_) => return Ok(()),
                Err(error) if Instant::now() > until => return Err(error.into()),
                Err(_) => self.unmount()?,
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn unmount(&self) -> anyhow::Result<()> {
        let until = Instant::now() + RELEASE;
        loop {
            self.users().into_iter().for_each(kill);
            match run("umount", &[&self.mount.to_string_lossy()]) {
                Ok(()) => return Ok(()),
                Err(error) if Instant::now() > until => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// The other processes that work in a folder of the disk or have a file of it open.
    fn users(&self) -> Vec<u32> {
        let leads_here = |link: &Path| fs::read_link(link).is_ok_and(|target| target.starts_with(&self.mount));
        let uses = |process: &Path| {
            let mut files = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
            leads_here(&process.join("cwd")) || files.any(|file| leads_here(&file.path()))
        };
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbered = processes.filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())));
        numbered
            .filter(|(number, path): &(u32, PathBuf)| *number != std::process::id() && uses(path))
            .map(|(number, _)| number)
            .collect()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = self.unmount();
    }
}

pub(crate) fn run(program: &str, arguments: &[&str]) -> anyhow::Result<()> {
    let output = Command::new(program).args(arguments).output().with_context(|| format!("{program} does not run"))?;
    let reason = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "{program} {}: {}", arguments.join(" "), reason.trim());
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_disk_that_was_emptied_stays_empty_when_the_power_is_cut() {
        if let Some(why) = is_missing() {
            eprintln!("left out: {why}");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::make(folder.path()).unwrap();
        let mut file = fs::File::create(disk.path().join("file")).unwrap();
        file.write_all(b"written before the disk is full, synced while it is").unwrap();
        disk.fill().unwrap();
        // Makes the ballast permanent, too.
        file.sync_all().unwrap();
        drop(file);
        disk.empty().unwrap();
        disk.cut_power().unwrap();
        assert!(!disk.ballast().exists());
    }
}
