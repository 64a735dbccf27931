//! Steps about people: who belongs to an organisation, and with which role.

use std::collections::BTreeSet;

use intake_domain::{Action, EmailAddress, OrganisationId, Role};

use super::Plan;
use crate::commands::restored::copy::{Recorded, folded};
use crate::commands::restored::step::Step;

impl Plan<'_> {
    pub(super) fn plan_members(&mut self, organisation: OrganisationId) {
        if self.is_closed(organisation) {
            return;
        }
        let is_about = |entry: &Recorded| entry.action().is_some_and(is_about_membership);
        let theirs = self.lost().filter(|(_, entry)| entry.organisation == organisation && is_about(entry));
        let people: BTreeSet<_> = theirs.filter_map(|(_, entry)| entry.person.as_deref().map(folded)).collect();
        for person in people {
            self.plan_person(organisation, &person);
        }
    }

    fn plan_person(&mut self, organisation: OrganisationId, folded_email: &str) {
        let is_theirs = |entry: &Recorded| {
            entry.organisation == organisation && entry.person.as_deref().map(folded).as_deref() == Some(folded_email)
        };
        // The address as it was written. An entry of before a program checked addresses may name none.
        let email =
            |entry: &Recorded| entry.person.as_deref()?.parse::<EmailAddress>().ok().filter(|_| is_theirs(entry));
        let last = |is_it: fn(Action) -> bool| {
            self.last(|entry| Some((entry.action().filter(|it| is_it(*it))?, email(entry)?)))
        };
        let person = (organisation, folded_email.to_owned());
        let role = self.standing.members.get(&person).copied();
        let reset = last(|action| action == Action::PasswordResetIssued).filter(|_| role.is_some());
        let given = self.last(|entry| role_given(entry).filter(|_| is_theirs(entry))).map(|(_, role)| role);
        if let Some((number, (action, email))) = last(belongs_or_not) {
            let is_out = matches!(action, Action::MemberRemoved | Action::InvitationWithdrawn);
            let is_invited = self.standing.invited.contains(&person);
            // One that was accepted, too: it would let a removed member in again.
            if is_out && is_invited {
                self.steps.push((number, Step::WithdrawInvitation(organisation, email.clone())));
            }
            match (role, given) {
                (Some(_), _) if is_out => self.steps.push((number, Step::RemoveMember(organisation, email))),
                (Some(now), Some(given)) if now != given => {
                    self.steps.push((number, Step::ChangeRole { organisation, email, now, given }));
                }
                (None, given) if !is_out && !is_invited => {
                    self.steps.push((number, Step::InviteMember(organisation, email, given)));
                }
                _ => {}
            }
        }
        if let Some((number, (_, email))) = reset {
            self.steps.push((number, Step::ResetPassword(organisation, email)));
        }
    }
}

/// The role that a person has by this. None: of before roles were recorded, or about something else.
fn role_given(entry: &Recorded) -> Option<Role> {
    match entry.action()? {
        Action::AdministratorMade => Some(Role::Administrator),
        Action::KeyManagerMade => Some(Role::KeyManager),
        Action::AuditorMade => Some(Role::Auditor),
        _ => entry.role,
    }
}

/// Returns whether the subject is the address of a person of an organisation.
pub(super) fn is_about_membership(action: Action) -> bool {
    belongs_or_not(action) || action == Action::PasswordResetIssued
}

/// Returns whether the action says that its subject belongs to the organisation, in some role, or does not.
fn belongs_or_not(action: Action) -> bool {
    matches!(
        action,
        Action::MemberInvited
            | Action::InvitationWithdrawn
            | Action::MemberJoined
            | Action::MemberRemoved
            | Action::AdministratorMade
            | Action::KeyManagerMade
            | Action::AuditorMade
    )
}
