//! How HTTP is spoken over a connection: where a request ends, how long a client may take, and which connections are
//! closed when there are too many.

pub(crate) mod admission;
pub(crate) mod bare_answer;
pub(crate) mod chunks;
pub(crate) mod eviction;
pub(crate) mod framing;
pub(crate) mod pieces;
pub(crate) mod progress;
pub(crate) mod stream;
pub(crate) mod turns;
