//! `intake key` and its arguments.

use clap::{Args, Subcommand, ValueEnum};
use intake_domain::{AllowedNetworks, KeyContact, KeyId, OrganisationId};
use time::{Duration, OffsetDateTime};

use crate::settings::arguments::{Output, Run, parse_id, parse_time};

#[derive(Subcommand)]
pub(crate) enum KeyCommand {
    /// Create an API key and print it once
    Create {
        /// The organisation it belongs to
        #[arg(long, value_name = "ID", value_parser = parse_id::<OrganisationId>)]
        organisation: OrganisationId,
        /// 1 to 100 characters, to tell it from other keys
        #[arg(long)]
        name: String,
        /// Time at which it expires: RFC 3339, or YYYY-MM-DD for 00:00 UTC of that day
        #[arg(long, value_name = "TIME", value_parser = parse_time)]
        expires: Option<OffsetDateTime>,
        /// Networks from which it is accepted, such as 203.0.113.7,10.0.0.0/8 [default: any]
        #[arg(long, value_name = "NETWORKS", default_value = "any", hide_default_value = true)]
        allow: AllowedNetworks,
        /// Vendor to call about it, such as "Acme Bookings, 02 5550 1234" [default: none]
        #[arg(long, value_name = "TEXT", value_parser = KeyContact::new, default_value = "", hide_default_value = true)]
        contact: KeyContact,
        #[command(flatten)]
        run: Run,
        #[command(flatten)]
        output: Output,
    },
    /// Create a replacement key and print it once; both work until the new one creates a patient
    Replace {
        /// The old key's id, as `key list` shows it
        #[arg(value_name = "KEY_ID", value_parser = parse_id::<KeyId>)]
        key: KeyId,
        /// Time for which the old key still works after the new one has created its first patient
        #[arg(long, value_name = "TIME", default_value = "24h")]
        ends_after: EndsAfter,
        /// Days after which the old key ends even if the new one has created no patient
        #[arg(long, value_name = "DAYS", default_value = "14", value_parser = clap::value_parser!(u16).range(1..=365))]
        ends_within: u16,
        /// Revoke the old key at once, because someone else may have it
        #[arg(long, conflicts_with_all = ["ends_after", "ends_within"])]
        leaked: bool,
        /// Expiry of the new key: a time or day as for `key create`, or `never` [default: after as many days as the
        /// old one was made for]
        #[arg(long, value_name = "TIME", value_parser = parse_end)]
        expires: Option<End>,
        #[command(flatten)]
        run: Run,
        #[command(flatten)]
        output: Output,
    },
    /// List keys, oldest first
    List {
        /// Only those of this organisation
        #[arg(long, value_name = "ID", value_parser = parse_id::<OrganisationId>)]
        organisation: Option<OrganisationId>,
        #[command(flatten)]
        output: Output,
    },
    /// List the keys that send most, with what is refused and why
    Usage(UsageArguments),
    /// Clear a key's mark that it was sent unencrypted
    ClearSentInClear(KeyArguments),
    /// Refuse a key, or all of an organisation, until it is resumed; it still expires
    Pause(PauseArguments),
    /// Resume a paused key, or those that were paused together last
    Resume(PauseArguments),
    /// Show or set the networks from which a key is accepted
    Networks {
        /// Networks from which it is accepted, such as 203.0.113.7,10.0.0.0/8, or `any`
        #[arg(long, value_name = "NETWORKS")]
        allow: Option<AllowedNetworks>,
        #[command(flatten)]
        key: KeyArguments,
    },
    /// Show or set the vendor to call about a key
    Contact {
        /// The vendor, such as "Acme Bookings, 02 5550 1234", or an empty text for none
        #[arg(long, value_name = "TEXT", value_parser = KeyContact::new)]
        set: Option<KeyContact>,
        #[command(flatten)]
        key: KeyArguments,
    },
    /// Revoke a key at once and for good
    Revoke(KeyArguments),
}

#[derive(Args)]
pub(crate) struct KeyArguments {
    /// The key's id, as `key list` shows it
    #[arg(value_name = "KEY_ID", value_parser = parse_id::<KeyId>)]
    pub(crate) key: KeyId,
    #[command(flatten)]
    pub(crate) run: Run,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Args)]
pub(crate) struct PauseArguments {
    /// The key's id, as `key list` shows it
    #[arg(value_name = "KEY_ID", value_parser = parse_id::<KeyId>, required_unless_present = "all")]
    pub(crate) key: Option<KeyId>,
    /// All active keys of this organisation together
    #[arg(long, value_name = "ID", value_parser = parse_id::<OrganisationId>, conflicts_with = "key")]
    pub(crate) all: Option<OrganisationId>,
    #[command(flatten)]
    pub(crate) run: Run,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// Time for which a replaced key still works after the new one has created its first patient: what the dashboard
/// offers.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum EndsAfter {
    /// Not at all
    Now,
    /// An hour
    #[value(name = "1h")]
    Hour,
    /// A day
    #[value(name = "24h")]
    Day,
    /// A week
    #[value(name = "7d")]
    Week,
}

impl EndsAfter {
    pub(crate) fn duration(self) -> Duration {
        match self {
            Self::Now => Duration::ZERO,
            Self::Hour => Duration::HOUR,
            Self::Day => Duration::DAY,
            Self::Week => Duration::WEEK,
        }
    }

    /// Until when the old key works, in words.
    pub(crate) fn until(self) -> &'static str {
        match self {
            Self::Now => "until the new one has created a patient",
            Self::Hour => "until an hour after the new one has created a patient",
            Self::Day => "until 24 hours after the new one has created a patient",
            Self::Week => "until 7 days after the new one has created a patient",
        }
    }
}

/// Expiry of a key.
#[derive(Clone, Copy)]
pub(crate) enum End {
    Never,
    At(OffsetDateTime),
}

fn parse_end(text: &str) -> Result<End, String> {
    if text == "never" {
        Ok(End::Never)
    } else {
        parse_time(text).map(End::At).map_err(|why| format!("{why}, or never"))
    }
}

/// The keys whose use is shown.
#[derive(Args)]
pub(crate) struct UsageArguments {
    /// Only keys of this organisation
    #[arg(long, value_name = "ID", value_parser = parse_id::<OrganisationId>)]
    pub(crate) organisation: Option<OrganisationId>,
    /// Number of days, today (UTC) included
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = clap::value_parser!(u16).range(1..=30))]
    pub(crate) days: u16,
    /// Number of keys, those with most requests first
    #[arg(long, value_name = "NUMBER", default_value = "20", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) limit: u32,
    #[command(flatten)]
    pub(crate) output: Output,
}
