//! The rules of organisations, over Diesel.

use async_trait::async_trait;
use diesel::prelude::*;
use diesel::result::Error;
use intake_domain::{
    Action, AdministerError, AuditContext, KeyAge, MemberId, OrganisationId, RulesStore, StoreError, Zone,
};

use crate::accounts::PostgresMembers;
use crate::audit::log::record;
use crate::database::connecting::share::Share;
use crate::organisations::{copy_state, locked_exclusively, put_zone, zone_of};
use crate::schema::{memberships, organisations};

#[async_trait]
impl RulesStore for PostgresMembers {
    async fn limit_key_age(
        &self,
        organisation: OrganisationId,
        age: Option<KeyAge>,
        audit: &AuditContext,
    ) -> Result<(), AdministerError> {
        let id = *organisation.as_uuid();
        let done = self.administered(organisation, audit, move |connection, audit| {
            // A key that is made at this moment holds the row, or waits for it and keeps to the new limit.
            let found = locked_exclusively(connection, id)?.ok_or(Error::NotFound)?;
            if found.key_age_max == age {
                return Ok(Ok(()));
            }
            let days = age.map(|age| i32::from(age.days()));
            diesel::update(organisations::table.find(id))
                .set(organisations::key_days_max.eq(days))
                .execute(connection)?;
            copy_state(connection, id)?;
            let words = |age: Option<KeyAge>| age.map_or("no limit".to_owned(), |age| age.to_string());
            let subject = format!("{}: {} → {}", found.name, words(found.key_age_max), words(age));
            record(connection, id, Action::KeyAgeLimited, &subject, audit).map(Ok)
        });
        done.await
    }

    async fn change_zone(
        &self,
        organisation: OrganisationId,
        zone: Zone,
        audit: &AuditContext,
    ) -> Result<(), AdministerError> {
        let done = self.administered(organisation, audit, move |connection, audit| {
            let found = locked_exclusively(connection, *organisation.as_uuid())?.ok_or(Error::NotFound)?;
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
