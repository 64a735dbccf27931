//! Installation of what this machine lacks: the command of the package manager that is there. It runs only after a
//! person's yes.

use std::path::PathBuf;
use std::process::Command;
use std::{fmt, io};

/// One thing, as each package manager installs it. Root's rights are added where they are needed.
#[derive(Clone, Copy, Debug)]
pub struct Packages {
    /// The command on Debian and Ubuntu.
    pub apt: &'static str,
    /// The command on Fedora.
    pub dnf: &'static str,
    /// The command of Homebrew, which needs no rights and refuses root.
    pub brew: &'static str,
}

/// A command that installs something on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstallCommand {
    line: String,
    may_run: bool,
}

/// PostgreSQL's programs without a server. Debian's package makes a server of its own and starts it, unless a file says
/// otherwise; `satisfy` refuses a version that is too old, and a minimal machine has no list of packages yet.
pub(super) const POSTGRESQL: Packages = Packages {
    apt: "sh -c 'cd /etc && mkdir -p postgresql-common/createcluster.d && \
          echo create_main_cluster = off >postgresql-common/createcluster.d/no-main-cluster.conf && \
          apt-get update && DEBIAN_FRONTEND=noninteractive \
          apt-get satisfy --yes --no-install-recommends \"postgresql (>= 15)\"'",
    dnf: "dnf install --assumeyes postgresql-server",
    brew: "brew install postgresql@17",
};

impl Packages {
    /// The command for this machine. None: it has none of these package managers.
    #[must_use]
    pub fn command_here(&self) -> Option<InstallCommand> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
        let has = |program: &str| folders.iter().any(|folder| folder.join(program).is_file());
        self.command(has, rustix::process::geteuid().is_root())
    }

    fn command(&self, has: impl Fn(&str) -> bool, is_root: bool) -> Option<InstallCommand> {
        let as_root = |line: &str| {
            let sudo = if !is_root && has("sudo") { "sudo " } else { "" };
            InstallCommand { line: format!("{sudo}{line}"), may_run: is_root || has("sudo") }
        };
        if has("apt-get") {
            Some(as_root(self.apt))
        } else if has("dnf") {
            Some(as_root(self.dnf))
        } else if has("brew") {
            Some(InstallCommand { line: self.brew.to_owned(), may_run: !is_root })
        } else {
            None
        }
    }
}

impl InstallCommand {
    /// Returns whether the user may run it: not if it takes root's rights, and there is no sudo.
    #[must_use]
    pub fn may_run(&self) -> bool {
        self.may_run
    }

    /// Runs it; its output, and why it failed, goes where this program's goes.
    pub fn run(&self) -> io::Result<()> {
        Command::new("sh").arg("-c").arg(&self.line).status().map(drop)
    }
}

/// As it is typed into a shell.
impl fmt::Display for InstallCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Programs on the PATH, whether the user is root, and the command with whether it may be run.
    type Case = (&'static [&'static str], bool, Option<(&'static str, bool)>);

    const TEA: Packages = Packages { apt: "apt-get tea", dnf: "dnf tea", brew: "brew tea" };

    #[test]
    fn the_package_manager_that_is_there_is_named_with_the_rights_it_needs() {
        let cases: [Case; 9] = [
            (&["apt-get", "sudo"], false, Some(("sudo apt-get tea", true))),
            (&["apt-get", "sudo"], true, Some(("apt-get tea", true))),
            (&["apt-get"], true, Some(("apt-get tea", true))),
            (&["apt-get"], false, Some(("apt-get tea", false))),
            (&["dnf", "sudo"], false, Some(("sudo dnf tea", true))),
            (&["apt-get", "brew", "sudo"], false, Some(("sudo apt-get tea", true))),
            (&["brew", "sudo"], false, Some(("brew tea", true))),
            (&["brew"], true, Some(("brew tea", false))),
            (&["sudo"], false, None),
        ];
        for (programs, is_root, expected) in cases {
            let command = TEA.command(|program| programs.contains(&program), is_root);
            let found = command.as_ref().map(|command| (command.line.as_str(), command.may_run));
            assert_eq!(found, expected, "{programs:?}, root: {is_root}");
        }
    }

    #[test]
    fn the_commands_are_one_line_with_single_spaces() {
        for line in [POSTGRESQL.apt, POSTGRESQL.dnf, POSTGRESQL.brew] {
            assert_eq!(line, line.split_whitespace().collect::<Vec<_>>().join(" "));
        }
    }
}
