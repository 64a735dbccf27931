//! Citus: what lies where, and how a register becomes one that is spread over nodes. Nothing else names shards or
//! nodes.

pub(crate) mod extension;
pub(crate) mod lock_holders;
pub mod nodes;
pub(crate) mod parts;
pub(crate) mod shards;
pub mod spread;
pub(crate) mod workers;
