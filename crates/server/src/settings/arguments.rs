//! Arguments that several commands share.

use std::str::FromStr;

use clap::Args;
use intake_domain::{KeyNote, Name};

/// Who runs a command, and why, for the audit log.
#[derive(Args, Default)]
pub(crate) struct Run {
    /// Who runs this, for the audit log [default: `INTAKE_OPERATOR`, or the account]
    #[arg(long = "as", value_name = "NAME", value_parser = |text: &str| Name::new(text))]
    pub(crate) by: Option<Name>,
    /// Reason, for the audit log
    #[arg(long, value_name = "TEXT", value_parser = KeyNote::new, default_value = "", hide_default_value = true)]
    pub(crate) reason: KeyNote,
}

/// Answers given beforehand to a command that ends something for good.
#[derive(Args)]
pub(crate) struct Brakes {
    /// Skip the question at a terminal
    #[arg(long)]
    pub(crate) yes: bool,
    /// Show what would end, and change nothing
    #[arg(long, conflicts_with = "yes")]
    pub(crate) dry_run: bool,
}

#[derive(Args)]
pub(crate) struct Output {
    /// Print one JSON value instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn parse_id<Id: FromStr>(text: &str) -> Result<Id, &'static str> {
    text.parse().map_err(|_| "must be an id, as `organisation list` and `key list` show them")
}

pub(crate) fn parse_time(text: &str) -> Result<time::OffsetDateTime, &'static str> {
    use time::format_description::well_known::Rfc3339;
    let day = time::macros::format_description!("[year]-[month]-[day]");
    time::OffsetDateTime::parse(text, &Rfc3339)
        .or_else(|_| time::Date::parse(text, day).map(|day| day.midnight().assume_utc()))
        .map_err(|_| "must be a time like 2026-12-31T17:00:00+10:00, or a day like 2026-12-31")
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    #[test]
    fn times_are_rfc_3339_or_days() {
        assert_eq!(parse_time("2026-12-31"), Ok(datetime!(2026-12-31 0:00 UTC)));
        assert_eq!(parse_time("2026-12-31T17:00:00+10:00"), Ok(datetime!(2026-12-31 17:00 +10)));
        for bad in ["", "tomorrow", "2026-02-30", "2026-12-31T17:00:00", "31-12-2026"] {
            assert!(parse_time(bad).is_err(), "{bad}");
        }
    }
}
