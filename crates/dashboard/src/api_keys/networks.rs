//! The networks from which a key is accepted: the field of the forms, and the page that changes them.

use std::net::IpAddr;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Form;
use askama::Template;
use intake_domain::{AllowedNetworks, AllowedNetworksError, KeyActivity, RefusalReason};
use serde::Deserialize;

use crate::api_keys::OwnKey;
use crate::api_keys::facts::why_refused;
use crate::api_keys::key_text::{after, kept_as_revoked};
use crate::mails::KeyChange;
use crate::page::error::PageError;
use crate::page::part::{Keys, Part};
use crate::page::shell::{Shell, render};

/// Number of addresses of refused requests that are named.
const REFUSED_MAX: usize = 5;
/// Enough for the longest list, written in any way.
const CHARACTERS_MAX: usize = 1_000;

/// The field of a form.
pub(crate) struct NetworksField {
    pub(crate) text: String,
    pub(crate) error: Option<AllowedNetworksError>,
    pub(crate) characters_max: usize,
    pub(crate) networks_max: usize,
}

impl NetworksField {
    pub(crate) fn new(text: impl Into<String>, error: Option<AllowedNetworksError>) -> Self {
        let (text, characters_max) = (text.into(), CHARACTERS_MAX);
        Self { text, error, characters_max, networks_max: AllowedNetworks::MAX }
    }

    /// The height of the field, in lines: a usual list is seen as a whole.
    pub(crate) fn rows(&self) -> usize {
        self.text.lines().count().saturating_add(1).clamp(3, 8)
    }
}

#[derive(Template)]
#[template(path = "api_keys/networks.html")]
struct NetworksPage<'a> {
    shell: Shell,
    action: String,
    back: String,
    name: &'a str,
    networks: NetworksField,
    /// The address of the last use.
    last: Option<&'a str>,
    /// Addresses from which requests were refused because of the list.
    refused: Vec<String>,
    /// The list that leaves out the address of the last use, which is saved if it is sent again.
    despite: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct NetworksForm {
    form_token: String,
    networks: String,
    #[serde(default)]
    despite: String,
}

pub(crate) async fn page(own: OwnKey) -> Result<HttpResponse, PageError> {
    if own.key.revoked_at.is_some() {
        return Ok(kept_as_revoked(&own.filter, &own.key));
    }
    let set = &own.key.allowed_networks;
    let set = if set.are_any() { String::new() } else { set.to_string().replace(", ", "\n") };
    let draft = own.visitor.draft().map(|draft| draft.field("networks"));
    let field = NetworksField::new(draft.unwrap_or(set), None);
    render(StatusCode::OK, &NetworksPage::new(&own, field, None).await?)
}

pub(crate) async fn save(
    own: OwnKey,
    form: Form<NetworksForm>,
    keys: Part<dyn Keys>,
) -> Result<HttpResponse, PageError> {
    let OwnKey { visitor, key, filter } = &own;
    visitor.assert_own_form(&form.form_token)?;
    let networks = match form.networks.parse::<AllowedNetworks>() {
        Ok(networks) => networks,
        Err(error) => {
            let field = NetworksField::new(&form.networks, Some(error));
            return render(StatusCode::UNPROCESSABLE_ENTITY, &NetworksPage::new(&own, field, None).await?);
        }
    };
    let last: Option<IpAddr> = key.last_address.as_ref().and_then(|address| address.parse().ok());
    let written = networks.to_string();
    if last.is_some() && !networks.allow(last) && form.despite != written {
        let page = NetworksPage::new(&own, NetworksField::new(&form.networks, None), Some(written)).await?;
        return render(StatusCode::UNPROCESSABLE_ENTITY, &page);
    }
    let organisation = Some(visitor.organisation());
    let changed = keys.set_allowed_networks(key.id, organisation, &networks, &visitor.audit()).await;
    if let Ok(true) = changed {
        visitor.mail_key(key.into(), KeyChange::NetworksAllowed(&networks, why_refused(key))).await?;
    }
    let notice = match (why_refused(key), networks.are_any()) {
        (Some(why), _) => {
            format!(
                "Allowed networks of “{}”: {networks}. Requests using it are refused from everywhere, because {why}.",
                key.name
            )
        }
        (None, true) => format!("“{}” is accepted from any network.", key.name),
        (None, false) => format!("“{}” is accepted only from {networks}. Other requests are refused.", key.name),
    };
    after(changed, &notice, filter, key)
}

impl<'a> NetworksPage<'a> {
    async fn new(own: &'a OwnKey, networks: NetworksField, despite: Option<String>) -> Result<Self, PageError> {
        let OwnKey { visitor, key, filter } = own;
        let refusals = visitor.shared::<dyn KeyActivity>()?.refusals(visitor.organisation(), key.id).await?;
        let elsewhere = refusals.into_iter().filter(|refusal| refusal.reason == Some(RefusalReason::Elsewhere));
        let mut refused = Vec::new();
        for address in elsewhere.filter_map(|refusal| refusal.address.map(|address| address.to_string())) {
            if !refused.contains(&address) && refused.len() < REFUSED_MAX {
                refused.push(address);
            }
        }
        Ok(Self {
            shell: Shell::new("keys", visitor),
            action: format!("/settings/api-keys/{}/networks{}", key.id, filter.query()),
            back: filter.back(key.id),
            name: &key.name,
            networks,
            last: key.last_address.as_deref(),
            refused,
            despite,
        })
    }
}
