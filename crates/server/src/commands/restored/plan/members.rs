//! Steps about people: who belongs to an organisation, and with which role.

use std::collections::BTreeSet;

use intake_domain::{Action, EmailAddress, OrganisationId, Role};

use super::Plan;
use crate::commands::restored::copy::Recorded;
use crate::commands::restored::standing::folded;
use crate::commands::restored::step::Step;

impl Plan<'_> {
    pub(super) fn plan_members(&mut self, organisation: OrganisationId) {
        if self.is_closed(organisation) {
            return;
        }
        let is_about = |entry: &Recorded| entry.action().is_some_and(is_about_membership);
        let theirs = self.lost().filter(|(_, entry)| entry.organisation == organisation && is_about(entry));
        let people: BTreeSet<_> = theirs.map(|(_, entry)| folded(&entry.subject)).collect();
        for person in people {
            // An entry of before a program checked addresses may name none.
            if let Ok(email) = person.parse() {
                self.plan_membership(organisation, &email);
            }
        }
    }

    fn plan_membership(&mut self, organisation: OrganisationId, email: &EmailAddress) {
        let person = (organisation, email.folded());
        let is_theirs = |entry: &Recorded| entry.organisation == organisation && folded(&entry.subject) == person.1;
        let last =
            |is_it: fn(Action) -> bool| self.last(|entry| entry.action().filter(|it| is_theirs(entry) && is_it(*it)));
        let role = self.standing.members.get(&person).copied();
        let reset = last(|action| action == Action::PasswordResetIssued).filter(|_| role.is_some());
        let given = self.last(|entry| role_given(entry).filter(|_| is_theirs(entry)));
        let given = given.map(|(_, role)| role);
        if let Some((number, action)) =
            last(|action| is_about_membership(action) && action != Action::PasswordResetIssued)
        {
            let is_out = matches!(action, Action::MemberRemoved | Action::InvitationWithdrawn);
            let is_invited = self.standing.invited.contains(&person);
            match (role, given) {
                (Some(_), _) if is_out => self.steps.push((number, Step::RemoveMember(organisation, email.clone()))),
                (Some(now), Some(given)) if now != given => {
                    self.steps.push((number, Step::ChangeRole { organisation, email: email.clone(), now, given }));
                }
                (None, given) if !is_out && !is_invited => {
                    self.steps.push((number, Step::InviteMember(organisation, email.clone(), given)));
                }
                _ => {}
            }
            // One that was accepted, too: it would let a removed member in again.
            if is_out && is_invited {
                self.steps.push((number, Step::WithdrawInvitation(organisation, email.clone())));
            }
        }
        if let Some((number, _)) = reset {
            self.steps.push((number, Step::ResetPassword(organisation, email.clone())));
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

/// Returns whether the subject is a person's address who is in an organisation, or not.
pub(super) fn is_about_membership(action: Action) -> bool {
    matches!(
        action,
        Action::MemberInvited
            | Action::InvitationWithdrawn
            | Action::MemberJoined
            | Action::MemberRemoved
            | Action::AdministratorMade
            | Action::KeyManagerMade
            | Action::AuditorMade
            | Action::PasswordResetIssued
    )
}
