//! The commands of operators, and what they do in the register.

mod audit;
mod command_line;
mod doctor;
mod erasure;
mod export;
mod first_run;
mod install_offer;
pub(crate) mod organisations;
mod readers;
mod replacing;
mod waits;
