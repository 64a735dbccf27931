//! The salt of a password's hash. Where there is no mail server, nobody proves an address, and several organisations
//! can each have an account with the same address. Those accounts share one salt, so that one hash compares a password
//! with all of them: the time of a sign-in does not reveal how many there are.

use crate::accounts::member_store::{Credentials, MemberStore};
use crate::accounts::password::PasswordHash;
use crate::email_address::EmailAddress;
use crate::store_error::StoreError;

/// The salt of a hash to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Salt {
    /// These random bytes.
    Random([u8; 16]),
    /// The salt of this hash.
    Of(PasswordHash),
}

/// The salt of the accounts with this address; without any, these random bytes.
pub(crate) async fn salt_for(
    members: &dyn MemberStore,
    email: &EmailAddress,
    random: [u8; 16],
) -> Result<Salt, StoreError> {
    Ok(salt_of(&members.credentials(email, None).await?, random))
}

/// The same, if these are the accounts with the address.
pub(crate) fn salt_of(accounts: &[Credentials], random: [u8; 16]) -> Salt {
    let first = accounts.iter().find_map(|credentials| credentials.password.clone());
    first.map_or(Salt::Random(random), Salt::Of)
}
