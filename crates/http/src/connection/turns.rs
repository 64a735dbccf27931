//! How a connection is served: in turns, so that a large body never lies in the buffers of actix-http as a whole. The
//! next turn follows at once, because what TLS has decrypted takes memory until it is read, on every connection that
//! waits for its turn.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use crate::connection::progress::Progress;

/// Turns before other connections may go on: more than the largest body needs.
const TURNS_MAX: usize = 64;

/// Gives a connection its turns.
pub struct Turns(pub(super) Rc<Progress>);

impl Turns {
    /// Serves the connection by this future. It is boxed, because actix-server would keep room for two of it.
    pub fn serve<F: Future>(self, by: F) -> impl Future<Output = F::Output> + use<F> {
        let mut served = Box::pin(by);
        poll_fn(move |context| {
            for _ in 0..TURNS_MAX {
                let polled = served.as_mut().poll(context);
                if polled.is_ready() || !self.0.take_turn() {
                    return polled;
                }
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
    }
}
