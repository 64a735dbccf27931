//! Names that no field has, and what was probably meant by them.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use crate::patients::field::Field;
#[cfg(feature = "json")]
use crate::patients::json_error::shown;

/// Only the first 32 characters of a name are compared.
const NAME_COMPARED_MAX: usize = 32;

/// Names that booking software and spreadsheets give to the fields, in small letters without anything between them.
const SYNONYMS: [(Field, &[&str]); 11] = [
    (Field::FirstName, &["given", "givenname", "givennames", "forename", "fname", "first", "christianname"]),
    (Field::LastName, &["surname", "familyname", "family", "lname", "last"]),
    (
        Field::PhoneNumber,
        &[
            "phone",
            "phoneno",
            "phonemobile",
            "phonehome",
            "mobile",
            "mobileno",
            "mobilenumber",
            "mobilephone",
            "mobilephonenumber",
            "telephone",
            "telephonenumber",
            "tel",
            "cell",
            "cellphone",
            "contactnumber",
            "contactphone",
            "homephone",
            "landline",
        ],
    ),
    (Field::DateOfBirth, &["dob", "birthdate", "birthday", "born", "dateborn"]),
    (Field::Email, &["emailaddress", "mail", "contactemail"]),
    (
        Field::AddressLine1,
        &["address", "address1", "addressline", "homeaddress", "line1", "street", "street1", "streetaddress"],
    ),
    (Field::AddressLine2, &["address2", "line2", "street2"]),
    (Field::Suburb, &["city", "town", "locality", "suburbtown", "suburbcity", "citysuburb"]),
    (Field::State, &["province", "region", "territory", "stateprovince", "stateterritory"]),
    (Field::Postcode, &["pcode", "postalcode", "zip", "zipcode"]),
    (Field::Country, &["countrycode", "countryname", "nation"]),
];

/// Names of both names together.
const BOTH_NAMES: [&str; 5] = ["name", "fullname", "patientname", "clientname", "wholename"];

/// A name that no field has.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownField {
    /// The name as written.
    pub name: String,
    /// The field that was probably meant, if there is one.
    pub meant: Option<Field>,
    /// The fields that an object of this name holds.
    pub held: Vec<Field>,
}

impl Field {
    /// The field with the letters of this name, or one that other software calls so.
    #[must_use]
    pub fn known_as(name: &str) -> Option<Self> {
        let written = letters(name);
        let is_so = |(field, synonyms): &&(Self, &[&str])| {
            synonyms.contains(&written.as_str()) || letters(field.name()) == written
        };
        SYNONYMS.iter().find(is_so).map(|(field, _)| *field)
    }

    /// The field that was probably meant by this name: the one [known](Self::known_as) by it, or one with at most two
    /// letters of it wrong.
    #[must_use]
    pub fn resembling(name: &str) -> Option<Self> {
        if let Some(field) = Self::known_as(name) {
            return Some(field);
        }
        let written = letters(name);
        let distances = Self::ALL.iter().map(|&field| (strsim::osa_distance(&letters(field.name()), &written), field));
        let (distance, nearest) = distances.min()?;
        // Of a short name two letters are too much.
        (distance <= 2 && distance * 3 <= written.len()).then_some(nearest)
    }
}

impl FromStr for Field {
    type Err = UnknownField;

    /// The same as [`Field::named`], with an error that says what was probably meant.
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::named(name).ok_or_else(|| UnknownField::new(name))
    }
}

impl UnknownField {
    /// Returns what is to be said of that name.
    pub fn new(name: impl Into<String>) -> Self {
        Self::holding(name, Vec::new())
    }

    /// Returns what is to be said of an object of that name, which holds these fields.
    pub fn holding(name: impl Into<String>, held: Vec<Field>) -> Self {
        let name = name.into();
        let meant = Field::resembling(&name);
        Self { name, meant, held }
    }

    /// Returns what the API answers about the name; within version 1 it does not change.
    #[must_use]
    pub fn message(&self) -> Cow<'static, str> {
        match self.meant {
            _ if !self.held.is_empty() => "is not a field of a patient: send the fields in it without it".into(),
            None if self.is_of_both_names() => {
                "is not a field of a patient: split it into firstName and lastName".into()
            }
            Some(field) => format!("is not a field of a patient: did you mean {}?", field.name()).into(),
            None => "is not a field of a patient".into(),
        }
    }

    /// Returns what the API answers about a required field that is missing, if it was sent under this name, or in the
    /// object of this name; within version 1 it does not change.
    #[cfg(feature = "json")]
    #[must_use]
    pub fn message_of_missing(&self, field: Field) -> Option<String> {
        let name = shown(&self.name);
        if self.held.contains(&field) {
            return Some(format!("is required: take it out of {name}"));
        }
        if self.is_of_both_names() && matches!(field, Field::FirstName | Field::LastName) {
            return Some(format!("is required: split {name} into firstName and lastName"));
        }
        (self.meant == Some(field)).then(|| format!("is required: send {name} under this name"))
    }

    fn is_of_both_names(&self) -> bool {
        BOTH_NAMES.contains(&letters(&self.name).as_str())
    }
}

impl fmt::Display for UnknownField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.name, self.message())
    }
}

impl std::error::Error for UnknownField {}

fn letters(name: &str) -> String {
    let letters = name.chars().filter(char::is_ascii_alphanumeric).take(NAME_COMPARED_MAX);
    letters.map(|letter| letter.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_booking_software_and_slips_are_recognised() {
        let meant = [
            (Field::FirstName, "first_name given_name givenName FirstName forename first-name"),
            (Field::LastName, "last_name surname familyName family_name Surname"),
            (Field::PhoneNumber, "phone mobile mobilePhone phone_number phoneNumbr Mobile_Number tel"),
            (Field::DateOfBirth, "dob birthDate birthdate date_of_birth DateOfBrith birth_date DOB"),
            (Field::Email, "emial Email emailAddress email_address e-mail"),
            (Field::AddressLine1, "address address1 address_line_1 street streetAddress"),
            (Field::AddressLine2, "addressline2 address2"),
            (Field::Suburb, "city town"),
            (Field::State, "province region"),
            (Field::Postcode, "zip postalCode postCode zip_code"),
            (Field::Country, "countryCode Country"),
        ];
        for (field, names) in meant {
            for name in names.split(' ') {
                assert_eq!(Field::resembling(name), Some(field), "{name}");
            }
        }
        for other in ["", "id", "x", "middleName", "title", "gender", "notes", "é", &"é".repeat(100)] {
            assert_eq!(Field::resembling(other), None, "{other}");
        }
    }

    #[test]
    fn each_synonym_is_written_as_it_is_compared_and_belongs_to_one_field() {
        let all: Vec<_> = SYNONYMS.iter().flat_map(|(_, synonyms)| synonyms.iter()).collect();
        let different: std::collections::HashSet<_> = all.iter().collect();
        assert_eq!(different.len(), all.len());
        assert!(all.iter().all(|synonym| letters(synonym) == **synonym), "{all:?}");
        assert!(SYNONYMS.iter().map(|(field, _)| *field).eq(Field::ALL.iter().copied()));
    }

    #[cfg(feature = "json")]
    #[test]
    fn a_missing_field_is_recognised_under_another_name_and_within_an_object() {
        let phone = UnknownField::new("phone");
        let expected = "is required: send \"phone\" under this name";
        assert_eq!(phone.message_of_missing(Field::PhoneNumber).as_deref(), Some(expected));
        assert_eq!(phone.message_of_missing(Field::LastName), None);
        let name = UnknownField::new("full_name");
        let expected = "is required: split \"full_name\" into firstName and lastName";
        assert_eq!(name.message_of_missing(Field::FirstName).as_deref(), Some(expected));
        assert_eq!(name.message_of_missing(Field::LastName).as_deref(), Some(expected));
        assert_eq!(name.message_of_missing(Field::PhoneNumber), None);
        assert_eq!(name.message(), "is not a field of a patient: split it into firstName and lastName");
        let patient = UnknownField::holding("patient", vec![Field::LastName]);
        let expected = "is required: take it out of \"patient\"";
        assert_eq!(patient.message_of_missing(Field::LastName).as_deref(), Some(expected));
        assert_eq!(patient.message(), "is not a field of a patient: send the fields in it without it");
    }
}
