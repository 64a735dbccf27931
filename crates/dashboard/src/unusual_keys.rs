//! Mails about keys that fell silent, are refused more often than usual or altogether: one of a kind for each
//! organisation, which lists the keys.

use intake_domain::{
    Environment, MemberRecord, MemberStore, StoreError, USUAL_DAYS, UnusualKey, UnusualKeyStore, UnusualUse,
};

use crate::mails::{Mails, manages_keys_of, tell_of_keys, vendor, without_links};
use crate::page::moment::day_and_time;
use crate::page::patient_field::field_in_words;

/// Keys that one mail names. The list of keys shows the others.
const NAMED_MAX: usize = 20;
/// No key is silent after fewer days.
const SILENT_DAYS_MIN: u8 = 2;
const REFUSED_ADVICE: &str = "These patients were not added to the register. Tell the vendor of the software that uses \
    the key. The page of a key counts the reasons and lists the last refused requests with their request IDs.\n\nWe \
    email you about refusals of a key once a week at most.";

impl Mails {
    /// Tells the members who manage keys of keys whose use has changed.
    pub async fn tell_of_unusual_keys(
        &self,
        keys: &dyn UnusualKeyStore,
        members: &dyn MemberStore,
        environment: Environment,
    ) -> Result<(), StoreError> {
        let mut found = keys.claim_unusual().await?;
        let kind = |key: &UnusualKey| (key.organisation_id, News::about(key));
        found.sort_by_key(kind);
        let news = found.chunk_by(|a, b| kind(a) == kind(b));
        let news = news.filter_map(|keys| Some((keys.first()?.organisation_id, keys)));
        tell_of_keys(members, news, |to, keys| self.keys_are_unusual(to, keys, environment)).await;
        Ok(())
    }

    fn keys_are_unusual(&self, to: Vec<MemberRecord>, keys: &[UnusualKey], environment: Environment) {
        let [first, ..] = keys else { return };
        let (subject, text) = text(first, keys, environment, &self.base_url);
        let why = manages_keys_of(&first.organisation_name);
        self.send_all(first.organisation_id, to, &subject, &text, &why);
    }
}

/// Kinds of news, the most urgent first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum News {
    OnlyRefused,
    Refused,
    Silent,
}

impl News {
    fn about(key: &UnusualKey) -> Self {
        match key.change {
            UnusualUse::OnlyRefused { .. } => Self::OnlyRefused,
            UnusualUse::Refused { .. } => Self::Refused,
            UnusualUse::Silent { .. } => Self::Silent,
        }
    }
}

/// Subject and text. `first` is one of the keys.
fn text(first: &UnusualKey, keys: &[UnusualKey], environment: Environment, base_url: &str) -> (String, String) {
    let organisation = without_links(&first.organisation_name);
    let (which, number) = match keys {
        [key] => (format!("API key “{}”", without_links(&key.name)), "this API key"),
        keys => (format!("{} API keys of {organisation}", keys.len()), "these API keys"),
    };
    let (keys_of, zone) = (format!("{number} of {organisation} ({environment})"), first.zone);
    let (subject, what, advice, list) = match News::about(first) {
        News::OnlyRefused => (
            format!("Every request with {which} is refused"),
            format!("No patient is received through {keys_of}: every request is refused. All times are {zone}."),
            REFUSED_ADVICE,
            format!("{base_url}/settings/api-keys"),
        ),
        News::Silent => (
            if keys.len() == 1 { format!("{which} has fallen silent") } else { format!("{which} have fallen silent") },
            format!("No request with {keys_of} was accepted for longer than usual. All times are {zone}."),
            "Check whether the software that uses the key runs, and what its own log says. The page of a key lists \
             requests that were refused. If you are closed for holidays, nothing is wrong. Revoke a key that nothing \
             needs.\n\nWe won't email you about the silence of a key again until it has been used.",
            format!("{base_url}/settings/api-keys?unused={SILENT_DAYS_MIN}"),
        ),
        News::Refused => (
            format!("Requests with {which} are refused more often than usual"),
            format!("Far more requests with {keys_of} are refused than usual."),
            REFUSED_ADVICE,
            format!("{base_url}/settings/api-keys"),
        ),
    };
    let mut paragraphs = vec![what];
    paragraphs.extend(keys.iter().take(NAMED_MAX).map(|key| line(key, base_url)));
    match keys.len().saturating_sub(NAMED_MAX) {
        0 => {}
        more => paragraphs.push(format!("And {more} more: {list}")),
    }
    paragraphs.push(advice.to_owned());
    (subject, paragraphs.join("\n\n"))
}

/// A key, what has changed, and the address of its page.
fn line(key: &UnusualKey, base_url: &str) -> String {
    let UnusualKey { name, hint, contact, id, change, zone, .. } = key;
    let what = match change {
        UnusualUse::Silent { last_used_at, used_days, days_apart } => format!(
            "last used on {}. Usually: used on {used_days} of {USUAL_DAYS} days, {}",
            day_and_time(*last_used_at, *zone),
            if *days_apart > 1 { format!("at most {days_apart} days apart") } else { "on consecutive days".to_owned() }
        ),
        UnusualUse::Refused { lately, before } => {
            format!("{lately} requests refused in one day. Usually: at most {before} a day")
        }
        UnusualUse::OnlyRefused { last_used_at, refused, field } => format!(
            "no patient since {}; {refused} requests refused{}",
            day_and_time(*last_used_at, *zone),
            field
                .as_ref()
                .map(|field| format!(", most of them because of {}", field_in_words(field)))
                .unwrap_or_default()
        ),
    };
    format!("“{}” (…{hint}): {what}.{}\n{base_url}/settings/api-keys/{id}", without_links(name), vendor(contact))
}
