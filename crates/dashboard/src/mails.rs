//! The mails that members get: links to themselves, and news of their organisation's keys. Without a mail server nothing is
//! sent, and links are shown alone.

use std::sync::Arc;

use intake_domain::{
    EmailAddress, ExpiringKey, KeyRecord, KeyStore, Mail, Mailer, MemberId, MemberRecord, MemberStore, Name,
    OrganisationId, Role, SignedIn, StoreError, timestamp,
};
use intake_http::edge;
use time::macros::format_description;
use time::{OffsetDateTime, UtcOffset};

/// Sends mails, if there is a mail server.
#[derive(Clone)]
pub struct Mails {
    mailer: Option<Arc<dyn Mailer>>,
    base_url: String,
}

impl Mails {
    /// Mails that name the service by this address.
    #[must_use]
    pub fn new(mailer: Option<Arc<dyn Mailer>>, base_url: String) -> Self {
        Self { mailer, base_url }
    }

    /// Whether there is a mail server.
    pub(crate) fn are_sent(&self) -> bool {
        self.mailer.is_some()
    }

    /// A link by which somebody becomes a member.
    pub(crate) fn invitation(
        &self,
        to: &EmailAddress,
        by: &Name,
        organisation: &str,
        link: &str,
        until: OffsetDateTime,
    ) {
        let text = format!(
            "{by} invites you to look after the API keys of {organisation}.\n\n\
             Open this link to choose a name and a password:\n\n{link}\n\n\
             It works once, until {}. If you did not expect this, ignore it.\n",
            moment(until)
        );
        self.send(to, format!("Invitation to {organisation}"), text);
    }

    /// A link by which a member chooses another password.
    pub(crate) fn password_reset(&self, to: &EmailAddress, by: &Name, link: &str, until: OffsetDateTime) {
        let text = format!(
            "{by} has made a link by which you can choose a new password:\n\n{link}\n\n\
             It works once, until {}. Until you use it, your old password works. If you did not ask for this, ignore it and \
             tell {by}.\n",
            moment(until)
        );
        self.send(to, "Choose a new password".to_owned(), text);
    }

    /// Tells the other members that this one has revoked a key.
    pub(crate) async fn key_revoked(&self, members: &dyn MemberStore, by: &SignedIn, key: &KeyRecord) {
        let SignedIn { member, organisation_name, .. } = by;
        let KeyRecord { name, hint, .. } = key;
        let text = format!(
            "{} has revoked the API key “{name}” (…{hint}) of {organisation_name}. Requests with it are refused.\n\n\
             All keys: {}/settings/api-keys\n",
            member.name, self.base_url
        );
        let others =
            self.members(members, member.organisation_id).await.into_iter().filter(|other| other.id != member.id);
        self.send_all(others, &format!("API key “{name}” was revoked"), &text);
    }

    /// Tells the other administrators that a member is one from now on.
    pub(crate) async fn new_administrator(
        &self,
        members: &dyn MemberStore,
        organisation: OrganisationId,
        organisation_name: &str,
        id: MemberId,
    ) {
        let administrators = self.members(members, organisation).await.into_iter();
        let (new, others): (Vec<_>, Vec<_>) =
            administrators.filter(|member| member.role == Role::Administrator).partition(|member| member.id == id);
        // None: the member is a key manager.
        let Some(MemberRecord { name, email, .. }) = new.first() else { return };
        let text = format!(
            "{name} ({email}) is an administrator of {organisation_name} from now on, and can manage its API keys and its \
             members.\n\nIf you did not expect this, look at {}/settings/members\n",
            self.base_url
        );
        self.send_all(others, &format!("{organisation_name} has a new administrator"), &text);
    }

    /// The members of an organisation. None, where nothing can be sent or they cannot be found: what the mail is about
    /// has been done nevertheless.
    async fn members(&self, members: &dyn MemberStore, organisation: OrganisationId) -> Vec<MemberRecord> {
        if !self.are_sent() {
            return Vec::new();
        }
        members.members(organisation).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "the members who should get a mail could not be found");
            Vec::new()
        })
    }

    /// Tells the members of organisations whose keys expire soon, of each key once.
    pub async fn tell_of_expiring_keys(
        &self,
        keys: &dyn KeyStore,
        members: &dyn MemberStore,
    ) -> Result<(), StoreError> {
        for key in keys.claim_expiring(edge::now()).await? {
            self.key_expires(members.members(key.organisation_id).await?, &key);
        }
        Ok(())
    }

    /// A key will expire.
    fn key_expires(&self, to: Vec<MemberRecord>, key: &ExpiringKey) {
        let ExpiringKey { name, hint, organisation_name, expires_at, .. } = key;
        let text = format!(
            "The API key “{name}” (…{hint}) of {organisation_name} expires on {}. After that, requests with it are refused.\n\n\
             Replace it in time: {}/settings/api-keys\n",
            moment(*expires_at),
            self.base_url
        );
        self.send_all(to, &format!("API key “{name}” expires soon"), &text);
    }

    fn send_all(&self, to: impl IntoIterator<Item = MemberRecord>, subject: &str, text: &str) {
        for member in to {
            // What was once an address still is.
            if let Ok(to) = member.email.parse() {
                self.send(&to, subject.to_owned(), text.to_owned());
            }
        }
    }

    fn send(&self, to: &EmailAddress, subject: String, text: String) {
        if let Some(mailer) = &self.mailer {
            mailer.send(Mail { to: to.clone(), subject, text });
        }
    }
}

/// A moment, as a mail says it: its reader's time zone is not known.
fn moment(at: OffsetDateTime) -> String {
    let form = format_description!("[day padding:none] [month repr:long] [year], [hour]:[minute] UTC");
    // A moment has everything that the form asks for.
    at.to_offset(UtcOffset::UTC).format(form).unwrap_or_else(|_| timestamp(at))
}
