//! The people of an organisation who look after its keys: how they join, and how they prove who they are.

pub(crate) mod account;
pub(crate) mod administer;
pub(crate) mod confirmation;
pub(crate) mod hasher;
pub(crate) mod manage;
pub(crate) mod manage_passkeys;
pub(crate) mod manage_second_factor;
pub(crate) mod member;
pub(crate) mod passkey;
pub(crate) mod passkey_store;
pub(crate) mod password;
pub(crate) mod presented;
pub(crate) mod reset_password;
pub(crate) mod role;
pub(crate) mod second_factor;
pub(crate) mod store;

pub use account::{ChangeEmailError, ChangeNameError, change_email, change_name, change_password};
pub use administer::{change_role, remove_member, require_second_factor};
pub use confirmation::{ConfirmError, ConfirmedMember, confirm_password};
pub use hasher::{HasherError, PasswordHasher, Waiter};
pub use manage::{INVITATION_LIFE, InviteError, IssuedInvitation, JoinError, JoinRequest, invite_member, join};
pub use manage_passkeys::{
    AddPasskeyError, add_passkey, begin_passkey_sign_in, finish_sign_in_by_passkey, remove_passkey, sign_in_by_passkey,
};
pub use manage_second_factor::{
    ResetSecondFactorError, SecondFactorError, SecondFactorRequest, replace_recovery_codes, reset_second_factor,
    turn_off_second_factor, turn_on_second_factor,
};
pub use member::Member;
pub use passkey::{Challenge, PasskeyAssertion, PasskeyKey, PasskeyRegistration, RelyingParty, Signatures};
pub use passkey_store::{
    AddPasskeyOutcome, NewPasskey, PASSKEYS_MAX, PasskeyHolder, PasskeyRecord, PasskeyStore, RemovePasskeyOutcome,
};
pub use password::{Password, PasswordError, PasswordHash};
pub use presented::{PresentedCode, PresentedPassword};
pub use reset_password::{
    IssuePasswordResetError, IssuedPasswordReset, PASSWORD_RESET_LIFE, ResetPasswordError, issue_password_reset,
    reset_password, reset_password_of_colleague,
};
pub use role::{Role, UnknownRole};
pub use second_factor::{RECOVERY_CODES, RecoveryCode, TotpSecret};
pub use store::{
    Credentials, EmailOutcome, Invitation, InviteOutcome, IssueOutcome, JoinOutcome, MemberRecord, MemberStore,
    NewInvitation, NewMember, NewPasswordReset, NewSecondFactor, OpenInvitation, PEOPLE_MAX, PasswordResetOutcome,
    RemoveOutcome, RequireOutcome, RoleOutcome, SecondFactorOutcome, WithdrawOutcome,
};

#[cfg(feature = "mocks")]
pub use hasher::MockPasswordHasher;
#[cfg(feature = "mocks")]
pub use passkey::MockSignatures;
#[cfg(feature = "mocks")]
pub use passkey_store::MockPasskeyStore;
#[cfg(feature = "mocks")]
pub use store::MockMemberStore;
