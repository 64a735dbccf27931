//! Identifiers, each its own type so that one can never be used in place of another.

use std::fmt;
use std::str::FromStr;

use time::OffsetDateTime;
use uuid::{Builder, Uuid};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Uuid);

        impl $name {
            /// A UUID version 7 of this moment: ids sort by when they were made.
            #[must_use]
            pub fn new(at: OffsetDateTime, random: [u8; 10]) -> Self {
                let milliseconds = u64::try_from(at.unix_timestamp_nanos() / 1_000_000).unwrap_or(0);
                Self(Builder::from_unix_timestamp_millis(milliseconds, &random).into_uuid())
            }

            /// The UUID itself.
            #[must_use]
            pub fn as_uuid(&self) -> &Uuid {
                &self.0
            }
        }

        impl From<Uuid> for $name {
            fn from(uuid: Uuid) -> Self {
                Self(uuid)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id! {
    /// Identifies a patient; given by the service before the patient is stored.
    PatientId
}
id! {
    /// Identifies an organisation: the tenant that owns keys and patients.
    OrganisationId
}
id! {
    /// Identifies an API key; not a secret, unlike the key itself.
    KeyId
}
id! {
    /// Identifies a person's account, the same in every organisation that the person belongs to.
    MemberId
}

impl MemberId {
    /// A random id. One that holds a time would tell an organisation that the account is older than the membership.
    #[must_use]
    pub fn random(random: [u8; 16]) -> Self {
        Self(Builder::from_random_bytes(random).into_uuid())
    }
}

id! {
    /// Identifies an entry of the audit log.
    AuditEntryId
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    #[test]
    fn an_id_is_a_version_7_uuid_of_its_moment() {
        let id = PatientId::new(datetime!(2025-12-03 10:30:00.123 UTC), [0xFF; 10]);
        assert_eq!(id.as_uuid().get_version_num(), 7);
        assert_eq!(id.as_uuid().get_variant(), uuid::Variant::RFC4122);
        assert_eq!(id.to_string()[..13], *"019ae3c3-04bb");
    }

    #[test]
    fn ids_of_later_moments_sort_later() {
        let early = KeyId::new(datetime!(2025-12-03 10:30:00.001 UTC), [0xFF; 10]);
        let late = KeyId::new(datetime!(2025-12-03 10:30:00.002 UTC), [0; 10]);
        assert!(early < late);
    }
}
