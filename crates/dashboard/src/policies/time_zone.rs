//! Settings → Policies → Time zone: the zone of the days and times on pages and in mails of the organisation.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Form;
use askama::Template;
use intake_domain::{Zone, change_zone};
use serde::Deserialize;

use crate::page::error::PageError;
use crate::page::notice::redirect_with_notice;
use crate::page::part::{Members, Part};
use crate::page::shell::{Shell, render};
use crate::page::visitor::Administrator;
use crate::policies::overview::POLICIES;

#[derive(Template)]
#[template(path = "policies/time_zone.html")]
struct TimeZonePage {
    shell: Shell,
    groups: Vec<Group>,
}

/// Zones beside each other in the list, such as those of Asia.
struct Group {
    name: &'static str,
    zones: Vec<(Zone, bool)>,
}

#[derive(Deserialize)]
pub(crate) struct TimeZoneForm {
    form_token: String,
    zone: String,
}

pub(crate) async fn choose(Administrator(visitor): Administrator) -> Result<HttpResponse, PageError> {
    visitor.assert_confirmed()?;
    let chosen = visitor.draft().and_then(|draft| draft.field("zone").parse().ok()).unwrap_or(visitor.zone());
    render(StatusCode::OK, &TimeZonePage { shell: Shell::new("policies", &visitor), groups: groups(chosen) })
}

pub(crate) async fn change(
    Administrator(visitor): Administrator,
    form: Form<TimeZoneForm>,
    members: Part<dyn Members>,
) -> Result<HttpResponse, PageError> {
    visitor.assert_own_form(&form.form_token)?;
    let zone: Zone = form.zone.parse().map_err(|_| PageError::BadForm)?;
    change_zone(members.as_ref(), visitor.confirmed()?, zone, &visitor.audit()).await?;
    Ok(redirect_with_notice(POLICIES, &format!("Days and times are now shown in {zone}.")))
}

/// All zones that can be chosen, and the one that was chosen before, whatever it is called.
fn groups(chosen: Zone) -> Vec<Group> {
    let mut zones = Zone::choices();
    for zone in [chosen, Zone::default()] {
        if !zones.contains(&zone) {
            zones.push(zone);
        }
    }
    let mut groups: Vec<Group> = Vec::new();
    for zone in zones {
        let name = match zone.name().split_once('/') {
            _ if zone.is_australian() => "Australia",
            Some((region, _)) if zone.place().is_some() => region,
            _ => "Other",
        };
        let one = (zone, zone == chosen);
        match groups.iter_mut().find(|group| group.name == name) {
            Some(group) => group.zones.push(one),
            None => groups.push(Group { name, zones: vec![one] }),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_begins_with_australia_and_holds_the_chosen_zone_once() {
        for name in ["Australia/Sydney", "Europe/Berlin", "UTC", "US/Eastern"] {
            let groups = groups(name.parse().unwrap());
            assert_eq!((groups[0].name, groups.last().unwrap().name), ("Australia", "Other"));
            let first: Vec<_> = groups[0].zones.iter().take(2).map(|(zone, _)| zone.name()).collect();
            assert_eq!(first, ["Australia/Sydney", "Australia/Melbourne"]);
            let chosen: Vec<_> =
                groups.iter().flat_map(|group| &group.zones).filter(|(_, is_chosen)| *is_chosen).collect();
            assert_eq!(chosen.iter().map(|(zone, _)| zone.name()).collect::<Vec<_>>(), [name]);
        }
    }
}
