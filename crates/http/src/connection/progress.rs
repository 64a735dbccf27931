//! How far a connection has got, and until when it must get on: shared by its stream, which sees the bytes, and by the
//! requests on it, which know when they begin and end.

use std::cell::Cell;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use actix_web::http::StatusCode;

use crate::connection::crowd::{Place, Unread};

/// From the first byte of a request's head to its last. On a fresh connection the first byte must come within it, too.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Between two requests: longer than proxies keep theirs.
const KEEP_ALIVE: Duration = Duration::from_secs(75);
/// The same when many want to be served: idle connections make way.
const CROWDED_KEEP_ALIVE: Duration = Duration::from_secs(10);

/// How far one connection has got.
pub(crate) struct Progress {
    pub(crate) is_secure: bool,
    stage: Cell<Stage>,
    since: Cell<Instant>,
    /// The client has announced its last request.
    is_closing: Cell<bool>,
    /// What came is no request any more: whatever is answered is the last.
    is_broken: Cell<bool>,
    place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// No byte has come yet.
    Fresh,
    /// A head has begun.
    Head,
    /// A request is served, which has its own limits.
    Request,
    /// Between two requests.
    Idle,
}

impl Progress {
    pub(crate) fn new(place: Place, is_secure: bool) -> Self {
        let (stage, since) = (Cell::new(Stage::Fresh), Cell::new(Instant::now()));
        Self { is_secure, stage, since, is_closing: Cell::new(false), is_broken: Cell::new(false), place }
    }

    pub(crate) fn bytes_came(&self) {
        match self.stage.get() {
            Stage::Fresh | Stage::Idle => self.enter(Stage::Head),
            Stage::Head | Stage::Request => {}
        }
    }

    /// Gives false for a request behind the one that the client said would be its last.
    pub(crate) fn request_begins(&self, is_last: bool) -> bool {
        self.stage.set(Stage::Request);
        self.place.request_begins();
        !self.is_closing.replace(is_last)
    }

    pub(crate) fn request_ends(&self, status: StatusCode) {
        self.place.request_ends(status);
        self.enter(Stage::Idle);
    }

    /// Whether the client has begun a head and not ended it.
    pub(crate) fn is_in_head(&self) -> bool {
        self.stage.get() == Stage::Head
    }

    /// Whether a request is being served.
    pub(crate) fn is_in_request(&self) -> bool {
        self.stage.get() == Stage::Request
    }

    /// Nothing that could be understood will come any more.
    pub(crate) fn breaks_off(&self) {
        self.is_broken.set(true);
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken.get()
    }

    /// Ready when somebody else needs the place and nothing is being served here.
    pub(crate) fn poll_must_go(&self, context: &Context<'_>) -> Poll<()> {
        if self.is_in_request() { Poll::Pending } else { self.place.poll_must_go(context) }
    }

    /// Lets an answer wait for the client to read, if not too many do.
    pub(crate) fn wait_for_reader(&self) -> Option<Unread> {
        self.place.connections().wait_for_reader()
    }

    /// How long the client may take to get on; nothing while it is not its turn.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        let time = match self.stage.get() {
            Stage::Fresh | Stage::Head => HEAD_TIMEOUT,
            Stage::Idle if self.place.connections().are_crowded() => CROWDED_KEEP_ALIVE,
            Stage::Idle => KEEP_ALIVE,
            Stage::Request => return None,
        };
        Some(time.saturating_sub(self.since.get().elapsed()))
    }

    fn enter(&self, stage: Stage) {
        self.stage.set(stage);
        self.since.set(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::connection::crowd::Connections;
    use crate::envelope::TrustedProxies;

    fn connections(most: usize) -> Connections {
        Connections::new(most, TrustedProxies::default(), Arc::default())
    }

    fn progress(connections: &Connections) -> Progress {
        Progress::new(connections.admit(None).unwrap(), true)
    }

    #[test]
    fn a_head_is_timed_from_its_first_byte_on_every_request() {
        let progress = progress(&connections(100));
        assert!(progress.time_left() <= Some(HEAD_TIMEOUT));
        for _ in 0..2 {
            progress.bytes_came();
            assert!(progress.is_in_head() && progress.time_left() <= Some(HEAD_TIMEOUT));
            assert!(progress.request_begins(false));
            progress.bytes_came();
            assert!(progress.time_left().is_none());
            progress.request_ends(StatusCode::CREATED);
            assert!(progress.time_left() > Some(HEAD_TIMEOUT));
        }
    }

    #[test]
    fn idle_connections_make_way_in_a_crowd() {
        let connections = connections(5);
        let first = progress(&connections);
        first.request_ends(StatusCode::CREATED);
        assert!(first.time_left() > Some(CROWDED_KEEP_ALIVE));
        let others: Vec<_> = (0..3).map(|port| connections.admit(Some([10, 0, 0, port].into()))).collect();
        assert!(first.time_left() <= Some(CROWDED_KEEP_ALIVE));
        drop(others);
        assert!(first.time_left() > Some(CROWDED_KEEP_ALIVE));
    }

    #[test]
    fn nothing_follows_the_last_request() {
        let progress = progress(&connections(100));
        assert!(progress.request_begins(false));
        assert!(progress.request_begins(true));
        assert!(!progress.request_begins(false));
    }
}
