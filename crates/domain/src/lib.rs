#![doc = include_str!("../README.md")]
// Says of each item which feature brings it, where nightly Rust makes the documentation.
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "access")]
pub mod accounts;
#[cfg(feature = "access")]
pub mod audit;
#[cfg(feature = "access")]
mod browser;
pub mod conversions;
#[cfg(feature = "access")]
mod email_address;
#[cfg(feature = "access")]
mod environment;
#[cfg(feature = "access")]
pub mod feed;
#[cfg(feature = "access")]
mod idempotency_digest;
mod ids;
#[cfg(feature = "access")]
mod key_note;
#[cfg(feature = "access")]
pub mod keys;
#[cfg(feature = "access")]
pub mod mail;
#[cfg(feature = "access")]
pub mod members;
#[cfg(feature = "access")]
mod name;
#[cfg(feature = "access")]
mod network;
#[cfg(feature = "access")]
pub mod own_key;
#[cfg(feature = "access")]
pub mod pairs;
mod patients;
mod quality;
#[cfg(feature = "access")]
pub mod sessions;
#[cfg(feature = "access")]
mod store_error;
mod text;
mod timestamp;
#[cfg(feature = "access")]
mod token;
#[cfg(feature = "access")]
mod zone;

pub use ids::{AuditEntryId, KeyId, MemberId, OrganisationId, PatientId};
pub use patients::*;
pub use quality::*;
pub use timestamp::{day, timestamp};

#[cfg(feature = "access")]
pub use {
    browser::Browser,
    email_address::{EmailAddress, EmailAddressError},
    environment::{Environment, UnknownEnvironment},
    idempotency_digest::{IdempotencyDigest, IdempotencyDigestError},
    key_note::{KeyContact, KeyNote, KeyNoteError},
    name::{Name, NameError},
    network::{Network, NetworkError},
    store_error::{Source, StoreError},
    token::{Token, TokenDigest},
    zone::{UnknownZone, Zone},
};

#[cfg(all(feature = "access", feature = "workspace"))]
#[doc(hidden)]
pub use {accounts::*, audit::*, feed::*, keys::*, mail::*, members::*, own_key::*, pairs::*, sessions::*};
