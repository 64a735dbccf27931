//! Starts the writers of a lane and watches over them. A writer whose statement takes far too long is abandoned
//! with its connection, and a new one continues its work over a new connection.

use std::sync::{Arc, Weak};
use std::thread::Builder;
use std::time::{Duration, Instant};

use super::in_progress::InProgress;
use super::lane::{Lane, LaneConfig};
use super::writer::{Rows, Work, Writer};
use crate::metrics::RECONNECTS;
use crate::vital_thread::{Pulse, spawn_vital};

/// Time between two checks for a writer that hangs.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// A writer that is watched.
struct Watched {
    name: String,
    rows: Rows,
    in_progress: Arc<InProgress<Work>>,
}

/// Starts a lane: its writers, one more for locked rows, and the thread that watches them.
pub(crate) fn start(config: LaneConfig) -> std::io::Result<Arc<Lane>> {
    let writers = config.writers;
    let lane = Arc::new(Lane::new(config));
    let names = (0..writers).map(|number| (format!("writer-{number}"), Rows::Untried));
    let names = names.chain([("writer-locked".to_owned(), Rows::Locked)]);
    let started = names.map(|(name, rows)| {
        let in_progress = Arc::new(InProgress::new());
        let writer = Writer::new(Arc::clone(&lane), rows, Arc::clone(&in_progress));
        spawn_vital(&name, Builder::new(), move |_| writer.run(Work::new()))?;
        Ok(Watched { name, rows, in_progress })
    });
    let writers = started.collect::<std::io::Result<Vec<_>>>()?;
    let weak = Arc::downgrade(&lane);
    spawn_vital("writer-watch", Builder::new(), move |pulse| watch(&weak, writers, &pulse))?;
    Ok(lane)
}

/// Runs until the lane is gone.
fn watch(lane: &Weak<Lane>, mut writers: Vec<Watched>, pulse: &Pulse) {
    loop {
        pulse.beat();
        std::thread::sleep(CHECK_INTERVAL);
        let Some(lane) = lane.upgrade() else { return };
        let now = Instant::now();
        for writer in writers.iter_mut().filter(|writer| writer.in_progress.is_overdue(now)) {
            if let Err(error) = replace(&lane, writer) {
                tracing::warn!(error = %error, "no thread can be started to replace a writer that hangs");
            }
        }
    }
}

/// Starts the new writer before the work is taken from the old one, so that there is always a writer for it. Does
/// nothing if the statement ends just in time.
fn replace(lane: &Arc<Lane>, old: &mut Watched) -> std::io::Result<()> {
    let (hand_over, handed_over) = std::sync::mpsc::channel();
    let in_progress = Arc::new(InProgress::new());
    let writer = Writer::new(Arc::clone(lane), old.rows, Arc::clone(&in_progress));
    spawn_vital(&old.name, Builder::new(), move |_| {
        if let Ok(work) = handed_over.recv() {
            writer.run(work);
        }
    })?;
    lane.abandoned.add();
    let Some(work) = old.in_progress.take_over(Instant::now()) else {
        lane.abandoned.undo();
        return Ok(());
    };
    RECONNECTS.add_one();
    tracing::warn!(
        writer = old.name,
        node = lane.config.place.name(),
        "a statement hangs in the database: its connection is abandoned and the work continues over a new one"
    );
    old.in_progress = in_progress;
    // The new writer waits for it.
    let _ = hand_over.send(work);
    Ok(())
}
