//! A patient as sent. Only validation leads on from here.

use std::fmt;
use std::ops::Index;

use crate::patients::field::{ByField, Field};
use crate::patients::field_fault::{FieldFault, FieldFaults};
use crate::patients::patient::NewPatient;
use crate::patients::rules::Today;
use crate::patients::sent::Sent;

/// A patient as sent, before any rule was applied. [`PatientDraft::validate`] makes a [`NewPatient`] of it.
///
/// ```
/// use intake_domain::{Field, PatientDraft};
/// use time::macros::datetime;
///
/// let draft = PatientDraft::default()
///     .with(Field::FirstName, "Ada")
///     .with(Field::LastName, "Lovelace")
///     .with(Field::PhoneNumber, "+61412345678")
///     .with(Field::DateOfBirth, "1985-12-10");
/// let patient = draft.validate(datetime!(2025-12-03 10:30 UTC))?;
/// assert_eq!(patient.first_name(), "Ada");
/// assert_eq!(patient.get(Field::Suburb), None);
/// # Ok::<(), intake_domain::FieldFaults>(())
/// ```
///
/// It can be collected, from names too:
///
/// ```
/// use intake_domain::{Field, PatientDraft, UnknownField};
///
/// let columns = [("firstName", "Ada"), ("lastName", "Lovelace")];
/// let named = columns.into_iter().map(|(name, value)| Ok((name.parse::<Field>()?, value)));
/// let draft = named.collect::<Result<PatientDraft, UnknownField>>()?;
/// assert_eq!(draft[Field::LastName].text(), Some("Lovelace"));
/// # Ok::<(), UnknownField>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct PatientDraft<'a>(ByField<Sent<'a>>);

impl<'a> PatientDraft<'a> {
    /// Notes what was sent for a field, in place of what was noted before.
    pub fn set(&mut self, field: Field, sent: impl Into<Sent<'a>>) {
        self.0[field] = sent.into();
    }

    /// The draft with one field more.
    #[must_use]
    pub fn with(mut self, field: Field, sent: impl Into<Sent<'a>>) -> Self {
        self.set(field, sent);
        self
    }

    /// Applies every rule: the valid patient, or everything wrong, one fault for each broken field in the order of the
    /// fields. Dates are measured against a day ([`Today::new`]), or a moment of the crate `time`.
    pub fn validate(self, today: impl Into<Today>) -> Result<NewPatient, FieldFaults> {
        let today = today.into();
        let mut date_of_birth = None;
        let mut faults = Vec::new();
        for &field in Field::ALL {
            match field.check(&self.0[field], today) {
                Ok(day) => date_of_birth = date_of_birth.or(day),
                Err(kind) => faults.push(FieldFault::of(field, kind)),
            }
        }
        match date_of_birth {
            Some(day) if faults.is_empty() => Ok(NewPatient::new(day, &ByField::from_fn(|field| self.0[field].text()))),
            // Without a date of birth there is a fault, because it is required.
            _ => Err(FieldFaults(faults)),
        }
    }
}

impl fmt::Debug for PatientDraft<'_> {
    /// Which fields were sent, and never what.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sent =
            Field::ALL.iter().copied().map(|field| (field, &self.0[field])).filter(|(_, sent)| **sent != Sent::Nothing);
        f.write_str("PatientDraft ")?;
        f.debug_map().entries(sent).finish()
    }
}

impl<'a> Index<Field> for PatientDraft<'a> {
    type Output = Sent<'a>;

    fn index(&self, field: Field) -> &Sent<'a> {
        &self.0[field]
    }
}

impl<'a, T: Into<Sent<'a>>> FromIterator<(Field, T)> for PatientDraft<'a> {
    fn from_iter<I: IntoIterator<Item = (Field, T)>>(fields: I) -> Self {
        fields.into_iter().fold(Self::default(), |draft, (field, sent)| draft.with(field, sent))
    }
}

#[cfg(feature = "garde")]
impl garde::Validate for PatientDraft<'_> {
    type Context = Today;

    fn validate_into(&self, today: &Today, parent: &mut dyn FnMut() -> garde::Path, report: &mut garde::Report) {
        for &field in Field::ALL {
            if let Err(kind) = field.check(&self.0[field], *today) {
                report.append(parent().join(field.name()), garde::Error::new(kind.to_string()));
            }
        }
    }
}
