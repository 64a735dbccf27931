//! A patient's two valid shapes: about to be created, and created. Neither prints its values.

use std::fmt;

use time::{Date, OffsetDateTime};

use crate::ids::{OrganisationId, PatientId};

/// A patient that keeps every rule, not yet created. Made by [`PatientDraft::validate`](crate::PatientDraft::validate) alone.
#[derive(Clone, PartialEq, Eq)]
pub struct NewPatient {
    pub(crate) first_name: String,
    pub(crate) last_name: String,
    pub(crate) phone_number: String,
    pub(crate) date_of_birth: Date,
    pub(crate) email: Option<String>,
    pub(crate) address_line1: Option<String>,
    pub(crate) address_line2: Option<String>,
    pub(crate) suburb: Option<String>,
    pub(crate) state: Option<String>,
    pub(crate) postcode: Option<String>,
    pub(crate) country: Option<String>,
}

impl NewPatient {
    /// First name, as sent.
    #[must_use]
    pub fn first_name(&self) -> &str {
        &self.first_name
    }

    /// Last name, as sent.
    #[must_use]
    pub fn last_name(&self) -> &str {
        &self.last_name
    }

    /// Phone number in E.164 format.
    #[must_use]
    pub fn phone_number(&self) -> &str {
        &self.phone_number
    }

    /// Date of birth.
    #[must_use]
    pub fn date_of_birth(&self) -> Date {
        self.date_of_birth
    }

    /// Email address, as sent.
    #[must_use]
    pub fn email(&self) -> Option<&str> {
        self.email.as_deref()
    }

    /// First line of the street address, as sent.
    #[must_use]
    pub fn address_line1(&self) -> Option<&str> {
        self.address_line1.as_deref()
    }

    /// Second line of the street address, as sent.
    #[must_use]
    pub fn address_line2(&self) -> Option<&str> {
        self.address_line2.as_deref()
    }

    /// Suburb or city, as sent.
    #[must_use]
    pub fn suburb(&self) -> Option<&str> {
        self.suburb.as_deref()
    }

    /// State or province, as sent.
    #[must_use]
    pub fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// Postal code, as sent.
    #[must_use]
    pub fn postcode(&self) -> Option<&str> {
        self.postcode.as_deref()
    }

    /// Country code.
    #[must_use]
    pub fn country(&self) -> Option<&str> {
        self.country.as_deref()
    }
}

impl fmt::Debug for NewPatient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NewPatient(…)")
    }
}

/// A created patient: its details are those that were sent, never read back from the store.
#[derive(Clone, PartialEq, Eq)]
pub struct Patient<'a> {
    /// Given by the service.
    pub id: PatientId,
    /// The organisation that owns the key of the request.
    pub organisation_id: OrganisationId,
    /// What was sent.
    pub details: &'a NewPatient,
    /// When it was created, in milliseconds.
    pub created_at: OffsetDateTime,
    /// When it was last changed: at its creation.
    pub updated_at: OffsetDateTime,
}

impl Patient<'_> {
    /// Every patient that comes through this door is identified.
    pub const IS_IDENTIFIED: bool = true;
}

impl fmt::Debug for Patient<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Patient({}, …)", self.id)
    }
}
