//! The day and the ids that a key asks about.

use actix_web::web::Query;
use intake_domain::{DayPart, PatientId};
use time::Date;
use time::macros::format_description;

use crate::problem::Problem;

const LENGTH: usize = "YYYY-MM-DD".len();
const PARAMETERS: [&str; 2] = ["after", "until"];

/// The part of this day that the query of an address names. A misspelt parameter is refused: without it, the answer
/// would be for a larger part than was asked for.
pub(super) fn part(day: &str, query: &str) -> Result<DayPart, Problem> {
    let no_day = || Problem::Malformed("The day must be a date in the form YYYY-MM-DD, for example 2025-12-03".into());
    let no_id = || Problem::Malformed("The parameters after and until must be ids of patients, each sent once".into());
    let date = Date::parse(day, format_description!("[year]-[month]-[day]")).ok();
    // A sign before the year would be read, too.
    let date = date.filter(|_| day.len() == LENGTH).ok_or_else(no_day)?;
    let sent = Query::<Vec<(String, String)>>::from_query(query).map_err(|_| no_id())?;
    if sent.iter().any(|(name, _)| !PARAMETERS.contains(&name.as_str())) {
        return Err(Problem::Malformed("The only parameters are after and until".into()));
    }
    let id = |name: &str| -> Result<Option<PatientId>, Problem> {
        let mut values = sent.iter().filter(|(sent, _)| sent == name).map(|(_, value)| value.as_str());
        let (value, None) = (values.next(), values.next()) else { return Err(no_id()) };
        value.map(|id| id.parse().map_err(|_| no_id())).transpose()
    };
    let [after, until] = PARAMETERS;
    Ok(DayPart::new(date, id(after)?, id(until)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_and_ids_are_read_and_nothing_else_is() {
        let id = "01a1fced-5fed-735b-985b-55afb2dd9693";
        let of = |query: &str| part("2026-01-10", query);
        assert!(of("").is_ok() && of("&").is_ok());
        let within = of(&format!("after={id}&until={id}")).unwrap();
        assert_eq!(within, DayPart::new(within.day(), Some(id.parse().unwrap()), Some(id.parse().unwrap())));
        for day in ["", "today", "2025-12-3", "2025-02-30", "+2025-12-03", "2025-12-03T00:00:00Z", "٢٠٢٥-١٢-٠٣"]
        {
            assert!(part(day, "").is_err(), "{day}");
        }
        for query in ["after=", "after=x", "until=%00", &format!("after={id}&after={id}")] {
            assert!(of(query).is_err(), "{query}");
        }
        for unknown in [format!("untill={id}"), format!("after={id}&Until={id}"), "other".to_owned(), "=1".to_owned()] {
            assert!(of(&unknown).is_err(), "{unknown}");
        }
    }
}
