//! What `intake restored` says: as text for people, and as one JSON value.

use intake_domain::{KeyRecord, timestamp};
use intake_infra::restored::NewestPatient;
use serde_json::{Value, json};
use time::OffsetDateTime;

use super::plan::{Plan, Policy};
use super::step::Step;
use crate::commands::organisation::ending_keys;
use crate::commands::output::quoted;
use crate::settings::arguments::Run;
use crate::settings::configuration::Configuration;

/// Findings, and what was done.
pub(super) struct Report<'a> {
    /// Time at which the newest entry of the database was recorded.
    pub(super) newest: Option<OffsetDateTime>,
    pub(super) copied_until: Option<String>,
    /// None: there is no copy of the audit log.
    pub(super) plan: Option<Plan<'a>>,
    pub(super) patients: &'a [NewestPatient],
    pub(super) configuration: &'a Configuration,
    /// Who runs this, and why, which the commands name, too.
    pub(super) run: &'a Run,
    /// The keys that are to be revoked, if that was asked for.
    pub(super) ending: Vec<KeyRecord>,
    /// Number of keys that were revoked, if that was asked for.
    pub(super) revoked: Option<usize>,
    /// The commands that were carried out, and why those that failed did.
    pub(super) results: Vec<(String, Result<(), String>)>,
}

impl Report<'_> {
    /// The steps that need no person.
    pub(super) fn to_carry_out(&self) -> impl Iterator<Item = &Step> {
        self.steps().filter(|step| !step.is_by_hand())
    }

    fn steps(&self) -> impl Iterator<Item = &Step> {
        self.plan.iter().flat_map(|plan| plan.steps.iter().map(|(_, step)| step))
    }

    /// Returns what was lost, and the commands that repeat it.
    pub(super) fn preview(&self) -> String {
        let ending: Vec<_> = self.ending.iter().collect();
        let is_ahead = self.revoked.is_none() && !ending.is_empty();
        let keys = if is_ahead { format!("{}\n", ending_keys(&ending)) } else { String::new() };
        self.lost() + &keys
    }

    fn lost(&self) -> String {
        let mut text = match self.newest.map(timestamp) {
            Some(at) => {
                format!("The latest recorded action was at {at}: anything done later is not in this database.\n")
            }
            None => "The audit log of this database is empty.\n".to_owned(),
        };
        if let Some(at) = &self.copied_until {
            text += &format!("The copy of the audit log ends at {at}.\n");
        }
        match &self.plan {
            None => text + "Without a copy of the audit log (--audit FILE) nobody can tell what that was.\n",
            Some(plan) if plan.lost().next().is_none() => {
                text + "The copy of the audit log holds nothing later about keys, members or second factors.\n"
            }
            Some(plan) => text + &self.losses(plan),
        }
    }

    fn losses(&self, plan: &Plan<'_>) -> String {
        let mut text = String::new();
        if plan.is_copy_older {
            text += "That is before `intake restored` last ran on this database: only what closes is repeated.\n";
        }
        let lines = |is_without_row: bool| {
            let those = plan.lost().filter(move |(number, _)| plan.without_rows.contains(number) == is_without_row);
            those.map(|(_, entry)| entry.line()).collect::<String>()
        };
        if plan.without_rows.len() < plan.lost().count() {
            text += &format!("These actions were lost:\n{}", lines(false));
        }
        let to_carry_out =
            |closes| self.to_carry_out().filter(move |step| step.closes() == closes).map(|step| self.command(step));
        text += &listed(
            "These commands repeat what they came to, in this order, before any client or member is back (--apply carries \
             them out):",
            to_carry_out(true),
        );
        text += &listed("Then these, if it must still be so (--apply carries them out, too):", to_carry_out(false));
        text += &listed(
            "These are left to you, because someone must get what they print:",
            self.steps().filter(|step| step.is_by_hand()).map(|step| self.command(step)),
        );
        text += &self.policies(plan);
        text += &listed(
            "These keys have a replacement that was not in use at that moment. If it is now, revoke them:",
            plan.perhaps_ended.iter().map(|key| self.command(&Step::RevokeKey(*key))),
        );
        if !plan.without_rows.is_empty() {
            let count = plan.without_rows.len();
            text += &format!(
                "Lost were also {count} about keys, organisations or people that this database does not have or that are over: \
                 nothing is left to repeat.\n{}",
                lines(true)
            );
        }
        text
    }

    fn policies(&self, plan: &Plan<'_>) -> String {
        let (count, page) = (plan.policies.len(), self.policies_page());
        let (what, them) = match count {
            1 => ("1 policy that has".to_owned(), "it"),
            _ => (format!("{count} policies that have"), "them"),
        };
        listed(
            &format!(
                "Lost were also {what} no command. An administrator of the organisation sets {them} again on {page}:"
            ),
            plan.policies.iter().map(|policy| format!("{} (organisation {})", policy.decided, policy.organisation)),
        )
    }

    fn policies_page(&self) -> String {
        let port = self.configuration.https_addr.port();
        self.configuration.base_url(Some(port)) + "/settings/policies"
    }

    /// The command of a step, run by the same person for the same reason.
    fn command(&self, step: &Step) -> String {
        let by = self.run.by.as_ref().filter(|_| step.is_recorded());
        let by = by.map(|name| format!(" --as={}", quoted(name.as_str()))).unwrap_or_default();
        let reason = Some(self.run.reason.as_str()).filter(|reason| step.is_recorded() && !reason.is_empty());
        let reason = reason.map(|reason| format!(" --reason={}", quoted(reason))).unwrap_or_default();
        format!("{}{by}{reason}", step.command())
    }

    pub(super) fn text(&self, is_accepted: bool) -> String {
        let mut text = self.preview();
        for (command, result) in &self.results {
            text += &match result {
                Ok(()) => format!("Done: {command}\n"),
                Err(why) => format!("FAILED: {command}: {why}\n"),
            };
        }
        text += "Patients created later than these are not in this database. Once the commands above were run, ask the \
            integrations of each organisation to send them again, with the same Idempotency-Key:\n";
        for NewestPatient { organisation, name, created_at } in self.patients {
            let newest = created_at.map_or("no patient".to_owned(), |at| format!("created {}", timestamp(at)));
            text += &format!("  {newest}  (organisation {organisation}, {name})\n");
        }
        if let Some(revoked) = self.revoked_keys() {
            text += &format!("{revoked}: make new ones with `intake key create` or on the dashboard.\n");
        }
        if !is_accepted {
            return text + "Nobody was signed out, and the service does not start on this database yet.";
        }
        if self.revoked.is_none() && self.results.is_empty() {
            text +=
                "No key was revoked by this command: keys that were revoked or paused after that moment work again.\n";
        }
        text += "Everyone was signed out, and password reset links no longer work. Passwords and second factors are those of \
            that moment.\n";
        text + "The service starts on this database again."
    }

    /// Says how many keys were revoked, if that was asked for.
    fn revoked_keys(&self) -> Option<String> {
        let count = self.revoked?;
        Some(format!("Revoked {count} {}", if count == 1 { "key" } else { "keys" }))
    }

    /// Summary in one line, for an error.
    pub(super) fn summary(&self, is_accepted: bool) -> String {
        let done = self.results.iter().filter(|(_, result)| result.is_ok()).count();
        let revoked = self.revoked_keys().map(|revoked| format!("{revoked}, ")).unwrap_or_default();
        let starts = if is_accepted { "starts again" } else { "does not start yet" };
        format!("{revoked}carried out {done} commands; the service {starts} on this database")
    }

    pub(super) fn value(&self) -> Value {
        let plan = self.plan.as_ref();
        json!({
            "newestAuditEntryAt": self.newest.map(timestamp),
            "revokedKeys": self.revoked.unwrap_or_default(),
            "copiedUntil": self.copied_until,
            "newestPatients": self.patients.iter().map(newest_of).collect::<Vec<_>>(),
            "keys": self.ending.iter().map(|key| key.id.to_string()).collect::<Vec<_>>(),
            "lost": plan.map(|plan| self.lost_of(plan)),
            "commands": plan.map(|plan| plan.steps.iter().map(|(_, step)| self.value_of(step)).collect::<Vec<_>>()),
            "policies": plan.map(|plan| plan.policies.iter().map(|policy| self.value_of_policy(policy)).collect::<Vec<_>>()),
            "perhapsEndedKeys": plan.map(|plan| plan.perhaps_ended.iter().map(ToString::to_string).collect::<Vec<_>>()),
        })
    }

    fn value_of(&self, step: &Step) -> Value {
        let command = step.command();
        let result = self.results.iter().find(|(of, _)| *of == command).map(|(_, result)| result);
        json!({
            "command": self.command(step),
            "closes": step.closes(),
            "byHand": step.is_by_hand(),
            "isDone": result.is_some_and(Result::is_ok),
            "error": result.and_then(|result| result.as_ref().err()),
        })
    }

    fn value_of_policy(&self, policy: &Policy) -> Value {
        json!({
            "organisationId": policy.organisation.to_string(),
            "decided": policy.decided,
            "page": self.policies_page(),
        })
    }

    fn lost_of(&self, plan: &Plan<'_>) -> Vec<Value> {
        let value = |(number, entry): (usize, &super::copy::Recorded)| {
            let step = plan.steps.iter().find(|(of, _)| *of == number).map(|(_, step)| self.command(step));
            let mut value = entry.value(step.as_deref());
            if let Some(members) = value.as_object_mut() {
                members.insert("isWithoutRow".to_owned(), plan.without_rows.contains(&number).into());
            }
            value
        };
        plan.lost().map(value).collect()
    }
}

/// Commands under a heading, if there are any.
fn listed(heading: &str, commands: impl Iterator<Item = String>) -> String {
    let lines: String = commands.map(|command| format!("  {command}\n")).collect();
    if lines.is_empty() { lines } else { format!("{heading}\n{lines}") }
}

fn newest_of(newest: &NewestPatient) -> Value {
    json!({
        "organisationId": newest.organisation.to_string(),
        "name": newest.name,
        "createdAt": newest.created_at.map(timestamp),
    })
}
