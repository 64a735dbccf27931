//! The people of an organisation who look after its keys: how they join, and how they prove who they are.

pub(crate) mod account;
pub(crate) mod account_store;
pub(crate) mod administer;
pub(crate) mod confirmation;
pub(crate) mod email_change_store;
pub(crate) mod guessable;
pub(crate) mod hasher;
pub(crate) mod invitation_store;
pub(crate) mod key_age_store;
pub(crate) mod manage;
pub(crate) mod manage_passkeys;
pub(crate) mod manage_second_factor;
pub(crate) mod member;
pub(crate) mod member_store;
pub(crate) mod passkey;
pub(crate) mod passkey_store;
pub(crate) mod password;
pub(crate) mod password_reset_store;
pub(crate) mod presented;
pub(crate) mod reset_password;
pub(crate) mod role;
pub(crate) mod salt;
pub(crate) mod second_factor;
pub(crate) mod second_factor_store;

pub use account::{
    ChangeEmailError, ChangeNameError, ChangePasswordError, ConfirmEmailError, EMAIL_CHANGE_LIFE, LinkError,
    RequestEmailError, change_email, change_name, change_password, confirm_email_change, link_to_provider,
    request_email_change,
};
pub use account_store::{AccountStore, EmailOutcome, NameOutcome};
pub use administer::{change_role, limit_key_age, remove_member, require_second_factor};
pub use confirmation::{
    CONFIRMATION_LIMIT, CONFIRMATION_PAGE_LIMIT, ConfirmError, ConfirmedMember, Renewal, confirm_after_provider,
    confirm_by_passkey, confirm_by_password,
};
pub use email_change_store::{
    EMAIL_CHANGES_PER_DAY_MAX, EMAIL_CHANGES_PER_HOUR_MAX, EmailChangeStore, RequestEmailOutcome,
};
pub use guessable::{EasyToGuess, PasswordOwner};
pub use hasher::{HasherError, PasswordHasher, Requester};
pub use invitation_store::{
    Guest, INVITATIONS_PER_HOUR_MAX, INVITATIONS_TO_ONE_MAX, InvitationStore, InviteOutcome, JoinOutcome,
    NewCredential, NewInvitation, NewMember, OpenInvitation, PEOPLE_MAX, WithdrawOutcome,
};
pub use key_age_store::{KeyAgeStore, LimitAgeOutcome};
pub use manage::{INVITATION_LIFE, InviteError, IssuedInvitation, JoinError, JoinRequest, invite_member, join};
pub use manage_passkeys::{
    AddPasskeyError, add_passkey, begin_passkey_sign_in, finish_sign_in_by_passkey, remove_passkey, sign_in_by_passkey,
};
pub use manage_second_factor::{
    ResetSecondFactorError, SecondFactorError, SecondFactorRequest, offer_second_factor, replace_recovery_codes,
    reset_second_factor, reset_second_factor_of_colleague, turn_off_second_factor, turn_on_second_factor,
};
pub use member::{Account, Invitation, LinkDelivery, Member, Membership, NewMemberLink};
pub use member_store::{
    Credentials, EndSessionsOutcome, MemberRecord, MemberStore, ProviderAccount, ProviderLink, RemoveOutcome,
    RequireOutcome, RoleOutcome,
};
pub use passkey::{Challenge, PasskeyAssertion, PasskeyKey, PasskeyRegistration, RelyingParty, Signatures};
pub use passkey_store::{
    AddPasskeyOutcome, NewPasskey, PASSKEYS_MAX, PasskeyHolder, PasskeyRecord, PasskeyStore, RemovePasskeyOutcome,
};
pub use password::{Password, PasswordError, PasswordHash};
pub use password_reset_store::{
    IssueOutcome, OpenReset, PasskeysAtReset, PasswordResetOutcome, PasswordResetStore, RESETS_PER_DAY_MAX,
};
pub use presented::{PresentedCode, PresentedPassword};
pub use reset_password::{
    IssuePasswordResetError, IssuedPasswordReset, PASSWORD_RESET_LIFE, ResetPasswordError, issue_password_reset,
    request_password_reset, reset_password, reset_password_of_colleague,
};
pub use role::{Role, UnknownRole};
pub use salt::Salt;
pub use second_factor::{RECOVERY_CODES, RecoveryCode, TotpSecret};
pub use second_factor_store::{NewSecondFactor, SecondFactorOutcome, SecondFactorStore};

#[cfg(feature = "mocks")]
pub use {
    account_store::MockAccountStore, email_change_store::MockEmailChangeStore, hasher::MockPasswordHasher,
    invitation_store::MockInvitationStore, key_age_store::MockKeyAgeStore, member_store::MockMemberStore,
    passkey::MockSignatures, passkey_store::MockPasskeyStore, password_reset_store::MockPasswordResetStore,
    second_factor_store::MockSecondFactorStore,
};
