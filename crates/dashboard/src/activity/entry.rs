//! An entry of the audit log in words.

use intake_domain::{Action, AuditEntry, RecordedAction, RecordedActor, Zone};

use crate::members::with_article;
use crate::page::moment::{Moment, exact};

/// A row of the table.
pub(crate) struct EntryRow {
    pub(crate) at: Moment,
    pub(crate) actor: String,
    pub(crate) email: String,
    pub(crate) action: String,
    pub(crate) subject: String,
    /// The role of the subject, as it follows the subject.
    pub(crate) role: String,
    /// The last characters of the key that it is about, or nothing.
    pub(crate) key_hint: String,
    pub(crate) address: String,
    pub(crate) reason: String,
}

impl EntryRow {
    pub(crate) fn new(entry: AuditEntry, zone: Zone) -> Self {
        Self {
            at: exact(entry.at, zone),
            actor: actor(&entry.actor),
            email: email(&entry.actor).to_owned(),
            action: phrase(&entry.action),
            role: role(&entry),
            subject: match entry.action {
                RecordedAction::Known(Action::RoleRefused | Action::FormRefused) => page_of(&entry.subject),
                _ => entry.subject,
            },
            key_hint: entry.key.map(|key| key.hint).unwrap_or_default(),
            address: entry.address.unwrap_or_default(),
            reason: entry.reason.unwrap_or_default(),
        }
    }
}

/// The page of a route: "API keys, stop all" of "POST /settings/api-keys/stop-all".
fn page_of(route: &str) -> String {
    let mut parts = route.split('/').skip(2).filter(|part| !part.starts_with('{'));
    let words = |part: &str| part.replace('-', " ");
    let section = match parts.next() {
        Some("api-keys") => "API keys".to_owned(),
        Some(part) => part.get(..1).unwrap_or_default().to_uppercase() + &words(part.get(1..).unwrap_or_default()),
        None => return route.to_owned(),
    };
    parts.last().map_or(section.clone(), |part| format!("{section}, {}", words(part)))
}

fn role(entry: &AuditEntry) -> String {
    match (&entry.action, named_role(entry)) {
        (RecordedAction::Known(Action::MemberJoined), Some(role)) => format!(", {role}"),
        (_, Some(role)) => format!(" as {role}"),
        (_, None) => String::new(),
    }
}

fn named_role(entry: &AuditEntry) -> Option<&'static str> {
    entry.details.role.and_then(|role| role.parse().ok()).map(with_article)
}

/// The action with the role that it is about, for a table that has the subject in a column of its own.
pub(crate) fn phrase_with_role(entry: &AuditEntry) -> String {
    match (&entry.action, named_role(entry)) {
        (RecordedAction::Known(Action::MemberJoined), Some(role)) => format!("joined as {role} with"),
        (action, Some(role)) => format!("{} as {role}", phrase(action)),
        (action, None) => phrase(action),
    }
}

/// Who did it.
pub(crate) fn actor(actor: &RecordedActor) -> String {
    match actor {
        RecordedActor::Member { name, .. } => name.clone(),
        RecordedActor::Operator(Some(name)) => format!("An operator ({name})"),
        RecordedActor::Operator(None) => "An operator".to_owned(),
        RecordedActor::Stranger => "Someone".to_owned(),
    }
}

/// The member's address, which distinguishes two members with similar names.
pub(crate) fn email(actor: &RecordedActor) -> &str {
    match actor {
        RecordedActor::Member { email, .. } => email.as_deref().unwrap_or_default(),
        RecordedActor::Operator(_) | RecordedActor::Stranger => "",
    }
}

/// The member's id, which stays the same whatever the member is called.
pub(crate) fn member_id(actor: &RecordedActor) -> String {
    match actor {
        RecordedActor::Member { id: Some(id), .. } => id.to_string(),
        RecordedActor::Member { id: None, .. } | RecordedActor::Operator(_) | RecordedActor::Stranger => String::new(),
    }
}

/// Returns what was done, before the name of what it was done to.
fn phrase(action: &RecordedAction) -> String {
    match action {
        RecordedAction::Known(action) => action.phrase().to_owned(),
        RecordedAction::Unknown(name) => name.replace('_', " ") + ":",
    }
}

#[cfg(test)]
mod tests {
    use super::page_of;

    #[test]
    fn a_route_is_named_as_people_know_its_page() {
        for (route, page) in [
            ("GET /settings/api-keys/new", "API keys, new"),
            ("GET /settings/api-keys/{key}/replace", "API keys, replace"),
            ("POST /settings/api-keys/stop-all", "API keys, stop all"),
            ("GET /settings/members", "Members"),
            ("GET /", "GET /"),
        ] {
            assert_eq!(page_of(route), page);
        }
    }
}
