//! The kinds of actions by which people look through the audit log.

/// Subject area of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionKind {
    /// API keys.
    Keys,
    /// The organisation as a whole, which operators change. Its time zone is the choice of its administrators, too.
    Organisation,
    /// Members and invitations.
    Members,
    /// Signing in and out.
    SignIns,
    /// A member's own account.
    Accounts,
    /// Patients, which operators and readers alone touch.
    Patients,
}

impl ActionKind {
    /// Every kind, in the order in which people choose one.
    pub const ALL: [Self; 6] =
        [Self::Keys, Self::Organisation, Self::Members, Self::SignIns, Self::Accounts, Self::Patients];
}
