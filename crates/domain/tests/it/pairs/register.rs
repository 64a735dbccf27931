//! A register of 20,000 patients in which some people are there twice, and others only look as if they were.

use intake_domain::{Field, OrganisationId, PatientId, StoredPatient};
use time::macros::datetime;

use super::noise::book_again;
use super::people::{TWINS as ALIKE, Values, birthday, first_name, move_house, person};
use super::random::Random;

const PATIENTS: usize = 20_000;
const DOUBLES: usize = 500;
const TWINS: usize = 200;
const FAMILIES: usize = 300;

pub(super) type Two = (PatientId, PatientId);

pub(super) struct Register {
    pub(super) patients: Vec<StoredPatient>,
    /// Patients that are one person.
    pub(super) doubles: Vec<Two>,
    pub(super) twins: Vec<Two>,
    /// People of one last name, address and telephone.
    pub(super) families: Vec<Vec<PatientId>>,
    random: Random,
}

impl Register {
    pub(super) fn new(seed: u64) -> Self {
        let (patients, random) = (Vec::with_capacity(PATIENTS), Random::new(seed));
        let mut register = Self { patients, doubles: Vec::new(), twins: Vec::new(), families: Vec::new(), random };
        for number in 0..TWINS {
            register.add_twins(ALIKE.get(number));
        }
        for _ in 0..FAMILIES {
            register.add_family();
        }
        while register.patients.len() < PATIENTS - DOUBLES {
            let values = person(&mut register.random);
            register.add(values);
        }
        register.add_doubles();
        // The order in which patients come says nothing.
        register.patients.sort_by_key(|patient| patient.id);
        register
    }

    fn add(&mut self, values: Values) -> PatientId {
        let created_at = datetime!(2026-11-25 0:00 UTC);
        let id = PatientId::new(created_at, self.random.bytes());
        let organisation_id = OrganisationId::new(created_at, [0; 10]);
        let (updated_at, key_id) = (created_at, None);
        self.patients.push(StoredPatient { id, organisation_id, values, created_at, updated_at, key_id });
        id
    }

    /// A parent's telephone stands in both records of most twins.
    fn add_twins(&mut self, names: Option<&[&str; 2]>) {
        let mut one = person(&mut self.random);
        move_house(&mut self.random, &mut one);
        let mut other = one.clone();
        if let Some(names) = names {
            [one[Field::FirstName], other[Field::FirstName]] = names.map(|name| Some(name.to_owned()));
        }
        while other[Field::FirstName] == one[Field::FirstName] {
            other[Field::FirstName] = Some(first_name(&mut self.random));
        }
        let pair = (self.add(one), self.add(other));
        self.twins.push(pair);
    }

    fn add_family(&mut self) {
        let mut parent = person(&mut self.random);
        move_house(&mut self.random, &mut parent);
        parent[Field::DateOfBirth] = Some(birthday(&mut self.random, 1965, 25));
        let mut family = vec![self.add(parent.clone())];
        let children = 2 + self.random.below(3);
        for child in 0..children {
            let mut values = parent.clone();
            values[Field::DateOfBirth] = Some(birthday(&mut self.random, 2004 + 4 * child, 4));
            // Some children have the name of a parent.
            if child > 0 || self.random.percent(90) {
                values[Field::FirstName] = Some(first_name(&mut self.random));
            }
            family.push(self.add(values));
        }
        self.families.push(family);
    }

    /// Anyone may book twice, also a twin.
    fn add_doubles(&mut self) {
        let mut at: Vec<_> = (0..self.patients.len()).collect();
        for _ in 0..DOUBLES {
            let drawn = self.random.below(at.len());
            let (id, values) = {
                let person = &self.patients[at.swap_remove(drawn)];
                (person.id, person.values.clone())
            };
            let again = book_again(&mut self.random, &values);
            let double = self.add(again);
            self.doubles.push((id, double));
        }
    }
}
