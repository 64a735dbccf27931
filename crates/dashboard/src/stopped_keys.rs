//! The mail about keys that a member changed together, such as those of a stop: one for each other member, at once.

use intake_domain::{MemberStore, SignedIn, StoppedKey};

use crate::mails::{MailedKey, Mails, without_links};
use crate::page::number::counted;

/// Keys that the mail names. The list of keys shows the others.
const NAMED_MAX: usize = 20;

/// Change of many keys at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeysChange {
    /// All that were accepted were paused.
    Stopped,
    Resumed,
    /// Some were paused.
    Paused,
    Revoked,
}

impl<'a> From<&'a StoppedKey> for MailedKey<'a> {
    fn from(StoppedKey { name, hint, .. }: &'a StoppedKey) -> Self {
        Self { name, hint, contact: "" }
    }
}

impl Mails {
    /// Tells the other members what a member did to these keys, if there are any.
    pub(crate) async fn keys_together(
        &self,
        members: &dyn MemberStore,
        by: &SignedIn,
        keys: &[MailedKey<'_>],
        change: KeysChange,
    ) {
        let SignedIn { member, organisation_name, .. } = by;
        if keys.is_empty() {
            return;
        }
        let (count, organisation) = (counted(keys.len(), "key"), without_links(organisation_name));
        let (subject, done) = match change {
            KeysChange::Stopped => (
                format!("All keys of {organisation} were stopped"),
                format!(
                    "stopped all active API keys of {organisation}: {count}. Requests are refused until an administrator resumes them."
                ),
            ),
            KeysChange::Resumed => (
                format!("Keys of {organisation} were resumed"),
                format!("resumed the API keys of {organisation} that were stopped together: {count}."),
            ),
            KeysChange::Paused => (
                format!("Keys of {organisation} were paused"),
                format!("paused {count} of {organisation}. Requests are refused until the keys are resumed."),
            ),
            KeysChange::Revoked => (
                format!("Keys of {organisation} were revoked"),
                format!("revoked {count} of {organisation}. Requests with them are refused."),
            ),
        };
        let mut paragraphs = vec![format!("{} ({}) has {done}", without_links(member.name.as_str()), member.email)];
        let line = |key: &MailedKey<'_>| format!("“{}” (…{})", without_links(key.name), key.hint);
        paragraphs.push(keys.iter().take(NAMED_MAX).map(line).collect::<Vec<_>>().join("\n"));
        match keys.len().saturating_sub(NAMED_MAX) {
            0 => {}
            more => paragraphs.push(format!("And {more} more.")),
        }
        paragraphs.push(format!("All keys: {}/settings/api-keys", self.base_url));
        let all = self.members(members, member.organisation_id).await;
        let others = all.into_iter().filter(|other| other.id != member.id);
        let why = format!("you are a member of {organisation}");
        self.send_all(member.organisation_id, others, &subject, &paragraphs.join("\n\n"), &why);
    }
}
