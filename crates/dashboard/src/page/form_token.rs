//! A form with no other field than the proof that it comes from a page of the visitor's own session.

use actix_web::dev::Payload;
use actix_web::web::Form;
use actix_web::{FromRequest, HttpRequest};
use serde::Deserialize;

use crate::page::error::PageError;
use crate::page::visitor::{Administrator, Found, Visitor};

#[derive(Deserialize)]
pub(crate) struct FormToken {
    pub(crate) form_token: String,
}

/// Extracts `T` only if the form token belongs to this session.
pub(crate) struct OwnForm<T>(pub(crate) T);

impl<T: FromRequest<Error = PageError> + AsRef<Visitor> + 'static> FromRequest for OwnForm<T> {
    type Error = PageError;
    type Future = Found<Self>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (subject, form) = (T::from_request(request, payload), Form::<FormToken>::from_request(request, payload));
        Box::pin(async move {
            let subject = subject.await?;
            let form = form.await.map_err(|_| PageError::BadForm)?;
            subject.as_ref().assert_own_form(&form.form_token)?;
            Ok(Self(subject))
        })
    }
}

impl AsRef<Visitor> for Visitor {
    fn as_ref(&self) -> &Visitor {
        self
    }
}

impl AsRef<Visitor> for Administrator {
    fn as_ref(&self) -> &Visitor {
        &self.0
    }
}
