//! The visitor of a page: the member whose session the cookie belongs to. Anyone else is redirected to the sign-in page.

use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;

use actix_web::dev::Payload;
use actix_web::http::header::USER_AGENT;
use actix_web::web::Data;
use actix_web::{FromRequest, HttpRequest};
use intake_domain::{AuditEntryId, Browser, Deed, OrganisationId, Origin, Role, SessionStore, SignedIn, Token, Visit};
use intake_http::{TrustedProxies, edge};

use crate::page::destination::Destination;
use crate::page::error::PageError;
use crate::page::session_cookie;

/// A member who is signed in.
pub(crate) struct Visitor {
    pub(crate) signed_in: SignedIn,
    pub(crate) token: Token,
    request: HttpRequest,
}

impl Visitor {
    pub(crate) fn organisation(&self) -> OrganisationId {
        self.signed_in.member.organisation_id
    }

    /// Refuses a form that does not come from a page of this very session.
    pub(crate) fn assert_own_form(&self, form_token: &str) -> Result<(), PageError> {
        if form_token == self.token.form_token() { Ok(()) } else { Err(PageError::StaleForm) }
    }

    /// What all pages share, as the application holds it.
    pub(crate) fn shared<T: ?Sized + 'static>(&self) -> Result<&T, PageError> {
        let shared = self.request.app_data::<Data<T>>();
        shared.map(Data::get_ref).ok_or_else(|| PageError::Unexpected("the application lacks a part".into()))
    }

    /// The deed that this member does at this moment.
    pub(crate) fn deed(&self) -> Deed {
        origin(&self.request).by(self.signed_in.member.actor())
    }
}

/// This moment, where this request comes from, and by which browser.
pub(crate) fn origin(request: &HttpRequest) -> Origin {
    let at = edge::now();
    let address = address(request);
    let user_agent = request.headers().get(USER_AGENT).and_then(|value| value.to_str().ok());
    let browser = user_agent.map(Browser::of);
    Origin { entry_id: AuditEntryId::new(at, edge::random()), address, browser, at }
}

fn by_person(request: &HttpRequest) -> Visit {
    Visit::Person(address(request))
}

fn address(request: &HttpRequest) -> Option<IpAddr> {
    request.app_data::<Data<TrustedProxies>>().and_then(|proxies| proxies.client_address(request))
}

/// A visitor whose request was sent by a script of a page: it does not count as a use of the session, which ends when no
/// one is there.
pub(crate) struct Onlooker(pub(crate) Visitor);

/// A visitor who may do everything. A key manager is refused.
pub(crate) struct Administrator(pub(crate) Visitor);

/// A visitor who may have to turn on two-step sign-in first: for the pages by which they do, and for signing out.
pub(crate) struct Newcomer(pub(crate) Visitor);

type Found<T> = Pin<Box<dyn Future<Output = Result<T, PageError>>>>;

impl FromRequest for Visitor {
    type Error = PageError;
    type Future = Found<Self>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let found = Self::find(request, by_person(request));
        Box::pin(async move { found.await?.with_second_factor() })
    }
}

impl FromRequest for Administrator {
    type Error = PageError;
    type Future = Found<Self>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let found = Visitor::from_request(request, payload);
        Box::pin(async move {
            let visitor = found.await?;
            match visitor.signed_in.member.role {
                Role::Administrator => Ok(Self(visitor)),
                Role::KeyManager => Err(PageError::AdministratorsOnly),
            }
        })
    }
}

impl FromRequest for Newcomer {
    type Error = PageError;
    type Future = Found<Self>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let found = Visitor::find(request, by_person(request));
        Box::pin(async move { found.await.map(Self) })
    }
}

impl FromRequest for Onlooker {
    type Error = PageError;
    type Future = Found<Self>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let found = Visitor::find(request, Visit::Script);
        Box::pin(async move { found.await?.with_second_factor().map(Self) })
    }
}

impl Visitor {
    fn find(request: &HttpRequest, visit: Visit) -> Found<Self> {
        let request = request.clone();
        Box::pin(async move {
            let sign_in_first = || PageError::SignInFirst(Destination::asked_for(&request));
            let token = session_cookie::SESSION.token(request.headers()).ok_or_else(sign_in_first)?;
            let sessions = request
                .app_data::<Data<dyn SessionStore>>()
                .ok_or_else(|| PageError::Unexpected("the application holds no sessions".into()))?;
            let signed_in = sessions.holder(&token.digest(), visit, edge::now()).await?;
            let signed_in = signed_in.ok_or_else(sign_in_first)?;
            Ok(Self { signed_in, token, request })
        })
    }

    /// Leads a member who lacks the two-step sign-in that the organisation requires to where it is turned on.
    fn with_second_factor(self) -> Result<Self, PageError> {
        if self.signed_in.must_turn_on_second_factor() { Err(PageError::SecondFactorFirst) } else { Ok(self) }
    }
}
