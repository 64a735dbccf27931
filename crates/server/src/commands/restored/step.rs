//! One step of repeating what was lost: the command that does it, and the doing of it.

use anyhow::{anyhow, bail};
use intake_domain::{
    AllowedNetworks, AuditContext, EmailAddress, IdempotencyDigest, KeyDescriptionStore, KeyId, KeyStateStore,
    OrganisationId, PatientId, Role, Zone, timestamp,
};
use intake_infra::{
    Database, EraseOrganisation, OrganisationOutcome, PostgresKeyStore, PostgresMembers, PostgresOrganisations,
    PostgresPatientRights, erase_organisation,
};
use time::OffsetDateTime;

use crate::backend::Backend;
use crate::commands::member;
use crate::commands::output::quoted;
use crate::commands::patient::erase_for_good;
use crate::settings::patient_command::KnownDigest;

const FIRST_THAT_OPENS: usize = 11;

/// Steps, in the order in which they are taken: whatever closes comes before all that opens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    ErasePatient {
        organisation: OrganisationId,
        patient: PatientId,
        digest: Option<Option<IdempotencyDigest>>,
    },
    CloseOrganisation(OrganisationId),
    EraseOrganisation(OrganisationId),
    SuspendOrganisation(OrganisationId),
    RevokeKey(KeyId),
    PauseKey(KeyId),
    LimitKey(KeyId, AllowedNetworks),
    RemoveMember(OrganisationId, EmailAddress),
    WithdrawInvitation(OrganisationId, EmailAddress),
    /// Takes something from a member, or gives it back.
    ChangeRole {
        organisation: OrganisationId,
        email: EmailAddress,
        now: Role,
        given: Role,
    },
    /// For entries of before the key was recorded.
    ListKeys(OrganisationId),
    ResumeOrganisation(OrganisationId),
    AllowKeyFromAnywhere(KeyId),
    ResumeKey(KeyId),
    ClearMark(KeyId),
    ChangeZone(OrganisationId, Zone),
    CreateKey {
        organisation: OrganisationId,
        name: String,
        allowed: AllowedNetworks,
        expires_at: Option<OffsetDateTime>,
    },
    /// As this; none: it is not on record, and the person who does it names one.
    InviteMember(OrganisationId, EmailAddress, Option<Role>),
    ResetPassword(OrganisationId, EmailAddress),
}

impl Step {
    /// Its place in the order.
    pub(super) fn rank(&self) -> usize {
        match self {
            Self::ErasePatient { .. } => 0,
            Self::CloseOrganisation(_) => 1,
            Self::EraseOrganisation(_) => 2,
            Self::SuspendOrganisation(_) => 3,
            Self::RevokeKey(_) => 4,
            Self::PauseKey(_) => 5,
            Self::LimitKey(..) => 6,
            Self::RemoveMember(..) => 7,
            Self::WithdrawInvitation(..) => 8,
            Self::ChangeRole { now, given, .. } if given.may_less_than(*now) => 9,
            Self::ListKeys(_) => 10,
            Self::ResumeOrganisation(_) => FIRST_THAT_OPENS,
            Self::AllowKeyFromAnywhere(_) => 12,
            Self::ResumeKey(_) => 13,
            Self::ClearMark(_) => 14,
            Self::ChangeRole { .. } => 15,
            Self::ChangeZone(..) => 16,
            Self::CreateKey { .. } => 17,
            Self::InviteMember(..) => 18,
            Self::ResetPassword(..) => 19,
        }
    }

    /// Returns whether it takes something away.
    pub(super) fn closes(&self) -> bool {
        self.rank() < FIRST_THAT_OPENS
    }

    /// Returns whether a person has to do it: someone must get the key or the link that it prints, or it only shows.
    pub(super) fn is_by_hand(&self) -> bool {
        matches!(self, Self::ListKeys(_) | Self::CreateKey { .. } | Self::InviteMember(..) | Self::ResetPassword(..))
    }

    /// Returns whether the command leaves an entry in the audit log.
    pub(super) fn is_recorded(&self) -> bool {
        !matches!(self, Self::ListKeys(_))
    }

    /// The command that does it, for a shell.
    pub(super) fn command(&self) -> String {
        // With the option in one word: a name may begin like another option.
        let of_member = |command: &str, organisation: &OrganisationId, email: &EmailAddress| {
            format!("intake member {command} --organisation {organisation} --email={}", quoted(email.as_str()))
        };
        match self {
            Self::ErasePatient { organisation, patient, digest } => {
                let digest = digest.map(|digest| digest.map_or("none".to_owned(), |digest| digest.to_string()));
                let digest = digest.map(|digest| format!(" --idempotency-digest {digest}")).unwrap_or_default();
                format!("intake patient erase --organisation {organisation} --patient {patient}{digest}")
            }
            Self::CloseOrganisation(id) => format!("intake organisation close {id}"),
            Self::EraseOrganisation(id) => format!("intake organisation erase {id}"),
            Self::SuspendOrganisation(id) => format!("intake organisation suspend {id}"),
            Self::ResumeOrganisation(id) => format!("intake organisation resume {id}"),
            Self::ChangeZone(id, zone) => format!("intake organisation time-zone {id} --zone {}", zone.name()),
            Self::RevokeKey(key) => format!("intake key revoke {key}"),
            Self::PauseKey(key) => format!("intake key pause {key}"),
            Self::LimitKey(key, networks) => {
                format!("intake key networks {key} --allow {}", quoted(&networks.to_string()))
            }
            Self::AllowKeyFromAnywhere(key) => format!("intake key networks {key} --allow any"),
            Self::ResumeKey(key) => format!("intake key resume {key}"),
            Self::ClearMark(key) => format!("intake key clear-sent-in-clear {key}"),
            Self::ListKeys(organisation) => format!("intake key list --organisation {organisation}"),
            Self::CreateKey { organisation, name, allowed, expires_at } => {
                let expires = expires_at.map(|at| format!(" --expires {}", timestamp(at))).unwrap_or_default();
                let allowed = match allowed.are_any() {
                    true => String::new(),
                    false => format!(" --allow {}", quoted(&allowed.to_string())),
                };
                format!("intake key create --organisation {organisation} --name={}{expires}{allowed}", quoted(name))
            }
            Self::RemoveMember(organisation, email) => of_member("remove", organisation, email),
            Self::WithdrawInvitation(organisation, email) => of_member("withdraw-invitation", organisation, email),
            Self::ChangeRole { organisation, email, given, .. } => {
                format!("{} --role {}", of_member("change-role", organisation, email), given.as_str())
            }
            Self::InviteMember(organisation, email, role) => {
                format!("{} --role {}", of_member("invite", organisation, email), role.map_or("ROLE", Role::as_str))
            }
            Self::ResetPassword(organisation, email) => of_member("reset-password", organisation, email),
        }
    }

    /// Does it as the owner of the database.
    pub(super) async fn carry_out(
        &self,
        backend: &Backend,
        database: &Database,
        context: impl Fn() -> AuditContext,
    ) -> anyhow::Result<()> {
        let keys = &PostgresKeyStore::new(database.clone());
        let members = &PostgresMembers::new(database.clone());
        let organisations = PostgresOrganisations::new(database.clone());
        let audit = context();
        match self {
            Self::ErasePatient { organisation, patient, digest } => {
                let mut rights = PostgresPatientRights::new(&backend.owner);
                let erased = erase_for_good(&mut rights, *organisation, *patient, digest.map(KnownDigest), context)?;
                erased.map(drop).ok_or_else(|| anyhow!("there is no such patient"))
            }
            Self::CloseOrganisation(id) => changed(&organisations.close(*id, &audit).await?),
            Self::SuspendOrganisation(id) => changed(&organisations.suspend(*id, &audit).await?),
            Self::ResumeOrganisation(id) => changed(&organisations.resume(*id, &audit).await?),
            Self::ChangeZone(id, zone) => changed(&organisations.change_zone(*id, *zone, &audit).await?),
            Self::EraseOrganisation(id) => match erase_organisation(&backend.owner, *id, |_, _| true, &audit)? {
                EraseOrganisation::Erased(_) => Ok(()),
                EraseOrganisation::NotClosed | EraseOrganisation::NotAgreed => bail!("it is not closed"),
                EraseOrganisation::NotFound => bail!("there is no such organisation"),
            },
            Self::RevokeKey(key) => Ok(keys.revoke(*key, None, &audit).await.map(drop)?),
            Self::PauseKey(key) => Ok(keys.pause(*key, None, &audit).await.map(drop)?),
            Self::LimitKey(key, networks) => {
                Ok(keys.set_allowed_networks(*key, None, networks, &audit).await.map(drop)?)
            }
            Self::AllowKeyFromAnywhere(key) => {
                Ok(keys.set_allowed_networks(*key, None, &AllowedNetworks::default(), &audit).await.map(drop)?)
            }
            Self::ResumeKey(key) => Ok(keys.resume(*key, None, &audit).await.map(drop)?),
            Self::ClearMark(key) => Ok(keys.clear_sent_in_clear(*key, &audit).await.map(drop)?),
            Self::RemoveMember(organisation, email) => {
                member::remove(members, *organisation, email, &audit).await.map(drop)
            }
            Self::WithdrawInvitation(organisation, email) => {
                member::withdraw_invitation(members, *organisation, email, &audit).await.map(drop)
            }
            Self::ChangeRole { organisation, email, given, .. } => {
                member::change_role(members, *organisation, email, *given, &audit).await.map(drop)
            }
            Self::ListKeys(_) | Self::CreateKey { .. } | Self::InviteMember(..) | Self::ResetPassword(..) => {
                bail!("a person has to do it")
            }
        }
    }
}

fn changed(outcome: &OrganisationOutcome) -> anyhow::Result<()> {
    match outcome {
        OrganisationOutcome::Changed(_) | OrganisationOutcome::Unchanged(_) => Ok(()),
        OrganisationOutcome::Closed(_) => bail!("the organisation is closed"),
        OrganisationOutcome::NotFound => bail!("there is no such organisation"),
    }
}
