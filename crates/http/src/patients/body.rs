//! Reads a request's body, up to a maximum size and time.

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

/// More than a patient with every field at its limit, in escaped four-byte characters.
const BODY_MAX: usize = 64 * 1024;
/// From the first byte to the last: enough for slow networks.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// A body that was sent along with its head arrives at once.
const DISCARD_TIMEOUT: Duration = Duration::from_millis(50);

/// A body on its way in.
pub(crate) trait Body: Stream<Item = Result<Bytes, PayloadError>> + Unpin {}

impl<T: Stream<Item = Result<Bytes, PayloadError>> + Unpin> Body for T {}

/// Reads the whole body. One that is too large is refused before it has arrived.
pub(crate) async fn read(headers: &HeaderMap, payload: impl Body) -> Result<Bytes, Problem> {
    let announced = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if announced.is_some_and(|length: usize| length > BODY_MAX) {
        return Err(Problem::ContentTooLarge);
    }
    let mut whole = pin!(collect(payload, announced));
    // Most bodies come along with their head and need no timer.
    if let Some(whole) = whole.as_mut().now_or_never() {
        return whole;
    }
    tokio::time::timeout(BODY_TIMEOUT, whole).await.unwrap_or(Err(Problem::BodyTooSlow))
}

/// The same payload, for other ways to read it: it fails when the body takes too long to arrive.
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

/// Reads and drops the body of a refused request, if it has arrived: left unread, it would end the connection.
pub(crate) async fn discard(payload: impl Body) {
    let _ = tokio::time::timeout(DISCARD_TIMEOUT, collect(payload, None)).await;
}

async fn collect(mut payload: impl Body, announced: Option<usize>) -> Result<Bytes, Problem> {
    let mut whole = BytesMut::new();
    // actix-http never ends the payload of a request that asks for another protocol, whatever length it announced.
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
