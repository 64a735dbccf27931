//! A patient's two valid shapes: about to be created, and created. Neither prints its values.

use std::fmt;

use time::{Date, OffsetDateTime};

use crate::ids::{OrganisationId, PatientId};
use crate::patients::field::{ByField, Field};

/// A patient that keeps every rule, not yet created. Made by [`PatientDraft::validate`](crate::PatientDraft::validate)
/// alone.
#[derive(Clone, PartialEq, Eq)]
pub struct NewPatient {
    date_of_birth: Date,
    /// Every text behind the one before: a patient is one piece of memory, not eleven.
    texts: String,
    /// Range of the text of each field; none: there is no such text.
    spans: ByField<Option<(u32, u32)>>,
}

impl NewPatient {
    /// A patient of these texts, which keep every rule, born on that day.
    pub(crate) fn new(date_of_birth: Date, values: &ByField<Option<&str>>) -> Self {
        let length = Field::ALL.iter().copied().filter_map(|field| values[field]).map(str::len).sum();
        let mut texts = String::with_capacity(length);
        let spans = ByField::from_fn(|field| {
            let start = texts.len();
            texts.push_str(values[field]?);
            // The rules allow far less.
            Some((u32::try_from(start).ok()?, u32::try_from(texts.len()).ok()?))
        });
        Self { date_of_birth, texts, spans }
    }

    /// The text of a field, as sent. None: nothing was sent, which no required field allows.
    #[must_use]
    pub fn get(&self, field: Field) -> Option<&str> {
        let (start, end) = self.spans[field]?;
        self.texts.get(start as usize..end as usize)
    }

    /// The same in UTF-8, for what need not know where characters begin.
    pub(crate) fn bytes(&self, field: Field) -> Option<&[u8]> {
        let (start, end) = self.spans[field]?;
        self.texts.as_bytes().get(start as usize..end as usize)
    }

    /// First name.
    #[must_use]
    pub fn first_name(&self) -> &str {
        self.required(Field::FirstName)
    }

    /// Last name.
    #[must_use]
    pub fn last_name(&self) -> &str {
        self.required(Field::LastName)
    }

    /// Phone number, in the form E.164.
    #[must_use]
    pub fn phone_number(&self) -> &str {
        self.required(Field::PhoneNumber)
    }

    /// The day that the text of the date of birth names.
    #[must_use]
    pub fn date_of_birth(&self) -> Date {
        self.date_of_birth
    }

    fn required(&self, field: Field) -> &str {
        self.get(field).unwrap_or_default()
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
    /// Values that were sent.
    pub details: &'a NewPatient,
    /// Time at which it was created, in milliseconds.
    pub created_at: OffsetDateTime,
    /// Time at which it was last changed: at its creation.
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
