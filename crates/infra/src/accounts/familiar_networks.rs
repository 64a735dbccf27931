//! The networks that members have recently signed in from.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::{AuditContext, Network};
use uuid::Uuid;

use crate::schema::familiar_networks;

/// Number of networks that are kept for each member: home, work, a phone's and a few hotels'.
const NETWORKS_MAX: i64 = 16;

/// Returns whether any member has signed in from this network.
pub(crate) fn is_known(connection: &mut PgConnection, network: Network) -> QueryResult<bool> {
    let known = familiar_networks::table.filter(familiar_networks::network.eq(network.to_string()));
    diesel::select(diesel::dsl::exists(known)).get_result(connection)
}

/// Remembers the network that a member has just signed in from, in the transaction of the sign-in. An unknown address
/// is no network.
pub(crate) fn remember(connection: &mut PgConnection, member: Uuid, audit: &AuditContext) -> QueryResult<()> {
    if audit.address.is_none() {
        return Ok(());
    }
    let row = (
        familiar_networks::member_id.eq(member),
        familiar_networks::network.eq(Network::of_neighbours(audit.address).to_string()),
        familiar_networks::last_used_at.eq(audit.at),
    );
    diesel::insert_into(familiar_networks::table)
        .values(row)
        .on_conflict((familiar_networks::member_id, familiar_networks::network))
        .do_update()
        .set(familiar_networks::last_used_at.eq(audit.at))
        .execute(connection)?;
    let of_member = familiar_networks::table.filter(familiar_networks::member_id.eq(member));
    let kept = of_member
        .select(familiar_networks::network)
        .order((familiar_networks::last_used_at.desc(), familiar_networks::network))
        .limit(NETWORKS_MAX);
    let kept: Vec<String> = kept.load(connection)?;
    diesel::delete(of_member.filter(familiar_networks::network.ne_all(kept))).execute(connection).map(drop)
}
