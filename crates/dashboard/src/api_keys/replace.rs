//! Replaces a key: makes a new key with the old one's name. A routine replacement leaves no gap: the old key works for
//! a while after the new one has created a patient, but not past its latest end. A key that someone may have is revoked
//! at once, and nothing is asked about an expired key. The new key lasts as long as the old one, unless the visitor
//! chooses otherwise.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Form;
use askama::Template;
use intake_domain::{
    AllowedNetworks, KeyContact, KeyFormat, KeyId, KeyRecord, KeyRequest, KeySecret, KeyStatus, ManageKeysError, Name,
    Replacement, Zone, create_key, replace_leaked_key,
};
use intake_edge as edge;
use serde::Deserialize;
use time::{Duration, OffsetDateTime};

use crate::api_keys::OwnKey;
use crate::api_keys::created::{OldKeyEnd, Replaced, show_made};
use crate::api_keys::expiry::{Expiry, ExpiryFields};
use crate::api_keys::facts::KeyFacts;
use crate::api_keys::filter::Filter;
use crate::mails::{KeyChange, MailedKey};
use crate::page::draft::Draft;
use crate::page::error::PageError;
use crate::page::moment::{Moment, end, end_in_words};
use crate::page::part::{Keys, Part};
use crate::page::shell::{Shell, render};

/// Time enough for most people to deploy the new key.
const USUAL_CHOICE: &str = "24h";

#[derive(Template)]
#[template(path = "api_keys/replace.html")]
struct ReplacePage<'a> {
    shell: Shell,
    action: String,
    back: String,
    new_id: String,
    name: &'a str,
    facts: KeyFacts,
    /// Time at which the old key expired, if it has.
    expired_at: Option<Moment>,
    is_paused: bool,
    choices: ReplaceChoices,
    /// The times that a key with this end can still reach.
    ends_after: Vec<Choice>,
    latest_ends: Vec<Choice>,
    /// The old key's own end, after "until".
    own_end: Option<String>,
    expiry: ExpiryFields,
}

/// A choice of a time: value, text and time.
type Choice = (&'static str, &'static str, Duration);

#[derive(Deserialize)]
pub(crate) struct ReplaceForm {
    form_token: String,
    id: String,
    #[serde(flatten)]
    choices: ReplaceChoices,
    #[serde(flatten)]
    expiry: Expiry,
}

/// The visitor's choices about the old key.
#[derive(Deserialize)]
struct ReplaceChoices {
    /// `routine`, or `leaked` if someone may have the key.
    #[serde(default = "ReplaceChoices::routine")]
    why: String,
    #[serde(default)]
    ends_after: String,
    #[serde(default = "ReplaceChoices::usual_end")]
    ends_by: String,
}

/// Time for which a key can work after its replacement has created a patient.
const CHOICES: [Choice; 4] = [
    ("now", "with the new key's first patient", Duration::ZERO),
    ("1h", "1 hour after the new key's first patient", Duration::HOUR),
    ("24h", "24 hours after the new key's first patient", Duration::DAY),
    ("7d", "7 days after the new key's first patient", Duration::WEEK),
];

/// Time within which a replaced key ends in any case, in days.
const LATEST_ENDS: [Choice; 4] = [
    ("3", "after 3 days", Duration::days(3)),
    ("14", "after 14 days", Replacement::USUALLY_ENDS_WITHIN),
    ("30", "after 30 days", Duration::days(30)),
    ("90", "after 90 days", Duration::days(90)),
];

pub(crate) async fn page(own: OwnKey) -> Result<HttpResponse, PageError> {
    let (OwnKey { visitor, key: old, filter }, now) = (&own, edge::now());
    if !old.status(now).can_be_replaced() {
        return Ok(not_replaced(old, filter));
    }
    let new_id = KeyId::new(now, edge::random()).to_string();
    let draft = visitor.draft();
    let expiry = draft.as_ref().map(Expiry::of_draft).unwrap_or_default();
    let expiry = expiry.fields(Some(old), &visitor.signed_in, None, now);
    let choices = draft.map_or_else(|| ReplaceChoices::usual(old), |draft| ReplaceChoices::of_draft(&draft));
    render(StatusCode::OK, &ReplacePage::new(&own, KeyFacts::new(&own).await?, new_id, choices, expiry))
}

pub(crate) async fn submit(
    own: OwnKey,
    form: Form<ReplaceForm>,
    keys: Part<dyn Keys>,
    format: Part<KeyFormat>,
) -> Result<HttpResponse, PageError> {
    let OwnKey { visitor, key: old, filter } = &own;
    visitor.assert_own_form(&form.form_token)?;
    let audit = visitor.audit();
    let ReplaceForm { id: new_id, choices, expiry, .. } = form.into_inner();
    let (replacement, old_end) = choices.replacement(old, audit.at, visitor.zone())?;
    let expires_at = match expiry.end(audit.at, Some(old), &visitor.signed_in) {
        Ok(expires_at) => expires_at,
        Err(error) => {
            let fields = expiry.fields(Some(old), &visitor.signed_in, Some(error), audit.at);
            let page = ReplacePage::new(&own, KeyFacts::new(&own).await?, new_id, choices, fields);
            return render(StatusCode::UNPROCESSABLE_ENTITY, &page);
        }
    };
    let id: KeyId = new_id.parse().map_err(|_| PageError::BadForm)?;
    let request = KeyRequest {
        organisation_id: visitor.organisation(),
        name: Name::stored(old.name.clone()).map_err(|_| PageError::BadForm)?,
        expires_at,
        allowed_networks: AllowedNetworks::default(),
        contact: KeyContact::default(),
        replaces: Some(replacement),
        id,
        secret: KeySecret::new(edge::random()),
    };
    let made = match old_end {
        OldKeyEnd::Later { .. } | OldKeyEnd::Expired => create_key(keys.as_ref(), &format, request, &audit).await,
        OldKeyEnd::Revoked => {
            replace_leaked_key(keys.as_ref(), keys.as_ref(), &format, request, &audit, &visitor.audit()).await
        }
    };
    if matches!(made, Err(ManageKeysError::NothingToReplace)) {
        return Ok(not_replaced(old, filter));
    }
    if let Ok(made) = &made {
        let old_key = in_words(old_end, visitor.zone());
        visitor.mail_key(MailedKey { hint: made.key.hint(), ..old.into() }, KeyChange::Replaced(&old_key)).await?;
        if let OldKeyEnd::Revoked = old_end {
            visitor.mail_key(old.into(), KeyChange::Revoked).await?;
        }
    }
    let replaced = Replaced { link: format!("/settings/api-keys/{}", old.id), hint: &old.hint, end: old_end };
    show_made(visitor, made, id, &filter.back(old.id), Some(replaced), None)
}

/// The end of the old key, for the mail to the other members.
fn in_words(end: OldKeyEnd, zone: Zone) -> String {
    match end {
        OldKeyEnd::Later { stops, latest } => {
            format!("The old key stops {stops}. It stops at {}, {zone}, at the latest.", latest.in_words())
        }
        OldKeyEnd::Revoked => "The old key was revoked.".to_owned(),
        OldKeyEnd::Expired => "The old key has expired.".to_owned(),
    }
}

fn not_replaced(old: &KeyRecord, filter: &Filter) -> HttpResponse {
    let name = &old.name;
    let notice = match old.status(edge::now()) {
        KeyStatus::Suspended(_) => format!("“{name}” can't be replaced while the organisation is suspended."),
        _ => format!("“{name}” was revoked, so nothing can replace it. Create a new key instead."),
    };
    filter.back_with_notice(old.id, &notice)
}

impl ReplaceChoices {
    fn usual(old: &KeyRecord) -> Self {
        let why = if old.must_be_replaced(edge::now()) { "leaked".to_owned() } else { Self::routine() };
        Self { why, ends_after: USUAL_CHOICE.to_owned(), ends_by: Self::usual_end() }
    }

    fn of_draft(draft: &Draft) -> Self {
        let [why, ends_after, ends_by] = ["why", "ends_after", "ends_by"].map(|name| draft.field(name));
        Self { why, ends_after, ends_by }
    }

    fn routine() -> String {
        "routine".to_owned()
    }

    fn usual_end() -> String {
        Replacement::USUALLY_ENDS_WITHIN.whole_days().to_string()
    }

    fn is_leaked(&self) -> bool {
        self.why == "leaked"
    }

    /// The replacement that was chosen, and what happens to the old key.
    fn replacement(
        &self,
        old: &KeyRecord,
        now: OffsetDateTime,
        zone: Zone,
    ) -> Result<(Replacement, OldKeyEnd), PageError> {
        if let KeyStatus::Expired(_) = old.status(now) {
            return Ok((Replacement::at_once(old.id, now), OldKeyEnd::Expired));
        }
        match self.why.as_str() {
            "leaked" => return Ok((Replacement::at_once(old.id, now), OldKeyEnd::Revoked)),
            "routine" => {}
            _ => return Err(PageError::BadForm),
        }
        let chosen = |choices: &'static [Choice], value: &str| {
            choices.iter().find(|(name, ..)| *name == value).ok_or(PageError::BadForm)
        };
        let &(_, stops, ends_after) = chosen(&CHOICES, &self.ends_after)?;
        let &(.., within) = chosen(&LATEST_ENDS, &self.ends_by)?;
        let ends_by = now + within;
        let latest = old.expires_at.map_or(ends_by, |at| at.min(ends_by));
        Ok((Replacement { key: old.id, ends_after, ends_by }, OldKeyEnd::Later { stops, latest: end(latest, zone) }))
    }
}

impl<'a> ReplacePage<'a> {
    fn new(own: &'a OwnKey, facts: KeyFacts, new_id: String, choices: ReplaceChoices, expiry: ExpiryFields) -> Self {
        let OwnKey { visitor, key: old, filter } = own;
        let left = old.expires_at.map(|end| end - edge::now());
        let reached = |choices: &[Choice]| {
            choices.iter().copied().filter(|(.., time)| left.is_none_or(|left| *time < left)).collect()
        };
        Self {
            ends_after: reached(&CHOICES),
            latest_ends: reached(&LATEST_ENDS),
            own_end: old.expires_at.map(|end| end_in_words(end, visitor.zone())),
            shell: Shell::new("keys", visitor),
            action: format!("/settings/api-keys/{}/replace{}", old.id, filter.query()),
            back: filter.back(old.id),
            new_id,
            name: &old.name,
            expired_at: facts.key.expired_at,
            is_paused: facts.key.is_paused && facts.key.expired_at.is_none(),
            facts,
            choices,
            expiry,
        }
    }
}
