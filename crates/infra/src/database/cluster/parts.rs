//! The register in parts, for work on the rows of all organisations: on Citus one shard after the other, so that a node
//! that is away delays only the work on its own rows.

use diesel::prelude::*;
use intake_domain::StoreError;
use uuid::Uuid;

use crate::database::cluster::shards::Shards;
use crate::database::connecting::pool::Database;
use crate::database::connecting::share::Share;
use crate::schema::organisations;

/// A part of the register.
#[derive(Clone)]
pub(crate) struct Part {
    /// The number of the shard; elsewhere 0.
    pub(crate) number: i32,
    /// The organisations of the shard. None: all there are.
    pub(crate) organisations: Option<Vec<Uuid>>,
}

/// Returns what the work finds in all parts. Fails only if nothing was found.
pub(crate) async fn of_each_part<T: Send + 'static>(
    database: &Database,
    work: impl Fn(&mut PgConnection, &Part) -> QueryResult<Vec<T>> + Clone + Send + Sync + 'static,
) -> Result<Vec<T>, StoreError> {
    let (mut all, mut failed) = (Vec::new(), None);
    for part in database.run(Share::Common, parts).await? {
        let work = work.clone();
        match database.run(Share::Common, move |connection| work(connection, &part)).await {
            Ok(found) => all.extend(found),
            Err(error) => failed = Some(error),
        }
    }
    match failed {
        Some(error) if all.is_empty() => Err(error),
        Some(error) => {
            tracing::warn!(%error, "some keys that members get emails about could not be looked for; the next look comes in an hour");
            Ok(all)
        }
        None => Ok(all),
    }
}

/// All parts: one on one PostgreSQL.
pub(crate) fn parts(connection: &mut PgConnection) -> QueryResult<Vec<Part>> {
    let shards = Shards::default();
    shards.learn(connection)?;
    if !shards.is_spread() {
        return Ok(vec![Part { number: 0, organisations: None }]);
    }
    let all = organisations::table.select(organisations::id).load::<Uuid>(connection)?;
    let groups = shards.group(all, |id| *id).into_iter();
    let number = |place: Option<usize>| place.and_then(|place| i32::try_from(place).ok()).unwrap_or(-1);
    Ok(groups.map(|(place, ids)| Part { number: number(place), organisations: Some(ids) }).collect())
}
