#![doc = include_str!("../README.md")]

mod audit;
mod email_address;
mod environment;
mod ids;
mod keys;
mod members;
mod name;
mod network;
mod patients;
mod sessions;
mod store_error;
mod timestamp;

pub use audit::*;
pub use email_address::{EmailAddress, EmailAddressError};
pub use environment::{Environment, UnknownEnvironment};
pub use ids::{AuditEntryId, KeyId, MemberId, OrganisationId, PatientId};
pub use keys::*;
pub use members::*;
pub use name::{Name, NameError};
pub use network::Network;
pub use patients::*;
pub use sessions::*;
pub use store_error::{Source, StoreError};
pub use timestamp::{day, timestamp};
