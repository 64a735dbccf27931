//! A proxy between a service and PostgreSQL. It counts how often the service waits for an answer: each statement of
//! PostgreSQL's protocol ends with a message Sync or is one message Query. It also simulates faults: it cuts a
//! connection at the worst time, when the server has done its work and its answer is on the way, and it hangs like a
//! frozen server.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use intake_infra::{DatabaseUrl, Durability};
use tempfile::TempDir;

/// A proxy in front of the test cluster.
pub struct RoundTripCounter {
    folder: TempDir,
    wire: Arc<Wire>,
}

/// The state that all connections share.
#[derive(Default)]
struct Wire {
    count: AtomicUsize,
    cuts: AtomicBool,
    opened: AtomicUsize,
    /// Connections with a smaller number hang.
    still_below: AtomicUsize,
}

impl RoundTripCounter {
    /// Starts a proxy in front of the server whose socket is in this folder.
    #[must_use]
    pub fn before(server_folder: &Path) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let wire = Arc::new(Wire::default());
        let listener = UnixListener::bind(folder.path().join(".s.PGSQL.5432")).expect("a socket");
        let (server, of_all) = (server_folder.join(".s.PGSQL.5432"), Arc::clone(&wire));
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (server, wire) = (server.clone(), Arc::clone(&of_all));
                std::thread::spawn(move || forward(client, &server, &wire));
            }
        });
        Self { folder, wire }
    }

    /// The address of a database through the proxy.
    #[must_use]
    pub fn url(&self, role: &str, database: &str) -> DatabaseUrl {
        // The test cluster is not durable.
        let url = DatabaseUrl::on_socket(&self.folder.path().to_string_lossy(), role, database);
        url.with_durability(Durability::None)
    }

    /// Loses the server's next answer, and the connection with it.
    pub fn cut_next_answer(&self) {
        self.wire.cuts.store(true, Ordering::SeqCst);
    }

    /// Makes all open connections hang. New ones work.
    pub fn hang(&self) {
        self.wire.still_below.store(self.wire.opened.load(Ordering::SeqCst), Ordering::SeqCst);
    }

    /// Makes all connections hang, new ones included.
    pub fn hang_for_all(&self) {
        self.wire.still_below.store(usize::MAX, Ordering::SeqCst);
    }

    /// Lets all connections continue.
    pub fn resume(&self) {
        self.wire.still_below.store(0, Ordering::SeqCst);
    }

    /// Returns how many round trips there have been since the last call.
    #[must_use]
    pub fn take(&self) -> usize {
        self.wire.count.swap(0, Ordering::SeqCst)
    }
}

impl Wire {
    fn wait(&self, connection: usize) {
        while connection < self.still_below.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn forward(client: UnixStream, server: &PathBuf, wire: &Arc<Wire>) {
    let number = wire.opened.fetch_add(1, Ordering::SeqCst);
    let server = UnixStream::connect(server).expect("the server listens");
    let (from_server, to_client) = (server.try_clone().expect("a socket"), client.try_clone().expect("a socket"));
    let of_answers = Arc::clone(wire);
    std::thread::spawn(move || forward_answers(from_server, to_client, &of_answers, number));
    let _ = forward_messages(client, server, wire, number);
}

fn forward_answers(mut server: UnixStream, mut client: UnixStream, wire: &Wire, number: usize) -> io::Result<()> {
    let mut buffer = [0; 8192];
    loop {
        let read = server.read(&mut buffer)?;
        wire.wait(number);
        if read == 0 || wire.cuts.swap(false, Ordering::SeqCst) {
            let _ = server.shutdown(Shutdown::Both);
            return client.shutdown(Shutdown::Both);
        }
        client.write_all(buffer.get(..read).unwrap_or_default())?;
    }
}

fn forward_messages(mut client: UnixStream, mut server: UnixStream, wire: &Wire, number: usize) -> io::Result<()> {
    // The first message of a connection has a length and no kind.
    let mut length = [0; 4];
    client.read_exact(&mut length)?;
    server.write_all(&length)?;
    copy_rest(&mut client, &mut server, length)?;
    loop {
        let mut kind = [0];
        client.read_exact(&mut kind)?;
        client.read_exact(&mut length)?;
        if matches!(kind, [b'S' | b'Q']) {
            wire.count.fetch_add(1, Ordering::SeqCst);
        }
        wire.wait(number);
        server.write_all(&kind)?;
        server.write_all(&length)?;
        copy_rest(&mut client, &mut server, length)?;
    }
}

/// Copies the rest of a message, whose length includes the length itself.
fn copy_rest(client: &mut UnixStream, server: &mut UnixStream, length: [u8; 4]) -> io::Result<()> {
    let rest = u64::from(u32::from_be_bytes(length).saturating_sub(4));
    io::copy(&mut client.take(rest), server).map(drop)
}
