//! More than the service can do, and clients that take more than they need.

mod bodies;
mod fair_shares;
mod floods;
mod overload;
mod slow_clients;
mod torture;
