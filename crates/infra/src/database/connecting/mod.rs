//! Connections to the database: its address, how a connection is opened and kept, and how long anything may take.

pub mod clock;
pub(crate) mod commit_wait;
pub(crate) mod connect;
pub(crate) mod conninfo;
pub(crate) mod durability;
pub(crate) mod lasting;
pub(crate) mod lock_wait;
pub(crate) mod pool;
pub mod pooler;
pub(crate) mod share;
pub(crate) mod slots;
pub(crate) mod time_limits;
pub(crate) mod url;
pub(crate) mod url_error;
