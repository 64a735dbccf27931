//! A patient's two valid shapes: about to be created, and created. Neither prints its values.

use std::fmt;

use time::{Date, OffsetDateTime};

use crate::ids::{OrganisationId, PatientId};

/// A patient that keeps every rule, not yet created. Made by [`PatientDraft::validate`](crate::PatientDraft::validate) alone.
#[derive(Clone, PartialEq, Eq)]
pub struct NewPatient {
    date_of_birth: Date,
    /// Every text behind the one before: a patient is one piece of memory, not ten.
    texts: String,
    /// Where each text is, in the order of [`Text`]; none: there is no such text.
    places: [Option<(u32, u32)>; TEXTS],
}

/// How many texts a patient has at most.
pub(crate) const TEXTS: usize = 10;

/// A patient's texts, in their order.
#[derive(Clone, Copy)]
enum Text {
    FirstName,
    LastName,
    PhoneNumber,
    Email,
    AddressLine1,
    AddressLine2,
    Suburb,
    State,
    Postcode,
    Country,
}

impl NewPatient {
    /// A patient of these texts, which keep every rule.
    pub(crate) fn new(date_of_birth: Date, values: [Option<&str>; TEXTS]) -> Self {
        let mut texts = String::with_capacity(values.iter().flatten().map(|text| text.len()).sum());
        let places = values.map(|text| {
            let start = texts.len();
            texts.push_str(text?);
            // The rules allow far less.
            Some((u32::try_from(start).ok()?, u32::try_from(texts.len()).ok()?))
        });
        Self { date_of_birth, texts, places }
    }

    /// First name, as sent.
    #[must_use]
    pub fn first_name(&self) -> &str {
        self.text(Text::FirstName).unwrap_or_default()
    }

    /// Last name, as sent.
    #[must_use]
    pub fn last_name(&self) -> &str {
        self.text(Text::LastName).unwrap_or_default()
    }

    /// Phone number in E.164 format.
    #[must_use]
    pub fn phone_number(&self) -> &str {
        self.text(Text::PhoneNumber).unwrap_or_default()
    }

    /// Date of birth.
    #[must_use]
    pub fn date_of_birth(&self) -> Date {
        self.date_of_birth
    }

    /// Email address, as sent.
    #[must_use]
    pub fn email(&self) -> Option<&str> {
        self.text(Text::Email)
    }

    /// First line of the street address, as sent.
    #[must_use]
    pub fn address_line1(&self) -> Option<&str> {
        self.text(Text::AddressLine1)
    }

    /// Second line of the street address, as sent.
    #[must_use]
    pub fn address_line2(&self) -> Option<&str> {
        self.text(Text::AddressLine2)
    }

    /// Suburb or city, as sent.
    #[must_use]
    pub fn suburb(&self) -> Option<&str> {
        self.text(Text::Suburb)
    }

    /// State or province, as sent.
    #[must_use]
    pub fn state(&self) -> Option<&str> {
        self.text(Text::State)
    }

    /// Postal code, as sent.
    #[must_use]
    pub fn postcode(&self) -> Option<&str> {
        self.text(Text::Postcode)
    }

    /// Country code.
    #[must_use]
    pub fn country(&self) -> Option<&str> {
        self.text(Text::Country)
    }

    fn text(&self, text: Text) -> Option<&str> {
        let (start, end) = self.places.get(text as usize).copied().flatten()?;
        self.texts.get(start as usize..end as usize)
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
