//! The commands of operators, and what they do in the register.

mod audit;
mod command_line;
mod deliver;
pub(crate) mod doctor;
mod ended_rights;
pub(crate) mod erasure;
pub(crate) mod export;
mod first_run;
mod install_offer;
pub(crate) mod lock_holders;
pub(crate) mod organisations;
mod pairs;
pub(crate) mod readers;
mod replacing;
mod request;
mod unprintable;
