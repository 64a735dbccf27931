//! Mails about busy keys that fell silent or are refused more often than usual: one of a kind for each organisation,
//! which lists the keys.

use intake_domain::{
    Environment, MemberRecord, MemberStore, OrganisationId, StoreError, USUAL_DAYS, UnusualKey, UnusualKeyStore,
    UnusualUse,
};

use crate::mails::{Mails, moment, without_links};

/// Keys that one mail names. The list of keys shows the others.
const NAMED_MAX: usize = 20;
/// No key is silent after fewer days.
const SILENT_DAYS_MIN: u8 = 2;

impl Mails {
    /// Tells the members who manage keys of busy keys that fell silent or are refused more often than usual.
    pub async fn tell_of_unusual_keys(
        &self,
        keys: &dyn UnusualKeyStore,
        members: &dyn MemberStore,
        environment: Environment,
    ) -> Result<(), StoreError> {
        let mut found = keys.claim_unusual().await?;
        found.sort_by_key(|key| (key.organisation_id, is_silent(key)));
        let is_same =
            |a: &UnusualKey, b: &UnusualKey| (a.organisation_id, is_silent(a)) == (b.organisation_id, is_silent(b));
        for keys in found.chunk_by(is_same) {
            let Some(UnusualKey { organisation_id, .. }) = keys.first() else { continue };
            match members.members(*organisation_id).await {
                Ok(members) => self.keys_are_unusual(members, *organisation_id, keys, environment),
                Err(error) => tracing::warn!(%error, "the members who should get a mail could not be found"),
            }
        }
        Ok(())
    }

    fn keys_are_unusual(
        &self,
        mut to: Vec<MemberRecord>,
        organisation: OrganisationId,
        keys: &[UnusualKey],
        environment: Environment,
    ) {
        let Some(first) = keys.first() else { return };
        let (subject, text) = text(first, keys, environment, &self.base_url);
        to.retain(|member| member.role.manages_keys());
        self.send_all(organisation, to, &subject, &text);
    }
}

fn is_silent(key: &UnusualKey) -> bool {
    matches!(key.change, UnusualUse::Silent { .. })
}

/// Subject and text. `first` is one of the keys.
fn text(first: &UnusualKey, keys: &[UnusualKey], environment: Environment, base_url: &str) -> (String, String) {
    let organisation = without_links(&first.organisation_name);
    let (which, number) = match keys {
        [key] => (format!("API key “{}”", without_links(&key.name)), "this API key"),
        keys => (format!("{} API keys of {organisation}", keys.len()), "these API keys"),
    };
    let (subject, what, advice, list) = if is_silent(first) {
        (
            if keys.len() == 1 { format!("{which} has fallen silent") } else { format!("{which} have fallen silent") },
            format!("No request with {number} of {organisation} ({environment}) was accepted for longer than usual."),
            "Check whether the software that uses the key runs, and what its own log says. The page of a key lists \
             requests that were refused. If you are closed for holidays, nothing is wrong. Revoke a key that nothing \
             needs any more.\n\nThe next mail about the silence of a key comes only after the key was used again.",
            format!("{base_url}/settings/api-keys?unused={SILENT_DAYS_MIN}"),
        )
    } else {
        (
            format!("Requests with {which} are refused more often than usual"),
            format!("Far more requests with {number} of {organisation} ({environment}) are refused than usual."),
            "The page of a key counts the reasons and lists the last refused requests with their ids. Patients of these \
             requests were not stored. Tell the people who run the software that uses the key.\n\nThe next mail about \
             refusals of a key comes after a week at the earliest.",
            format!("{base_url}/settings/api-keys"),
        )
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
    let UnusualKey { name, hint, id, change, .. } = key;
    let what = match change {
        UnusualUse::Silent { last_used_at, used_days, days_apart } => format!(
            "last used on {}. Usually: used on {used_days} of {USUAL_DAYS} days, {}",
            moment(*last_used_at),
            if *days_apart > 1 { format!("at most {days_apart} days apart") } else { "on consecutive days".to_owned() }
        ),
        UnusualUse::Refused { lately, before } => {
            format!("{lately} requests refused in one day. Usually: at most {before} a day")
        }
    };
    format!("“{}” (…{hint}): {what}.\n{base_url}/settings/api-keys/{id}", without_links(name))
}
