//! How far a connection has got and how long it may take to the next step. Shared by its stream, which sees the bytes,
//! and by the requests on it, which know when they begin and end.

use std::cell::Cell;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use actix_web::http::header::HeaderValue;

use crate::connection::admission::{Slot, Unread};
use crate::hsts::Hsts;

/// Time from the first byte of a request's head to its last; on a new connection, also until the first byte.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Between two requests: longer than proxies keep theirs open.
const KEEP_ALIVE: Duration = Duration::from_secs(75);
/// Between two requests while most connections are taken.
const CROWDED_KEEP_ALIVE: Duration = Duration::from_secs(10);

/// Progress of one connection.
pub(crate) struct Progress {
    pub(crate) is_secure: bool,
    stage: Cell<Stage>,
    since: Cell<Instant>,
    /// The client has announced its last request.
    is_closing: Cell<bool>,
    /// The last byte of the request has been passed on.
    is_whole: Cell<bool>,
    /// The body of the request will not be read, so a client that asks first must not be asked to send it.
    is_body_refused: Cell<bool>,
    /// The client must not get the answer.
    is_answer_lost: Cell<bool>,
    /// True if the bytes are not a valid request, so the next answer is the last.
    is_broken: Cell<bool>,
    /// More can be read as soon as the request has taken what came.
    is_turn_over: Cell<bool>,
    slot: Slot,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// No byte has come yet.
    New,
    /// A head has begun.
    Head,
    /// A request is being served, which has limits of its own.
    Request,
    /// Between two requests.
    Idle,
}

impl Progress {
    pub(crate) fn new(slot: Slot, is_secure: bool) -> Self {
        Self {
            is_secure,
            stage: Cell::new(Stage::New),
            since: Cell::new(Instant::now()),
            is_closing: Cell::default(),
            is_whole: Cell::default(),
            is_body_refused: Cell::default(),
            is_answer_lost: Cell::default(),
            is_broken: Cell::default(),
            is_turn_over: Cell::default(),
            slot,
        }
    }

    /// Bytes have been passed on, perhaps the last of a request.
    pub(crate) fn bytes_came(&self, is_whole: bool) {
        self.is_whole.set(is_whole);
        match self.stage.get() {
            Stage::New | Stage::Idle => self.enter(Stage::Head),
            Stage::Head | Stage::Request => {}
        }
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole.get()
    }

    /// Returns whether the client had said that the request before would be its last.
    pub(crate) fn request_begins(&self, is_last: bool) -> bool {
        self.stage.set(Stage::Request);
        self.slot.request_begins();
        self.is_body_refused.set(false);
        self.is_closing.replace(is_last)
    }

    /// Notes that the body of the request will not be read.
    pub(crate) fn refuse_body(&self) {
        self.is_body_refused.set(true);
    }

    pub(crate) fn is_body_refused(&self) -> bool {
        self.is_body_refused.get()
    }

    pub(crate) fn request_ends(&self) {
        self.slot.request_ends();
        self.enter(Stage::Idle);
    }

    /// Reading goes on in the next turn, which [`Progress::take_turn`] gives it.
    pub(crate) fn end_turn(&self) {
        self.is_turn_over.set(true);
    }

    /// Returns whether a turn has ended since this was asked last.
    pub(crate) fn take_turn(&self) -> bool {
        self.is_turn_over.replace(false)
    }

    /// Returns whether the client has begun a head and not ended it.
    pub(crate) fn is_in_head(&self) -> bool {
        self.stage.get() == Stage::Head
    }

    /// Returns whether a request is being served.
    pub(crate) fn is_in_request(&self) -> bool {
        self.stage.get() == Stage::Request
    }

    /// Ends the connection in place of the next answer.
    pub(crate) fn lose_answer(&self) {
        self.is_answer_lost.set(true);
    }

    pub(crate) fn is_answer_lost(&self) -> bool {
        self.is_answer_lost.get()
    }

    /// Notes that nothing more from this client can be read as a request.
    pub(crate) fn mark_broken(&self) {
        self.is_broken.set(true);
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken.get()
    }

    /// Returns whether the connection ends with the next answer.
    pub(crate) fn is_ending(&self) -> bool {
        self.is_broken() || self.slot.connections().are_draining()
    }

    /// Returns what answers over HTTPS say about it.
    pub(crate) fn hsts(&self) -> Hsts {
        self.slot.connections().hsts()
    }

    /// The header `Link` that leads to an explanation in the documentation.
    pub(crate) fn help_link(&self, anchor: &str) -> Option<HeaderValue> {
        let documentation = self.slot.connections().documentation()?;
        HeaderValue::try_from(format!("<{documentation}#{anchor}>; rel=\"help\"")).ok()
    }

    /// Ready when another connection needs the slot and no request is being served on this one.
    pub(crate) fn poll_evicted(&self, context: &Context<'_>) -> Poll<()> {
        if self.is_in_request() { Poll::Pending } else { self.slot.poll_evicted(context) }
    }

    /// Allows an answer to wait for the client to read it, unless too many do.
    pub(crate) fn wait_for_reader(&self) -> Option<Unread> {
        self.slot.connections().wait_for_reader()
    }

    /// Returns how long the client may take to its next step. None while a request of it is being served.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        let time = match self.stage.get() {
            Stage::New | Stage::Head => HEAD_TIMEOUT,
            Stage::Idle if self.slot.connections().are_crowded() => CROWDED_KEEP_ALIVE,
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
    use super::*;
    use crate::connection::admission::Connections;
    use crate::trusted_proxies::TrustedProxies;

    fn connections(max: usize) -> Connections {
        Connections::new(max, TrustedProxies::default(), Hsts::Host, None)
    }

    fn progress(connections: &Connections) -> Progress {
        Progress::new(connections.admit(None, true).unwrap(), true)
    }

    #[test]
    fn a_head_is_timed_from_its_first_byte_on_every_request() {
        let progress = progress(&connections(100));
        assert!(progress.time_left() <= Some(HEAD_TIMEOUT));
        for _ in 0..2 {
            progress.bytes_came(false);
            assert!(progress.is_in_head() && progress.time_left() <= Some(HEAD_TIMEOUT));
            assert!(!progress.request_begins(false));
            progress.bytes_came(true);
            assert!(progress.time_left().is_none());
            progress.request_ends();
            assert!(progress.time_left() > Some(HEAD_TIMEOUT));
        }
    }

    #[test]
    fn idle_connections_are_closed_early_when_most_are_taken() {
        let connections = connections(5);
        let first = progress(&connections);
        first.request_ends();
        assert!(first.time_left() > Some(CROWDED_KEEP_ALIVE));
        let others: Vec<_> = (0..3).map(|port| connections.admit(Some([10, 0, 0, port].into()), true)).collect();
        assert!(first.time_left() <= Some(CROWDED_KEEP_ALIVE));
        drop(others);
        assert!(first.time_left() > Some(CROWDED_KEEP_ALIVE));
    }

    #[test]
    fn a_request_after_the_last_one_is_recognised() {
        let progress = progress(&connections(100));
        assert!(!progress.request_begins(false));
        assert!(!progress.request_begins(true));
        assert!(progress.request_begins(false));
    }
}
