//! Reading a request's body: never more than a patient can need, never for longer than a client may take.

use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use actix_web::dev::Payload;
use actix_web::error::PayloadError;
use actix_web::http::header::{CONTENT_LENGTH, HeaderMap};
use actix_web::web::{Bytes, BytesMut};
use futures_util::{FutureExt, Stream, StreamExt, stream};

use crate::problem::Problem;

/// Every field at its limit, in four-byte characters, escaped, needs less.
const BODY_MAX: usize = 64 * 1024;
/// From the first byte to the last: slow lines manage, idle ones give their place to others.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// A body that came along with its head is there at once.
const DISCARD_TIMEOUT: Duration = Duration::from_millis(50);

/// A body on its way in.
pub(crate) trait Body: Stream<Item = Result<Bytes, PayloadError>> + Unpin {}

impl<T: Stream<Item = Result<Bytes, PayloadError>> + Unpin> Body for T {}

/// The whole body, or what is wrong with it. A body that is too large is refused before it has arrived.
pub(crate) async fn read(headers: &HeaderMap, payload: impl Body) -> Result<Bytes, Problem> {
    let announced = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if announced.is_some_and(|length: usize| length > BODY_MAX) {
        return Err(Problem::ContentTooLarge);
    }
    let mut whole = pin!(collect(payload, announced));
    // A body mostly comes along with its head, and then needs no clock.
    if let Some(whole) = whole.as_mut().now_or_never() {
        return whole;
    }
    tokio::time::timeout(BODY_TIMEOUT, whole).await.unwrap_or(Err(Problem::BodyTooSlow))
}

/// The same body for whoever reads it in another way: it fails when it takes too long to arrive.
#[must_use]
pub fn in_time(mut payload: Payload) -> Payload {
    let mut timer = Box::pin(tokio::time::sleep(BODY_TIMEOUT));
    let parts = stream::poll_fn(move |context| match payload.poll_next_unpin(context) {
        Poll::Pending if timer.as_mut().poll(context).is_ready() => {
            Poll::Ready(Some(Err(PayloadError::Incomplete(Some(io::ErrorKind::TimedOut.into())))))
        }
        polled => polled,
    });
    let parts: Pin<Box<dyn Stream<Item = _>>> = Box::pin(parts);
    parts.into()
}

/// Takes in the body of a request that is refused already, if it is there: left unread, it would cost the client its
/// connection.
pub(crate) async fn discard(payload: impl Body) {
    let _ = tokio::time::timeout(DISCARD_TIMEOUT, collect(payload, None)).await;
}

async fn collect(mut payload: impl Body, announced: Option<usize>) -> Result<Bytes, Problem> {
    let mut whole = BytesMut::new();
    // A request that asks for another protocol is read on and on, whatever length it announced.
    while announced != Some(whole.len())
        && let Some(part) = payload.next().await
    {
        let part = part.map_err(|_| Problem::Malformed("The body could not be read".into()))?;
        if whole.len() + part.len() > BODY_MAX {
            return Err(Problem::ContentTooLarge);
        }
        whole.extend_from_slice(&part);
    }
    Ok(whole.freeze())
}
