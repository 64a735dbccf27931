//! The commands of operators, and what they do in the register.

mod audit;
mod command_line;
mod doctor;
pub(crate) mod erasure;
pub(crate) mod export;
mod first_run;
mod install_offer;
pub(crate) mod organisations;
pub(crate) mod readers;
mod replacing;
mod waits;
