//! How HTTP is spoken over a connection: where a request ends, how long a client may take, and who makes room when many are
//! connected.

pub(crate) mod bare_answer;
pub(crate) mod chunks;
pub(crate) mod crowd;
pub(crate) mod framing;
pub(crate) mod guests;
pub(crate) mod progress;
pub(crate) mod stream;
