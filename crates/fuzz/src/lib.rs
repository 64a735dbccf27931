//! The application in this process, for targets that send HTTP requests. Its ports are mocks that know one member.

use std::sync::Arc;

use actix_web::body::MessageBody;
use actix_web::dev::{Service, ServiceResponse};
use actix_web::http::StatusCode;
use actix_web::middleware::from_fn;
use actix_web::rt::{System, SystemRunner};
use actix_web::test::{TestRequest, init_service};
use actix_web::{App, Error};
use intake_dashboard::{Dashboard, Keys, Mails, Members};
use intake_domain::{
    ChooseOutcome, CreatedInPart, Environment, Factors, Holder, KeyActivity, KeyFormat, KeyPlace, Member, MockAuditLog,
    MockKeyActivity, MockOwnKeyStore, MockPasskeyStore, MockPasswordHasher, MockPatientRegister, MockSessionStore,
    MockSignatures, Name, OwnKeyStore, PasskeyStore, PasswordHasher, Passwords, Role, SessionStore, SignedIn, Token,
    Zone,
};
use intake_http::{Api, TrustedProxies, envelope};
use uuid::Uuid;

mod ports;

use ports::{MockKeys, MockMembers};

/// The application, ready to be called.
pub struct Application {
    system: SystemRunner,
    call: Call,
}

type Call = Box<dyn Fn(&SystemRunner, TestRequest) -> StatusCode>;

/// The session of the one member.
pub fn session() -> Token {
    Token::new([7; 32])
}

impl Application {
    /// Trusts the proxies of this network. Never dropped, because its parts cannot be dropped in the order in which
    /// threads end.
    pub fn start(proxies: &str) -> &'static Self {
        let system = System::new();
        let proxies = TrustedProxies::new(vec![proxies.parse().expect("a network")]);
        let format = KeyFormat::new(&"intake".parse().expect("a prefix"), Environment::Development);
        let api = Api {
            register: Arc::new(MockPatientRegister::new()),
            activity: activity(),
            own_keys: own_keys(),
            format: format.clone(),
            rate: None,
            proxies: proxies.clone(),
            base_url: "https://localhost".to_owned(),
        };
        let dashboard = Dashboard {
            keys: keys(),
            activity: activity(),
            members: members(),
            passkeys: passkeys(),
            signatures: Arc::new(MockSignatures::new()),
            sessions: sessions(),
            log: Arc::new(MockAuditLog::new()),
            hasher: hasher(),
            single_sign_on: None,
            mails: Mails::new(None, "https://localhost".to_owned(), Passwords::On, None),
            format,
            proxies,
            base_url: "https://localhost".to_owned(),
            authority: None,
        };
        let application =
            App::new().wrap(from_fn(envelope)).configure(api.configure()).configure(dashboard.configure());
        let service = system.block_on(init_service(application));
        Box::leak(Box::new(Self { system, call: Box::new(move |system, request| call(system, &service, request)) }))
    }

    /// Returns the status of the answer. A panic ends the process, although the application would survive it.
    pub fn status(&self, request: TestRequest) -> StatusCode {
        (self.call)(&self.system, request)
    }
}

fn call<B: MessageBody>(
    system: &SystemRunner,
    service: &impl Service<actix_http::Request, Response = ServiceResponse<B>, Error = Error>,
    request: TestRequest,
) -> StatusCode {
    match system.block_on(service.call(request.to_request())) {
        Ok(answer) => answer.status(),
        Err(error) => error.error_response().status(),
    }
}

fn keys() -> Arc<dyn Keys> {
    let mut keys = MockKeys::new();
    keys.expect_place().returning(|_| Ok(KeyPlace::new(|_| true)));
    keys.expect_add_key().returning(|_, _| Ok(()));
    keys.expect_keys().returning(|_| Ok(Some(Vec::new())));
    keys.expect_key().returning(|_, _| Ok(None));
    keys.expect_made_by().returning(|_, _| Ok(Vec::new()));
    keys.expect_describe().returning(|_, _, _, _| Ok(true));
    keys.expect_set_allowed_networks().returning(|_, _, _, _| Ok(true));
    Arc::new(keys)
}

fn own_keys() -> Arc<dyn OwnKeyStore> {
    let mut keys = MockOwnKeyStore::new();
    keys.expect_own_key().returning(|_| Ok(None));
    let none = CreatedInPart { existing: 0, erased: 0, digest: [0; 32] };
    keys.expect_created().returning(move |_, _| Ok(none));
    Arc::new(keys)
}

fn activity() -> Arc<dyn KeyActivity> {
    let mut activity = MockKeyActivity::new();
    activity.expect_note_sent_in_clear().returning(|_, _| ());
    activity.expect_note_refusal().returning(|_, _| ());
    activity.expect_note_answer().returning(|_, _, _| ());
    activity.expect_known_end().returning(|_| None);
    activity.expect_refusals().returning(|_, _| Ok(Vec::new()));
    Arc::new(activity)
}

fn members() -> Arc<dyn Members> {
    let mut members = MockMembers::new();
    members.expect_credentials().returning(|_, _| Ok(Vec::new()));
    members.expect_members().returning(|_| Ok(Vec::new()));
    members.expect_invitation().returning(|_, _| Ok(None));
    members.expect_invite().returning(|_, _| Ok(()));
    members.expect_open_invitations().returning(|_, _| Ok(Vec::new()));
    members.expect_recovery_codes_left().returning(|_| Ok(None));
    Arc::new(members)
}

fn passkeys() -> Arc<dyn PasskeyStore> {
    let mut passkeys = MockPasskeyStore::new();
    passkeys.expect_passkeys().returning(|_| Ok(Vec::new()));
    passkeys.expect_holder().returning(|_| Ok(None));
    passkeys.expect_begin().returning(|_, _| Ok(()));
    Arc::new(passkeys)
}

fn sessions() -> Arc<dyn SessionStore> {
    let mut sessions = MockSessionStore::new();
    sessions.expect_awaited().returning(|_, _| Ok(None));
    sessions.expect_end().returning(|_, _| Ok(()));
    sessions.expect_sessions().returning(|_, _| Ok(Vec::new()));
    sessions.expect_end_one().returning(|_, _, _| Ok(false));
    sessions.expect_memberships().returning(|_| Ok(Vec::new()));
    sessions.expect_choose().returning(|_, _, _| Ok(ChooseOutcome::NoSuchOrganisation));
    sessions.expect_factors().returning(|_| {
        Ok(Factors { secret: None, has_passkey: false, has_password: true, is_linked_to_provider: false })
    });
    sessions.expect_end_others().returning(|_, _| Ok(()));
    sessions.expect_holder().returning(|token, _, _| {
        let member = Member {
            id: Uuid::from_u128(1).into(),
            organisation_id: Uuid::from_u128(2).into(),
            name: Name::new("Ada").expect("a name"),
            email: "ada@example.com".parse().expect("an address"),
            role: Role::Administrator,
        };
        let organisation_name = "Clinic".to_owned();
        let is_known = *token == session().digest();
        let signed_in = SignedIn {
            member,
            organisation_name,
            has_second_factor: false,
            is_second_factor_required: false,
            key_age_max: None,
            zone: Zone::default(),
            is_second_factor_required_elsewhere: false,
            is_in_several: false,
            confirmed_at: None,
            provider_confirmed_at: None,
        };
        Ok(is_known.then_some(Holder::Member(signed_in)))
    });
    Arc::new(sessions)
}

fn hasher() -> Arc<dyn PasswordHasher> {
    let mut hasher = MockPasswordHasher::new();
    hasher.expect_find().returning(|_, _, _| Ok(None));
    Arc::new(hasher)
}
