//! Policies → Longest life of a key: how long keys of the organisation may work, and which work longer.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Form;
use askama::Template;
use intake_domain::{KeyAge, KeyRecord, limit_key_age, list_keys};
use intake_edge as edge;
use serde::Deserialize;

use crate::page::error::PageError;
use crate::page::notice::redirect_with_notice;
use crate::page::part::{Keys, Members, Part};
use crate::page::shell::{Shell, render};
use crate::page::visitor::{Administrator, Visitor};
use crate::policies::overview::POLICIES;

/// Message about a text that is no number of days.
const NO_NUMBER: &str = "Enter a number of days from 1 to 3650, or nothing for no limit.";

#[derive(Template)]
#[template(path = "policies/key_age.html")]
struct KeyAgePage {
    shell: Shell,
    days: String,
    error: Option<&'static str>,
    /// The limit that is set.
    age: Option<KeyAge>,
    /// Keys that work longer.
    longer: Vec<KeyRecord>,
}

#[derive(Deserialize)]
pub(crate) struct KeyAgeForm {
    form_token: String,
    days: String,
}

pub(crate) async fn page(Administrator(visitor): Administrator) -> Result<HttpResponse, PageError> {
    visitor.assert_confirmed()?;
    let set = visitor.signed_in.key_age_max.map(|age| age.days().to_string());
    let days = visitor.draft().map(|draft| draft.field("days")).or(set).unwrap_or_default();
    show(StatusCode::OK, &visitor, days, None).await
}

pub(crate) async fn limit(
    Administrator(visitor): Administrator,
    form: Form<KeyAgeForm>,
    ages: Part<dyn Members>,
) -> Result<HttpResponse, PageError> {
    visitor.assert_own_form(&form.form_token)?;
    let age = match form.days.trim() {
        "" => None,
        days => match days.parse().ok().and_then(KeyAge::of_days) {
            None => return show(StatusCode::UNPROCESSABLE_ENTITY, &visitor, form.days.clone(), Some(NO_NUMBER)).await,
            age => age,
        },
    };
    limit_key_age(ages.as_ref(), visitor.confirmed()?, age, &visitor.audit()).await?;
    let Some(age) = age else { return Ok(redirect_with_notice(POLICIES, "New keys may last for ever.")) };
    let notice = match longer_than(&visitor, age).await?.len() {
        0 => format!("New keys must expire within {age}."),
        1 => format!("New keys must expire within {age}. One key works longer and keeps its expiry."),
        count => format!("New keys must expire within {age}. {count} keys work longer and keep their expiry."),
    };
    Ok(redirect_with_notice(POLICIES, &notice))
}

async fn show(
    status: StatusCode,
    visitor: &Visitor,
    days: String,
    error: Option<&'static str>,
) -> Result<HttpResponse, PageError> {
    let age = visitor.signed_in.key_age_max;
    let longer = match age {
        Some(age) => longer_than(visitor, age).await?,
        None => Vec::new(),
    };
    let page = KeyAgePage { shell: Shell::new("policies", visitor), days, error, age, longer };
    render(status, &page)
}

/// The keys that are not over and work longer than this.
async fn longer_than(visitor: &Visitor, age: KeyAge) -> Result<Vec<KeyRecord>, PageError> {
    let (keys, now) = (visitor.shared::<dyn Keys>()?, edge::now());
    let mut all = list_keys(keys, visitor.organisation()).await?;
    all.retain(|key| key.exceeds(age, now));
    Ok(all)
}
