//! A patient as sent, and what is wrong with it. Only validation leads on from here.

use std::borrow::Cow;
use std::fmt;

use garde::Validate;
use time::{Duration, OffsetDateTime};

use crate::patients::patient::NewPatient;
use crate::patients::rules::{self, Today};

/// The first place on earth to see a new day is 14 hours ahead of UTC: a newborn there is not "in the future".
const EARLIEST_TODAY: Duration = Duration::hours(14);

/// Every field as garde knows it, in the order in which faults are told. garde goes through them by the alphabet.
const RULED_FIELDS: [&str; 11] = [
    "first_name",
    "last_name",
    "phone_number",
    "date_of_birth",
    "email",
    "address_line1",
    "address_line2",
    "suburb",
    "state",
    "postcode",
    "country",
];

/// What was sent for one field.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Sent<'a> {
    /// The field was omitted, or null.
    #[default]
    Nothing,
    /// Something other than a string.
    NotText,
    /// A string, exactly as sent.
    Text(Cow<'a, str>),
}

impl<'a, T: Into<Cow<'a, str>>> From<T> for Sent<'a> {
    fn from(text: T) -> Self {
        Self::Text(text.into())
    }
}

impl fmt::Debug for Sent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "Nothing",
            Self::NotText => "NotText",
            Self::Text(_) => "Text(…)",
        })
    }
}

/// A patient as sent, before any rule was applied. [`PatientDraft::validate`] makes a [`NewPatient`] of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Validate)]
#[garde(context(Today))]
pub struct PatientDraft<'a> {
    /// `firstName`: required, 1 to 255 characters, not blank.
    #[garde(custom(rules::person_name))]
    pub first_name: Sent<'a>,
    /// `lastName`: required, 1 to 255 characters, not blank.
    #[garde(custom(rules::person_name))]
    pub last_name: Sent<'a>,
    /// `phoneNumber`: required, E.164.
    #[garde(custom(rules::phone_number))]
    pub phone_number: Sent<'a>,
    /// `dateOfBirth`: required, `YYYY-MM-DD`, from 1850-01-01 to today.
    #[garde(custom(rules::date_of_birth))]
    pub date_of_birth: Sent<'a>,
    /// `email`: an address in HTML5's syntax with a dot in the domain, at most 254 characters.
    #[garde(custom(rules::email))]
    pub email: Sent<'a>,
    /// `addressLine1`: at most 255 characters.
    #[garde(custom(rules::at_most(255)))]
    pub address_line1: Sent<'a>,
    /// `addressLine2`: at most 255 characters.
    #[garde(custom(rules::at_most(255)))]
    pub address_line2: Sent<'a>,
    /// `suburb`: at most 100 characters.
    #[garde(custom(rules::at_most(100)))]
    pub suburb: Sent<'a>,
    /// `state`: at most 50 characters.
    #[garde(custom(rules::at_most(50)))]
    pub state: Sent<'a>,
    /// `postcode`: at most 20 characters.
    #[garde(custom(rules::at_most(20)))]
    pub postcode: Sent<'a>,
    /// `country`: `AU`.
    #[garde(custom(rules::country))]
    pub country: Sent<'a>,
}

impl<'a> PatientDraft<'a> {
    /// The fields' names on the wire, in the order in which faults are told.
    pub const FIELDS: [&'static str; 11] = [
        "firstName",
        "lastName",
        "phoneNumber",
        "dateOfBirth",
        "email",
        "addressLine1",
        "addressLine2",
        "suburb",
        "state",
        "postcode",
        "country",
    ];

    /// The field of that name on the wire, to be filled in; none for a name that is no field.
    pub fn field_mut(&mut self, wire_name: &str) -> Option<&mut Sent<'a>> {
        Some(match wire_name {
            "firstName" => &mut self.first_name,
            "lastName" => &mut self.last_name,
            "phoneNumber" => &mut self.phone_number,
            "dateOfBirth" => &mut self.date_of_birth,
            "email" => &mut self.email,
            "addressLine1" => &mut self.address_line1,
            "addressLine2" => &mut self.address_line2,
            "suburb" => &mut self.suburb,
            "state" => &mut self.state,
            "postcode" => &mut self.postcode,
            "country" => &mut self.country,
            _ => return None,
        })
    }

    /// Applies every rule: the valid patient, or everything wrong, one fault for each broken field in the order of the
    /// fields.
    pub fn validate(self, now: OffsetDateTime) -> Result<NewPatient, Vec<FieldFault>> {
        let today = Today((now.to_offset(time::UtcOffset::UTC) + EARLIEST_TODAY).date());
        if let Err(report) = self.validate_with(&today) {
            return Err(faults_in_order(&report));
        }
        let incomplete = || vec![FieldFault::whole("is incomplete")];
        let date_of_birth = text(&self.date_of_birth).and_then(rules::parse_date).ok_or_else(incomplete)?;
        let texts = [
            &self.first_name,
            &self.last_name,
            &self.phone_number,
            &self.email,
            &self.address_line1,
            &self.address_line2,
            &self.suburb,
            &self.state,
            &self.postcode,
            &self.country,
        ];
        Ok(NewPatient::new(date_of_birth, texts.map(text)))
    }
}

/// One thing wrong with what was sent. Names the field and the rule, never the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldFault {
    /// The field's name on the wire; none when the whole is wrong.
    pub field: Option<&'static str>,
    /// For people to read.
    pub message: Cow<'static, str>,
}

impl FieldFault {
    /// A fault of one field.
    pub fn of(field: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self { field: Some(field), message: message.into() }
    }

    /// A fault of the whole.
    pub fn whole(message: impl Into<Cow<'static, str>>) -> Self {
        Self { field: None, message: message.into() }
    }
}

fn text<'a>(sent: &'a Sent<'_>) -> Option<&'a str> {
    match sent {
        Sent::Text(text) => Some(text),
        Sent::Nothing | Sent::NotText => None,
    }
}

fn faults_in_order(report: &garde::Report) -> Vec<FieldFault> {
    let broken: Vec<_> = report.iter().map(|(path, error)| (path.to_string(), error)).collect();
    let fault_of = |(ruled, wire_name): (&str, &'static str)| {
        let (_, error) = broken.iter().find(|(path, _)| path == ruled)?;
        Some(FieldFault::of(wire_name, error.message().to_owned()))
    };
    RULED_FIELDS.into_iter().zip(PatientDraft::FIELDS).filter_map(fault_of).collect()
}
