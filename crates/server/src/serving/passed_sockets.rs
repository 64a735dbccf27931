//! Sockets that a supervisor opened before the service started, and keeps open when it ends: while one instance follows
//! another, connections wait instead of being refused (socket activation of systemd).

use std::env;
use std::net::TcpListener;

use anyhow::{Context, bail, ensure};
use listenfd::ListenFd;

pub(crate) const HTTPS: &str = "https";
pub(crate) const HTTP: &str = "http";
pub(crate) const ADMIN: &str = "admin";

/// Variable with the supervisor's names of the sockets, separated by colons.
const NAMES: &str = "LISTEN_FDNAMES";

/// The sockets that were passed to this process and are not used yet.
pub(crate) struct PassedSockets(Vec<(String, TcpListener)>);

impl PassedSockets {
    /// Takes all of them. None, where the variables are meant for another process.
    pub(crate) fn from_environment() -> anyhow::Result<Self> {
        let mut passed = ListenFd::from_env();
        let names = env::var(NAMES).unwrap_or_default();
        let mut names = names.split(':');
        let mut sockets: Vec<(String, TcpListener)> = Vec::new();
        for index in 0..passed.len() {
            let name = names.next().unwrap_or_default();
            if ![HTTPS, HTTP, ADMIN].contains(&name) || sockets.iter().any(|(known, _)| known == name) {
                bail!(
                    "{NAMES}: each socket must be called https, http or admin, and no two the same \
                     (FileDescriptorName= in the unit of the socket)"
                );
            }
            let socket = passed.take_tcp_listener(index).with_context(|| format!("{NAMES}: {name}"))?;
            sockets.extend(socket.map(|socket| (name.to_owned(), socket)));
        }
        Ok(Self(sockets))
    }

    pub(crate) fn take(&mut self, name: &str) -> Option<TcpListener> {
        let index = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.swap_remove(index).1)
    }

    /// Refuses a socket for a listener that the settings turn off: clients would connect and never be answered.
    pub(crate) fn assert_all_taken(&self) -> anyhow::Result<()> {
        let left: Vec<_> = self.0.iter().map(|(name, _)| name.as_str()).collect();
        ensure!(left.is_empty(), "{NAMES}: a socket was passed for {}, which the settings turn off", left.join(", "));
        Ok(())
    }
}
