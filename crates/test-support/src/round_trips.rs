//! Stands between a service and PostgreSQL. Counts how often the service waits for an answer: each statement of PostgreSQL's
//! protocol ends with a message Sync or is one message Query. And cuts a connection at the worst moment: when the server has
//! done its work, and its answer is on the way.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use intake_infra::DatabaseUrl;
use tempfile::TempDir;

/// A proxy before the test cluster.
pub struct RoundTripCounter {
    folder: TempDir,
    count: Arc<AtomicUsize>,
    cuts: Arc<AtomicBool>,
}

impl RoundTripCounter {
    /// Starts a proxy before the server whose socket lies in this folder.
    #[must_use]
    pub fn before(server_folder: &Path) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let count = Arc::new(AtomicUsize::new(0));
        let listener = UnixListener::bind(folder.path().join(".s.PGSQL.5432")).expect("a socket");
        let cuts = Arc::new(AtomicBool::new(false));
        let (server, counted, cutting) = (server_folder.join(".s.PGSQL.5432"), Arc::clone(&count), Arc::clone(&cuts));
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (server, counted, cutting) = (server.clone(), Arc::clone(&counted), Arc::clone(&cutting));
                std::thread::spawn(move || forward(client, &server, &counted, cutting));
            }
        });
        Self { folder, count, cuts }
    }

    /// The way through the proxy to a database.
    #[must_use]
    pub fn url(&self, role: &str, database: &str) -> DatabaseUrl {
        DatabaseUrl::on_socket(&self.folder.path().to_string_lossy(), role, database)
    }

    /// Loses the server's next answer, and the connection with it.
    pub fn cut_next_answer(&self) {
        self.cuts.store(true, Ordering::SeqCst);
    }

    /// How many round trips there have been since the last call.
    #[must_use]
    pub fn take(&self) -> usize {
        self.count.swap(0, Ordering::SeqCst)
    }
}

fn forward(client: UnixStream, server: &PathBuf, count: &AtomicUsize, cuts: Arc<AtomicBool>) {
    let server = UnixStream::connect(server).expect("the server listens");
    let (from_server, to_client) = (server.try_clone().expect("a socket"), client.try_clone().expect("a socket"));
    std::thread::spawn(move || forward_answers(from_server, to_client, &cuts));
    let _ = forward_messages(client, server, count);
}

fn forward_answers(mut server: UnixStream, mut client: UnixStream, cuts: &AtomicBool) -> io::Result<()> {
    let mut buffer = [0; 8192];
    loop {
        let read = server.read(&mut buffer)?;
        if read == 0 || cuts.swap(false, Ordering::SeqCst) {
            let _ = server.shutdown(Shutdown::Both);
            return client.shutdown(Shutdown::Both);
        }
        client.write_all(buffer.get(..read).unwrap_or_default())?;
    }
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
