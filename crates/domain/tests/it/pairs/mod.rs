//! Pairs of patients that may be one person, judged on a synthetic register in which the answer is known.

mod examples;
mod newcomers;
mod noise;
mod people;
mod random;
mod register;

use std::collections::HashSet;

use intake_domain::{Field, FoldedPatient, PairRank, search_pairs};

use register::{Register, Two};

/// The seed on which the comparison was tuned. It is judged on others.
const TUNED: u64 = 1;
const JUDGED: [u64; 3] = [20, 21, 22];

#[test]
fn the_synthetic_register_has_its_doubles_twins_and_families() {
    let register = Register::new(TUNED);
    let counts = [register.doubles.len(), register.twins.len(), register.families.len(), register.patients.len()];
    assert_eq!(counts, [500, 200, 300, 20_000]);
    let ids: HashSet<_> = register.patients.iter().map(|patient| patient.id).collect();
    assert_eq!(ids.len(), 20_000);
    let of = |id| &register.patients.iter().find(|patient| patient.id == id).unwrap().values;
    for &(one, other) in &register.doubles {
        assert!(of(one) != of(other));
    }
    for &(one, other) in &register.twins {
        let same = [Field::LastName, Field::DateOfBirth, Field::AddressLine1, Field::PhoneNumber];
        assert!(same.iter().all(|&field| of(one)[field] == of(other)[field]));
        assert!(of(one)[Field::FirstName] != of(other)[Field::FirstName]);
    }
    for family in &register.families {
        let phones: HashSet<_> = family.iter().map(|&id| &of(id)[Field::PhoneNumber]).collect();
        assert!(family.len() >= 3 && phones.len() == 1);
    }
    assert!(Register::new(TUNED).patients == register.patients);
    assert!(Register::new(2).patients != register.patients);
}

#[test]
fn nearly_all_doubles_and_hardly_any_others_are_above_the_line() {
    for seed in JUDGED {
        let register = Register::new(seed);
        let folded: Vec<_> = register.patients.iter().map(FoldedPatient::new).collect();
        let search = search_pairs(&folded);
        assert_eq!(search.skipped_groups.len(), 0);
        let ranked = |rank| search.pairs.iter().filter(move |pair| pair.rank == rank).map(|pair| pair.ids);
        let high: HashSet<_> = ranked(PairRank::High).collect();
        let sorted = |two: &Two| if two.0 < two.1 { [two.0, two.1] } else { [two.1, two.0] };
        let found = register.doubles.iter().filter(|two| high.contains(&sorted(two))).count();
        let is_high = |two: &&Two| high.contains(&sorted(two));
        let twins = register.twins.iter().filter(is_high).count();
        let is_family = |family: &Vec<_>| {
            family.iter().enumerate().any(|(at, &one)| family[at + 1..].iter().any(|&other| is_high(&&(one, other))))
        };
        let families = register.families.iter().filter(|family| is_family(family)).count();
        let figures =
            format!("seed {seed}: {found} of 500 doubles, {} high, {twins} twins, {families} families", high.len());
        println!("{figures}");
        assert!(found >= 490 && found * 100 >= high.len() * 90, "{figures}");
        assert!(twins == 0 && families == 0, "{figures}");
        let low: HashSet<_> = ranked(PairRank::Low).collect();
        assert!(register.twins.iter().all(|two| low.contains(&sorted(two))), "{figures}");
    }
}
