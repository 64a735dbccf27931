//! What is wrong with a patient: faults, with the field that each is in.

use std::fmt;

use crate::patients::fault::FaultKind;
use crate::patients::field::Field;

/// One thing wrong with what was sent. Names the field and the rule, never the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldFault {
    /// The broken field; none when the whole is wrong.
    pub field: Option<Field>,
    /// The rule that it breaks.
    pub kind: FaultKind,
}

impl FieldFault {
    /// A fault of one field.
    #[must_use]
    pub const fn of(field: Field, kind: FaultKind) -> Self {
        Self { field: Some(field), kind }
    }

    /// A fault of the whole.
    #[must_use]
    pub const fn whole(kind: FaultKind) -> Self {
        Self { field: None, kind }
    }
}

impl fmt::Display for FieldFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field {
            Some(field) => write!(f, "{}: {}", field.name(), self.kind),
            None => write!(f, "the patient {}", self.kind),
        }
    }
}

/// Everything wrong with what was sent, in the order of the fields.
///
/// ```
/// use intake_domain::{FaultKind, Field, PatientDraft, Sent, Today};
///
/// let draft = PatientDraft::default().with(Field::FirstName, "Ada").with(Field::LastName, Sent::NotText);
/// let faults = draft.validate(Today::new(2025, 12, 3).unwrap()).unwrap_err();
/// let missing = faults.as_slice().iter().filter(|fault| fault.kind == FaultKind::Missing);
/// assert_eq!(missing.count(), 2);
/// assert_eq!(faults.to_string(), "lastName: must be a string; phoneNumber: is required; dateOfBirth: is required");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldFaults(pub(crate) Vec<FieldFault>);

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
