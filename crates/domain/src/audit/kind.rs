//! The kinds of actions by which people look through the audit log.

use crate::audit::action::Action;

/// Subject area of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionKind {
    /// API keys.
    Keys,
    /// The organisation as a whole, which operators alone change.
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

    /// The actions of this kind.
    pub fn actions(self) -> impl Iterator<Item = Action> {
        Action::ALL.iter().copied().filter(move |action| action.kind() == self)
    }
}

impl Action {
    /// Returns whether it changes neither keys nor who gets in.
    #[must_use]
    pub fn is_harmless(self) -> bool {
        matches!(
            self,
            Self::SignedIn
                | Self::SignedInByRecoveryCode
                | Self::SignedInByPasskey
                | Self::SignedInByProvider
                | Self::SignInFailed
                | Self::CodeFailed
                | Self::ProviderPersonRefused
                | Self::RoleRefused
                | Self::FormRefused
                | Self::SignedOut
                | Self::NameChanged
                | Self::PatientShown
                | Self::PatientsExported
                | Self::RegisterRestored
                | Self::RegisterMigrated
        )
    }

    /// Returns what it has to do with.
    #[must_use]
    pub fn kind(self) -> ActionKind {
        match self {
            Self::KeyCreated
            | Self::KeyReplaced
            | Self::KeyRevoked
            | Self::KeyPaused
            | Self::KeyResumed
            | Self::KeysStopped
            | Self::KeysResumed
            | Self::KeyNetworksChanged
            | Self::KeyAgeLimited
            | Self::KeyRenamed
            | Self::KeyNoted
            | Self::KeyMarkCleared => ActionKind::Keys,
            Self::OrganisationCreated
            | Self::OrganisationRenamed
            | Self::OrganisationSuspended
            | Self::OrganisationResumed
            | Self::OrganisationClosed
            | Self::OrganisationErased
            | Self::RegisterRestored
            | Self::RegisterMigrated => ActionKind::Organisation,
            Self::MemberInvited
            | Self::InvitationWithdrawn
            | Self::MemberJoined
            | Self::MemberRemoved
            | Self::AdministratorMade
            | Self::KeyManagerMade
            | Self::AuditorMade
            | Self::RoleRefused
            | Self::FormRefused
            | Self::SecondFactorRequired
            | Self::SecondFactorOptional => ActionKind::Members,
            Self::SignedIn
            | Self::SignedInByRecoveryCode
            | Self::SignedInByPasskey
            | Self::SignedInByProvider
            | Self::SignInFailed
            | Self::CodeFailed
            | Self::ProviderPersonRefused
            | Self::SignedOut
            | Self::SessionEnded
            | Self::OtherSessionsEnded
            | Self::SessionsEnded => ActionKind::SignIns,
            Self::NameChanged
            | Self::EmailChanged
            | Self::EmailChangeRequested
            | Self::PasskeyAdded
            | Self::PasskeyRemoved
            | Self::PasswordChanged
            | Self::PasswordResetIssued
            | Self::PasswordResetRequested
            | Self::PasswordReset
            | Self::PasswordAndPasskeysReset
            | Self::SecondFactorTurnedOn
            | Self::SecondFactorTurnedOff
            | Self::RecoveryCodesReplaced
            | Self::ProviderLinked
            | Self::AddressConfirmed => ActionKind::Accounts,
            Self::PatientShown | Self::PatientErased | Self::PatientsExported => ActionKind::Patients,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_action_is_of_one_kind() {
        assert_eq!(ActionKind::ALL.map(|kind| kind.actions().count()).iter().sum::<usize>(), Action::ALL.len());
        assert!(ActionKind::Keys.actions().all(|action| action.as_str().starts_with("key_")));
    }
}
