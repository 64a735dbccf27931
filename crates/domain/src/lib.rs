#![doc = include_str!("../README.md")]

mod api_key;
mod audit;
mod audit_log;
mod create_patient;
mod ids;
mod key_store;
mod manage_keys;
mod manage_members;
mod manage_second_factor;
mod member;
mod member_store;
mod name;
mod network;
mod password;
mod password_hasher;
mod patient;
mod patient_draft;
mod patient_register;
mod presented;
mod rules;
mod safe_retry;
mod second_factor;
mod session_store;
mod sign_in;
mod store_error;
mod timestamp;
mod token;

pub use api_key::{
    ApiKey, Environment, KeyDigest, KeyFormat, KeyPrefix, KeyPrefixError, KeySecret, MalformedKey, UnknownEnvironment,
};
pub use audit::{Action, Actor, AuditEntry, Deed, RecordedAction};
pub use audit_log::AuditLog;
pub use create_patient::{CreatePatientError, CreatedPatient, PatientRequest, authenticate, create_patient};
pub use ids::{AuditEntryId, KeyId, MemberId, OrganisationId, PatientId};
pub use key_store::{
    ACTIVE_KEYS_MAX, ANSWERS_KEPT, AddedKey, AnswerCount, KeyHolder, KeyRecord, KeyRefusal, KeyStanding, KeyStore,
    NewKey, Organisation, Replacement,
};
pub use manage_keys::{
    IssuedKey, KeyRequest, ManageKeysError, create_key, create_organisation, find_key, list_keys, list_organisations,
    revoke_key,
};
pub use manage_members::{
    INVITATION_LIFE, InviteError, IssuedInvitation, JoinError, JoinRequest, invite_member, join, list_members,
    list_open_invitations, open_invitation, remove_member, withdraw_invitation,
};
pub use manage_second_factor::{
    SecondFactorError, SecondFactorRequest, recovery_codes_left, replace_recovery_codes, reset_second_factor,
    turn_off_second_factor, turn_on_second_factor,
};
pub use member::{EmailAddress, EmailAddressError, Member};
pub use member_store::{
    Credentials, Invitation, Invited, Joined, MemberRecord, MemberStore, NewInvitation, NewMember, NewSecondFactor,
    OpenInvitation, PEOPLE_MAX, Removed, Withdrawn,
};
pub use name::{Name, NameError};
pub use network::Network;
pub use password::{Password, PasswordError, PasswordHash};
pub use password_hasher::{HasherError, PasswordHasher, Waiter};
pub use patient::{NewPatient, Patient};
pub use patient_draft::{FieldFault, PatientDraft, Sent};
pub use patient_register::{PatientRegister, Registered, Registration, SafeRetry};
pub use presented::{PresentedCode, PresentedPassword};
pub use safe_retry::{IdempotencyKey, IdempotencyKeyError, RequestDigest};
pub use second_factor::{RECOVERY_CODES, RecoveryCode, TotpSecret};
pub use session_store::{
    AwaitedMember, CODE_LIMIT, Finished, NewSession, Proof, SESSION_IDLE_LIMIT, SESSION_LIMIT, SessionStore, SignedIn,
    Visit,
};
pub use sign_in::{
    Candidate, SignIn, awaited_member, find_candidate, finish_sign_in, note_failed_sign_in, sign_in, sign_out,
    sign_out_everywhere, signed_in,
};
pub use store_error::{Source, StoreError};
pub use timestamp::{day, timestamp};
pub use token::{Token, TokenDigest};

#[cfg(feature = "mocks")]
pub use audit_log::MockAuditLog;
#[cfg(feature = "mocks")]
pub use key_store::MockKeyStore;
#[cfg(feature = "mocks")]
pub use member_store::MockMemberStore;
#[cfg(feature = "mocks")]
pub use password_hasher::MockPasswordHasher;
#[cfg(feature = "mocks")]
pub use patient_register::MockPatientRegister;
#[cfg(feature = "mocks")]
pub use session_store::MockSessionStore;
