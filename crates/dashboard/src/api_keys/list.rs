//! API keys: every key of the organisation at a glance, and what can be done with it.

use actix_web::http::StatusCode;
use actix_web::web::Query;
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use intake_domain::{KeyActivity, KeyScope, first_kept_day};
use intake_edge as edge;

use crate::api_keys::LIST;
use crate::api_keys::filter::{Filter, Selection};
use crate::api_keys::first_steps::{FirstSteps, first_steps};
use crate::api_keys::listed_key::{Expires, ListedKey, nested};
use crate::api_keys::status::{answers_of, of_key};
use crate::api_keys::stop_all::StopNotice;
use crate::page::base_url::BaseUrl;
use crate::page::error::PageError;
use crate::page::part::{Keys, Members, Part};
use crate::page::shell::{Shell, redirect, render};
use crate::page::visitor::Visitor;

#[derive(Template)]
#[template(path = "api_keys/list.html")]
struct KeysPage<'a> {
    shell: Shell,
    keys: Vec<ListedKey>,
    stops: Vec<StopNotice>,
    can_stop_all: bool,
    is_any_used: bool,
    /// Number of keys that there are, whatever is shown.
    total: u64,
    first_steps: Option<FirstSteps>,
    base_url: &'a str,
    filter: &'a Filter,
    /// The name under which the member of the search made the newest of these keys.
    maker: Option<String>,
    selection: Selection,
}

pub(crate) async fn home(_: Visitor) -> HttpResponse {
    redirect(LIST)
}

pub(crate) async fn page(
    request: HttpRequest,
    visitor: Visitor,
    filter: Option<Query<Filter>>,
    keys: Part<dyn Keys>,
    members: Part<dyn Members>,
    activity: Part<dyn KeyActivity>,
    base: Part<BaseUrl>,
) -> Result<HttpResponse, PageError> {
    let now = edge::now();
    let filter = filter.map(Query::into_inner).unwrap_or_default();
    let mut found = keys.search(visitor.organisation(), &filter.search_at(now), now).await?;
    let stops = match found.count(KeyScope::Paused) + found.count(KeyScope::Suspended) {
        0 => Vec::new(),
        _ => keys.stops(visitor.organisation()).await?,
    };
    let first_steps = first_steps(&request, &visitor, &found, members.as_ref()).await?;
    let selection = filter.selection(&found);
    let newest = filter.made_by().and_then(|_| found.keys.iter().max_by_key(|key| key.created_at));
    let maker = newest.and_then(|key| key.created_by.clone());
    let since = first_kept_day(visitor.zone(), now);
    let answers = answers_of(&found.keys, &visitor.signed_in, activity.as_ref(), now).await?;
    let listed = nested(std::mem::take(&mut found.keys)).into_iter().map(|(key, is_nested)| {
        let answers = of_key(&answers, key.id);
        ListedKey::new(key, is_nested, answers, since, &visitor.signed_in, now)
    });
    let page = KeysPage {
        shell: Shell::new("keys", &visitor),
        keys: listed.collect(),
        stops: stops.into_iter().map(|stop| StopNotice::new(stop, &visitor)).collect(),
        can_stop_all: visitor.signed_in.member.role.administers() && found.count(KeyScope::Active) > 0,
        is_any_used: found.is_any_used,
        total: found.total,
        first_steps,
        base_url: &base.0,
        filter: &filter,
        maker,
        selection,
    };
    let is_wrong = filter.unused_error().is_some();
    render(if is_wrong { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK }, &page)
}
