//! A patient as sent, and what is wrong with it. Only validation leads on from here.

use std::borrow::Cow;
use std::fmt;
use std::ops::Index;

use garde::Report;
use garde::error::Path;
use time::OffsetDateTime;

use crate::patients::field::{ByField, Field};
use crate::patients::patient::NewPatient;
use crate::patients::rules::{self, Today};
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
/// assert_eq!(patient.get(Field::FirstName), Some("Ada"));
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
    /// fields.
    pub fn validate(&self, now: OffsetDateTime) -> Result<NewPatient, FieldFaults> {
        let today = Today::at(now);
        let mut date_of_birth = None;
        let mut faults = Vec::new();
        for field in Field::ALL {
            match rules::check(field.definition(), &self.0[field], today) {
                Ok(day) => date_of_birth = date_of_birth.or(day),
                Err(message) => faults.push(FieldFault { field: Some(field), message }),
            }
        }
        match date_of_birth {
            Some(day) if faults.is_empty() => Ok(NewPatient::new(day, &ByField::from_fn(|field| self.0[field].text()))),
            // Without a date of birth there is a fault, because it is required.
            _ => Err(FieldFaults(faults)),
        }
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

impl garde::Validate for PatientDraft<'_> {
    type Context = Today;

    fn validate_into(&self, today: &Today, parent: &mut dyn FnMut() -> Path, report: &mut Report) {
        for field in Field::ALL {
            if let Err(message) = rules::check(field.definition(), &self.0[field], *today) {
                report.append(parent().join(field.name()), garde::Error::new(message));
            }
        }
    }
}

/// One thing wrong with what was sent. Names the field and the rule, never the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldFault {
    /// The broken field; none when the whole is wrong.
    pub field: Option<Field>,
    /// For people to read.
    pub message: Cow<'static, str>,
}

impl FieldFault {
    /// A fault of one field.
    pub fn of(field: Field, message: impl Into<Cow<'static, str>>) -> Self {
        Self { field: Some(field), message: message.into() }
    }

    /// A fault of the whole.
    pub fn whole(message: impl Into<Cow<'static, str>>) -> Self {
        Self { field: None, message: message.into() }
    }
}

impl fmt::Display for FieldFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field {
            Some(field) => write!(f, "{} {}", field.name(), self.message),
            None => write!(f, "the patient {}", self.message),
        }
    }
}

/// Everything wrong with what was sent, in the order of the fields.
///
/// ```
/// use intake_domain::{Field, PatientDraft, Sent};
/// use time::macros::datetime;
///
/// let draft = PatientDraft::default().with(Field::FirstName, "Ada").with(Field::LastName, Sent::NotText);
/// let faults = draft.validate(datetime!(2025-12-03 10:30 UTC)).unwrap_err();
/// for fault in faults.as_slice() {
///     println!("{:?}: {}", fault.field, fault.message);
/// }
/// assert_eq!(faults.to_string(), "lastName must be a string; phoneNumber is required; dateOfBirth is required");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldFaults(Vec<FieldFault>);

impl FieldFaults {
    /// The faults, one for each broken field.
    #[must_use]
    pub fn as_slice(&self) -> &[FieldFault] {
        &self.0
    }
}

impl From<FieldFault> for FieldFaults {
    fn from(fault: FieldFault) -> Self {
        Self(vec![fault])
    }
}

impl IntoIterator for FieldFaults {
    type Item = FieldFault;
    type IntoIter = std::vec::IntoIter<FieldFault>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl fmt::Display for FieldFaults {
    /// The faults in one line, `; ` between them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, fault) in self.0.iter().enumerate() {
            if number > 0 {
                f.write_str("; ")?;
            }
            fault.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for FieldFaults {}
