//! The mails that members get: links to themselves, and news of their organisation's keys. Without a mail server
//! nothing is sent, and links are shown alone.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use intake_domain::{
    Account, AllowedNetworks, EmailAddress, ExpiringKey, ExpiringKeyStore, KeyRecord, Mail, Mailer, MemberId,
    MemberRecord, MemberStore, Name, OrganisationId, Origin, Passwords, Role, RulesStore, SignedIn, StoreError, Zone,
};
use intake_edge as edge;
use time::OffsetDateTime;

use crate::digests::{Digests, First};
use crate::page::moment::{day_and_time, end_in_words};

/// Before members who could not be found are looked for again.
const MEMBERS_PAUSE: Duration = Duration::from_secs(2);

/// Sends mails, if there is a mail server.
#[derive(Clone)]
pub struct Mails {
    mailer: Option<Arc<dyn Mailer>>,
    digests: Arc<Digests>,
    pub(crate) base_url: String,
    passwords: Passwords,
    /// Whom members can ask, as the service operator says. None: an administrator.
    pub(crate) contact: Option<String>,
}

impl Mails {
    /// Mails that name the service by this address, and this contact for questions.
    #[must_use]
    pub fn new(
        mailer: Option<Arc<dyn Mailer>>,
        base_url: String,
        passwords: Passwords,
        contact: Option<String>,
    ) -> Self {
        Self { mailer, digests: Arc::default(), base_url, passwords, contact }
    }

    /// Sends what waits for more of its kind: the service ends.
    pub fn finish(&self) {
        if let Some(mailer) = &self.mailer {
            self.digests.take_all().into_iter().for_each(|mail| mailer.send(mail));
        }
    }

    /// Returns whether there is a mail server.
    pub(crate) fn are_sent(&self) -> bool {
        self.mailer.is_some()
    }

    /// A link by which a person becomes a member.
    pub(crate) fn invitation(&self, to: &EmailAddress, by: &SignedIn, link: &str, until: OffsetDateTime) {
        let organisation = without_links(&by.organisation_name);
        let inviter = without_links(by.member.name.as_str());
        let text = format!(
            "{inviter} ({}) invited you to help manage how {organisation} receives patients from booking systems and \
             forms.\n\n\
             Open this link to {}:\n\n{link}\n\n\
             It works once, until {}. Not expecting this? Ask {inviter} before you open the link, or ignore it.",
            by.member.email,
            if self.passwords.are_on() { "choose a name and a password" } else { "join" },
            moment(until, by.zone)
        );
        let subject = format!("Invitation to {organisation}");
        self.send(by.member.organisation_id, to, subject, text, &format!("{inviter} asked us to invite you"));
    }

    /// A link by which a member chooses another password, made by a colleague or asked for by the member.
    pub(crate) fn password_reset(
        &self,
        share: OrganisationId,
        to: &EmailAddress,
        by: Option<&Name>,
        link: &str,
        until: OffsetDateTime,
        zone: Zone,
    ) {
        let by = by.map(|by| without_links(by.as_str()));
        let (what, doubt, why) = match by {
            Some(by) => (
                format!("{by} sent you a link to choose a new password:"),
                format!("Not expecting this? Ask {by} before you use it."),
                format!("{by} asked us to send you a link"),
            ),
            None => (
                "We got a request to reset your password. Choose a new one here:".to_owned(),
                "If you didn't ask for this, ignore it.".to_owned(),
                "someone entered your email address under “Forgotten password?”".to_owned(),
            ),
        };
        let text = format!(
            "{what}\n\n{link}\n\n\
             It works once, until {}. Your current password keeps working until you use it. {doubt}",
            moment(until, zone)
        );
        self.send(share, to, "Choose a new password".to_owned(), text, &why);
    }

    /// A link by which a member confirms a new address.
    pub(crate) fn email_change(&self, by: &SignedIn, to: &EmailAddress, link: &str, until: OffsetDateTime) {
        let text = format!(
            "Open this link to confirm your new email address:\n\n{link}\n\n\
             It works once, until {}. If you didn't ask for this, ignore it.",
            moment(until, by.zone)
        );
        let why = "this address was entered as the new email address of an account";
        self.send(by.member.organisation_id, to, "Confirm your email address".to_owned(), text, why);
    }

    /// A change of a member's own account, which the member may not have made.
    pub(crate) fn account(
        &self,
        account: &Account,
        to: &EmailAddress,
        change: AccountChange,
        origin: Origin,
        zone: Zone,
    ) {
        let (subject, what) = (change.subject(), change.text(self.passwords));
        let address = origin.address.map_or("unknown".to_owned(), |address| address.to_string());
        let browser = origin.browser.map_or("unknown".to_owned(), |browser| browser.to_string());
        let text = format!(
            "{what}\n\nAccount: {}\nTime: {}\nIP address: {address}\nBrowser: {browser}",
            account.email,
            moment(origin.at, zone)
        );
        let help = match self.passwords {
            Passwords::On => {
                format!("choose a new password at once at {}/forgotten-password, then tell", self.base_url)
            }
            Passwords::Off => "tell".to_owned(),
        };
        let footer = format!(
            "If this wasn't you, {help} an administrator of your organisation.\n\n{}",
            self.footer("it is about your account")
        );
        self.send_urgent(share_of(account), to.as_str(), subject, text, footer);
    }

    /// Tells the other members what a member did to a key.
    pub(crate) async fn key(
        &self,
        members: &dyn MemberStore,
        by: &SignedIn,
        key: MailedKey<'_>,
        change: KeyChange<'_>,
    ) {
        let SignedIn { member, organisation_name, .. } = by;
        let (name, organisation) = (without_links(key.name), without_links(organisation_name));
        let (hint, vendor) = (key.hint, vendor(key.contact));
        let was = |done: &str| format!("API key “{name}” was {done}");
        let (done, subject, effect) = match change {
            KeyChange::Created => ("created", was("created"), String::new()),
            KeyChange::Replaced(old_key) => ("replaced", was("replaced"), format!(" {old_key}")),
            KeyChange::Paused => {
                ("paused", was("paused"), " Requests using it are refused until the key is resumed.".to_owned())
            }
            KeyChange::Resumed(use_of_it) => ("resumed", was("resumed"), format!(" {use_of_it}")),
            KeyChange::NetworksAllowed(networks, why_refused) => {
                let whence = match networks.are_any() {
                    true => "from any network".to_owned(),
                    false => format!("only from {networks}"),
                };
                let effect = match why_refused {
                    Some(why) => format!(" Requests using it are refused from everywhere, because {why}."),
                    None => format!(" Requests using it are accepted {whence}."),
                };
                let subject = format!("Allowed networks of API key “{name}” were changed");
                ("changed the allowed networks of", subject, effect)
            }
            KeyChange::Revoked => ("revoked", was("revoked"), " Requests using it are refused.".to_owned()),
        };
        let text = format!(
            "{} ({}) has {done} the API key “{name}” (…{hint}) of {organisation}.{effect}{vendor}",
            without_links(member.name.as_str()),
            member.email
        );
        let why = format!("you are a member of {organisation}");
        let others =
            self.members(members, member.organisation_id).await.into_iter().filter(|other| other.id != member.id);
        for other in others {
            let (subject, text) = (subject.clone(), text.clone());
            let footer = format!("All keys: {}/settings/api-keys\n\n{}", self.base_url, self.footer(&why));
            let mail = |to| Mail { organisation: member.organisation_id, to, subject, text, footer };
            self.gather(&other.email, mail, &format!("API keys of {organisation} were changed"), First::WithOthers);
        }
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
        // None: the member is no administrator.
        let Some(MemberRecord { name, email, .. }) = new.first() else { return };
        let organisation_name = without_links(organisation_name);
        let text = format!(
            "{} ({email}) is now an administrator of {organisation_name} and can manage its API keys and members.\n\nIf you didn't expect this, look at {}/settings/members",
            without_links(name),
            self.base_url
        );
        let subject = format!("{organisation_name} has a new administrator");
        self.send_all(
            organisation,
            others,
            &subject,
            &text,
            &format!("you are an administrator of {organisation_name}"),
        );
    }

    /// The members of an organisation. Empty if mail is off or the lookup fails: the change is already committed.
    pub(crate) async fn members(&self, members: &dyn MemberStore, organisation: OrganisationId) -> Vec<MemberRecord> {
        if !self.are_sent() {
            return Vec::new();
        }
        members.members(organisation).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "the members who should get an email could not be found");
            Vec::new()
        })
    }

    /// Tells the members who can replace keys that expire soon: of each key once, and of all keys of a day in one mail.
    pub async fn tell_of_expiring_keys(
        &self,
        keys: &dyn ExpiringKeyStore,
        members: &dyn MemberStore,
    ) -> Result<(), StoreError> {
        let claimed = keys.claim_expiring(edge::now()).await?;
        let by_organisation = claimed.chunk_by(|key, next| key.organisation_id == next.organisation_id);
        let news = by_organisation.filter_map(|keys| Some((keys.first()?.organisation_id, keys)));
        tell_of_keys(members, news, |to, keys| self.keys_expire(to, keys)).await;
        Ok(())
    }

    /// These keys of an organisation will expire.
    fn keys_expire(&self, to: Vec<MemberRecord>, keys: &[ExpiringKey]) {
        let [first, ..] = keys else { return };
        let organisation_name = without_links(&first.organisation_name);
        let subject = match keys.len() {
            1 => format!("API key “{}” expires soon", without_links(&first.name)),
            count => format!("{count} API keys of {organisation_name} expire soon"),
        };
        let zone = first.zone;
        let paragraph = |ExpiringKey { id, name, hint, contact, expires_at, .. }: &ExpiringKey| {
            let (name, end) = (without_links(name), end_in_words(*expires_at, zone));
            format!(
                "“{name}” (…{hint}) works until {end}. Replace it: {}/settings/api-keys/{id}/replace{}",
                self.base_url,
                vendor(contact)
            )
        };
        let text = format!(
            "After a key has expired, requests with it are refused. Replace these API keys of {organisation_name} in time. All times are {zone}.\n\n{}",
            keys.iter().map(paragraph).collect::<Vec<_>>().join("\n\n")
        );
        self.send_all(first.organisation_id, to, &subject, &text, &manages_keys_of(&first.organisation_name));
    }

    pub(crate) fn send_all(
        &self,
        organisation: OrganisationId,
        to: impl IntoIterator<Item = MemberRecord>,
        subject: &str,
        text: &str,
        why: &str,
    ) {
        for member in to {
            self.send_urgent(organisation, &member.email, subject, text.to_owned(), self.footer(why));
        }
    }

    fn send(&self, organisation: OrganisationId, to: &EmailAddress, subject: String, text: String, why: &str) {
        if let Some(mailer) = &self.mailer {
            mailer.send(Mail { organisation, to: to.clone(), subject, text, footer: self.footer(why) });
        }
    }

    /// The end of every mail: why its reader gets it, who sends it, and whom to ask.
    fn footer(&self, why: &str) -> String {
        let ask = self.contact.as_deref().unwrap_or("an administrator of your organisation");
        format!(
            "You get this email because {why}. It comes from intake, the service that adds patients to the registers \
             of clinics: {}\nQuestions? Ask {ask}.",
            self.base_url
        )
    }

    /// Sends a mail at once, but not as often as someone can cause it.
    fn send_urgent(&self, organisation: OrganisationId, to: &str, subject: &str, text: String, footer: String) {
        let mail = |to| Mail { organisation, to, subject: subject.to_owned(), text, footer };
        self.gather(to, mail, subject, First::AtOnce);
    }

    fn gather(&self, to: &str, mail: impl FnOnce(EmailAddress) -> Mail, subject_of_many: &str, first: First) {
        // Stored addresses were validated, so this does not fail.
        if let (Some(mailer), Ok(to)) = (&self.mailer, to.parse()) {
            self.digests.send(mailer, mail(to), subject_of_many, first);
        }
    }
}

/// Tells the members who manage keys, one organisation after the other. Their keys are marked as told of already, so
/// members who cannot be found are looked for until they are.
pub(crate) async fn tell_of_keys<K>(
    members: &dyn MemberStore,
    news: impl Iterator<Item = (OrganisationId, K)>,
    tell: impl Fn(Vec<MemberRecord>, K),
) {
    let mut left: VecDeque<_> = news.collect();
    let mut is_logged = false;
    while let Some((organisation, keys)) = left.pop_front() {
        match members.members(organisation).await {
            Ok(mut to) => {
                to.retain(|member| member.role.manages_keys());
                tell(to, keys);
            }
            Err(error) => {
                if !std::mem::replace(&mut is_logged, true) {
                    tracing::warn!(%error, "the members who should get an email could not be found; it is tried again");
                }
                left.push_back((organisation, keys));
                tokio::time::sleep(MEMBERS_PAUSE).await;
            }
        }
    }
}

/// Change of a member's own account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccountChange {
    PasswordChanged,
    PasswordReset,
    PasswordAndPasskeysReset,
    EmailChangeRequested,
    EmailChanged,
    PasskeyAdded,
    PasskeyRemoved,
    SecondFactorTurnedOn,
    SecondFactorTurnedOff,
    SecondFactorReset,
    RecoveryCodesReplaced,
    ProviderLinked,
    SessionsEnded,
    NewBrowser,
}

impl AccountChange {
    fn subject(self) -> &'static str {
        match self {
            Self::PasswordChanged | Self::PasswordReset | Self::PasswordAndPasskeysReset => "Your password was changed",
            Self::EmailChangeRequested => "Someone asked to change your email address",
            Self::EmailChanged => "Your email address was changed",
            Self::PasskeyAdded => "A passkey was added",
            Self::PasskeyRemoved => "A passkey was removed",
            Self::SecondFactorTurnedOn => "Two-step sign-in is on",
            Self::SecondFactorTurnedOff | Self::SecondFactorReset => "Two-step sign-in is off",
            Self::RecoveryCodesReplaced => "Your recovery codes were replaced",
            Self::ProviderLinked => "Single sign-on was linked",
            Self::SessionsEnded => "Your sessions were ended",
            Self::NewBrowser => "New sign-in to your account",
        }
    }

    fn text(self, passwords: Passwords) -> &'static str {
        match self {
            Self::PasswordChanged => "The password of your account was changed.",
            Self::PasswordReset => "The password of your account was changed by a reset link.",
            Self::PasswordAndPasskeysReset => {
                "The password of your account was changed by a reset link, and all its passkeys were removed."
            }
            Self::EmailChangeRequested if !passwords.are_on() => {
                "Someone who is signed in to your account asked to change its email address. The change takes effect when the link sent to the new address is opened."
            }
            Self::EmailChangeRequested => {
                "Someone who knows your password asked to change the email address of your account. The change takes effect when the link sent to the new address is opened. Choose a new password to stop it."
            }
            Self::EmailChanged => "The email address of your account was changed. Sign in with the new address below.",
            Self::PasskeyAdded if !passwords.are_on() => "A passkey was added to your account, for two-step sign-in.",
            Self::PasskeyAdded => {
                "A passkey was added to your account. Anyone with that device can sign in without your password."
            }
            Self::PasskeyRemoved => "A passkey was removed from your account.",
            Self::SecondFactorTurnedOn => "Two-step sign-in with an authenticator app was turned on for your account.",
            Self::SecondFactorTurnedOff => {
                "Two-step sign-in with an authenticator app was turned off for your account."
            }
            Self::SecondFactorReset => {
                "An administrator of your organisation turned off two-step sign-in for your account, and removed its passkeys."
            }
            Self::RecoveryCodesReplaced => "New recovery codes were made for your account.",
            Self::ProviderLinked => "Your account was linked to single sign-on, by which you can sign in from now on.",
            Self::SessionsEnded => {
                "An administrator of your organisation signed you out of it everywhere. You can sign in again."
            }
            Self::NewBrowser => {
                "Someone signed in to your account with a browser or from a network that was not used before."
            }
        }
    }
}

/// A key as mails name it.
#[derive(Clone, Copy)]
pub(crate) struct MailedKey<'a> {
    pub(crate) name: &'a str,
    pub(crate) hint: &'a str,
    pub(crate) contact: &'a str,
}

impl<'a> From<&'a KeyRecord> for MailedKey<'a> {
    fn from(KeyRecord { name, hint, contact, .. }: &'a KeyRecord) -> Self {
        Self { name, hint, contact }
    }
}

/// Change of a key by a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyChange<'a> {
    Created,
    /// Replaced, with the sentence about the old key.
    Replaced(&'a str),
    Paused,
    /// Resumed, with the sentence about its requests.
    Resumed(&'a str),
    /// Networks, and the reason why requests are refused from everywhere.
    NetworksAllowed(&'a AllowedNetworks, Option<&'static str>),
    Revoked,
}

/// The share of the mails about an account: as large as an organisation's.
pub(crate) fn share_of(account: &Account) -> OrganisationId {
    OrganisationId::from(*account.id.as_uuid())
}

/// The reason why a key manager gets a mail.
pub(crate) fn manages_keys_of(organisation: &str) -> String {
    format!("you manage API keys of {}", without_links(organisation))
}

/// A line of a mail that says whom to call about a key, if anyone is named.
pub(crate) fn vendor(contact: &str) -> String {
    if contact.is_empty() { String::new() } else { format!("\nVendor contact: {}", without_links(contact)) }
}

/// A name that people chose, for a mail: mail programs find neither a link nor an address nor another line in it.
pub(crate) fn without_links(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    let mut letters = name.chars().peekable();
    while let Some(letter) = letters.next() {
        let is_followed = letters.peek().is_some_and(|next| !next.is_whitespace());
        match letter {
            '@' => text.push_str(" at "),
            ':' | '/' | '\\' | '\u{2028}' | '\u{2029}' => text.push(' '),
            '.' | '。' | '．' | '｡' if is_followed => text.push_str(". "),
            _ => text.push(letter),
        }
    }
    text
}

/// A moment, as a mail says it, with its zone.
pub(crate) fn moment(at: OffsetDateTime, zone: Zone) -> String {
    format!("{} {zone}", day_and_time(at, zone))
}

/// The zone for a mail to a person who may not be signed in. A mail in UTC is better than none.
pub(crate) async fn zone_of(rules: &dyn RulesStore, person: MemberId) -> Zone {
    rules.zone_of(person).await.unwrap_or_else(|error| {
        tracing::warn!(%error, "the time zone of an email could not be found");
        Zone::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_passwords_no_mail_about_an_account_speaks_of_one() {
        use AccountChange::{
            EmailChangeRequested, EmailChanged, NewBrowser, PasskeyAdded, PasskeyRemoved, ProviderLinked,
            RecoveryCodesReplaced, SecondFactorReset, SecondFactorTurnedOff, SecondFactorTurnedOn, SessionsEnded,
        };
        for change in [
            EmailChangeRequested,
            EmailChanged,
            NewBrowser,
            PasskeyAdded,
            PasskeyRemoved,
            ProviderLinked,
            RecoveryCodesReplaced,
            SecondFactorReset,
            SecondFactorTurnedOff,
            SecondFactorTurnedOn,
            SessionsEnded,
        ] {
            let (subject, text) = (change.subject(), change.text(Passwords::Off));
            assert!(!format!("{subject} {text}").to_lowercase().contains("password"), "{text}");
        }
        assert_eq!(
            PasskeyAdded.text(Passwords::Off),
            "A passkey was added to your account, for two-step sign-in.",
            "it signs nobody in by itself"
        );
    }

    #[test]
    fn names_hold_neither_links_nor_addresses() {
        for (name, expected) in [
            ("Grace Hopper", "Grace Hopper"),
            ("Dr. Lee", "Dr. Lee"),
            ("J.R. Smith", "J. R. Smith"),
            ("see https://evil.example/unlock now!", "see https   evil. example unlock now!"),
            ("www.evil.example", "www. evil. example"),
            ("evil｡example", "evil. example"),
            ("a@evil.example", "a at evil. example"),
            ("Ada\u{2028}Security alert\u{2029}call", "Ada Security alert call"),
        ] {
            assert_eq!(without_links(name), expected);
        }
    }
}
