//! The visitor of a page: the member whose session the cookie belongs to. Anyone else is redirected to the sign-in page.

use std::future::Future;
use std::pin::Pin;

use actix_web::dev::Payload;
use actix_web::web::Data;
use actix_web::{FromRequest, HttpRequest};
use intake_domain::{AuditEntryId, Deed, OrganisationId, Origin, SessionStore, SignedIn, Token, Visit};
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

    /// The deed that this member does at this moment.
    pub(crate) fn deed(&self) -> Deed {
        origin(&self.request).by(self.signed_in.member.actor())
    }
}

/// This moment, and where this request comes from.
pub(crate) fn origin(request: &HttpRequest) -> Origin {
    let at = edge::now();
    let proxies = request.app_data::<Data<TrustedProxies>>();
    let address = proxies.and_then(|proxies| proxies.client_address(request));
    Origin { entry_id: AuditEntryId::new(at, edge::random()), address, at }
}

/// A visitor whose request was sent by a script of a page: it does not count as a use of the session, which ends when no
/// one is there.
pub(crate) struct Onlooker(pub(crate) Visitor);

type Found<T> = Pin<Box<dyn Future<Output = Result<T, PageError>>>>;

impl FromRequest for Visitor {
    type Error = PageError;
    type Future = Found<Self>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        Self::find(request, Visit::Person)
    }
}

impl FromRequest for Onlooker {
    type Error = PageError;
    type Future = Found<Self>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let found = Visitor::find(request, Visit::Script);
        Box::pin(async move { found.await.map(Self) })
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
}
