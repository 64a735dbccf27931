//! The fields of a patient, each once. Whatever goes through all fields (decoding, rules, digest, statement, answer,
//! the OpenAPI document, the table of the guide) goes through [`Field::ALL`] and [`Field::definition`].

use std::fmt;
use std::ops::{Index, IndexMut};

use time::Date;

use crate::patients::fault::FaultKind;
use crate::patients::rules::{Rule, Today, check, is_e164};
use crate::patients::sent::Sent;

/// A field of a patient, in the order in which faults are reported.
///
/// ```
/// use intake_domain::{Field, Rule};
///
/// let field: Field = "lastName".parse()?;
/// let definition = field.definition();
/// assert!(definition.is_required && matches!(definition.rule, Rule::Name { max: 255 }));
/// assert_eq!(definition.rule.to_string(), "1 to 255 characters, not blank");
///
/// let unknown = "last_name".parse::<Field>().unwrap_err();
/// assert_eq!(unknown.to_string(), "\"last_name\" is not a field of a patient: did you mean lastName?");
/// # Ok::<(), intake_domain::UnknownField>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the definition of each says what it is")]
pub enum Field {
    FirstName,
    LastName,
    PhoneNumber,
    DateOfBirth,
    Email,
    AddressLine1,
    AddressLine2,
    Suburb,
    State,
    Postcode,
    Country,
}

const EVERY: [Field; 11] = [
    Field::FirstName,
    Field::LastName,
    Field::PhoneNumber,
    Field::DateOfBirth,
    Field::Email,
    Field::AddressLine1,
    Field::AddressLine2,
    Field::Suburb,
    Field::State,
    Field::Postcode,
    Field::Country,
];

/// Everything that is known of a field.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Definition {
    /// The name in JSON.
    pub name: &'static str,
    /// The column of the table `patients`.
    column: &'static str,
    /// Stands for the field in digests of requests. It never changes, and is never given to another field.
    number: u16,
    /// True if a patient must have it.
    pub is_required: bool,
    /// Rule for its values.
    pub rule: Rule,
    /// Description, for people.
    pub description: &'static str,
    /// A value that keeps the rule.
    pub example: &'static str,
}

/// Every field, described here alone, in the order of the variants.
static DEFINITIONS: [Definition; EVERY.len()] = [
    Definition {
        name: "firstName",
        column: "first_name",
        number: 1,
        is_required: true,
        rule: Rule::Name { max: 255 },
        description: "First name",
        example: "Ada",
    },
    Definition {
        name: "lastName",
        column: "last_name",
        number: 2,
        is_required: true,
        rule: Rule::Name { max: 255 },
        description: "Last name",
        example: "Lovelace",
    },
    Definition {
        name: "phoneNumber",
        column: "phone_number",
        number: 3,
        is_required: true,
        rule: Rule::Pattern {
            form: "E.164: `+`, a digit from 1 to 9, then 1 to 14 digits",
            pattern: r"^\+[1-9][0-9]{1,14}$",
            matches: is_e164,
            fault: FaultKind::NotE164,
        },
        description: "Phone number",
        example: "+61491570006",
    },
    Definition {
        name: "dateOfBirth",
        column: "date_of_birth",
        number: 4,
        is_required: true,
        rule: Rule::BirthDate { earliest: "1850-01-01" },
        description: "Date of birth",
        example: "1985-12-10",
    },
    Definition {
        name: "email",
        column: "email",
        number: 5,
        is_required: false,
        // The longest address that can be delivered to (RFC 5321).
        rule: Rule::Email { max: 254 },
        description: "Email address",
        example: "ada@example.com",
    },
    Definition {
        name: "addressLine1",
        column: "address_line1",
        number: 6,
        is_required: false,
        rule: Rule::Text { max: 255 },
        description: "Street address, line 1",
        example: "12 Analytical Street",
    },
    Definition {
        name: "addressLine2",
        column: "address_line2",
        number: 7,
        is_required: false,
        rule: Rule::Text { max: 255 },
        description: "Street address, line 2",
        example: "Unit 3",
    },
    Definition {
        name: "suburb",
        column: "suburb",
        number: 8,
        is_required: false,
        rule: Rule::Text { max: 100 },
        description: "Suburb or city",
        example: "Carlton",
    },
    Definition {
        name: "state",
        column: "state",
        number: 9,
        is_required: false,
        rule: Rule::Text { max: 50 },
        description: "State or territory",
        example: "VIC",
    },
    Definition {
        name: "postcode",
        column: "postcode",
        number: 10,
        is_required: false,
        rule: Rule::Text { max: 20 },
        description: "Postcode",
        example: "3053",
    },
    Definition {
        name: "country",
        column: "country",
        number: 11,
        is_required: false,
        rule: Rule::OneOf(&["AU"]),
        description: "Country code",
        example: "AU",
    },
];

impl Field {
    /// Every field, in the order in which faults are reported.
    pub const ALL: &'static [Self] = &EVERY;

    /// Every field, in the order in which a created patient is answered: the email address stands before the date of
    /// birth.
    pub const RETURNED: &'static [Self] = &{
        let mut fields = EVERY;
        fields.swap(Self::DateOfBirth as usize, Self::Email as usize);
        fields
    };

    /// Everything that is known of the field.
    #[expect(clippy::indexing_slicing, reason = "there is a definition of every field")]
    #[must_use]
    pub const fn definition(self) -> &'static Definition {
        &DEFINITIONS[self as usize]
    }

    /// Applies the field's rule. Gives the day, where the value is one.
    pub(crate) fn check(self, sent: &Sent<'_>, today: Today) -> Result<Option<Date>, FaultKind> {
        let definition = self.definition();
        check(definition.rule, definition.is_required, sent, today)
    }

    /// The name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.definition().name
    }

    /// The column of the table `patients`, for the crates of this workspace.
    #[doc(hidden)]
    #[must_use]
    pub const fn column(self) -> &'static str {
        self.definition().column
    }

    /// Stands for the field in digests, for the crates of this workspace.
    #[doc(hidden)]
    #[must_use]
    pub const fn number(self) -> u16 {
        self.definition().number
    }

    /// The field of that name in JSON.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|field| field.name() == name)
    }
}

/// One value for each field. Not printed by `Debug`, because it may be a patient's.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ByField<T>([T; EVERY.len()]);

impl<T> ByField<T> {
    /// Returns what the function gives for each field.
    pub fn from_fn(value: impl FnMut(Field) -> T) -> Self {
        Self(EVERY.map(value))
    }
}

#[expect(clippy::indexing_slicing, reason = "there is a place for every field")]
impl<T> Index<Field> for ByField<T> {
    type Output = T;

    fn index(&self, field: Field) -> &T {
        &self.0[field as usize]
    }
}

#[expect(clippy::indexing_slicing, reason = "there is a place for every field")]
impl<T> IndexMut<Field> for ByField<T> {
    fn index_mut(&mut self, field: Field) -> &mut T {
        &mut self.0[field as usize]
    }
}

impl<T> fmt::Debug for ByField<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ByField(…)")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_variant_is_among_all_in_its_place() {
        let source = include_str!("field.rs").split_once("pub enum Field {\n").unwrap().1;
        let variants: Vec<_> =
            source.split_once('}').unwrap().0.lines().map(|line| line.trim().trim_end_matches(',')).collect();
        let all: Vec<_> = Field::ALL.iter().map(|field| format!("{field:?}")).collect();
        assert_eq!(all, variants);
        assert!(Field::ALL.iter().enumerate().all(|(place, field)| *field as usize == place));
    }

    #[test]
    fn every_definition_is_in_the_place_of_its_field() {
        for field in Field::ALL {
            assert_eq!(field.name().to_lowercase(), format!("{field:?}").to_lowercase());
        }
    }

    #[test]
    fn no_two_fields_share_a_name_a_column_or_a_number() {
        let all: Vec<_> = Field::ALL.iter().map(|field| field.definition()).collect();
        assert_eq!(all.iter().map(|field| field.name).collect::<HashSet<_>>().len(), Field::ALL.len());
        assert_eq!(all.iter().map(|field| field.column).collect::<HashSet<_>>().len(), Field::ALL.len());
        assert_eq!(all.iter().map(|field| field.number).collect::<HashSet<_>>().len(), Field::ALL.len());
    }

    /// To change a number, or to give it to another field, makes every stored request unrecognisable.
    #[test]
    fn numbers_and_columns_of_released_fields_never_change() {
        let released = [
            ("firstName", "first_name", 1),
            ("lastName", "last_name", 2),
            ("phoneNumber", "phone_number", 3),
            ("dateOfBirth", "date_of_birth", 4),
            ("email", "email", 5),
            ("addressLine1", "address_line1", 6),
            ("addressLine2", "address_line2", 7),
            ("suburb", "suburb", 8),
            ("state", "state", 9),
            ("postcode", "postcode", 10),
            ("country", "country", 11),
        ];
        for (name, column, number) in released {
            let field = Field::named(name).unwrap().definition();
            assert_eq!((field.column, field.number), (column, number), "{name}");
        }
    }
}
