//! Passkeys of an authenticator and a browser that others have written: what they make and sign is accepted, and
//! nothing else is.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::time::Duration;

use async_trait::async_trait;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use intake_domain::{
    Actor, AuditEntryId, Challenge, CodeError, ConfirmedMember, Environment, Evidence, Guest, Holder, InvitationStore,
    LinkDelivery, Member, MemberId, Name, NewCredential, NewInvitation, NewMember, NewSession, Operator, Origin,
    PasskeyAssertion, PasskeyRegistration, PasswordHash, Passwords, RelyingParty, Role, SessionStore, Token, Visit,
    add_passkey, begin_passkey_sign_in, sign_in_by_passkey,
};
use intake_infra::{Database, PostgresMembers, PostgresPasskeyStore, PostgresSessionStore, RingSignatures};
use intake_test_support::{Clinic, TestDatabase, random};
use passkey::authenticator::{Authenticator, UiHint, UserCheck, UserValidationMethod};
use passkey::client::{Client, DefaultClientData};
use passkey::crypto::iana::Algorithm;
use passkey::crypto::rust_crypto::RustCryptoBackend;
use passkey::types::Passkey;
use passkey::types::ctap2::{Aaguid, Ctap2Error};
use passkey::types::webauthn::{
    AttestationConveyancePreference, AuthenticatorSelectionCriteria, CredentialCreationOptions,
    CredentialRequestOptions, PublicKeyCredentialCreationOptions, PublicKeyCredentialParameters,
    PublicKeyCredentialRequestOptions, PublicKeyCredentialRpEntity, PublicKeyCredentialType,
    PublicKeyCredentialUserEntity, ResidentKeyRequirement, UserVerificationRequirement,
};
use time::OffsetDateTime;
use time::macros::datetime;
use url::Url;

const NOW: OffsetDateTime = datetime!(2025-12-03 10:30 UTC);
const ADDRESS: &str = "https://clinic.example:8443";

/// A user who is there, and shows the finger if asked.
struct User;

#[async_trait]
impl UserValidationMethod for User {
    type PasskeyItem = Passkey;

    async fn check_user<'a>(
        &self,
        _: UiHint<'a, Passkey>,
        presence: bool,
        verification: bool,
    ) -> Result<UserCheck, Ctap2Error> {
        Ok(UserCheck { presence, verification })
    }

    fn is_presence_enabled(&self) -> bool {
        true
    }

    fn is_verification_enabled(&self) -> Option<bool> {
        Some(true)
    }
}

fn bytes(challenge: &Challenge) -> Vec<u8> {
    BASE64_URL_SAFE_NO_PAD.decode(challenge.as_base64url()).unwrap()
}

/// Returns what `passkey.js` asks a browser for.
fn creation(challenge: &Challenge, algorithm: Algorithm) -> CredentialCreationOptions {
    CredentialCreationOptions {
        public_key: PublicKeyCredentialCreationOptions {
            rp: PublicKeyCredentialRpEntity { id: Some("clinic.example".to_owned()), name: "intake".to_owned() },
            user: PublicKeyCredentialUserEntity {
                id: vec![7; 16].into(),
                display_name: "Ada".to_owned(),
                name: "ada@clinic.example".to_owned(),
            },
            challenge: bytes(challenge).into(),
            pub_key_cred_params: vec![PublicKeyCredentialParameters {
                ty: PublicKeyCredentialType::PublicKey,
                alg: algorithm,
            }],
            timeout: None,
            exclude_credentials: None,
            authenticator_selection: Some(AuthenticatorSelectionCriteria {
                authenticator_attachment: None,
                resident_key: Some(ResidentKeyRequirement::Required),
                require_resident_key: true,
                user_verification: UserVerificationRequirement::Required,
            }),
            hints: None,
            attestation: AttestationConveyancePreference::None,
            attestation_formats: None,
            extensions: None,
        },
    }
}

fn use_of(challenge: &Challenge, verification: UserVerificationRequirement) -> CredentialRequestOptions {
    CredentialRequestOptions {
        public_key: PublicKeyCredentialRequestOptions {
            challenge: bytes(challenge).into(),
            timeout: None,
            rp_id: Some("clinic.example".to_owned()),
            allow_credentials: None,
            user_verification: verification,
            hints: None,
            attestation: AttestationConveyancePreference::None,
            attestation_formats: None,
            extensions: None,
        },
    }
}

fn origin() -> Origin {
    Origin { entry_id: AuditEntryId::new(NOW, random()), address: None, browser: None, session: None, at: NOW }
}

/// A member who has just confirmed who they are, and the session.
async fn member(clinic: &Clinic, members: &PostgresMembers, sessions: &PostgresSessionStore) -> Token {
    let (id, token, session) = (MemberId::new(NOW, random()), Token::new(random()), Token::new(random()));
    let (name, email) = (Name::new("Ada").unwrap(), "ada@clinic.example".parse().unwrap());
    let (organisation_id, role) = (clinic.organisation, Role::Administrator);
    let expires_at = NOW + time::Duration::HOUR;
    let member = Member { id, organisation_id, name: name.clone(), email, role };
    let email = member.email.clone();
    let invitation = NewInvitation {
        token: token.digest(),
        organisation_id,
        email,
        role,
        delivery: LinkDelivery::Shown,
        expires_at,
    };
    members.invite(&invitation, &origin().by(Actor::Operator(Operator::default()))).await.unwrap();
    let password = PasswordHash::new("password".to_owned());
    let new = NewMember { id, name, credential: NewCredential::Password(password.clone()) };
    let first = NewSession {
        token: session.digest(),
        member_id: id,
        started_at: NOW,
        browser: None,
        is_by_provider: false,
        replaces: None,
    };
    let audit = origin().by(member.actor());
    members.join(&token.digest(), &Guest::New(new), &first, &audit).await.unwrap();
    let next = Token::new(random());
    let evidence = Evidence::Password(password, None);
    sessions.confirm(&session.digest(), &next.digest(), &evidence, &audit).await.unwrap();
    next
}

#[test]
fn only_what_an_independent_authenticator_signs_is_accepted() {
    let database = TestDatabase::new();
    let pool = Database::new(&database.service, Duration::from_secs(60));
    let clinic = Clinic::open(&database.service, Environment::Development);
    let (members, passkeys) = (PostgresMembers::new(pool.clone()), PostgresPasskeyStore::new(pool.clone()));
    let sessions = PostgresSessionStore::new(pool, Passwords::On);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let session = runtime.block_on(member(&clinic, &members, &sessions));
    let site = RelyingParty::of(ADDRESS);
    for (number, algorithm) in [Algorithm::ES256, Algorithm::EdDSA].into_iter().enumerate() {
        runtime.block_on(async {
            let authenticator = Authenticator::new(Aaguid::new_empty(), None::<Passkey>, User, RustCryptoBackend);
            let mut client = Client::new(authenticator);
            let here = Url::parse(ADDRESS).unwrap();
            let asked = creation(&Challenge::of(&session), algorithm);
            let made = match client.register(&here, asked, DefaultClientData).await {
                Ok(made) => made,
                // An authenticator may know one kind of key alone.
                Err(error) => {
                    assert_ne!(number, 0, "{error:?}");
                    return;
                }
            };
            let registration = PasskeyRegistration {
                credential: made.raw_id.to_vec(),
                client_data: made.response.client_data_json.to_vec(),
                authenticator_data: made.response.authenticator_data.to_vec(),
                public_key: made.response.public_key.unwrap().to_vec(),
            };
            let holder = sessions.holder(&session.digest(), Visit::Script, NOW).await.unwrap();
            let Some(Holder::Member(signed_in)) = holder else { panic!("{holder:?}") };
            let audit = origin().by(signed_in.member.actor());
            let confirmed = ConfirmedMember::of(&signed_in, &session, NOW).unwrap();
            add_passkey(&passkeys, &site, confirmed, "Phone", &session, &registration, &audit).await.unwrap();

            let mut sign = async |verification, address: &str, used_for: &Token, signed_for: &Token| {
                let url = Url::parse(address).unwrap();
                let asked = use_of(&Challenge::of(signed_for), verification);
                let used = client.authenticate(&url, asked, DefaultClientData).await.unwrap();
                let assertion = PasskeyAssertion {
                    credential: used.raw_id.to_vec(),
                    client_data: used.response.client_data_json.to_vec(),
                    authenticator_data: used.response.authenticator_data.to_vec(),
                    signature: used.response.signature.to_vec(),
                };
                begin_passkey_sign_in(&passkeys, used_for, NOW).await.unwrap();
                let new = Token::new(random());
                sign_in_by_passkey(&passkeys, &RingSignatures, &site, used_for, &assertion, &new, origin()).await
            };
            let (one, other) = (Token::new(random()), Token::new(random()));
            let required = UserVerificationRequirement::Required;
            sign(required, ADDRESS, &one, &one).await.unwrap();
            for (what, refused) in [
                ("another challenge", sign(required, ADDRESS, &one, &other).await),
                ("another port", sign(required, "https://clinic.example", &other, &other).await),
                ("an unverified user", sign(UserVerificationRequirement::Discouraged, ADDRESS, &other, &other).await),
            ] {
                assert!(matches!(refused, Err(CodeError::WrongCode)), "{what}: {refused:?}");
            }
        });
    }
    assert!(database.count("passkeys WHERE last_used_at IS NOT NULL") >= 1);
}
