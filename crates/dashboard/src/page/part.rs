//! The parts that the pages share, each under the one type by which pages take it: a page that takes another type does
//! not compile, and neither does an application that lacks a part.

use std::future::{Ready, ready};
use std::ops::Deref;
use std::sync::Arc;

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest};
use intake_domain::{
    AccountStore, EmailChangeStore, InvitationStore, KeyDescriptionStore, KeyList, KeyStateStore, KeyStore,
    MemberStore, PasswordResetStore, RulesStore, SecondFactorStore,
};

use crate::page::error::PageError;

/// The keys of organisations, and all that is done with them.
pub trait Keys: KeyStore + KeyList + KeyDescriptionStore + KeyStateStore + 'static {}

impl<T> Keys for T where T: KeyStore + KeyList + KeyDescriptionStore + KeyStateStore + 'static {}

/// The members of organisations: their invitations, their accounts, and the rules that they make for keys.
pub trait Members:
    MemberStore
    + InvitationStore
    + AccountStore
    + EmailChangeStore
    + PasswordResetStore
    + SecondFactorStore
    + RulesStore
    + 'static
{
}

impl<T> Members for T where
    T: MemberStore
        + InvitationStore
        + AccountStore
        + EmailChangeStore
        + PasswordResetStore
        + SecondFactorStore
        + RulesStore
        + 'static
{
}

/// A part that the application has: implemented only where it is added to the application.
pub(crate) trait Shared: Send + Sync + 'static {}

/// A part, as an argument of a page.
pub(crate) struct Part<T: ?Sized>(Arc<T>);

impl<T: ?Sized> Part<T> {
    pub(crate) fn take(request: &HttpRequest) -> Result<Self, PageError>
    where
        T: Shared,
    {
        part(request).cloned().map(Self)
    }

    pub(crate) fn into_inner(self) -> Arc<T> {
        self.0
    }
}

impl<T: ?Sized> Deref for Part<T> {
    type Target = Arc<T>;

    fn deref(&self) -> &Arc<T> {
        &self.0
    }
}

impl<T: Shared + ?Sized> FromRequest for Part<T> {
    type Error = PageError;
    type Future = Ready<Result<Self, PageError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(Self::take(request))
    }
}

/// A part that pages share.
pub(crate) fn shared<T: Shared + ?Sized>(request: &HttpRequest) -> Result<&T, PageError> {
    part(request).map(Arc::as_ref)
}

fn part<T: Shared + ?Sized>(request: &HttpRequest) -> Result<&Arc<T>, PageError> {
    request.app_data().ok_or_else(|| PageError::Unexpected("a page outside of the dashboard".into()))
}
