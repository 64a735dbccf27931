//! Sends answers in pieces: actix-http copies what a body gives it into a buffer that the connection then keeps, and a
//! client that has read the longest page would take as much memory as six others.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use actix_web::body::{BodySize, MessageBody};
use actix_web::web::Bytes;
use pin_project_lite::pin_project;

/// Most bytes of a piece, which are sent before the next one. Most answers are one piece.
pub const PIECE_MAX: usize = 8 * 1024;

pin_project! {
    /// A body whose parts are divided.
    pub(crate) struct Pieces<B> {
        #[pin]
        body: B,
        rest: Bytes,
    }
}

impl<B> Pieces<B> {
    pub(crate) fn of(body: B) -> Self {
        Self { body, rest: Bytes::new() }
    }
}

impl<B: MessageBody> MessageBody for Pieces<B> {
    type Error = B::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, B::Error>>> {
        let this = self.project();
        if this.rest.is_empty() {
            match ready!(this.body.poll_next(context)) {
                Some(Ok(part)) => *this.rest = part,
                end => return Poll::Ready(end),
            }
        }
        let length = this.rest.len().min(PIECE_MAX);
        Poll::Ready(Some(Ok(this.rest.split_to(length))))
    }
}
