//! What the restored database holds of that which the lost entries name.

use std::collections::{HashMap, HashSet};

use intake_domain::{
    InvitationStore, KeyId, KeyRecord, MemberStore, OrganisationId, OrganisationRecord, PatientId, Role, list_keys,
};
use intake_edge as edge;
use intake_infra::restored::{NewestPatient, PatientPlace, patient_places, requiring_second_factor};
use intake_infra::{Database, PostgresKeyStore, PostgresMembers, PostgresOrganisations};
use time::OffsetDateTime;

use super::copy::{Recorded, folded};
use crate::backend::Backend;

/// The rows that decide which commands can work.
pub(super) struct Standing {
    pub(super) organisations: HashMap<OrganisationId, OrganisationRecord>,
    pub(super) keys: HashMap<KeyId, KeyRecord>,
    pub(super) patients: HashMap<(OrganisationId, PatientId), PatientPlace>,
    /// The roles of members, by their folded addresses.
    pub(super) members: HashMap<(OrganisationId, String), Role>,
    /// Addresses with an open invitation, folded.
    pub(super) invited: HashSet<(OrganisationId, String)>,
    /// Organisations that have patients.
    pub(super) with_patients: HashSet<OrganisationId>,
    /// Organisations that require two-step sign-in.
    pub(super) with_required_factor: HashSet<OrganisationId>,
    pub(super) now: OffsetDateTime,
}

impl Standing {
    pub(super) async fn of(
        entries: &[Recorded],
        newest: &[NewestPatient],
        backend: &Backend,
        database: &Database,
    ) -> anyhow::Result<Self> {
        let now = edge::now();
        let (keys, members) = (PostgresKeyStore::new(database.clone()), PostgresMembers::new(database.clone()));
        let patients: Vec<_> =
            entries.iter().filter_map(|entry| Some((entry.organisation, entry.erased_patient()?))).collect();
        let mut standing = Self {
            organisations: HashMap::new(),
            keys: HashMap::new(),
            patients: patient_places(&backend.owner, &patients)?,
            members: HashMap::new(),
            invited: HashSet::new(),
            with_required_factor: requiring_second_factor(&backend.owner)?,
            with_patients: newest.iter().filter(|of| of.created_at.is_some()).map(|of| of.organisation).collect(),
            now,
        };
        for organisation in PostgresOrganisations::new(database.clone()).all().await? {
            let id = organisation.id;
            standing.organisations.insert(id, organisation);
            for key in list_keys(&keys, id).await? {
                standing.keys.insert(key.id, key);
            }
            if entries.iter().any(|entry| entry.organisation == id) {
                let own = members.members(id).await?;
                standing.members.extend(own.iter().map(|member| ((id, folded(&member.email)), member.role)));
                let open = members.open_invitations(id, now).await?;
                standing.invited.extend(open.iter().map(|invitation| (id, folded(&invitation.email))));
            }
        }
        Ok(standing)
    }

    /// As it will be once every key is revoked.
    pub(super) fn without_keys(mut self) -> Self {
        for key in self.keys.values_mut() {
            key.revoked_at = key.revoked_at.or(Some(self.now));
        }
        self
    }
}
