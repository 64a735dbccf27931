//! The time zones of organisations, over Diesel.

use async_trait::async_trait;
use diesel::prelude::*;
use intake_domain::{AdministerError, AuditContext, MemberId, OrganisationId, StoreError, Zone, ZoneStore};

use crate::accounts::PostgresMembers;
use crate::accounts::confirmation::assert_confirmed;
use crate::accounts::permission::may_administer;
use crate::database::connecting::share::Share;
use crate::organisations::{OrganisationRow, put_zone, zone_of};
use crate::schema::{memberships, organisations};

#[async_trait]
impl ZoneStore for PostgresMembers {
    async fn change_zone(
        &self,
        organisation: OrganisationId,
        zone: Zone,
        audit: &AuditContext,
    ) -> Result<(), AdministerError> {
        let (id, audit) = (*organisation.as_uuid(), audit.clone());
        let done = self.0.transaction(Share::Of(id), move |connection| {
            assert_confirmed(connection, &audit)?;
            if !may_administer(connection, id, &audit)? {
                return Ok(Err(AdministerError::NotAdministrator));
            }
            let row = organisations::table.find(id).select(OrganisationRow::as_select());
            let found = row.for_no_key_update().first(connection)?.into();
            put_zone(connection, &found, zone, &audit)?;
            Ok(Ok(()))
        });
        done.await?
    }

    async fn zone_of(&self, person: MemberId) -> Result<Zone, StoreError> {
        let id = *person.as_uuid();
        let found = self.0.run(Share::Common, move |connection| {
            let own = organisations::table.inner_join(memberships::table).filter(memberships::member_id.eq(id));
            own.select(organisations::time_zone).distinct().limit(2).load::<String>(connection)
        });
        Ok(match found.await?.as_slice() {
            [only] => zone_of(only),
            _ => Zone::default(),
        })
    }
}
