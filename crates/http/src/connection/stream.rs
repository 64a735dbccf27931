//! The stream of a client's connection. It limits how long a client may take to send a head, to read an answer and to
//! stay idle, on every request. It limits memory: requests are passed on one at a time, and nothing is read while an
//! answer waits to be read. And it completes the refusals that actix-http makes by itself, so that all answers have the
//! same body and headers.

use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use actix_web::dev::Extensions;
use actix_web::web::BytesMut;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

use crate::connection::admission::{Slot, Unread};
use crate::connection::bare_answer;
use crate::connection::framing::Framing;
use crate::connection::progress::Progress;
use crate::connection::turns::Turns;
use crate::problem::Problem;

/// The longest time between two checks of a client's time limits.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);
/// Time for which answers may wait for a client to read them.
const UNREAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Number of bytes of a body that are read after its request was refused: as much as would have been read of it, with
/// room for what came along with the head. A client that sends more without a pause could keep a worker busy for ever.
const UNWANTED_MAX: usize = 256 * 1024;
/// Number of bytes of a request with a body that are passed on in one turn. actix-http reads all that it can get before
/// it passes anything on, and keeps that buffer for as long as the request lives. Ordinary patients are smaller.
const TURN_MAX: usize = 4 * 1024;
/// actix-http makes its buffer twice as large when it has less room than this.
const ROOM_MIN: usize = 1_024;
/// Time for which a closing connection is still read: a client that is still sending would otherwise lose its answer.
const LINGER_TIMEOUT: Duration = Duration::from_secs(1);

/// Bytes that actix-http writes before it calls the application, for every client that asks first.
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// A watched stream.
pub struct Connection<T> {
    stream: T,
    progress: Rc<Progress>,
    framing: Framing,
    /// Bytes after the end of the request that is being served, or of the turn: never more than one read.
    read_ahead: BytesMut,
    /// Number of bytes of a body that came while no request was being served: before it begins, or after its answer.
    unwanted: usize,
    /// Number of bytes that were passed on in this turn.
    in_turn: usize,
    /// Reading was postponed, so the task must be woken when it may continue.
    is_read_paused: bool,
    /// The timer of the next check; it is reset only when it fires, not on every request.
    check: Option<Pin<Box<Sleep>>>,
    /// Present while an answer waits for the client to read it.
    unread: Option<(Unread, Pin<Box<Sleep>>)>,
    /// Present while a closing connection is still read.
    linger: Option<Pin<Box<Sleep>>>,
    /// Answer that is sent in place of a bare one, and how many of its bytes have been written.
    substitute: Option<(Vec<u8>, usize)>,
}

impl<T> Connection<T> {
    /// Watches a stream; `is_secure` says whether it is encrypted.
    pub fn new(stream: T, slot: Slot, is_secure: bool) -> Self {
        Self {
            stream,
            progress: Rc::new(Progress::new(slot, is_secure)),
            framing: Framing::default(),
            read_ahead: BytesMut::new(),
            unwanted: 0,
            in_turn: 0,
            is_read_paused: false,
            check: None,
            unread: None,
            linger: None,
            substitute: None,
        }
    }

    /// Gives the requests on this connection access to its progress.
    pub fn share_progress(&self, requests: &mut Extensions) {
        requests.insert(Rc::clone(&self.progress));
    }

    /// Returns what must serve this connection.
    pub fn turns(&self) -> Turns {
        Turns(Rc::clone(&self.progress))
    }

    /// Ready when the client's time is up.
    fn poll_overdue(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let check = self.check.get_or_insert_with(|| Box::pin(sleep(CHECK_INTERVAL)));
        loop {
            ready!(check.as_mut().poll(context));
            match self.progress.time_left() {
                Some(Duration::ZERO) => return Poll::Ready(()),
                left => check.as_mut().reset(Instant::now() + left.unwrap_or(CHECK_INTERVAL).min(CHECK_INTERVAL)),
            }
        }
    }

    /// Passes on what was read, up to the end of the request or of the turn. What follows is kept until then.
    fn take_in(&mut self, buffer: &mut ReadBuf<'_>, before: usize) -> usize {
        let room = buffer.capacity().saturating_sub(before + ROOM_MIN);
        let came = buffer.filled_mut().get_mut(before..).unwrap_or_default();
        let is_long = self.in_turn + came.len() >= TURN_MAX;
        let (first, last) = came.split_at_mut(if is_long { room.min(came.len()) } else { came.len() });
        let mut taken = self.framing.advance(first);
        if !self.framing.is_in_body() {
            taken += self.framing.advance(last);
        }
        let rest = came.get(taken..).unwrap_or_default();
        if !rest.is_empty() {
            self.read_ahead = BytesMut::from(rest);
        }
        buffer.set_filled(before + taken);
        taken
    }

    /// Passes on what was read ahead, up to the end of the request.
    fn take_from_read_ahead(&mut self, buffer: &mut ReadBuf<'_>) -> usize {
        let room = buffer.remaining().min(self.read_ahead.len());
        let taken = self.framing.advance(self.read_ahead.get_mut(..room).unwrap_or_default());
        buffer.put_slice(&self.read_ahead.split_to(taken));
        if self.read_ahead.is_empty() {
            // Frees its memory.
            self.read_ahead = BytesMut::new();
        }
        taken
    }

    /// The answer has been sent, and the next request may come.
    fn resume_reading(&mut self, context: &Context<'_>) {
        self.unread = None;
        if self.framing.is_whole() && !self.progress.is_in_request() {
            self.framing.next();
            self.unwanted = 0;
            self.in_turn = 0;
        }
        if !self.framing.is_whole() && std::mem::take(&mut self.is_read_paused) {
            context.waker().wake_by_ref();
        }
    }

    /// Limits how long a write may wait for the client to read.
    fn limit_wait<R>(&mut self, written: Poll<io::Result<R>>, context: &mut Context<'_>) -> Poll<io::Result<R>> {
        if written.is_pending() {
            if self.progress.poll_evicted(context).is_ready() {
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
    /// Ends the connection as if the client had left, after a last refusal if there is a problem to report.
    fn poll_end(&mut self, context: &mut Context<'_>, problem: Option<&Problem>) -> Poll<io::Result<()>> {
        if let Some(problem) = problem
            && self.unread.is_none()
        {
            self.progress.mark_broken();
            // Written once, as far as the client's buffer allows.
            let refusal = bare_answer::write(problem, &self.progress);
            let _ = Pin::new(&mut self.stream).poll_write(context, &refusal);
        }
        Poll::Ready(Ok(()))
    }

    /// Ends the connection of a client that has sent something other than a request.
    fn poll_break(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.progress.mark_broken();
        self.poll_end(context, self.framing.is_too_large().then_some(&Problem::HeadTooLarge))
    }

    /// Reads and drops what is still being sent, until the client has had time to read its answer.
    fn poll_linger(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let linger = self.linger.get_or_insert_with(|| Box::pin(sleep(LINGER_TIMEOUT)));
        // Before anything is read: a client that sends without a pause would keep the timer from ever being checked.
        if linger.as_mut().poll(context).is_ready() || self.progress.poll_evicted(context).is_ready() {
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
        if this.unread.is_some() || (this.framing.is_whole() && !this.read_ahead.is_empty()) {
            this.is_read_paused = true;
            return Poll::Pending;
        }
        if this.unwanted > UNWANTED_MAX {
            return this.poll_break(context);
        }
        if this.framing.is_in_body() && this.in_turn >= TURN_MAX {
            this.in_turn = 0;
            this.progress.end_turn();
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        let taken = if this.read_ahead.is_empty() && !this.framing.is_broken() {
            match Pin::new(&mut this.stream).poll_read(context, buffer) {
                Poll::Ready(Ok(())) if buffer.filled().len() > before => this.take_in(buffer, before),
                Poll::Pending if this.poll_overdue(context).is_ready() => {
                    return this.poll_end(context, this.progress.is_in_head().then_some(&Problem::HeadTooSlow));
                }
                Poll::Pending if this.progress.poll_evicted(context).is_ready() => return this.poll_end(context, None),
                read => return read,
            }
        } else {
            this.take_from_read_ahead(buffer)
        };
        if !this.progress.is_in_request() && this.framing.is_in_body() {
            this.unwanted += taken;
        }
        this.in_turn += taken;
        if taken > 0 {
            this.progress.bytes_came(this.framing.is_whole());
            return Poll::Ready(Ok(()));
        }
        if this.framing.is_broken() {
            return this.poll_break(context);
        }
        this.is_read_paused = true;
        Poll::Pending
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Connection<T> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.progress.is_body_refused() && bytes.starts_with(CONTINUE) {
            return Poll::Ready(Ok(CONTINUE.len()));
        }
        if this.progress.is_answer_lost() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        let (own, bare) = bytes.split_at(bare_answer::position(bytes).unwrap_or(bytes.len()));
        if !own.is_empty() {
            let written = Pin::new(&mut this.stream).poll_write(context, own);
            return this.limit_wait(written, context);
        }
        this.progress.mark_broken();
        let in_full = || (bare_answer::in_full(bare, this.framing.fault(), &this.progress), 0);
        let (text, mut sent) = this.substitute.take().unwrap_or_else(in_full);
        while let Some(rest) = text.get(sent..).filter(|rest| !rest.is_empty()) {
            match Pin::new(&mut this.stream).poll_write(context, rest) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(more)) => sent += more,
                unwritten => {
                    this.substitute = Some((text, sent));
                    return this.limit_wait(unwritten, context);
                }
            }
        }
        Poll::Ready(Ok(bare.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.stream).poll_flush(context);
        if flushed.is_ready() {
            this.resume_reading(context);
        }
        this.limit_wait(flushed, context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.linger.is_none() {
            let shut = Pin::new(&mut this.stream).poll_shutdown(context);
            ready!(this.limit_wait(shut, context))?;
        }
        if this.progress.is_broken() { this.poll_linger(context) } else { Poll::Ready(Ok(())) }
    }
}
