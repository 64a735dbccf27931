//! API keys.

use actix_web::dev::Payload;
use actix_web::web::Query;
use actix_web::{FromRequest, HttpRequest};
use intake_domain::{KeyId, KeyList, KeyRecord, ManageKeysError};

use crate::api_keys::filter::Filter;
use crate::page::error::PageError;
use crate::page::part::Keys;
use crate::page::visitor::{Found, KeyManager, Visitor};

pub(crate) mod answers;
pub(crate) mod channels;
pub(crate) mod chart;
pub(crate) mod create;
pub(crate) mod created;
pub(crate) mod expiry;
pub(crate) mod facts;
pub(crate) mod filter;
pub(crate) mod first_steps;
pub(crate) mod key_row;
pub(crate) mod key_text;
pub(crate) mod list;
pub(crate) mod listed_key;
pub(crate) mod networks;
pub(crate) mod pause;
pub(crate) mod refusals;
pub(crate) mod replace;
pub(crate) mod revoke;
pub(crate) mod routes;
pub(crate) mod select;
pub(crate) mod show;
pub(crate) mod sparkline;
pub(crate) mod status;
pub(crate) mod stop_all;
pub(crate) mod usage;

/// Address of the list of keys.
pub(crate) const LIST: &str = "/settings/api-keys";

/// The key in the path, which the visitor's organisation has and the visitor may change, and the search that led to it.
pub(crate) struct OwnKey {
    pub(crate) visitor: Visitor,
    pub(crate) key: KeyRecord,
    pub(crate) filter: Filter,
}

impl FromRequest for OwnKey {
    type Error = PageError;
    type Future = Found<Self>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (visitor, request) = (KeyManager::from_request(request, payload), request.clone());
        Box::pin(async move { OwnKey::asked_for(visitor.await?.0, &request).await })
    }
}

/// The same for a visitor who may only look at it.
pub(crate) struct SeenKey(pub(crate) OwnKey);

impl FromRequest for SeenKey {
    type Error = PageError;
    type Future = Found<Self>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (visitor, request) = (Visitor::from_request(request, payload), request.clone());
        Box::pin(async move { OwnKey::asked_for(visitor.await?, &request).await.map(Self) })
    }
}

impl AsRef<Visitor> for OwnKey {
    fn as_ref(&self) -> &Visitor {
        &self.visitor
    }
}

impl OwnKey {
    async fn asked_for(visitor: Visitor, request: &HttpRequest) -> Result<Self, PageError> {
        let key = own_key(&visitor, request.match_info().query("key"), visitor.shared::<dyn Keys>()?).await?;
        let filter = Query::from_query(request.query_string()).map(Query::into_inner).unwrap_or_default();
        Ok(Self { visitor, key, filter })
    }
}

/// The key with this id, if the visitor's organisation has it: other organisations' keys are not found.
pub(crate) async fn own_key(visitor: &Visitor, id: &str, keys: &dyn KeyList) -> Result<KeyRecord, PageError> {
    let id: KeyId = id.parse().map_err(|_| PageError::NotFound)?;
    keys.key(visitor.organisation(), id).await?.ok_or(PageError::NotFound)
}

impl From<ManageKeysError> for PageError {
    fn from(error: ManageKeysError) -> Self {
        match error {
            ManageKeysError::NoSuchOrganisation(_)
            | ManageKeysError::OrganisationClosed(_)
            | ManageKeysError::NoSuchKey(_) => Self::NotFound,
            ManageKeysError::AlreadyMade | ManageKeysError::NothingToReplace | ManageKeysError::KeyIsOver(_) => {
                Self::BadForm
            }
            ManageKeysError::OrganisationSuspended(_) => Self::OrganisationSuspended,
            ManageKeysError::NotAdministrator => Self::AdministratorsOnly,
            ManageKeysError::TooLong(_) => Self::KeyTooLong,
            ManageKeysError::TooManyKeys => Self::TooManyKeys,
            ManageKeysError::TooManyToday => Self::TooManyKeysToday,
            ManageKeysError::Store(error) => error.into(),
        }
    }
}
