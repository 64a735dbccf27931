//! The visitor of a page: the member whose session the cookie belongs to. Anyone else is redirected to the sign-in
//! page.

use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;

use actix_web::dev::Payload;
use actix_web::http::header::USER_AGENT;
use actix_web::{FromRequest, HttpRequest};
use intake_domain::{
    Account, AuditContext, AuditEntryId, Browser, CONFIRMATION_PAGE_LIMIT, ConfirmedMember, Holder, OrganisationId,
    Origin, Role, SessionStore, SignedIn, Token, Visit, Zone,
};
use intake_edge as edge;
use intake_http::TrustedProxies;

use crate::mails::{AccountChange, KeyChange, MailedKey, Mails};
use crate::page::destination::Destination;
use crate::page::draft::Draft;
use crate::page::error::PageError;
use crate::page::part::{Members, Shared, shared};
use crate::page::{cookie, draft, notice};
use crate::stopped_keys::KeysChange;

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

    /// The zone of the days and times that the visitor sees.
    pub(crate) fn zone(&self) -> Zone {
        self.signed_in.zone
    }

    /// Refuses a form that does not come from a page of this very session.
    pub(crate) fn assert_own_form(&self, form_token: &str) -> Result<(), PageError> {
        if form_token == self.form_token() { Ok(()) } else { Err(PageError::StaleForm) }
    }

    /// Returns what the forms of this session send while it is in this organisation.
    pub(crate) fn form_token(&self) -> String {
        self.token.form_token_in(self.organisation())
    }

    /// The member, if they confirmed who they are in the last minutes. Else redirects to the page for that, which leads
    /// back to the form.
    pub(crate) fn confirmed(&self) -> Result<ConfirmedMember<'_>, PageError> {
        let confirmed = ConfirmedMember::of(&self.signed_in, &self.token, edge::now());
        confirmed.ok_or_else(|| PageError::ConfirmFirst(Destination::of_form(&self.request)))
    }

    /// The same, for a form that comes from a page of this very session.
    pub(crate) fn confirmed_by(&self, form_token: &str) -> Result<ConfirmedMember<'_>, PageError> {
        self.assert_own_form(form_token)?;
        self.confirmed()
    }

    /// Redirects a visitor without a recent confirmation to the page for that, before a form that needs one is shown.
    pub(crate) fn assert_confirmed(&self) -> Result<(), PageError> {
        let is_confirmed = self.signed_in.is_confirmed(CONFIRMATION_PAGE_LIMIT, edge::now());
        if is_confirmed { Ok(()) } else { Err(PageError::ConfirmFirst(Destination::asked_for(&self.request))) }
    }

    /// The notice that a change has left for this page.
    pub(crate) fn notice(&self) -> Option<String> {
        notice::notice(&self.request)
    }

    /// Returns what was typed into the form on this page before the visitor had to sign in or confirm who they are.
    pub(crate) fn draft(&self) -> Option<Draft> {
        draft::draft(&self.request)
    }

    /// Returns what was typed into the form on another page.
    pub(crate) fn draft_of(&self, page: &str) -> Option<Draft> {
        draft::draft_of(&self.request, page)
    }

    /// Forgets what was typed, because it has been carried out.
    pub(crate) fn forget_draft(&self) {
        draft::forget(&self.request);
    }

    /// A part that pages share.
    pub(crate) fn shared<T: Shared + ?Sized>(&self) -> Result<&T, PageError> {
        shared(&self.request)
    }

    /// Returns where this request comes from.
    pub(crate) fn origin(&self) -> Origin {
        origin(&self.request)
    }

    /// Tells the member by mail what was done to their account.
    pub(crate) fn mail_change(&self, change: AccountChange) -> Result<(), PageError> {
        let member = &self.signed_in.member;
        self.shared::<Mails>()?.account(&member.account(), &member.email, change, self.origin(), self.zone());
        Ok(())
    }

    /// Tells the other members by mail what this one has done to the key.
    pub(crate) async fn mail_key(&self, key: MailedKey<'_>, change: KeyChange<'_>) -> Result<(), PageError> {
        let (mails, members) = (self.shared::<Mails>()?, self.shared::<dyn Members>()?);
        mails.key(members, &self.signed_in, key, change).await;
        Ok(())
    }

    /// Tells the other members by mail what this one has done to these keys together.
    pub(crate) async fn mail_keys(&self, keys: &[MailedKey<'_>], change: KeysChange) -> Result<(), PageError> {
        let (mails, members) = (self.shared::<Mails>()?, self.shared::<dyn Members>()?);
        mails.keys_together(members, &self.signed_in, keys, change).await;
        Ok(())
    }

    /// The audit context of what this member does now.
    pub(crate) fn audit(&self) -> AuditContext {
        origin(&self.request).by(self.signed_in.member.actor())
    }
}

/// This moment, where this request comes from, and by which browser.
pub(crate) fn origin(request: &HttpRequest) -> Origin {
    let at = edge::now();
    let address = address(request);
    let user_agent = request.headers().get(USER_AGENT).and_then(|value| value.to_str().ok());
    let browser = user_agent.map(Browser::of);
    let session = cookie::SESSION.token(request.headers()).map(|token| token.digest());
    Origin { entry_id: AuditEntryId::new(at, edge::random()), address, browser, session, at }
}

fn by_person(request: &HttpRequest) -> Visit {
    Visit::Person(address(request))
}

fn address(request: &HttpRequest) -> Option<IpAddr> {
    shared::<TrustedProxies>(request).ok().and_then(|proxies| proxies.client_address(request))
}

/// A visitor whose request was sent by a script of a page: it does not count as a use of the session, which ends when
/// no one is there.
pub(crate) struct Onlooker(pub(crate) Visitor);

/// A visitor who may do everything.
pub(crate) struct Administrator(pub(crate) Visitor);

/// A visitor who may change keys: an administrator or a key manager.
pub(crate) struct KeyManager(pub(crate) Visitor);

/// A visitor who may see members and activity: an administrator or an auditor.
pub(crate) struct Auditor(pub(crate) Visitor);

/// A visitor who may have to turn on two-step sign-in first: for the pages by which they do.
pub(crate) struct Newcomer(pub(crate) Visitor);

/// A person who is signed in, and may have yet to choose one of their organisations: for the page on which they do, and
/// for signing out.
pub(crate) struct Person {
    pub(crate) account: Account,
    /// The organisation that the session is in.
    pub(crate) organisation: Option<OrganisationId>,
    pub(crate) token: Token,
    request: HttpRequest,
}

impl Person {
    /// Refuses a form that does not come from a page of this very session.
    pub(crate) fn assert_own_form(&self, form_token: &str) -> Result<(), PageError> {
        let is_of_organisation = self.organisation.is_some_and(|id| form_token == self.token.form_token_in(id));
        if is_of_organisation || form_token == self.token.form_token() { Ok(()) } else { Err(PageError::StaleForm) }
    }

    /// The audit context of what this person does now.
    pub(crate) fn audit(&self) -> AuditContext {
        origin(&self.request).by(self.account.actor())
    }
}

pub(crate) type Found<T> = Pin<Box<dyn Future<Output = Result<T, PageError>>>>;

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
        with_role(request, payload, Role::administers, Self)
    }
}

impl FromRequest for KeyManager {
    type Error = PageError;
    type Future = Found<Self>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        with_role(request, payload, Role::manages_keys, Self)
    }
}

impl FromRequest for Auditor {
    type Error = PageError;
    type Future = Found<Self>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        with_role(request, payload, Role::sees_everything, Self)
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
        let found = Self::find(request);
        Box::pin(async move { found.await?.with_second_factor().map(Self) })
    }
}

impl FromRequest for Person {
    type Error = PageError;
    type Future = Found<Self>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move {
            let (token, holder) = holder(&request, by_person(&request)).await?;
            let (account, organisation) = match holder {
                Holder::Member(signed_in) => (signed_in.member.account(), Some(signed_in.member.organisation_id)),
                Holder::Undecided(account) => (account, None),
            };
            Ok(Self { account, organisation, token, request })
        })
    }
}

/// The visitor, if the role allows what is asked for.
fn with_role<T: 'static>(
    request: &HttpRequest,
    payload: &mut Payload,
    allows: fn(Role) -> bool,
    wrap: fn(Visitor) -> T,
) -> Found<T> {
    let found = Visitor::from_request(request, payload);
    Box::pin(async move { found.await?.whose_role(allows).map(wrap) })
}

/// The token of the request's session, and who holds it.
async fn holder(request: &HttpRequest, visit: Visit) -> Result<(Token, Holder), PageError> {
    let sign_in_first = || PageError::SignInFirst(Destination::asked_for(request));
    let token = cookie::SESSION.token(request.headers()).ok_or_else(sign_in_first)?;
    let sessions = shared::<dyn SessionStore>(request)?;
    let holder = sessions.holder(&token.digest(), visit, edge::now()).await?.ok_or_else(sign_in_first)?;
    Ok((token, holder))
}

impl Onlooker {
    /// The member whose session a request belongs to, which it is no use of.
    pub(crate) fn find(request: &HttpRequest) -> Found<Visitor> {
        Visitor::find(request, Visit::Script)
    }
}

impl Visitor {
    fn find(request: &HttpRequest, visit: Visit) -> Found<Self> {
        let request = request.clone();
        Box::pin(async move {
            match holder(&request, visit).await? {
                (token, Holder::Member(signed_in)) => Ok(Self { signed_in, token, request }),
                (_, Holder::Undecided(_)) => Err(PageError::ChooseFirst(Destination::asked_for(&request))),
            }
        })
    }

    /// Refuses a member whose role does not allow what is asked for.
    fn whose_role(self, allows: fn(Role) -> bool) -> Result<Self, PageError> {
        match self.signed_in.member.role {
            role if allows(role) => Ok(self),
            Role::KeyManager if allows(Role::Auditor) => Err(PageError::AdministratorsAndAuditorsOnly),
            Role::Auditor => Err(PageError::AuditorsOnlyLook),
            Role::Administrator | Role::KeyManager => Err(PageError::AdministratorsOnly),
        }
    }

    /// Leads a member who lacks the two-step sign-in that the organisation requires to where it is turned on.
    fn with_second_factor(self) -> Result<Self, PageError> {
        if self.signed_in.must_turn_on_second_factor() { Err(PageError::SecondFactorFirst) } else { Ok(self) }
    }
}
