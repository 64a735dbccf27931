//! Ways in which a person who books a second time is written differently.

use intake_domain::Field;

use super::people::{LAST, NICKNAMES, Values, email, last_name, move_house, phone_number};
use super::random::Random;

type Noise = fn(&mut Random, &mut Values);

/// Each leaves the person recognisable to a receptionist who sees both records.
const NOISES: [Noise; 10] = [
    mistype_first_name,
    mistype_last_name,
    drop_accents_and_punctuation,
    use_nickname,
    move_house,
    change_phone_number,
    write_phone_number_otherwise,
    marry,
    swap_names,
    mistake_birthday,
];

/// Books again as the person of these values.
pub(super) fn book_again(random: &mut Random, person: &Values) -> Values {
    let mut values = person.clone();
    let first = random.below(NOISES.len());
    NOISES[first](random, &mut values);
    // A new last name is recognised by the telephone and the birthday, so that nothing else may change.
    let married = NOISES.iter().position(|&noise| std::ptr::fn_addr_eq(noise, marry as Noise)).unwrap();
    if first != married && random.percent(40) {
        let others: Vec<_> = (0..NOISES.len()).filter(|&other| other != first && other != married).collect();
        NOISES[others[random.below(others.len())]](random, &mut values);
    }
    write_carelessly(random, &mut values);
    if values == *person {
        values[Field::Email] = Some(email(random, &values));
    }
    values
}

/// The small differences that every second booking has.
fn write_carelessly(random: &mut Random, values: &mut Values) {
    if random.percent(15) {
        let field = if random.percent(50) { Field::FirstName } else { Field::LastName };
        change(values, field, str::to_uppercase);
    }
    if random.percent(30) {
        let shorter = random.pick(&["St", "st", "St."]);
        change(values, Field::AddressLine1, |line| line.replace("Street", shorter).replace("Avenue", "Ave"));
        change(values, Field::AddressLine1, |line| line.replace("Road", "Rd").replace("Unit ", "U").replace(", ", "/"));
    }
    if random.percent(20) {
        values[Field::Email] = None;
    }
    if random.percent(15) {
        for field in [Field::AddressLine1, Field::Suburb, Field::State, Field::Postcode, Field::Country] {
            values[field] = None;
        }
    }
    if random.percent(10) {
        change(values, Field::LastName, |name| format!(" {name}"));
    }
}

fn mistype_first_name(random: &mut Random, values: &mut Values) {
    change(values, Field::FirstName, |name| mistyped(random, name));
}

fn mistype_last_name(random: &mut Random, values: &mut Values) {
    change(values, Field::LastName, |name| mistyped(random, name));
}

fn drop_accents_and_punctuation(_: &mut Random, values: &mut Values) {
    for field in [Field::FirstName, Field::LastName] {
        change(values, field, |name| {
            let plain = name.chars().map(|letter| match letter {
                'á' => 'a',
                'é' | 'ë' => 'e',
                'í' => 'i',
                'ó' | 'ö' | 'ø' => 'o',
                'ú' | 'ü' => 'u',
                'Ó' => 'O',
                'ñ' => 'n',
                'č' | 'ć' | 'ç' => 'c',
                'ř' => 'r',
                '-' | '’' | '\'' => ' ',
                other => other,
            });
            plain.collect::<String>().replace("O ", "O").replace("ß", "ss")
        });
    }
}

fn use_nickname(random: &mut Random, values: &mut Values) {
    let name = values[Field::FirstName].clone().unwrap();
    let nicknames: Vec<_> = NICKNAMES.iter().filter(|(full, _)| *full == name).map(|(_, short)| *short).collect();
    if !nicknames.is_empty() {
        values[Field::FirstName] = Some(random.pick(&nicknames).to_owned());
    }
}

fn change_phone_number(random: &mut Random, values: &mut Values) {
    values[Field::PhoneNumber] = Some(phone_number(random));
}

/// The commonest wrong conversion of 0412 345 678.
fn write_phone_number_otherwise(_: &mut Random, values: &mut Values) {
    change(values, Field::PhoneNumber, |number| number.replacen("+61", "+610", 1));
}

fn marry(random: &mut Random, values: &mut Values) {
    if random.percent(70) {
        values[Field::LastName] = Some(last_name(random));
    } else {
        change(values, Field::LastName, |name| format!("{name}-{}", random.pick(&LAST)));
    }
}

fn swap_names(_: &mut Random, values: &mut Values) {
    let first = values[Field::FirstName].take();
    values[Field::FirstName] = values[Field::LastName].take();
    values[Field::LastName] = first;
}

fn mistake_birthday(random: &mut Random, values: &mut Values) {
    let date = values[Field::DateOfBirth].clone().unwrap();
    let (year, month, day) = (&date[..4], &date[5..7], &date[8..]);
    let is_ambiguous = day <= "12" && day != month;
    values[Field::DateOfBirth] = Some(if is_ambiguous && random.percent(50) {
        format!("{year}-{day}-{month}")
    } else if random.percent(50) {
        format!("{}{}-{month}-{day}", &year[..3], random.below(10))
    } else {
        format!("{year}-{month}-{}{}", random.below(2), 1 + random.below(9))
    });
}

fn change(values: &mut Values, field: Field, written: impl FnOnce(&str) -> String) {
    if let Some(text) = &values[field] {
        values[field] = Some(written(text));
    }
}

/// A letter is missing, doubled, wrong or in the wrong place, but never the first one.
fn mistyped(random: &mut Random, name: &str) -> String {
    let mut letters: Vec<_> = name.chars().collect();
    if letters.len() < 3 {
        return name.to_owned();
    }
    let at = 1 + random.below(letters.len() - 1);
    match random.below(4) {
        0 => drop(letters.remove(at)),
        1 => letters.insert(at, letters[at]),
        2 => letters[at] = char::from(b'a' + u8::try_from(random.below(26)).unwrap()),
        _ if at > 1 => letters.swap(at - 1, at),
        _ => letters.swap(1, 2),
    }
    letters.into_iter().collect()
}
