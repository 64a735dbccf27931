//! Reads a request's body, up to a maximum size and time. All bodies together have a maximum as well.

use std::future::{Future, poll_fn};
use std::io;
use std::ops::Deref;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::dev::Payload;
use actix_web::error::PayloadError;
use actix_web::http::header::CONTENT_LENGTH;
use actix_web::web::Bytes;
use futures_util::{FutureExt, Stream, StreamExt, stream};

use crate::connection::progress::Progress;
use crate::problem::Problem;

/// More than a patient with every field at its limit, in escaped four-byte characters.
const BODY_MAX: usize = 64 * 1024;
/// Time from the first byte to the last: enough for slow networks.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes that each body may hold by itself: room for an ordinary patient, so that clients who use up what is shared
/// keep nobody from creating patients.
const OWN_BYTES: usize = 4 * 1024;
/// Bytes beyond [`OWN_BYTES`] that all bodies may hold together, from their arrival until their request is answered:
/// over two hundred of the largest bodies. Strangers can send bodies, because the key is looked up after the body was
/// read.
const SHARED_BYTES: usize = 16 * 1024 * 1024;

static SHARED: Budget = Budget::new(SHARED_BYTES);

/// A body that was sent along with its head arrives at once.
const DISCARD_TIMEOUT: Duration = Duration::from_millis(50);

/// A body on its way in.
pub(crate) trait Body: Stream<Item = Result<Bytes, PayloadError>> + Unpin {}

impl<T: Stream<Item = Result<Bytes, PayloadError>> + Unpin> Body for T {}

/// A whole body. Its bytes count against [`SHARED_BYTES`] until it is dropped.
#[derive(Debug)]
pub(crate) struct ReceivedBody {
    bytes: Vec<u8>,
    _share: Share<'static>,
}

impl Deref for ReceivedBody {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Reads the whole body. One that is too large is refused before it has arrived.
pub(crate) async fn read(request: &HttpRequest, payload: impl Body) -> Result<ReceivedBody, Problem> {
    let announced = request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.trim().parse().ok());
    if announced.is_some_and(|length: usize| length > BODY_MAX) {
        note_refused(request);
        return Err(Problem::ContentTooLarge);
    }
    let mut whole = pin!(collect(payload, announced));
    // Most bodies come along with their head and need no timer.
    if let Some(whole) = at_once(request, whole.as_mut()).await {
        return whole;
    }
    tokio::time::timeout(BODY_TIMEOUT, whole).await.unwrap_or(Err(Problem::BodyTooSlow))
}

/// The same payload, for other ways to read it: it fails when the body takes too long to arrive, and overflows when all
/// bodies have used up what they share.
#[must_use]
pub fn within_limits(mut payload: Payload) -> Payload {
    let mut timer = Box::pin(tokio::time::sleep(BODY_TIMEOUT));
    let (mut length, mut share) = (0, Share::of(&SHARED));
    let parts = stream::poll_fn(move |context| match payload.poll_next_unpin(context) {
        Poll::Pending if timer.as_mut().poll(context).is_ready() => {
            Poll::Ready(Some(Err(PayloadError::Incomplete(Some(io::ErrorKind::TimedOut.into())))))
        }
        Poll::Ready(Some(Ok(part))) => {
            length += part.len();
            let has_room = share.grow(length.saturating_sub(OWN_BYTES));
            Poll::Ready(Some(if has_room { Ok(part) } else { Err(PayloadError::Overflow) }))
        }
        polled => polled,
    });
    let parts: Pin<Box<dyn Stream<Item = _>>> = Box::pin(parts);
    parts.into()
}

/// Reads and drops the body of a refused request, if it has arrived: left unread, it would end the connection.
pub(crate) async fn discard(request: &HttpRequest, mut payload: impl Body) {
    note_refused(request);
    if request.head().expect() {
        // The client sends nothing until it is asked to.
        return;
    }
    let mut left = BODY_MAX;
    let whole = async {
        while let Some(Ok(part)) = payload.next().await
            && part.len() <= left
        {
            left -= part.len();
        }
    };
    let mut whole = pin!(whole);
    if at_once(request, whole.as_mut()).await.is_none() {
        let _ = tokio::time::timeout(DISCARD_TIMEOUT, whole).await;
    }
}

/// The result of a body that needs no wait for the client. If the whole request has come, actix-http passes its body on
/// when the request first waits, and then continues the request: so nothing needs to wake it.
async fn at_once<T>(request: &HttpRequest, mut body: Pin<&mut impl Future<Output = T>>) -> Option<T> {
    let mut may_wait = request.conn_data::<Rc<Progress>>().is_some_and(|progress| progress.is_whole());
    poll_fn(|_| match body.as_mut().now_or_never() {
        None if std::mem::take(&mut may_wait) => Poll::Pending,
        done => Poll::Ready(done),
    })
    .await
}

fn note_refused(request: &HttpRequest) {
    if let Some(progress) = request.conn_data::<Rc<Progress>>() {
        progress.refuse_body();
    }
}

async fn collect(mut payload: impl Body, announced: Option<usize>) -> Result<ReceivedBody, Problem> {
    let (mut whole, mut share) = (Vec::new(), Share::of(&SHARED));
    // actix-http never ends the payload of a request that asks for another protocol, whatever length it announced.
    while announced != Some(whole.len())
        && let Some(part) = payload.next().await
    {
        let part = part.map_err(|_| Problem::Malformed("The body could not be read".into()))?;
        let length = whole.len() + part.len();
        if length > BODY_MAX {
            return Err(Problem::ContentTooLarge);
        }
        if length > whole.capacity() {
            // At most doubled, so that only what came takes memory, and counted with its room.
            let room = (2 * whole.capacity()).min(announced.unwrap_or(BODY_MAX)).max(length);
            if !share.grow(room.saturating_sub(OWN_BYTES)) {
                return Err(Problem::BodiesFull);
            }
            whole.reserve_exact(room - whole.len());
        }
        whole.extend_from_slice(&part);
    }
    Ok(ReceivedBody { bytes: whole, _share: share })
}

/// Bytes that may be held at the same time.
#[derive(Debug)]
struct Budget {
    max: usize,
    used: AtomicUsize,
}

/// The part of a budget that one body uses.
#[derive(Debug)]
struct Share<'a> {
    budget: &'a Budget,
    bytes: usize,
}

impl Budget {
    const fn new(max: usize) -> Self {
        Self { max, used: AtomicUsize::new(0) }
    }
}

impl<'a> Share<'a> {
    fn of(budget: &'a Budget) -> Self {
        Self { budget, bytes: 0 }
    }

    /// Makes the share at least this large, unless that exceeds the budget.
    fn grow(&mut self, bytes: usize) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        if self.budget.used.fetch_add(more, Ordering::Relaxed) + more > self.budget.max {
            self.budget.used.fetch_sub(more, Ordering::Relaxed);
            return more == 0;
        }
        self.bytes += more;
        true
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_never_exceed_their_budget_and_are_returned() {
        let budget = Budget::new(100);
        let (mut one, mut other) = (Share::of(&budget), Share::of(&budget));
        assert!(one.grow(60) && one.grow(50) && other.grow(40));
        assert!(!one.grow(61) && !other.grow(41), "nothing is left");
        assert!(one.grow(60), "what it has it keeps");
        drop(one);
        assert!(other.grow(100) && !other.grow(101));
        drop(other);
        assert_eq!(budget.used.into_inner(), 0);
    }
}
