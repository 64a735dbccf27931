//! Starts the writers of a register and watches over them. A writer whose statement takes far too long is left behind
//! with its connection, and a new one continues its work over a new connection.

use std::sync::{Arc, Weak};
use std::thread::Builder;
use std::time::{Duration, Instant};

use crate::metrics::RECONNECTS;
use crate::patients::in_progress::InProgress;
use crate::patients::shared::Shared;
use crate::patients::writer::{Lane, Work, Writer};
use crate::vital_thread::{Pulse, spawn_vital};

/// How often to check whether a writer hangs.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// A writer that is watched.
struct Watched {
    name: String,
    lane: Lane,
    in_progress: Arc<InProgress<Work>>,
}

/// Starts the writers, one more for held rows, and the thread that watches them.
pub(crate) fn start(shared: &Arc<Shared>, writers: usize) -> std::io::Result<()> {
    let names = (0..writers).map(|number| (format!("writer-{number}"), Lane::Usual));
    let names = names.chain([("writer-held".to_owned(), Lane::Held)]);
    let started = names.map(|(name, lane)| {
        let in_progress = Arc::new(InProgress::new());
        let writer = Writer::new(Arc::clone(shared), lane, Arc::clone(&in_progress));
        spawn_vital(&name, Builder::new(), move |_| writer.run(Work::new()))?;
        Ok(Watched { name, lane, in_progress })
    });
    let writers = started.collect::<std::io::Result<Vec<_>>>()?;
    let weak = Arc::downgrade(shared);
    spawn_vital("writer-watch", Builder::new(), move |pulse| watch(&weak, writers, &pulse)).map(drop)
}

/// Runs until the register is gone.
fn watch(shared: &Weak<Shared>, mut writers: Vec<Watched>, pulse: &Pulse) {
    loop {
        pulse.beat();
        std::thread::sleep(CHECK_INTERVAL);
        let Some(shared) = shared.upgrade() else { return };
        let now = Instant::now();
        for writer in writers.iter_mut().filter(|writer| writer.in_progress.is_overdue(now)) {
            match replace(&shared, writer) {
                Ok(Outcome::Replaced) => tracing::warn!(
                    writer = writer.name,
                    node = shared.node_name(),
                    "a statement hangs in the database: its connection is left behind and the work continues over a new one"
                ),
                Ok(Outcome::CameBack) => {}
                Err(error) => {
                    tracing::warn!(error = %error, "no thread can be started to replace a writer that hangs");
                }
            }
        }
    }
}

enum Outcome {
    Replaced,
    /// The statement ended just in time.
    CameBack,
}

/// Starts the new writer before the work is taken from the old one, so that there is always a writer for it.
fn replace(shared: &Arc<Shared>, old: &mut Watched) -> std::io::Result<Outcome> {
    let (hand_over, handed_over) = std::sync::mpsc::channel();
    let in_progress = Arc::new(InProgress::new());
    let writer = Writer::new(Arc::clone(shared), old.lane, Arc::clone(&in_progress));
    spawn_vital(&old.name, Builder::new(), move |_| {
        if let Ok(work) = handed_over.recv() {
            writer.run(work);
        }
    })?;
    shared.left_behind.add();
    let Some(work) = old.in_progress.take_over(Instant::now()) else {
        shared.left_behind.undo();
        return Ok(Outcome::CameBack);
    };
    RECONNECTS.add_one();
    old.in_progress = in_progress;
    // The new writer waits for it.
    let _ = hand_over.send(work);
    Ok(Outcome::Replaced)
}
