//! The time zones of organisations, over Diesel.

use async_trait::async_trait;
use diesel::prelude::*;
use intake_domain::{AdministerError, AuditContext, MemberId, OrganisationId, StoreError, Zone, ZoneStore};

use crate::accounts::PostgresMembers;
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
        let done = self.administered(organisation, audit, move |connection, audit| {
            let row = organisations::table.find(*organisation.as_uuid()).select(OrganisationRow::as_select());
            let found = row.for_no_key_update().first(connection)?.into();
            put_zone(connection, &found, zone, audit)?;
            Ok(Ok(()))
        });
        done.await
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
