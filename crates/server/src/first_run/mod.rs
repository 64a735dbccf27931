//! What an embedded database starts with: a demo clinic, and a key to try the service with.

pub(crate) mod greeting;
pub(crate) mod install_offer;

use std::fs;

use anyhow::Context;
use intake_domain::{
    AllowedNetworks, KeyContact, KeyFormat, KeyId, KeyRequest, KeySecret, LinkDelivery, MemberStore, Name,
    Organisation, OrganisationId, OrganisationRecord, Passwords, Role, Token, create_key, invite_member,
};

use crate::commands::operator::context;
use crate::settings::arguments::Run;
use crate::settings::data_dir::DataDir;
use crate::settings::private_file;
use intake_dashboard::invitation_path;
use intake_edge as edge;
use intake_infra::{Database, PostgresKeyStore, PostgresMembers, PostgresOrganisations};

const CLINIC: &str = "Demo Clinic";
const KEY: &str = "Demo key";
/// The address with which the first member signs in.
const FIRST_MEMBER: &str = "demo@clinic.example";

/// Makes the clinic and its key unless they exist, and returns the clinic. A key that is lost, revoked or expired is
/// replaced.
pub(crate) async fn ensure_demo(
    database: &Database,
    format: &KeyFormat,
    data_dir: &DataDir,
) -> anyhow::Result<OrganisationId> {
    let (keys, organisations) = (PostgresKeyStore::new(database.clone()), PostgresOrganisations::new(database.clone()));
    let file = data_dir.demo_key();
    if let Ok(text) = fs::read_to_string(&file)
        && let Ok(key) = format.parse(text.trim())
        && let Some(holder) = keys.holder(&key.digest(), edge::now()).await?
    {
        return Ok(holder.organisation_id);
    }
    let (audit, now) = (context(&Run::default(), None), edge::now());
    let known = organisations.all().await?.into_iter().find(|found| found.name == CLINIC && found.closed_at.is_none());
    let organisation_id = match known {
        // Its key comes back when it is resumed.
        Some(OrganisationRecord { id, suspended_at: Some(_), .. }) => return Ok(id),
        Some(OrganisationRecord { id, .. }) => id,
        None => {
            let clinic = Organisation { id: OrganisationId::new(now, edge::random()), name: Name::new(CLINIC)? };
            organisations.add(&clinic).await?;
            clinic.id
        }
    };
    let request = KeyRequest {
        organisation_id,
        name: Name::new(KEY)?,
        expires_at: None,
        allowed_networks: AllowedNetworks::default(),
        contact: KeyContact::default(),
        replaces: None,
        id: KeyId::new(now, edge::random()),
        secret: KeySecret::new(edge::random()),
    };
    let made = create_key(&keys, format, request, &audit).await?;
    private_file::write(&file, made.key.expose()).with_context(|| format!("{} cannot be written", file.display()))?;
    Ok(organisation_id)
}

/// Returns how someone becomes the first member: by an invitation that is made for them. Where only single sign-on lets
/// people in, its provider knows them by an address that they have to give. None: there is a member already.
pub(crate) async fn invite_first_member(
    members: &PostgresMembers,
    clinic: OrganisationId,
    base: &str,
    passwords: Passwords,
) -> anyhow::Result<Option<String>> {
    if !members.members(clinic).await?.is_empty() {
        return Ok(None);
    }
    if !passwords.are_on() {
        return Ok(Some(format!(
            "invite yourself by your address at the provider of single sign-on, and open the printed link:\n\n\
             intake member invite --organisation {clinic} --email ADDRESS"
        )));
    }
    let (email, token, audit) = (FIRST_MEMBER.parse()?, Token::new(edge::random()), context(&Run::default(), None));
    let made = invite_member(members, clinic, email, Role::Administrator, token, LinkDelivery::Shown, &audit).await?;
    let link = format!("{base}{}", invitation_path(&made.token));
    Ok(Some(format!("open this link in a browser (valid for 72 hours):\n\n{link}")))
}
