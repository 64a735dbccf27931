//! `intake member`: invites people to a dashboard or withdraws that, lets them in again, lists and removes them.

use anyhow::{anyhow, bail, ensure};
use intake_domain::{
    AccountStore, AdministerError, AuditContext, EmailAddress, InvitationStore, LinkDelivery, MemberRecord,
    MemberStore, OrganisationId, Role, SecondFactorError, Token, invite_member, issue_password_reset,
    reset_second_factor, timestamp,
};
use intake_edge as edge;
use intake_infra::{Database, PostgresMembers};
use serde_json::json;
use time::OffsetDateTime;

use super::operator::audit;
use super::organisation::assert_organisation;
use super::output::{print_change, print_made, print_result};
use crate::settings::arguments::Output;
use crate::settings::command_line::{MemberArguments, MemberCommand};
use crate::settings::configuration::Configuration;

pub(crate) async fn member(
    command: MemberCommand,
    database: Database,
    configuration: &Configuration,
) -> anyhow::Result<()> {
    let members = &PostgresMembers::new(database.clone());
    match command {
        MemberCommand::Invite { member, role } => invite(members, member, role, configuration).await,
        MemberCommand::List { organisation, output } => {
            assert_organisation(&database, Some(organisation)).await?;
            list(members, organisation, &output).await
        }
        MemberCommand::WithdrawInvitation(MemberArguments { organisation, email, run, output }) => {
            let invited = withdraw_invitation(members, organisation, &email, &audit(&run, configuration)).await?;
            let text = format!("Withdrew the invitation for {email}: its link no longer works.");
            print_change(&output, &json!({ "email": invited }), &text)
        }
        MemberCommand::ChangeRole { member: MemberArguments { organisation, email, run, output }, role } => {
            let member = change_role(members, organisation, &email, role, &audit(&run, configuration)).await?;
            let value = json!({ "id": member.id.to_string(), "email": member.email, "role": role.as_str() });
            print_change(&output, &value, &format!("{email} has the role {}.", role.as_str()))
        }
        MemberCommand::Remove(MemberArguments { organisation, email, run, output }) => {
            let member = remove(members, organisation, &email, &audit(&run, configuration)).await?;
            let value = json!({ "id": member.id.to_string(), "email": member.email });
            print_change(&output, &value, &format!("Removed {email}, who is signed out everywhere."))
        }
        MemberCommand::ResetPassword(member) => reset_password(members, member, configuration).await,
        MemberCommand::Link(MemberArguments { organisation, email, run, output }) => {
            let nobody = || anyhow!("the organisation {organisation} has no member {email}");
            let member = members.member(organisation, &email).await?.ok_or_else(nobody)?;
            members.confirm_address(&member, &audit(&run, configuration)).await?;
            let text = format!(
                "The first person who signs in by single sign-on as {email} now gets this account. Its password, second \
                 factors and sessions have ended."
            );
            print_change(&output, &json!({ "id": member.id.to_string(), "email": email.as_str() }), &text)
        }
        MemberCommand::ResetSecondFactor(MemberArguments { organisation, email, run, output }) => {
            let audit = audit(&run, configuration);
            let (was_on, now) = match reset_second_factor(members, members, organisation, &email, &audit).await {
                Ok(()) => (true, "now"),
                Err(SecondFactorError::Unchanged) => (false, "already"),
                Err(error) => return Err(error.into()),
            };
            let text = format!("{email} {now} signs in without two-step sign-in.");
            print_change(&output, &json!({ "email": email.as_str(), "wasOn": was_on }), &text)
        }
    }
}

async fn invite(
    members: &PostgresMembers,
    MemberArguments { organisation, email, run, output }: MemberArguments,
    role: Role,
    configuration: &Configuration,
) -> anyhow::Result<()> {
    configuration.assert_links_lead_here()?;
    let (token, shown, audit) = (Token::new(edge::random()), LinkDelivery::Shown, audit(&run, configuration));
    let made = invite_member(members, organisation, email, role, token, shown, &audit).await?;
    print_link(&output, &made.email, &configuration.invitation_link(&made.token), made.expires_at)
}

async fn reset_password(
    members: &PostgresMembers,
    MemberArguments { organisation, email, run, output }: MemberArguments,
    configuration: &Configuration,
) -> anyhow::Result<()> {
    ensure!(
        configuration.passwords().are_on(),
        "INTAKE_PASSWORDS is off: members sign in by single sign-on alone, and the link would be refused"
    );
    configuration.assert_links_lead_here()?;
    let (token, shown, audit) = (Token::new(edge::random()), LinkDelivery::Shown, audit(&run, configuration));
    let made = issue_password_reset(members, members, organisation, &email, token, shown, &audit).await?;
    print_link(&output, &made.email, &configuration.password_reset_link(&made.token), made.expires_at)
}

async fn list(members: &dyn MemberStore, organisation: OrganisationId, output: &Output) -> anyhow::Result<()> {
    let all = members.members(organisation).await?;
    let lines = all.iter().map(|member| {
        let second_factor = if member.has_second_factor { "two-step sign-in" } else { "no two-step sign-in" };
        let (role, joined_at) = (member.role.as_str(), timestamp(member.joined_at));
        let linked = if member.is_linked_to_provider { ", single sign-on linked" } else { "" };
        format!("{}  {}  {role}, {second_factor}{linked}, joined {joined_at}", member.email, member.name)
    });
    let lines: Vec<_> = lines.collect();
    let text = if lines.is_empty() { "There is no member.".to_owned() } else { lines.join("\n") };
    let values = all.iter().map(|member| {
        json!({
            "id": member.id.to_string(),
            "name": member.name,
            "email": member.email,
            "role": member.role.as_str(),
            "joinedAt": timestamp(member.joined_at),
            "hasSecondFactor": member.has_second_factor,
            "isLinkedToProvider": member.is_linked_to_provider,
        })
    });
    print_result(output, &values.collect(), &text)
}

/// Withdraws the open invitation to this address; returns the address as it was invited.
pub(super) async fn withdraw_invitation(
    invitations: &dyn InvitationStore,
    organisation: OrganisationId,
    email: &EmailAddress,
    audit: &AuditContext,
) -> anyhow::Result<String> {
    let open = invitations.open_invitations(organisation, audit.at).await?;
    let none = || anyhow!("the organisation {organisation} has no open invitation for {email}");
    let invitation = open.into_iter().find(|invitation| is_to(&invitation.email, email)).ok_or_else(none)?;
    match invitations.withdraw(organisation, &invitation.token, audit).await {
        Ok(()) => Ok(invitation.email),
        Err(AdministerError::NoSuchInvitation) => Err(none()),
        Err(error) => Err(error.into()),
    }
}

/// Returns whether a stored address is the one that was given.
fn is_to(stored: &str, email: &EmailAddress) -> bool {
    stored.parse::<EmailAddress>().is_ok_and(|address| address.folded() == email.folded())
}

/// Removes the member with this address.
pub(super) async fn remove(
    members: &dyn MemberStore,
    organisation: OrganisationId,
    email: &EmailAddress,
    audit: &AuditContext,
) -> anyhow::Result<MemberRecord> {
    let member = find(members, organisation, email).await?;
    changed(members.remove(organisation, member.id, audit).await, member)
}

/// Gives the member with this address another role; returns the member as before.
pub(super) async fn change_role(
    members: &dyn MemberStore,
    organisation: OrganisationId,
    email: &EmailAddress,
    role: Role,
    audit: &AuditContext,
) -> anyhow::Result<MemberRecord> {
    let member = find(members, organisation, email).await?;
    changed(members.change_role(organisation, member.id, role, audit).await, member)
}

async fn find(
    members: &dyn MemberStore,
    organisation: OrganisationId,
    email: &EmailAddress,
) -> anyhow::Result<MemberRecord> {
    let all = members.members(organisation).await?;
    let nobody = || anyhow!("the organisation {organisation} has no member {email}");
    all.into_iter().find(|member| is_to(&member.email, email)).ok_or_else(nobody)
}

fn changed(outcome: Result<(), AdministerError>, member: MemberRecord) -> anyhow::Result<MemberRecord> {
    match outcome {
        Ok(()) => Ok(member),
        Err(AdministerError::LastAdministrator) => {
            bail!("{} is the last administrator: invite another one first, or close the organisation", member.email)
        }
        Err(error) => Err(error.into()),
    }
}

fn print_link(output: &Output, email: &EmailAddress, link: &str, expires_at: OffsetDateTime) -> anyhow::Result<()> {
    let expires_at = timestamp(expires_at);
    let value = json!({ "email": email.as_str(), "link": link, "expiresAt": expires_at });
    let text = format!("Send this link to {email}. It works once, until {expires_at}:\n{link}");
    let unprinted =
        || format!("a link for {email} was made that nobody has seen: run the command again, which ends it");
    print_made(output, &value, &text, unprinted)
}
