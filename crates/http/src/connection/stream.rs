//! The stream of a client's connection. Nobody holds it without getting on: a head that does not end, answers that are not
//! read, and idleness have their limits on every request. Nobody fills the memory: requests are handed on one at a time, and
//! nothing is taken in while an answer waits to be read. And no answer leaves it bare: what the HTTP machinery refuses by
//! itself gets the body and the headers of every other refusal.

use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use actix_web::dev::Extensions;
use actix_web::web::BytesMut;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

use crate::connection::bare_answer;
use crate::connection::crowd::{Place, Unread};
use crate::connection::framing::Framing;
use crate::connection::progress::Progress;
use crate::problem::Problem;

/// How often to look, at least, whether a client gets on.
const LOOK_INTERVAL: Duration = Duration::from_secs(10);
/// How long answers may wait for a client to read them.
const UNREAD_TIMEOUT: Duration = Duration::from_secs(10);

/// How much of a body is taken in after its request was refused: as much as would have been read of it, with room for what
/// came along with the head. Who sends more without a pause would keep a worker busy for as long as it likes.
const UNWANTED_MAX: usize = 256 * 1024;
/// How long to listen to a client that is still sending what nobody wants: else it would lose its answer.
const LINGER_TIMEOUT: Duration = Duration::from_secs(1);

/// A watched stream.
pub struct Connection<T> {
    stream: T,
    progress: Rc<Progress>,
    framing: Framing,
    /// What came along behind the request that is being served: never more than was read at once.
    ahead: BytesMut,
    /// How much of a body has come without a request being served: before it begins, or after its answer.
    unwanted: usize,
    /// Reading was put off: when it may go on, nothing else wakes the task.
    is_held: bool,
    /// Set anew only when it goes off, not on every request.
    look: Option<Pin<Box<Sleep>>>,
    /// There while an answer waits for the client to read.
    unread: Option<(Unread, Pin<Box<Sleep>>)>,
    /// There while the client is listened to for the last time.
    linger: Option<Pin<Box<Sleep>>>,
    /// What is being sent in place of a bare answer, and how much of it is gone.
    substitute: Option<(Vec<u8>, usize)>,
}

impl<T> Connection<T> {
    /// Watches a stream, over which the client speaks in secret or in clear.
    pub fn new(stream: T, place: Place, is_secure: bool) -> Self {
        Self {
            stream,
            progress: Rc::new(Progress::new(place, is_secure)),
            framing: Framing::default(),
            ahead: BytesMut::new(),
            unwanted: 0,
            is_held: false,
            look: None,
            unread: None,
            linger: None,
            substitute: None,
        }
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

    /// Hands on what came, up to the end of the request. What follows waits for its answer.
    fn take_in(&mut self, buffer: &mut ReadBuf<'_>, before: usize) -> usize {
        let came = buffer.filled_mut().get_mut(before..).unwrap_or_default();
        let taken = self.framing.advance(came);
        let rest = came.get(taken..).unwrap_or_default();
        if !rest.is_empty() {
            self.ahead = BytesMut::from(rest);
        }
        buffer.set_filled(before + taken);
        taken
    }

    /// The same of what had to wait.
    fn take_from_ahead(&mut self, buffer: &mut ReadBuf<'_>) -> usize {
        let room = buffer.remaining().min(self.ahead.len());
        let taken = self.framing.advance(self.ahead.get_mut(..room).unwrap_or_default());
        buffer.put_slice(&self.ahead.split_to(taken));
        if self.ahead.is_empty() {
            // Its memory belongs to connections that need it.
            self.ahead = BytesMut::new();
        }
        taken
    }

    /// The answer has left, and the next request may come.
    fn go_on(&mut self, context: &Context<'_>) {
        self.unread = None;
        if self.framing.is_whole() && !self.progress.is_in_request() {
            self.framing.next();
            self.unwanted = 0;
        }
        if !self.framing.is_whole() && std::mem::take(&mut self.is_held) {
            context.waker().wake_by_ref();
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

impl<T: AsyncRead + AsyncWrite + Unpin> Connection<T> {
    /// Ends the connection, as if the client had left: what is under way ends in order.
    fn poll_end(&mut self, context: &mut Context<'_>, problem: Option<&Problem>) -> Poll<io::Result<()>> {
        if let Some(problem) = problem
            && self.unread.is_none()
        {
            self.progress.breaks_off();
            // As much of it as the client has room for: it gets no further chance.
            let refusal = bare_answer::write(problem, &self.progress);
            let _ = Pin::new(&mut self.stream).poll_write(context, &refusal);
        }
        Poll::Ready(Ok(()))
    }

    /// Ends the connection when the client has sent what is no request, or part of none.
    fn poll_break(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.progress.breaks_off();
        self.poll_end(context, self.framing.is_too_large().then_some(&Problem::HeadTooLarge))
    }

    /// Takes in and drops what is still being sent, until the client has had time to read its answer.
    fn poll_linger(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let linger = self.linger.get_or_insert_with(|| Box::pin(sleep(LINGER_TIMEOUT)));
        // Before anything is read: whoever sends without a pause would never let the clock be looked at.
        if linger.as_mut().poll(context).is_ready() || self.progress.poll_must_go(context).is_ready() {
            return Poll::Ready(Ok(()));
        }
        let mut unwanted = [0; 4096];
        loop {
            let mut unwanted = ReadBuf::new(&mut unwanted);
            ready!(Pin::new(&mut self.stream).poll_read(context, &mut unwanted))?;
            if unwanted.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncRead for Connection<T> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.unread.is_some() || (this.framing.is_whole() && !this.ahead.is_empty()) {
            this.is_held = true;
            return Poll::Pending;
        }
        if this.unwanted > UNWANTED_MAX {
            return this.poll_break(context);
        }
        let before = buffer.filled().len();
        let taken = if this.ahead.is_empty() && !this.framing.is_broken() {
            match Pin::new(&mut this.stream).poll_read(context, buffer) {
                Poll::Ready(Ok(())) if buffer.filled().len() > before => this.take_in(buffer, before),
                Poll::Pending if this.poll_overdue(context).is_ready() => {
                    return this.poll_end(context, this.progress.is_in_head().then_some(&Problem::HeadTooSlow));
                }
                Poll::Pending if this.progress.poll_must_go(context).is_ready() => return this.poll_end(context, None),
                read => return read,
            }
        } else {
            this.take_from_ahead(buffer)
        };
        if !this.progress.is_in_request() && this.framing.is_in_body() {
            this.unwanted += taken;
        }
        if taken > 0 {
            this.progress.bytes_came();
            return Poll::Ready(Ok(()));
        }
        if this.framing.is_broken() {
            return this.poll_break(context);
        }
        this.is_held = true;
        Poll::Pending
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Connection<T> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let (own, bare) = bytes.split_at(bare_answer::position(bytes).unwrap_or(bytes.len()));
        if !own.is_empty() {
            let written = Pin::new(&mut this.stream).poll_write(context, own);
            return this.bound(written, context);
        }
        this.progress.breaks_off();
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
            this.go_on(context);
        }
        this.bound(flushed, context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.linger.is_none() {
            let shut = Pin::new(&mut this.stream).poll_shutdown(context);
            ready!(this.bound(shut, context))?;
        }
        if this.progress.is_broken() { this.poll_linger(context) } else { Poll::Ready(Ok(())) }
    }
}
