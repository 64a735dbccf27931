//! The maximum age of an organisation's keys, over Diesel.

use async_trait::async_trait;
use diesel::prelude::*;
use intake_domain::{Action, AdministerError, AuditContext, KeyAge, KeyAgeStore, OrganisationId};

use crate::accounts::PostgresMembers;
use crate::audit::log::record;
use crate::organisations::{age_of, copy_state};
use crate::schema::organisations;

#[async_trait]
impl KeyAgeStore for PostgresMembers {
    async fn limit_key_age(
        &self,
        organisation: OrganisationId,
        age: Option<KeyAge>,
        audit: &AuditContext,
    ) -> Result<(), AdministerError> {
        let id = *organisation.as_uuid();
        let done = self.administered(organisation, audit, move |connection, audit| {
            // A key that is made at this moment holds the row, or waits for it and keeps to the new limit.
            let row = organisations::table.find(id).select((organisations::name, organisations::key_days_max));
            let (name, old) = row.for_no_key_update().first::<(String, Option<i32>)>(connection)?;
            if age_of(old) == age {
                return Ok(Ok(()));
            }
            let days = age.map(|age| i32::from(age.days()));
            diesel::update(organisations::table.find(id))
                .set(organisations::key_days_max.eq(days))
                .execute(connection)?;
            copy_state(connection, id)?;
            let words = |age: Option<KeyAge>| age.map_or("no limit".to_owned(), |age| age.to_string());
            let subject = format!("{name}: {} → {}", words(age_of(old)), words(age));
            record(connection, id, Action::KeyAgeLimited, &subject, audit).map(Ok)
        });
        done.await
    }
}
