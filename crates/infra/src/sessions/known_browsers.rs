//! The browsers by which members have signed in.

use std::net::IpAddr;

use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::{Network, TokenDigest};
use time::OffsetDateTime;

use crate::accounts::row::AccountRow;
use crate::schema::{known_browsers, members, memberships, sessions};

/// Number of browsers that are kept for each member: several browsers in each of the networks that are kept.
const BROWSERS_MAX: i64 = 64;

/// Remembers the browser of a session. Returns its member if this browser in this network is not known, unless the
/// session is the one in which they got the account.
pub(crate) fn note(
    connection: &mut PgConnection,
    session: &TokenDigest,
    now: OffsetDateTime,
) -> QueryResult<Option<AccountRow>> {
    connection.transaction(|connection| {
        let found = sessions::table.find(session.as_bytes().as_slice()).inner_join(members::table);
        let columns = (AccountRow::as_select(), sessions::started_at, sessions::browser, sessions::address);
        let found =
            found.select(columns).first::<(AccountRow, OffsetDateTime, Option<String>, Option<String>)>(connection);
        let Some((member, started_at, browser, address)) = found.optional()? else { return Ok(None) };
        let id = member.id;
        let network = Network::of_neighbours(address.and_then(|address| address.parse::<IpAddr>().ok()));
        let of_member = known_browsers::table.filter(known_browsers::member_id.eq(id));
        let earlier =
            memberships::table.filter(memberships::member_id.eq(id)).filter(memberships::joined_at.lt(started_at));
        let had_account = diesel::select(diesel::dsl::exists(earlier)).get_result::<bool>(connection)?;
        let used = known_browsers::last_used_at.eq(now);
        let key = (
            known_browsers::member_id.eq(id),
            known_browsers::browser.eq(browser.unwrap_or_default()),
            known_browsers::network.eq(network.to_string()),
        );
        let row = (key.0, key.1.clone(), key.2.clone(), used);
        if diesel::update(of_member.filter(key.1).filter(key.2)).set(used).execute(connection)? > 0 {
            return Ok(None);
        }
        diesel::insert_into(known_browsers::table).values(row).on_conflict_do_nothing().execute(connection)?;
        let kept = of_member.select(known_browsers::last_used_at).order(known_browsers::last_used_at.desc());
        let oldest = kept.offset(BROWSERS_MAX).first::<OffsetDateTime>(connection).optional()?;
        if let Some(oldest) = oldest {
            diesel::delete(of_member.filter(known_browsers::last_used_at.le(oldest))).execute(connection)?;
        }
        Ok(had_account.then_some(member))
    })
}
