//! Which field people mean by a header, to propose mappings. Nothing is imported by it.

use intake_domain::Field;

use crate::arguments::{Held, Mapping, NAMES, OTHER_PHONE, STREET_NUMBER};

/// Columns that the service adds to a patient and `intake export` writes beside the fields. No column of that name is
/// imported.
pub(crate) const OF_THE_REGISTER: [&str; 5] = ["id", "organisationId", "isIdentified", "createdAt", "updatedAt"];

/// Headers of columns that hold both names, in lower case and without anything but letters and digits.
const BOTH_NAMES: [&str; 8] =
    ["name", "fullname", "patient", "patientname", "client", "clientname", "customer", "customername"];

/// Headers of columns that hold another phone number, written likewise.
const OTHER_PHONES: [&str; 6] =
    ["workphone", "worknumber", "businessphone", "otherphone", "homeworkphone", "homeorworkphone"];

/// Headers of columns that hold the part of an address that is written before the street, or below it.
const UNITS: [&str; 6] = ["unit", "unitnumber", "flat", "flatnumber", "apartment", "apt"];

/// Headers of columns that hold the number of a street, and its name without the number, written likewise.
const STREET_NUMBERS: [&str; 3] = ["streetnumber", "housenumber", "stnumber"];
const STREET_NAME: &str = "streetname";

/// A mapping for each header that is no field. A column whose field an earlier one holds is left out, and so is one
/// that nobody can name.
pub(crate) fn suggested(headers: &[&str], given: &[Mapping]) -> Vec<Mapping> {
    let given_for = |header: &str| given.iter().find(|mapping| mapping.header == header);
    let known = |header: &str| given_for(header).map(|mapping| mapping.held).or(Field::named(header).map(Held::Field));
    let mut taken: Vec<Held> = headers.iter().filter_map(|header| known(header)).collect();
    let is_one_name = |held: Held| [Field::FirstName, Field::LastName].map(Held::Field).contains(&held);
    let has_one_name = headers.iter().filter_map(|header| known(header).or(meant(header))).any(is_one_name);
    let is_line_2 = |header: &&&str| meant(header) == Some(Held::Field(Field::AddressLine2)) && !is_unit(header);
    let has_line_2 = headers.iter().any(|header| is_line_2(&header));
    let mut suggested: Vec<Mapping> = Vec::new();
    for header in headers.iter().filter(|header| known(header).is_none() && !OF_THE_REGISTER.contains(header)) {
        let is_free = |held: &Held| {
            let is_free = |field| !held.holds(field) || !taken.iter().any(|held| held.holds(field));
            Field::ALL.iter().copied().all(is_free) && (*held != Held::StreetNumber || !taken.contains(held))
        };
        let meant = meant(header).filter(|held| *held != Held::Names || !has_one_name);
        let held = meant.filter(is_free).unwrap_or(Held::Nothing);
        let held = if is_unit(header) && has_line_2 { Held::Nothing } else { held };
        taken.push(held);
        if !suggested.iter().any(|mapping| mapping.header == **header) {
            suggested.push(Mapping { header: (*header).to_owned(), held });
        }
    }
    suggested
}

/// Words that say nothing of a column's content.
const FILLERS: [&str; 19] = [
    "what",
    "whats",
    "is",
    "the",
    "please",
    "enter",
    "your",
    "patient",
    "patients",
    "client",
    "clients",
    "customer",
    "best",
    "preferred",
    "main",
    "primary",
    "of",
    "residence",
    "residential",
];
/// Words that are cut short.
const SHORT: [(&str, &str); 7] = [
    ("no", "number"),
    ("num", "number"),
    ("addr", "address"),
    ("terr", "territory"),
    ("pc", "postcode"),
    ("ph", "phone"),
    ("mob", "mobile"),
];

/// The content of a column with this header, as people name it: whole, without words that say nothing, or in parts
/// that do not say different things, such as "Suburb / Town".
pub(crate) fn meant(header: &str) -> Option<Held> {
    // Such as "Date of birth (dd/mm/yyyy)".
    let header = header.split(['(', '[']).next().unwrap_or_default();
    let whole = || named(header).or_else(|| named(&telling(header)));
    let parts = || {
        let mut parts = header.split('/').filter_map(|part| named(part).or_else(|| named(&telling(part))));
        let first = parts.next()?;
        parts.all(|other| other == first).then_some(first)
    };
    let unit = || is_unit(header).then_some(Held::Field(Field::AddressLine2));
    whole().or_else(parts).or_else(unit)
}

fn is_unit(header: &str) -> bool {
    UNITS.contains(&telling(header).as_str())
}

/// Number of fields that a row would name as a header.
pub(crate) fn fields_named(cells: &[String]) -> usize {
    let held: Vec<_> = cells.iter().filter_map(|cell| meant(cell)).collect();
    Field::ALL.iter().filter(|field| held.iter().any(|held| held.holds(**field))).count()
}

fn named(header: &str) -> Option<Held> {
    let letters = header.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase());
    let plain = letters.collect::<String>();
    let is_one_of = |names: &[&str]| names.contains(&plain.as_str());
    let phone = is_one_of(&OTHER_PHONES).then_some(Held::Field(Field::PhoneNumber));
    let street = (plain == STREET_NAME).then_some(Held::Field(Field::AddressLine1));
    let number = is_one_of(&STREET_NUMBERS).then_some(Held::StreetNumber);
    let field = Field::known_as(header).map(Held::Field).or(phone).or(street).or(number);
    field.or_else(|| is_one_of(&BOTH_NAMES).then_some(Held::Names))
}

/// The words of a header that say something.
fn telling(header: &str) -> String {
    let plain = header.to_lowercase().replace(['\'', '’'], "");
    let words = plain.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !FILLERS.contains(word));
    let whole = |word| SHORT.iter().find(|(short, _)| *short == word).map_or(word, |(_, whole)| *whole);
    words.map(whole).collect::<String>().replace("datebirth", "birthdate")
}

/// Names the columns whose values are not imported.
pub(crate) fn left_out(mappings: &[Mapping]) -> Option<String> {
    let left_out = mappings.iter().filter(|mapping| mapping.held == Held::Nothing && !mapping.header.is_empty());
    let names: Vec<_> = left_out.map(|mapping| format!("{:?}", mapping.header)).collect();
    (!names.is_empty()).then(|| format!("columns left out: {}", names.join(", ")))
}

/// The mappings as options, quoted for a shell.
pub(crate) fn options(mappings: &[Mapping]) -> String {
    let options = mappings.iter().map(|Mapping { header, held }| {
        let name = match held {
            Held::Nothing => "",
            Held::Field(field) => field.name(),
            Held::OtherPhone => OTHER_PHONE,
            Held::StreetNumber => STREET_NUMBER,
            Held::Names => NAMES,
        };
        format!("--map {}", quoted(&format!("{header}={name}")))
    });
    options.collect::<Vec<_>>().join(" ")
}

/// The text as a shell takes it for one word.
pub(crate) fn quoted(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-+=./,:@%".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_say_nothing_are_left_out_and_parts_must_agree() {
        let field = |field| Some(Held::Field(field));
        for (header, expected) in [
            ("Contact no.", field(Field::PhoneNumber)),
            ("Best contact number", field(Field::PhoneNumber)),
            ("Mobile / Home phone", field(Field::PhoneNumber)),
            ("Your email", field(Field::Email)),
            ("Email addr", field(Field::Email)),
            ("State/Terr.", field(Field::State)),
            ("Street / Unit", field(Field::AddressLine1)),
            ("Country of residence", field(Field::Country)),
            ("Client's surname", field(Field::LastName)),
            ("Patient's name", Some(Held::Names)),
            ("Client date of birth", field(Field::DateOfBirth)),
            ("What is your first name?", field(Field::FirstName)),
            ("What's your surname?", field(Field::LastName)),
            ("Please enter the patient's mobile number:", field(Field::PhoneNumber)),
            ("PC", field(Field::Postcode)),
            ("Street No.", Some(Held::StreetNumber)),
            ("Street name", field(Field::AddressLine1)),
            ("No.", None),
            ("What is the reason?", None),
            ("Suburb/State", None),
            ("First/last name", None),
            ("Name / Phone", None),
            ("Patient no.", None),
            ("Emergency contact phone", None),
            ("Mother's name", None),
            ("Your", None),
        ] {
            assert_eq!(meant(header), expected, "{header}");
        }
    }

    #[test]
    fn headers_are_read_as_people_write_them_and_each_field_has_one_column() {
        let headers = [
            "Given name",
            "SURNAME",
            "Mobile",
            "Home phone",
            "D.O.B.",
            "E-mail",
            "Street",
            "Address line 2",
            "State",
            "Status",
            "phoneNumber",
            "It's",
            "",
        ];
        assert_eq!(
            options(&suggested(&headers[..10], &[])),
            "--map 'Given name=firstName' --map SURNAME=lastName --map Mobile=phoneNumber --map 'Home phone=' \
             --map D.O.B.=dateOfBirth --map E-mail=email --map Street=addressLine1 --map 'Address line 2=addressLine2' \
             --map State=state --map Status="
        );
        assert_eq!(options(&suggested(&headers[10..], &[])), r"--map 'It'\''s=' --map =");
        assert_eq!(options(&suggested(&["Mobile", "phoneNumber"], &[])), "--map Mobile=");
        assert_eq!(
            options(&suggested(&["Name", "Date of birth (dd/mm/yyyy)"], &[])),
            "--map Name=firstName+lastName --map 'Date of birth (dd/mm/yyyy)=dateOfBirth'"
        );
        let given = [Mapping { header: "Born".to_owned(), held: Held::Nothing }];
        assert_eq!(options(&suggested(&["Born", "Name"], &given)), "--map Name=firstName+lastName");
        let separate = ["Client", "Given name", "Surname"];
        let expected = "--map Client= --map 'Given name=firstName' --map Surname=lastName";
        assert_eq!(options(&suggested(&separate, &[])), expected);
    }
}
