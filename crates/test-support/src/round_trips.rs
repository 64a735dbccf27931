//! Stands between a service and PostgreSQL and counts how often the service waits for an answer: each statement of
//! PostgreSQL's protocol ends with a message Sync or is one message Query.

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use intake_infra::DatabaseUrl;
use tempfile::TempDir;

/// A proxy before the test cluster.
pub struct RoundTripCounter {
    folder: TempDir,
    count: Arc<AtomicUsize>,
}

impl RoundTripCounter {
    /// Starts a proxy before the server whose socket lies in this folder.
    #[must_use]
    pub fn before(server_folder: &Path) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let count = Arc::new(AtomicUsize::new(0));
        let listener = UnixListener::bind(folder.path().join(".s.PGSQL.5432")).expect("a socket");
        let (server, counted) = (server_folder.join(".s.PGSQL.5432"), Arc::clone(&count));
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (server, counted) = (server.clone(), Arc::clone(&counted));
                std::thread::spawn(move || forward(client, &server, &counted));
            }
        });
        Self { folder, count }
    }

    /// The way through the proxy to a database.
    #[must_use]
    pub fn url(&self, role: &str, database: &str) -> DatabaseUrl {
        DatabaseUrl::on_socket(&self.folder.path().to_string_lossy(), role, database)
    }

    /// How many round trips there have been since the last call.
    #[must_use]
    pub fn take(&self) -> usize {
        self.count.swap(0, Ordering::SeqCst)
    }
}

fn forward(client: UnixStream, server: &PathBuf, count: &AtomicUsize) {
    let server = UnixStream::connect(server).expect("the server listens");
    let (mut from_server, mut to_client) =
        (server.try_clone().expect("a socket"), client.try_clone().expect("a socket"));
    std::thread::spawn(move || io::copy(&mut from_server, &mut to_client));
    let _ = forward_messages(client, server, count);
}

fn forward_messages(mut client: UnixStream, mut server: UnixStream, count: &AtomicUsize) -> io::Result<()> {
    // The first message has a length and no kind.
    let mut length = [0; 4];
    client.read_exact(&mut length)?;
    server.write_all(&length)?;
    copy_rest(&mut client, &mut server, length)?;
    loop {
        let mut kind = [0];
        client.read_exact(&mut kind)?;
        client.read_exact(&mut length)?;
        if matches!(kind, [b'S' | b'Q']) {
            count.fetch_add(1, Ordering::SeqCst);
        }
        server.write_all(&kind)?;
        server.write_all(&length)?;
        copy_rest(&mut client, &mut server, length)?;
    }
}

/// The length counts itself.
fn copy_rest(client: &mut UnixStream, server: &mut UnixStream, length: [u8; 4]) -> io::Result<()> {
    let rest = u64::from(u32::from_be_bytes(length).saturating_sub(4));
    io::copy(&mut client.take(rest), server).map(drop)
}
