//! Who a person is, and how they prove it: accounts, passwords, second factors, sessions and confirmations.

pub(crate) mod account;
pub(crate) mod account_store;
pub(crate) mod confirmation;
pub(crate) mod email_change_store;
pub(crate) mod evidence;
pub(crate) mod guessable;
pub(crate) mod hasher;
pub(crate) mod holder;
pub(crate) mod identity_provider;
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
pub(crate) mod session_store;
pub(crate) mod subject;

pub use account::{
    ChangePasswordError, EMAIL_CHANGE_LIFE, LinkError, change_email, change_name, change_password,
    confirm_email_change, link_to_provider, request_email_change,
};
pub use account_store::{AccountStore, ChangeEmailError, ChangeNameError};
pub use confirmation::{
    CONFIRMATION_LIMIT, CONFIRMATION_PAGE_LIMIT, ConfirmedMember, Renewal, confirm_after_provider, confirm_by_passkey,
    confirm_by_password,
};
pub use email_change_store::{
    ConfirmEmailError, EMAIL_CHANGES_PER_DAY_MAX, EMAIL_CHANGES_PER_HOUR_MAX, EmailChangeStore, RequestEmailError,
};
pub use evidence::{Evidence, FirstStep, Proof};
pub use guessable::{EasyToGuess, PasswordOwner};
pub use hasher::{HasherError, PasswordHasher, Requester};
pub use holder::{Holder, SignedIn};
pub use identity_provider::{Identity, IdentityProvider, ProviderError, ProviderRound};
pub use manage_passkeys::{add_passkey, remove_passkey};
pub use manage_second_factor::{
    SecondFactorRequest, offer_second_factor, replace_recovery_codes, reset_second_factor,
    reset_second_factor_of_colleague, turn_off_second_factor, turn_on_second_factor,
};
pub use member::{Account, Invitation, LinkDelivery, Member, Membership, NewMemberLink};
pub use member_store::{AdministerError, Credentials, MemberRecord, MemberStore, ProviderAccount, ProviderLink};
pub use passkey::{Challenge, PasskeyAssertion, PasskeyKey, PasskeyRegistration, RelyingParty, Signatures};
pub use passkey_store::{AddPasskeyError, NewPasskey, PASSKEYS_MAX, PasskeyHolder, PasskeyRecord, PasskeyStore};
pub use password::{Password, PasswordError, PasswordHash};
pub use password_reset_store::{
    IssuePasswordResetError, OpenReset, PasskeysAtReset, PasswordResetStore, RESETS_PER_DAY_MAX, ResetPasswordError,
};
pub use presented::{PresentedCode, PresentedPassword};
pub use reset_password::{
    IssuedPasswordReset, PASSWORD_RESET_LIFE, issue_password_reset, request_password_reset, reset_password,
    reset_password_of_colleague,
};
pub use role::{Role, UnknownRole};
pub use salt::Salt;
pub use second_factor::{RECOVERY_CODES, RecoveryCode, TotpSecret};
pub use second_factor_store::{NewSecondFactor, SecondFactorError, SecondFactorStore};
pub use session_store::{
    AwaitedMember, CODE_LIMIT, ChooseOutcome, CodeError, ConfirmError, Factors, NewSession, SESSION_IDLE_LIMIT,
    SESSION_LIMIT, SESSIONS_MAX, SessionRecord, SessionStore, SignIn, Visit, WRONG_CODES_MAX,
};
pub use subject::Subject;

#[cfg(feature = "mocks")]
pub use {
    account_store::MockAccountStore, email_change_store::MockEmailChangeStore, hasher::MockPasswordHasher,
    identity_provider::MockIdentityProvider, member_store::MockMemberStore, passkey::MockSignatures,
    passkey_store::MockPasskeyStore, password_reset_store::MockPasswordResetStore,
    second_factor_store::MockSecondFactorStore, session_store::MockSessionStore,
};
