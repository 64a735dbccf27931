//! Policies of an organisation that are others than was decided last: for most there is no command.

use intake_domain::{Action, KeyAge, OrganisationId, Zone};

use super::Plan;
use crate::commands::restored::copy::Recorded;
use crate::commands::restored::step::Step;

/// A policy that an administrator of the organisation sets again.
pub(in crate::commands::restored) struct Policy {
    pub(super) entry: usize,
    pub(in crate::commands::restored) organisation: OrganisationId,
    /// Its content as it was decided last, for people.
    pub(in crate::commands::restored) decided: String,
    /// It is weaker in the restored database.
    pub(super) closes: bool,
}

impl Plan<'_> {
    pub(super) fn plan_policies(&mut self, organisation: OrganisationId) {
        let Some(stored) = self.standing.organisations.get(&organisation).filter(|_| !self.is_closed(organisation))
        else {
            return;
        };
        let is_required = self.last(|entry| match entry.action().filter(|_| entry.organisation == organisation)? {
            Action::SecondFactorRequired => Some(true),
            Action::SecondFactorOptional => Some(false),
            _ => None,
        });
        let stored_required = self.standing.with_required_factor.contains(&organisation);
        if let Some((entry, closes)) = is_required.filter(|(_, is_required)| *is_required != stored_required) {
            let decided = format!("two-step sign-in is {}", if closes { "required for everyone" } else { "optional" });
            self.policies.push(Policy { entry, organisation, decided, closes });
        }
        let days = |age: Option<KeyAge>| age.map(KeyAge::days);
        let limit = self.last(|entry| changed_to(entry, organisation, Action::KeyAgeLimited).and_then(limited_to));
        if let Some((entry, limit)) = limit.filter(|(_, limit)| *limit != days(stored.key_age_max)) {
            let decided = match limit {
                Some(limit) => format!("new keys must expire within {limit} days"),
                None => "new keys may last for ever".to_owned(),
            };
            let closes = limit.is_some_and(|limit| days(stored.key_age_max).is_none_or(|stored| limit < stored));
            self.policies.push(Policy { entry, organisation, decided, closes });
        }
        let zone =
            self.last(|entry| changed_to(entry, organisation, Action::OrganisationZoneChanged)?.parse::<Zone>().ok());
        if let Some((entry, zone)) = zone.filter(|(_, zone)| *zone != stored.zone) {
            self.steps.push((entry, Step::ChangeZone(organisation, zone)));
        }
    }
}

/// Value that an action gave to a policy, as its subject names it after the one of before.
fn changed_to(entry: &Recorded, organisation: OrganisationId, action: Action) -> Option<&str> {
    let is_it = entry.organisation == organisation && entry.action() == Some(action);
    entry.subject.rsplit(" → ").next().filter(|_| is_it)
}

/// Limit in days. The inner none: there is no limit.
fn limited_to(words: &str) -> Option<Option<u16>> {
    if words == "no limit" { Some(None) } else { words.split(' ').next()?.parse().ok().map(Some) }
}
