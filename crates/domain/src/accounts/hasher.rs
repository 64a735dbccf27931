//! The port to password hashing. Hashing is slow on purpose, so it is not done where requests are served: passwords
//! wait in a queue, one is hashed after the other, and no single client can fill the queue for everyone else.

use async_trait::async_trait;

use crate::accounts::password::{Password, PasswordHash};
use crate::accounts::presented::PresentedPassword;
use crate::accounts::salt::Salt;
use crate::ids::MemberId;
use crate::network::Network;
use crate::store_error::Source;
use crate::token::TokenDigest;

/// The person whose password waits, or whose code from the provider of single sign-on. Each requester can have one in
/// the queue at a time, except where several may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Requester {
    /// A member who is signed in by this session and confirms a change. Goes before every sign-in.
    Confirmation(TokenDigest),
    /// A member who has confirmed a change, and chooses another password. Goes before every sign-in; several may
    /// wait.
    NewPassword,
    /// A member who is signing in from a network they have signed in from before. Goes before strangers.
    Member(MemberId),
    /// The holder of this open invitation or reset link. Goes before strangers.
    Guest(TokenDigest),
    /// A person, perhaps a member, in a network that a member has signed in from before. Goes before strangers; several
    /// may wait.
    Neighbour(Network),
    /// Anyone else, from this network.
    Stranger(Network),
}

/// Reason why a password was neither hashed nor compared.
#[derive(Debug, thiserror::Error)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum HasherError {
    /// The requester has a password in the queue already.
    #[error("another password of the requester is in the queue")]
    AlreadyQueued,
    /// Too many others wait; trying again later may help.
    #[error("the queue of the password hasher is full")]
    Full,
    /// Anything else: a defect of the hasher, or of a stored hash.
    #[error("the password hasher failed")]
    Failed(#[source] Source),
}

/// Hashes and compares passwords. Refuses work rather than slow everything else down.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait PasswordHasher: Send + Sync {
    /// Hashes a password with this salt.
    async fn hash(&self, requester: Requester, password: &Password, salt: Salt) -> Result<PasswordHash, HasherError>;

    /// The first of these hashes whose password the text is. Without a hash, and with several that have one salt, the
    /// answer takes as long as with one.
    async fn find(
        &self,
        requester: Requester,
        presented: &PresentedPassword,
        hashes: &[PasswordHash],
    ) -> Result<Option<PasswordHash>, HasherError>;
}
