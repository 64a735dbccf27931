//! The interface for integrations: what is accepted, what is refused, and in which order.

mod allowed_networks;
mod authentication;
mod body;
mod dry_run;
mod errors;
mod expect;
mod idempotency;
mod key_end;
mod key_life_cycle;
mod order_of_checks;
mod own_day;
pub(crate) mod own_key;
mod paused_keys;
mod plain_http;
mod privacy;
mod rate_limit;
mod round_trips;
mod simulation;
pub(crate) mod values;
