//! A proxy that cuts connections at a random byte of either direction: in the middle of a message, or between a commit
//! and its answer.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::random::Random;

/// Server behind the proxy.
#[derive(Clone)]
pub(crate) enum Upstream {
    Unix(PathBuf),
    Tcp(Arc<Mutex<SocketAddr>>),
}

/// A running proxy.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    cuts: Arc<Cuts>,
}

/// Moments at which to cut.
struct Cuts {
    /// On average after how many bytes from the client, and to the client. 0: never.
    every: [AtomicU64; 2],
    random: Mutex<Random>,
    count: AtomicU64,
}

impl Proxy {
    pub(crate) fn before(upstream: Upstream, host: Ipv4Addr, random: Random) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((host, 0))?;
        let address = listener.local_addr()?;
        let every = [AtomicU64::new(0), AtomicU64::new(0)];
        let cuts = Arc::new(Cuts { every, random: Mutex::new(random), count: AtomicU64::new(0) });
        let of_all = Arc::clone(&cuts);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // If the server cannot be reached, the client sees its connection closed.
                let _ = join(client, &upstream, &of_all);
            }
        });
        Ok(Self { address, cuts })
    }

    /// Cuts from now on, on average after this many bytes in each direction. 0 stops it.
    pub(crate) fn cut_every(&self, from_client: u64, to_client: u64) {
        let [from, to] = &self.cuts.every;
        from.store(from_client, Ordering::Relaxed);
        to.store(to_client, Ordering::Relaxed);
    }

    /// Returns how many cuts there were.
    pub(crate) fn count(&self) -> u64 {
        self.cuts.count.load(Ordering::Relaxed)
    }
}

impl Cuts {
    /// After how many more bytes a connection is cut in this direction.
    fn bytes_until_cut(&self, direction: usize) -> Option<u64> {
        let every = self.every.get(direction)?.load(Ordering::Relaxed);
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        (every > 0).then(|| random.below(2 * every))
    }

    fn is_on(&self, direction: usize) -> bool {
        self.every.get(direction).is_some_and(|every| every.load(Ordering::Relaxed) > 0)
    }
}

fn join(client: TcpStream, upstream: &Upstream, cuts: &Arc<Cuts>) -> io::Result<()> {
    client.set_nodelay(true)?;
    let ends = [client.try_clone()?, client];
    match upstream {
        Upstream::Unix(path) => {
            let server = UnixStream::connect(path)?;
            forward_both(ends, [server.try_clone()?, server], cuts, |end| end.shutdown(Shutdown::Both))
        }
        Upstream::Tcp(address) => {
            let address = *address.lock().unwrap_or_else(PoisonError::into_inner);
            let server = TcpStream::connect(address)?;
            server.set_nodelay(true)?;
            forward_both(ends, [server.try_clone()?, server], cuts, |end| end.shutdown(Shutdown::Both))
        }
    }
}

fn forward_both<S: Read + Write + Send + 'static>(
    [client_in, client_out]: [TcpStream; 2],
    [server_in, server_out]: [S; 2],
    cuts: &Arc<Cuts>,
    end: fn(&S) -> io::Result<()>,
) -> io::Result<()> {
    let (there, back) = (Arc::clone(cuts), Arc::clone(cuts));
    std::thread::Builder::new().stack_size(128 * 1024).spawn(move || {
        let (mut from, mut to) = (client_in, server_out);
        let _ = forward(&mut from, &mut to, &there, 0);
        let _ = (from.shutdown(Shutdown::Both), end(&to));
    })?;
    std::thread::Builder::new().stack_size(128 * 1024).spawn(move || {
        let (mut from, mut to) = (server_in, client_out);
        let _ = forward(&mut from, &mut to, &back, 1);
        let _ = (end(&from), to.shutdown(Shutdown::Both));
    })?;
    Ok(())
}

fn forward(from: &mut impl Read, to: &mut impl Write, cuts: &Cuts, direction: usize) -> io::Result<()> {
    let mut left = cuts.bytes_until_cut(direction);
    let mut buffer = [0; 8192];
    loop {
        let read = from.read(&mut buffer)?;
        if read == 0 {
            return Ok(());
        }
        // Connections that were open before the cutting began are cut as well.
        left = left.or_else(|| cuts.bytes_until_cut(direction)).filter(|_| cuts.is_on(direction));
        let passed = left.map_or(read, |left| read.min(usize::try_from(left).unwrap_or(read)));
        to.write_all(buffer.get(..passed).unwrap_or_default())?;
        if passed < read {
            cuts.count.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        left = left.map(|left| left - passed as u64);
    }
}
