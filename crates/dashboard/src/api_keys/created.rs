//! The one page that shows a whole key.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Path;
use askama::Template;
use intake_domain::{
    AnswerCode, AnswerCount, IssuedKey, KeyActivity, KeyFormat, KeyId, ManageKeysError, Member, Refusal,
};

use crate::api_keys::answers::{CREATED, is_accepted};
use crate::api_keys::filter::Filter;
use crate::api_keys::own_key;
use crate::api_keys::usage::reasons;
use crate::docs::samples::{Sample, samples, settings};
use crate::page::base_url::{Authority, BaseUrl};
use crate::page::error::PageError;
use crate::page::moment::{Moment, end};
use crate::page::part::{Keys, Part};
use crate::page::patient_field::fields_in_words;
use crate::page::shell::{Shell, render};
use crate::page::visitor::{Onlooker, Visitor};

const MADE_BEFORE: &str =
    "This key was already created and shown. If you didn't copy it, revoke it and create another.";

#[derive(Template)]
#[template(path = "api_keys/created.html")]
struct CreatedKeyPage<'a> {
    shell: Shell,
    id: String,
    name: &'a str,
    key: &'a str,
    hint: &'a str,
    /// The member whom the vendor can ask.
    contact: &'a Member,
    base_url: &'a str,
    expires_at: Option<Moment>,
    replaced: Option<Replaced<'a>>,
    namesake: Option<Namesake>,
    /// Address of the next page.
    next: &'a str,
    /// Variables that a shell must have before it runs one of the samples.
    settings: String,
    samples: Vec<Sample>,
}

/// The key that the new one replaces.
pub(crate) struct Replaced<'a> {
    /// The address of its page.
    pub(crate) link: String,
    pub(crate) hint: &'a str,
    pub(crate) end: OldKeyEnd,
}

/// Another working key with the same name.
pub(crate) struct Namesake {
    /// The address of its page.
    pub(crate) link: String,
    pub(crate) hint: String,
}

/// End of a key that is replaced.
#[derive(Clone, Copy)]
pub(crate) enum OldKeyEnd {
    Later {
        /// Time at which it stops, counted from the first patient that the new key creates.
        stops: &'static str,
        latest: Moment,
    },
    Revoked,
    /// It had stopped by itself.
    Expired,
}

/// Shows a key that was just made under this id, this one time.
pub(crate) fn show_made(
    visitor: &Visitor,
    made: Result<IssuedKey, ManageKeysError>,
    id: KeyId,
    next: &str,
    replaced: Option<Replaced<'_>>,
    namesake: Option<Namesake>,
) -> Result<HttpResponse, PageError> {
    match made {
        Ok(made) => {
            let page = CreatedKeyPage { replaced, namesake, ..CreatedKeyPage::new(visitor, &made, next)? };
            render(StatusCode::OK, &page)
        }
        // The form was sent before, or from another window: the key's page shows what was made.
        Err(ManageKeysError::AlreadyMade) => Ok(Filter::default().on_key_page().back_with_notice(id, MADE_BEFORE)),
        Err(error) => Err(error.into()),
    }
}

/// Says how the first requests with the key were answered: asked by the script of the page that shows the key.
pub(crate) async fn first_use(
    Onlooker(visitor): Onlooker,
    id: Path<String>,
    keys: Part<dyn Keys>,
    activity: Part<dyn KeyActivity>,
) -> Result<HttpResponse, PageError> {
    let key = own_key(&visitor, &id, keys.as_ref()).await?;
    let since = visitor.zone().day(key.created_at);
    let answers = activity.answers(visitor.organisation(), key.id, since).await?;
    let is_any = |is_it: fn(AnswerCode) -> bool| answers.iter().any(|answer| is_it(answer.code));
    let begin = if is_any(|code| !is_accepted(code)) { "A request was accepted." } else { "First request received." };
    let (outcome, text) = if is_any(|code| code == CREATED) {
        ("accepted", format!("{begin} It created a patient."))
    } else if is_any(is_accepted) {
        ("accepted", format!("{begin} It was a check and stored nothing."))
    } else if key.last_used_at.is_some() {
        // The counts are stored some seconds after the use.
        ("waiting", begin.to_owned())
    } else if answers.is_empty() {
        ("waiting", String::new())
    } else {
        ("refused", refused(&answers, &activity.refusals(visitor.organisation(), key.id).await?))
    };
    // Names of fields and our own words need no escaping.
    let answer = format!(r#"{{"outcome":"{outcome}","text":"{text}"}}"#);
    Ok(HttpResponse::Ok().content_type("application/json").body(answer))
}

/// The most frequent refusal with its fields, or else its reason, and what to do about it.
fn refused(answers: &[AnswerCount], refusals: &[Refusal]) -> String {
    let Some(first) = reasons(answers, refusals).into_iter().next() else { return String::new() };
    let fields = fields_in_words(first.fields.iter().map(|(field, _)| field.as_str()));
    let why = if fields.is_empty() { first.words.to_owned() } else { fields };
    let advice = if first.is_own_setting { "Change Allowed networks on the key's page." } else { "Tell the vendor." };
    format!("A request was refused: {why}. {advice}")
}

impl<'a> CreatedKeyPage<'a> {
    fn new(visitor: &'a Visitor, made: &'a IssuedKey, next: &'a str) -> Result<Self, PageError> {
        let environment = visitor.shared::<KeyFormat>()?.environment();
        let authority = visitor.shared::<Authority>()?.0.as_deref();
        let base_url = &visitor.shared::<BaseUrl>()?.0;
        Ok(Self {
            shell: Shell::new("keys", visitor),
            id: made.id.to_string(),
            name: made.name.as_str(),
            key: made.key.expose(),
            hint: made.key.hint(),
            contact: &visitor.signed_in.member,
            base_url,
            expires_at: made.expires_at.map(|at| end(at, visitor.zone())),
            replaced: None,
            namesake: None,
            next,
            settings: settings(base_url, authority),
            samples: samples(environment),
        })
    }
}

#[cfg(test)]
mod tests {
    use time::macros::date;

    use super::*;

    #[test]
    fn a_field_that_was_refused_on_two_days_is_named_once() {
        let refused_on = |day| {
            [None, Some("email")].map(|field| AnswerCount {
                day,
                code: AnswerCode(422),
                field: field.map(str::to_owned),
                count: 3,
            })
        };
        let answers = [refused_on(date!(2025 - 12 - 02)), refused_on(date!(2025 - 12 - 03))].concat();
        assert_eq!(refused(&answers, &[]), "A request was refused: Email address. Tell the vendor.");
    }
}
