//! The writers of one register: what they share, and who looks after them. A writer whose statement takes far too long is
//! left behind with its connection, and another one goes on with its work over a new connection.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};
use std::thread::Builder;
use std::time::{Duration, Instant};

use crate::database::url::DatabaseUrl;
use crate::keys::uses::KeyUses;
use crate::left_behind::LeftBehind;
use crate::patients::backlog::Backlog;
use crate::patients::desk::Desk;
use crate::patients::job::{Job, QUEUE_LENGTH};
use crate::patients::queue::Queue;
use crate::patients::suspects::Suspects;
use crate::patients::writer::{Lane, Work, Writer};
use crate::vital_thread::spawn_vital;

/// How often to look whether a writer hangs.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

pub(crate) struct Crew {
    pub(crate) url: DatabaseUrl,
    pub(crate) uses: KeyUses,
    pub(crate) backlog: Backlog,
    /// What nobody has tried yet.
    pub(crate) queue: Queue<Job>,
    /// Rows that may have to wait for somebody else's transaction: tried apart, so that they hold up nobody.
    pub(crate) held: Queue<Job>,
    pub(crate) suspects: Suspects,
    pub(crate) left_behind: LeftBehind,
    /// Whether the database was away at the last try: told once, not at every try.
    pub(crate) is_away: AtomicBool,
}

/// A writer at work.
struct Seat {
    name: String,
    lane: Lane,
    desk: Arc<Desk<Work>>,
}

impl Crew {
    pub(crate) fn start(url: &DatabaseUrl, writers: usize, uses: &KeyUses) -> std::io::Result<Arc<Self>> {
        let crew = Arc::new(Self {
            url: url.clone(),
            uses: uses.clone(),
            backlog: Backlog::new(writers),
            queue: Queue::new(QUEUE_LENGTH),
            held: Queue::new(QUEUE_LENGTH),
            suspects: Suspects::default(),
            left_behind: LeftBehind::default(),
            is_away: AtomicBool::new(false),
        });
        let names = (0..writers).map(|number| (format!("writer-{number}"), Lane::Usual));
        let names = names.chain([("writer-held".to_owned(), Lane::Held)]);
        let seats = names.map(|(name, lane)| {
            let desk = Arc::new(Desk::new());
            let writer = Writer::new(Arc::clone(&crew), lane, Arc::clone(&desk));
            spawn_vital(Builder::new().name(name.clone()), move || writer.run(Work::new()))?;
            Ok(Seat { name, lane, desk })
        });
        let seats = seats.collect::<std::io::Result<Vec<_>>>()?;
        let watched = Arc::downgrade(&crew);
        spawn_vital(Builder::new().name("writer-watch".into()), move || watch(&watched, seats))?;
        Ok(crew)
    }

    /// Takes in nothing more; what waits is still stored.
    pub(crate) fn end(&self) {
        self.queue.close();
        self.held.close();
    }
}

/// Until the crew is gone.
fn watch(crew: &Weak<Crew>, mut seats: Vec<Seat>) {
    loop {
        std::thread::sleep(LOOK_INTERVAL);
        let Some(crew) = crew.upgrade() else { return };
        let now = Instant::now();
        for seat in seats.iter_mut().filter(|seat| seat.desk.is_overdue(now)) {
            match replace(&crew, seat) {
                Ok(true) => tracing::warn!(
                    writer = seat.name,
                    "a statement hangs in the database: its connection is left behind, and the work goes on over another"
                ),
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(error = %error, "no thread can be started in place of a writer that hangs");
                }
            }
        }
    }
}

/// Starts the new writer before the work is taken from the old one: there is never nobody to do it. False: the old one came
/// back in time.
fn replace(crew: &Arc<Crew>, seat: &mut Seat) -> std::io::Result<bool> {
    let (hand_over, handed_over) = std::sync::mpsc::channel();
    let desk = Arc::new(Desk::new());
    let writer = Writer::new(Arc::clone(crew), seat.lane, Arc::clone(&desk));
    spawn_vital(Builder::new().name(seat.name.clone()), move || {
        if let Ok(work) = handed_over.recv() {
            writer.run(work);
        }
    })?;
    crew.left_behind.add();
    let Some(work) = seat.desk.leave_behind(Instant::now()) else {
        crew.left_behind.undo();
        return Ok(false);
    };
    seat.desk = desk;
    // The new writer waits for it.
    let _ = hand_over.send(work);
    Ok(true)
}
