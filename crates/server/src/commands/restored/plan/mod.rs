//! What the lost entries come to: for each patient, organisation, key and member the net effect, as far as the restored
//! database is not so already, and only where a command can work.

mod members;
mod policies;

use std::collections::{BTreeSet, HashMap, HashSet};

use intake_domain::{Action, AllowedNetworks, KeyId, KeyRecord, OrganisationId};
use intake_infra::restored::PatientPlace;

use self::members::is_about_membership;
pub(super) use self::policies::Policy;
use super::copy::{AuditCopy, Recorded, folded};
use super::standing::Standing;
use super::step::Step;

/// The steps that repeat what was lost.
pub(super) struct Plan<'a> {
    entries: &'a [Recorded],
    /// In their order, each with the number of the entry that it is for.
    pub(super) steps: Vec<(usize, Step)>,
    /// Policies that people set on a page.
    pub(super) policies: Vec<Policy>,
    /// The entries about rows that the restore has lost, too: nothing is left to repeat.
    pub(super) without_rows: HashSet<usize>,
    /// Keys that have a replacement which was not in use at that moment.
    pub(super) perhaps_ended: Vec<KeyId>,
    /// Nobody knows what was decided since it ends, so what opens is left to people.
    pub(super) is_copy_older: bool,
    standing: &'a Standing,
}

impl<'a> Plan<'a> {
    pub(super) fn of(copy: &'a AuditCopy, standing: &'a Standing) -> Self {
        let (entries, is_copy_older) = (&copy.entries, copy.is_older);
        let (steps, policies, without_rows, perhaps_ended) = (Vec::new(), Vec::new(), HashSet::new(), Vec::new());
        let mut plan = Self { entries, steps, policies, without_rows, perhaps_ended, is_copy_older, standing };
        let organisations: BTreeSet<_> = plan.lost().map(|(_, entry)| entry.organisation).collect();
        for organisation in organisations {
            if standing.organisations.contains_key(&organisation) {
                plan.plan_patients(organisation);
                plan.plan_organisation(organisation);
                plan.plan_members(organisation);
                plan.plan_policies(organisation);
            }
        }
        let named = plan.lost().flat_map(|(_, entry)| [entry.key, entry.replaced_key]).flatten();
        for key in named.collect::<BTreeSet<_>>() {
            match standing.keys.get(&key) {
                Some(stored) => plan.plan_stored_key(stored),
                None => plan.plan_lost_key(key),
            }
        }
        plan.leave_out_what_is_settled();
        plan.steps.sort_by_key(|(entry, step)| (step.rank(), *entry));
        plan.without_rows = plan.lost().map(|(number, _)| number).filter(|entry| plan.is_without_row(*entry)).collect();
        plan.note_perhaps_ended();
        plan
    }

    /// The entries that are not in the database.
    pub(super) fn lost(&self) -> impl DoubleEndedIterator<Item = (usize, &'a Recorded)> + use<'a> {
        self.entries.iter().enumerate().filter(|(_, entry)| entry.is_lost && entry.matters())
    }

    /// Whatever opens was decided when an operator said, later, that this database is the register.
    fn leave_out_what_is_settled(&mut self) {
        let (entries, is_copy_older) = (self.entries, self.is_copy_older);
        let is_restore = |one: &Recorded| one.action() == Some(Action::RegisterRestored) && !one.is_lost;
        let restores = entries.iter().enumerate().filter(|(_, one)| is_restore(one));
        let last: HashMap<_, _> = restores.map(|(number, one)| (one.organisation, number)).collect();
        let is_settled = |number| {
            entries.get(number).and_then(|of: &Recorded| last.get(&of.organisation)).is_some_and(|last| *last > number)
        };
        self.steps
            .retain(|(number, step)| step.closes() || !is_settled(*number) && (!is_copy_older || step.is_by_hand()));
        self.policies.retain(|policy| policy.closes || !is_settled(policy.entry));
    }

    /// The last entry of which something is so, and what, if it was lost.
    fn last<T>(&self, find: impl Fn(&Recorded) -> Option<T>) -> Option<(usize, T)> {
        let found = self.entries.iter().enumerate().rev().find_map(|(number, entry)| Some((number, find(entry)?)));
        found.filter(|(number, _)| self.entries.get(*number).is_some_and(|entry| entry.is_lost))
    }

    fn last_of(&self, key: KeyId, actions: &[Action]) -> Option<(usize, Action)> {
        self.last(|entry| entry.action().filter(|action| entry.key == Some(key) && actions.contains(action)))
    }

    fn plan_patients(&mut self, organisation: OrganisationId) {
        let mut seen = HashSet::new();
        for (number, entry) in self.lost().filter(|(_, entry)| entry.organisation == organisation) {
            let Some(patient) = entry.erased_patient().filter(|patient| seen.insert(*patient)) else { continue };
            let digest = match self.standing.patients.get(&(organisation, patient)) {
                Some(PatientPlace::Erased) => continue,
                Some(PatientPlace::Stored) => entry.idempotency_digest.map(Some),
                None => Some(entry.idempotency_digest),
            };
            self.steps.push((number, Step::ErasePatient { organisation, patient, digest }));
        }
    }

    /// The entry by which an organisation has an action behind it.
    fn entry_of(&self, organisation: OrganisationId, action: Action) -> Option<usize> {
        let is_it = |entry: &Recorded| entry.organisation == organisation && entry.action() == Some(action);
        self.last(|entry| is_it(entry).then_some(())).map(|(number, ())| number)
    }

    /// Returns whether it is closed, or will be.
    fn is_closed(&self, organisation: OrganisationId) -> bool {
        self.standing.organisations.get(&organisation).is_none_or(|stored| stored.closed_at.is_some())
            || self.entry_of(organisation, Action::OrganisationClosed).is_some()
    }

    fn suspension(&self, organisation: OrganisationId) -> Option<(usize, bool)> {
        self.last(|entry| match entry.action().filter(|_| entry.organisation == organisation)? {
            Action::OrganisationSuspended => Some(true),
            Action::OrganisationResumed => Some(false),
            _ => None,
        })
    }

    fn is_suspended(&self, organisation: OrganisationId) -> bool {
        let stored = self.standing.organisations.get(&organisation).is_some_and(|stored| stored.suspended_at.is_some());
        self.suspension(organisation).map_or(stored, |(_, is_suspended)| is_suspended)
    }

    fn plan_organisation(&mut self, organisation: OrganisationId) {
        let Some(stored) = self.standing.organisations.get(&organisation) else { return };
        if let Some(entry) =
            self.entry_of(organisation, Action::OrganisationClosed).filter(|_| stored.closed_at.is_none())
        {
            self.steps.push((entry, Step::CloseOrganisation(organisation)));
        }
        let has_patients = self.standing.with_patients.contains(&organisation);
        if let Some(entry) = self.entry_of(organisation, Action::OrganisationErased).filter(|_| has_patients) {
            self.steps.push((entry, Step::EraseOrganisation(organisation)));
        }
        match self.suspension(organisation).filter(|_| !self.is_closed(organisation)) {
            Some((entry, true)) if stored.suspended_at.is_none() => {
                self.steps.push((entry, Step::SuspendOrganisation(organisation)));
            }
            Some((entry, false)) if stored.suspended_at.is_some() => {
                self.steps.push((entry, Step::ResumeOrganisation(organisation)));
            }
            _ => {}
        }
        let is_unnamed = |entry: &Recorded| {
            entry.organisation == organisation && entry.key.is_none() && entry.action() == Some(Action::KeyRevoked)
        };
        if let Some((entry, ())) = self.last(|entry| is_unnamed(entry).then_some(())) {
            self.steps.push((entry, Step::ListKeys(organisation)));
        }
    }

    fn plan_stored_key(&mut self, stored: &KeyRecord) {
        let key = stored.id;
        let mut about = self.entries.iter().filter(|entry| [entry.key, entry.replaced_key].contains(&Some(key)));
        let is_closed = about.next().is_none_or(|entry| self.is_closed(entry.organisation));
        if stored.revoked_at.is_some() || is_closed {
            return;
        }
        let replaced = self.last(|entry| (entry.replaced_key == Some(key)).then_some(()));
        if let Some((entry, _)) = self.last_of(key, &[Action::KeyRevoked]) {
            self.steps.push((entry, Step::RevokeKey(key)));
            return;
        }
        if stored.is_over(self.standing.now) {
            return;
        }
        // Nothing tells whether the replacement was used, which is lost: so the old key is over.
        if let Some((entry, ())) = replaced {
            self.steps.push((entry, Step::RevokeKey(key)));
            return;
        }
        match self.last_of(key, &[Action::KeyPaused, Action::KeyResumed]) {
            Some((entry, Action::KeyPaused)) if stored.paused_at.is_none() => {
                self.steps.push((entry, Step::PauseKey(key)));
            }
            Some((entry, Action::KeyResumed)) if stored.paused_at.is_some() => {
                self.steps.push((entry, Step::ResumeKey(key)));
            }
            _ => {}
        }
        if let Some((entry, networks)) =
            self.networks_of(key).filter(|(_, networks)| *networks != stored.allowed_networks)
        {
            let step = if networks.are_any() { Step::AllowKeyFromAnywhere(key) } else { Step::LimitKey(key, networks) };
            self.steps.push((entry, step));
        }
        let is_marked = stored.sent_in_clear_at.is_some();
        if let Some((entry, _)) = self.last_of(key, &[Action::KeyMarkCleared]).filter(|_| is_marked) {
            self.steps.push((entry, Step::ClearMark(key)));
        }
    }

    /// The networks that a key was limited to last.
    fn networks_of(&self, key: KeyId) -> Option<(usize, AllowedNetworks)> {
        let is_change = |entry: &Recorded| entry.key == Some(key) && entry.action() == Some(Action::KeyNetworksChanged);
        // A list of networks holds no arrow, unlike names.
        self.last(|entry| is_change(entry).then(|| entry.subject.rsplit(" → ").next()?.parse().ok()).flatten())
    }

    /// A key that was made later is made again, unless it is over.
    fn plan_lost_key(&mut self, key: KeyId) {
        let Some((entry, _)) = self.last_of(key, &[Action::KeyCreated, Action::KeyReplaced]) else { return };
        let Some(made) = self.entries.get(entry) else { return };
        let organisation = made.organisation;
        let Some(stored) = self.standing.organisations.get(&organisation) else { return };
        let expires_at = made.key_expires_at;
        let is_refused = self.is_closed(organisation)
            || self.is_suspended(organisation)
            || stored.key_age_max.is_some_and(|age| !age.allows(self.standing.now, expires_at));
        let is_over = self.last_of(key, &[Action::KeyRevoked]).is_some()
            || self.last(|entry| (entry.replaced_key == Some(key)).then_some(())).is_some()
            || expires_at.is_some_and(|at| at <= self.standing.now)
            || matches!(self.last_of(key, &[Action::KeyPaused, Action::KeyResumed]), Some((_, Action::KeyPaused)));
        if is_refused || is_over {
            return;
        }
        let (name, allowed) = AllowedNetworks::split_name(&made.subject);
        let renamed =
            self.entries.iter().filter(|entry| entry.key == Some(key) && entry.action() == Some(Action::KeyRenamed));
        let name = renamed.fold(name.to_owned(), |name, entry| {
            entry.subject.strip_prefix(&format!("{name} → ")).map_or(name, str::to_owned)
        });
        let allowed = self.networks_of(key).map_or(allowed, |(_, networks)| networks);
        self.steps.push((entry, Step::CreateKey { organisation, name, allowed, expires_at }));
    }

    fn is_without_row(&self, number: usize) -> bool {
        let Some(entry) = self.entries.get(number) else { return false };
        if self.steps.iter().any(|(of, _)| *of == number) {
            return false;
        }
        let person = entry.person.as_deref().map(|address| (entry.organisation, folded(address)));
        let is_known = |person| self.standing.members.contains_key(person) || self.standing.invited.contains(person);
        let is_nobody = || !person.as_ref().is_some_and(is_known);
        !self.standing.organisations.contains_key(&entry.organisation)
            || entry.key.is_some_and(|key| !self.standing.keys.contains_key(&key))
            || entry.action().is_some_and(is_about_membership) && is_nobody()
    }

    fn note_perhaps_ended(&mut self) {
        let unused = self.standing.keys.values().filter(|key| key.revoked_at.is_none() && key.last_used_at.is_none());
        let replaced = unused.filter_map(|key| self.standing.keys.get(&key.replaces?));
        let open = replaced.filter(|key| !key.is_over(self.standing.now)).map(|key| key.id);
        let is_planned = |key: &KeyId| self.steps.iter().any(|(_, step)| *step == Step::RevokeKey(*key));
        self.perhaps_ended = open.filter(|key| !is_planned(key)).collect::<BTreeSet<_>>().into_iter().collect();
    }
}
