//! Who holds a session.

use time::{Duration, OffsetDateTime};

use crate::accounts::member::{Account, Member};
use crate::keys::key_age::KeyAge;
use crate::zone::Zone;

/// Who holds a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holder {
    /// A member of the organisation that the session is in.
    Member(SignedIn),
    /// A person who belongs to several organisations, and has yet to choose one.
    Undecided(Account),
}

/// A member who is signed in to an organisation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedIn {
    /// The member who is signed in.
    pub member: Member,
    /// The name of the member's organisation.
    pub organisation_name: String,
    /// True if the member signs in with a code as well as the password.
    pub has_second_factor: bool,
    /// True if the organisation requires that of every member.
    pub is_second_factor_required: bool,
    /// The longest time for which keys of the organisation may be made.
    pub key_age_max: Option<KeyAge>,
    /// The zone in which its members see days and times.
    pub zone: Zone,
    /// Time at which the member last confirmed, in this session, who they are.
    pub confirmed_at: Option<OffsetDateTime>,
    /// Time at which the provider of single sign-on last confirmed it, which is not enough for a member with a second
    /// factor.
    pub provider_confirmed_at: Option<OffsetDateTime>,
    /// True if another organisation of the person requires it.
    pub is_second_factor_required_elsewhere: bool,
    /// True if the person belongs to another organisation, too.
    pub is_in_several: bool,
}

impl SignedIn {
    /// Returns whether the member must turn on two-step sign-in before anything else.
    #[must_use]
    pub fn must_turn_on_second_factor(&self) -> bool {
        self.is_second_factor_required && !self.has_second_factor
    }

    /// Returns whether the member has confirmed who they are within this time.
    #[must_use]
    pub fn is_confirmed(&self, within: Duration, now: OffsetDateTime) -> bool {
        self.confirmed_at.is_some_and(|at| at > now - within)
    }
}
