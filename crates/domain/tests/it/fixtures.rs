//! Who and what the tests are about, and how they call a use case.

use futures_util::FutureExt;
use intake_domain::{
    AuditContext, AuditEntryId, Browser, ConfirmedMember, Member, MemberId, Name, OrganisationId, Origin, PasswordHash,
    Role, SignedIn, Token, Zone,
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
    SignedIn {
        member: ada(),
        organisation_name,
        has_second_factor: true,
        is_second_factor_required,
        key_age_max: None,
        zone: Zone::default(),
        is_second_factor_required_elsewhere: false,
        is_in_several: false,
        confirmed_at: Some(NOW),
        provider_confirmed_at: None,
    }
}

/// Calls a use case with Ada, who has just confirmed who she is.
pub(crate) fn confirmed<T>(signed_in: &SignedIn, use_case: impl FnOnce(ConfirmedMember<'_>) -> T) -> T {
    use_case(ConfirmedMember::of(signed_in, &session(), NOW).unwrap())
}

/// The session that Ada is signed in by.
pub(crate) fn session() -> Token {
    Token::new([2; 32])
}

/// Returns what a use case for a confirmed member records as done.
pub(crate) fn confirmed_audit() -> AuditContext {
    AuditContext { confirmed_in: Some(session().digest()), ..origin().by(ada().actor()) }
}

pub(crate) fn hash() -> PasswordHash {
    PasswordHash::new("$argon2id$ada".to_owned())
}

pub(crate) fn origin() -> Origin {
    let entry_id = AuditEntryId::new(NOW, [4; 10]);
    Origin {
        entry_id,
        address: Some([203, 0, 113, 9].into()),
        browser: Some(Browser::of("Firefox/145.0")),
        session: None,
        at: NOW,
    }
}

/// Runs a use case over mocks, which never make it wait.
pub(crate) fn run<T>(use_case: impl Future<Output = T>) -> T {
    use_case.now_or_never().expect("mocks answer at once")
}
