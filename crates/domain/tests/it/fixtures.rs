//! Who and what the tests are about, and how they call a use case.

use futures_util::FutureExt;
use intake_domain::{
    AuditEntryId, Browser, ConfirmedMember, Credentials, Member, MemberId, MockMemberStore, MockPasswordHasher, Name,
    OrganisationId, Origin, PasswordHash, PresentedPassword, Role, SignedIn, confirm_password,
};
use time::OffsetDateTime;
use time::macros::datetime;
use uuid::Uuid;

pub(crate) const NOW: OffsetDateTime = datetime!(2025-12-03 10:30 UTC);
pub(crate) const PASSWORD: &str = "correct horse battery";

pub(crate) fn organisation() -> OrganisationId {
    Uuid::from_u128(1).into()
}

/// A member of the organisation, whose password is [`PASSWORD`].
pub(crate) fn ada() -> Member {
    Member {
        id: MemberId::new(NOW, [1; 10]),
        organisation_id: organisation(),
        name: Name::new("Ada").unwrap(),
        email: "ada@clinic.example".parse().unwrap(),
        role: Role::Administrator,
    }
}

/// Ada, signed in with a second factor, which her organisation may require.
pub(crate) fn signed_in(is_second_factor_required: bool) -> SignedIn {
    let organisation_name = "Clinic".to_owned();
    SignedIn { member: ada(), organisation_name, has_second_factor: true, is_second_factor_required }
}

/// Calls a use case with Ada, who has just typed her password.
pub(crate) fn confirmed<T>(signed_in: &SignedIn, use_case: impl FnOnce(ConfirmedMember<'_>) -> T) -> T {
    let mut members = MockMemberStore::new();
    members.expect_credentials().returning(|_, _| {
        Ok(Some(Credentials { member: ada(), password: hash(), has_second_factor: true, is_familiar: false }))
    });
    let mut hasher = MockPasswordHasher::new();
    hasher.expect_matches().returning(|_, _, _| Ok(true));
    let password = PresentedPassword::new(PASSWORD);
    use_case(run(confirm_password(&members, &hasher, signed_in, &password)).unwrap())
}

pub(crate) fn hash() -> PasswordHash {
    PasswordHash::new("$argon2id$ada".to_owned())
}

pub(crate) fn origin() -> Origin {
    let entry_id = AuditEntryId::new(NOW, [4; 10]);
    Origin { entry_id, address: Some([203, 0, 113, 9].into()), browser: Some(Browser::of("Firefox/145.0")), at: NOW }
}

/// Runs a use case over mocks, which never make it wait.
pub(crate) fn run<T>(use_case: impl Future<Output = T>) -> T {
    use_case.now_or_never().expect("mocks answer at once")
}
