//! The stream of a client's connection. Nobody holds it without getting on: a head that does not end, answers that are not
//! read, and idleness have their limits on every request. And no answer leaves it bare: what the HTTP machinery refuses by
//! itself gets the body and the headers of every other refusal.

use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use actix_web::dev::Extensions;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

use crate::bare_answer;
use crate::connections::{Place, Unread};
use crate::progress::Progress;

/// How often to look, at least, whether a client gets on.
const LOOK_INTERVAL: Duration = Duration::from_secs(10);
/// How long answers may wait for a client to read them.
const UNREAD_TIMEOUT: Duration = Duration::from_secs(10);

/// A watched stream.
pub struct Connection<T> {
    stream: T,
    progress: Rc<Progress>,
    /// Set anew only when it goes off, not on every request.
    look: Option<Pin<Box<Sleep>>>,
    /// There while an answer waits for the client to read.
    unread: Option<(Unread, Pin<Box<Sleep>>)>,
    /// What is being sent in place of a bare answer, and how much of it is gone.
    substitute: Option<(Vec<u8>, usize)>,
}

impl<T> Connection<T> {
    /// Watches a stream, over which the client speaks in secret or in clear.
    pub fn new(stream: T, place: Place, is_secure: bool) -> Self {
        let progress = Rc::new(Progress::new(place, is_secure));
        Self { stream, progress, look: None, unread: None, substitute: None }
    }

    /// Makes the connection known to the requests on it.
    pub fn introduce(&self, requests: &mut Extensions) {
        requests.insert(Rc::clone(&self.progress));
    }

    /// Ready when the client's time is up.
    fn poll_overdue(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let look = self.look.get_or_insert_with(|| Box::pin(sleep(LOOK_INTERVAL)));
        loop {
            ready!(look.as_mut().poll(context));
            match self.progress.time_left() {
                Some(Duration::ZERO) => return Poll::Ready(()),
                left => look.as_mut().reset(Instant::now() + left.unwrap_or(LOOK_INTERVAL).min(LOOK_INTERVAL)),
            }
        }
    }

    /// Lets nothing wait too long for the client to read.
    fn bound<R>(&mut self, written: Poll<io::Result<R>>, context: &mut Context<'_>) -> Poll<io::Result<R>> {
        if written.is_pending() {
            if self.progress.poll_must_go(context).is_ready() {
                return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
            }
            if self.unread.is_none() {
                self.unread = self.progress.wait_for_reader().map(|unread| (unread, Box::pin(sleep(UNREAD_TIMEOUT))));
            }
            if let Some((_, time)) = &mut self.unread {
                ready!(time.as_mut().poll(context));
            }
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        written
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncRead for Connection<T> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            this.progress.bytes_came();
        }
        if read.is_ready() {
            return read;
        }
        if this.poll_overdue(context).is_pending() {
            return this.progress.poll_must_go(context).map(Ok);
        }
        if this.progress.is_in_head() && this.unread.is_none() {
            // As much of it as the client has room for: it gets no further chance.
            let refusal = bare_answer::head_too_slow(&this.progress);
            let _ = Pin::new(&mut this.stream).poll_write(context, &refusal);
        }
        // As if the client had left: what is under way ends in order.
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Connection<T> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let (own, bare) = bytes.split_at(bare_answer::position(bytes).unwrap_or(bytes.len()));
        if !own.is_empty() {
            let written = Pin::new(&mut this.stream).poll_write(context, own);
            return this.bound(written, context);
        }
        let (text, mut sent) =
            this.substitute.take().unwrap_or_else(|| (bare_answer::in_full(bare, &this.progress), 0));
        while let Some(rest) = text.get(sent..).filter(|rest| !rest.is_empty()) {
            match Pin::new(&mut this.stream).poll_write(context, rest) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(more)) => sent += more,
                unwritten => {
                    this.substitute = Some((text, sent));
                    return this.bound(unwritten, context);
                }
            }
        }
        Poll::Ready(Ok(bare.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.stream).poll_flush(context);
        if flushed.is_ready() {
            this.unread = None;
        }
        this.bound(flushed, context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let shut = Pin::new(&mut this.stream).poll_shutdown(context);
        this.bound(shut, context)
    }
}
