//! What tests share: a PostgreSQL with a database for each test, a running service and a client that speaks real HTTPS,
//! a counter of round trips between service and database, and faults: floods, frozen processes, locked rows.
#![expect(clippy::expect_used, clippy::panic, clippy::print_stderr, reason = "tests fail by panicking and say why")]

mod backends;
mod browser;
mod chromium;
mod citus;
mod client;
mod clinic;
mod database;
mod extra_nodes;
mod failure;
mod firefox;
pub mod flood;
mod install;
mod left_out;
mod manual;
mod ports;
pub mod processes;
pub mod provider;
mod questions;
mod roles;
mod round_trips;
mod service;
mod strict_servers;
mod struck_nodes;

pub use backends::{HeldRow, freeze_writer};
pub use browser::{Browser, Element, is_nightly};
pub use citus::Citus;
pub use client::{Client, Connection, Response, request};
pub use clinic::{Clinic, patient, random};
pub use database::TestDatabase;
pub use extra_nodes::ExtraNode;
pub use left_out::{Prerequisite, leave_out, take_summary};
pub use manual::{completed_by_bash, write_manual};
pub use ports::free_port;
pub use questions::WithCount;
pub use round_trips::RoundTripCounter;
pub use service::{
    Service, ServiceBuilder, complaint_in, create_request, full_disk, unread_pipe, wait_for, wait_for_end,
};
pub use strict_servers::StrictServers;
pub use struck_nodes::StruckNode;
