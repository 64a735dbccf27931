//! Gathers news for a minute, so that many changes of a kind are one mail.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actix_web::rt;
use intake_domain::{Mail, Mailer, OrganisationId};

/// Time for which news waits for more of its kind.
const GATHER_TIME: Duration = Duration::from_secs(60);
/// Paragraphs of news in one mail.
const PARAGRAPHS_MAX: usize = 50;
/// Kinds that are gathered: as many as mails may wait. News of further kinds is sent at once.
const KINDS_MAX: usize = 5_000;

/// Time at which the first news of a kind is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum First {
    /// At once, and only what follows is gathered.
    AtOnce,
    /// With what follows.
    WithOthers,
}

/// Organisation, receiver, and the subject of several.
type Kind = (OrganisationId, String, String);

/// The news that waits for more of its kind.
#[derive(Default)]
pub(crate) struct Digests(Mutex<HashMap<Kind, Digest>>);

#[derive(Default)]
struct Digest {
    /// None: everything of this kind is sent.
    mail: Option<Mail>,
    paragraphs: usize,
}

impl Digests {
    /// Sends news, together with others from the organisation to the person under this subject.
    pub(crate) fn send(self: &Arc<Self>, mailer: &Arc<dyn Mailer>, mail: Mail, subject_of_many: &str, first: First) {
        let kind = (mail.organisation, mail.to.to_string(), subject_of_many.to_owned());
        let (now, is_new) = self.add(&kind, mail, first);
        now.into_iter().for_each(|mail| mailer.send(mail));
        if is_new {
            let (digests, mailer) = (Arc::clone(self), Arc::clone(mailer));
            rt::spawn(async move {
                rt::time::sleep(GATHER_TIME).await;
                while let Some(mail) = digests.take(&kind) {
                    mailer.send(mail);
                    rt::time::sleep(GATHER_TIME).await;
                }
            });
        }
    }

    /// Returns all that waits for more of its kind.
    pub(crate) fn take_all(&self) -> Vec<Mail> {
        self.lock().drain().filter_map(|(_, digest)| digest.mail).collect()
    }

    /// Adds news. Returns what is sent at once, and whether its kind is gathered from here on.
    fn add(&self, kind: &Kind, mail: Mail, first: First) -> (Option<Mail>, bool) {
        let mut digests = self.lock();
        if let Some(digest) = digests.get_mut(kind) {
            digest.add(mail, &kind.2);
            return (None, false);
        }
        if digests.len() >= KINDS_MAX {
            return (Some(mail), false);
        }
        let (now, mail) = match first {
            First::AtOnce => (Some(mail), None),
            First::WithOthers => (None, Some(mail)),
        };
        digests.insert(kind.clone(), Digest { mail, paragraphs: 1 });
        (now, true)
    }

    /// Returns what was gathered. None: nothing was, and the kind is gathered no longer.
    fn take(&self, kind: &Kind) -> Option<Mail> {
        let mut digests = self.lock();
        let mail = digests.get_mut(kind).and_then(|digest| digest.mail.take());
        if mail.is_none() {
            digests.remove(kind);
        }
        mail
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Kind, Digest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Digest {
    fn add(&mut self, later: Mail, subject_of_many: &str) {
        let Some(mail) = &mut self.mail else {
            *self = Self { mail: Some(later), paragraphs: 1 };
            return;
        };
        self.paragraphs += 1;
        mail.subject = subject_of_many.to_owned();
        match self.paragraphs {
            ..=PARAGRAPHS_MAX => mail.text = format!("{}\n\n{}", mail.text, later.text),
            paragraphs if paragraphs == PARAGRAPHS_MAX + 1 => mail.text += "\n\nThere was more of the kind.",
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "00000000-0000-0000-0000-000000000001";
    const OTHER: &str = "00000000-0000-0000-0000-000000000002";

    fn kind(organisation: &str, to: &str, subject_of_many: &str) -> Kind {
        (organisation.parse().unwrap(), to.to_owned(), subject_of_many.to_owned())
    }

    fn mail(kind: &Kind) -> Mail {
        let (to, text) = (kind.1.parse().unwrap(), format!("to {}", kind.1));
        Mail { organisation: kind.0, to, subject: "One".to_owned(), text, footer: String::new() }
    }

    /// Adds news. Returns the subject of what is sent at once, and whether its kind is gathered from here on.
    fn add(digests: &Digests, kind: &Kind, first: First) -> (Option<String>, bool) {
        let (now, is_new) = digests.add(kind, mail(kind), first);
        (now.map(|mail| mail.subject), is_new)
    }

    fn subject(digests: &Digests, kind: &Kind) -> Option<String> {
        digests.take(kind).map(|mail| mail.subject)
    }

    #[test]
    fn news_of_a_minute_is_one_mail() {
        let digests = Digests::default();
        let many = kind(ONE, "a@b.example", "Many");
        assert_eq!(add(&digests, &many, First::WithOthers), (None, true));
        for _ in 1..PARAGRAPHS_MAX + 10 {
            assert_eq!(add(&digests, &many, First::WithOthers), (None, false));
        }
        for other in
            [kind(ONE, "c@b.example", "Many"), kind(OTHER, "a@b.example", "Many"), kind(ONE, "a@b.example", "Others")]
        {
            assert_eq!(add(&digests, &other, First::WithOthers), (None, true), "{other:?}");
            assert_eq!(subject(&digests, &other).as_deref(), Some("One"));
        }
        let sent = digests.take(&many).unwrap();
        assert_eq!((sent.subject.as_str(), sent.text.matches("to a@b.example").count()), ("Many", PARAGRAPHS_MAX));
        assert!(sent.text.ends_with("There was more of the kind."), "{}", sent.text);
    }

    #[test]
    fn urgent_news_is_sent_at_once_and_what_follows_within_a_minute_is_one_mail() {
        let digests = Digests::default();
        let many = kind(ONE, "a@b.example", "Many");
        assert_eq!(add(&digests, &many, First::AtOnce), (Some("One".to_owned()), true));
        assert_eq!(add(&digests, &many, First::AtOnce), (None, false));
        assert_eq!(add(&digests, &many, First::AtOnce), (None, false));
        assert_eq!(subject(&digests, &many).as_deref(), Some("Many"));
        assert_eq!(add(&digests, &many, First::AtOnce), (None, false), "one a minute");
        assert_eq!(subject(&digests, &many).as_deref(), Some("One"));
        assert_eq!(subject(&digests, &many), None);
        assert_eq!(add(&digests, &many, First::AtOnce), (Some("One".to_owned()), true), "another burst");
    }

    #[test]
    fn the_kinds_that_are_gathered_are_bounded_and_none_outlives_its_news() {
        let digests = Digests::default();
        let kinds: Vec<_> = (0..KINDS_MAX).map(|number| kind(ONE, "a@b.example", &number.to_string())).collect();
        kinds.iter().for_each(|kind| assert!(add(&digests, kind, First::WithOthers).1));
        let further = kind(OTHER, "a@b.example", "Many");
        assert_eq!(add(&digests, &further, First::WithOthers), (Some("One".to_owned()), false));
        for kind in &kinds {
            assert!(digests.take(kind).is_some() && digests.take(kind).is_none());
        }
        assert!(digests.lock().is_empty());
    }

    #[test]
    fn everything_that_waits_is_returned_at_the_end() {
        let digests = Digests::default();
        for (subject, first) in [("Many", First::WithOthers), ("Others", First::AtOnce)] {
            add(&digests, &kind(ONE, "a@b.example", subject), first);
        }
        assert_eq!(digests.take_all().len(), 1, "the other one is sent");
        assert!(digests.take_all().is_empty());
    }
}
