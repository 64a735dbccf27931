//! What others guess first as a person's password: common passwords, and what they know about the person.

use zeroize::Zeroizing;

/// Common passwords of at least four characters, in lower case. Their licence is beside the file.
const COMMON: &str = include_str!("common_passwords.txt");

/// Words of the pages of the service.
const SERVICE: [&str; 8] = ["intake", "clinic", "hospital", "nurse", "patient", "patients", "reception", "register"];

/// A shorter name is part of too many other words.
const MIN_KNOWN: usize = 4;

/// Reason why others guess a password first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EasyToGuess {
    /// Among the first passwords that an attacker tries.
    #[error("is too easy to guess: choose a less common one")]
    Common,
    /// It holds the address of its owner.
    #[error("contains your email address: choose one without it")]
    Address,
    /// It holds the name of its owner.
    #[error("contains your name: choose one without it")]
    Name,
    /// It holds the name of the owner's organisation.
    #[error("contains the name of your organisation: choose one without it")]
    Organisation,
}

/// Facts that others know about the person who chooses a password.
#[derive(Clone, Copy, Debug, Default)]
pub struct PasswordOwner<'a> {
    /// The address that the person signs in with.
    pub email: &'a str,
    /// The person's name.
    pub name: &'a str,
    /// The names of the person's organisations.
    pub organisations: &'a [String],
}

impl PasswordOwner<'_> {
    /// Returns what of the owner is in the password, if anything is, however it is written.
    pub(crate) fn fault_of(&self, password: &str) -> Option<EasyToGuess> {
        let folded = only(password, char::is_alphanumeric);
        let has = |known: &str| {
            let known = only(known, char::is_alphanumeric);
            known.chars().count() >= MIN_KNOWN && folded.contains(&*known)
        };
        let local = self.email.split('@').next().unwrap_or_default();
        if has(local) || has(self.email) {
            return Some(EasyToGuess::Address);
        }
        if has(self.name) {
            return Some(EasyToGuess::Name);
        }
        if self.organisations.iter().any(|name| has(name)) {
            return Some(EasyToGuess::Organisation);
        }
        self.says_nothing_else(&folded).then_some(EasyToGuess::Common)
    }

    /// Returns whether only digits are left without the words that others know: `lovelace1815`, `intakeclinic1`.
    fn says_nothing_else(&self, folded: &str) -> bool {
        let known = [self.email, self.name].into_iter().chain(self.organisations.iter().map(String::as_str));
        let words = known.flat_map(|known| known.split(|c: char| !c.is_alphanumeric())).map(str::to_lowercase);
        let mut words: Vec<String> = words.chain(SERVICE.map(str::to_owned)).collect();
        words.retain(|word| word.chars().nth(2).is_some());
        // `patients` is not `patient` and an `s`.
        words.sort_by_key(|word| std::cmp::Reverse(word.len()));
        let mut rest = Zeroizing::new(folded.to_owned());
        for word in words {
            rest = Zeroizing::new(rest.replace(&word, ""));
        }
        rest.len() < folded.len() && !rest.contains(char::is_alphabetic)
    }
}

/// Returns whether the password is common, repeats itself, or is a common one between digits and punctuation:
/// `Summer2026!!`.
pub(crate) fn is_common(password: &str) -> bool {
    let password = Zeroizing::new(password.to_lowercase());
    if repeats_itself(&password) {
        return true;
    }
    let unpadded = |text: &str| Zeroizing::new(text.trim_matches(|c: char| !c.is_alphabetic()).to_owned());
    let (letters, folded) = (only(&password, char::is_alphabetic), only(&password, char::is_alphanumeric));
    let plain = Zeroizing::new(unpadded(&password).chars().map(letter_for).collect::<String>());
    let forms = [unpadded(&password), unpadded(&folded), letters, folded, password, plain];
    let forms = forms.map(|form| Zeroizing::new(repeated_part(&form).to_owned()));
    COMMON.lines().any(|common| forms.iter().any(|form| form.as_str() == common))
}

/// The characters of the text that belong, in lower case.
fn only(text: &str, belongs: impl Fn(char) -> bool) -> Zeroizing<String> {
    Zeroizing::new(text.chars().filter(|c| belongs(*c)).flat_map(char::to_lowercase).collect())
}

/// The letter that people replace by this character: `p@ssw0rd`.
fn letter_for(character: char) -> char {
    match character {
        '@' | '4' => 'a',
        '3' => 'e',
        '1' | '!' => 'i',
        '0' => 'o',
        '$' | '5' => 's',
        other => other,
    }
}

/// The word of which the text is several copies; else the text.
fn repeated_part(text: &str) -> &str {
    let copies = (2..=text.len()).rev().filter(|copies| text.len().is_multiple_of(*copies));
    let mut parts = copies.filter_map(|copies| Some((text.get(..text.len() / copies)?, copies)));
    parts.find(|(part, copies)| part.repeat(*copies) == text).map_or(text, |(part, _)| part)
}

/// One short text over and over: `passwordpassword`, `abcabcabcabc`.
fn repeats_itself(text: &str) -> bool {
    let characters: Vec<char> = text.chars().collect();
    let has_period = |period: usize| characters.iter().zip(characters.iter().skip(period)).all(|(a, b)| a == b);
    (1..=characters.len() / 2).any(has_period)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADA: PasswordOwner<'static> =
        PasswordOwner { email: "grace.h@harbour.example", name: "Ada Lovelace", organisations: &[] };

    #[test]
    fn a_common_word_is_not_made_a_password_by_what_surrounds_it() {
        for common in [
            "summer2026!!",
            "letmein12345",
            "2026-spring!",
            "p@ssw0rd2026",
            "passw0rd1234",
            "let me in 12345",
            "welcome.welcome1",
            "welcome 2026 welcome",
            "!1234567890!",
            "momsanaladventure1",
        ] {
            assert!(is_common(common), "{common}");
        }
        for fine in [
            "a long horse",
            "four herons at the jetty",
            "blue42heron99",
            "correct horse battery staple",
            "839201748261",
            "größer als 12!",
            "summer herons 1",
            "x9!vB2#qL7$z",
        ] {
            assert!(!is_common(fine), "{fine}");
        }
    }

    #[test]
    fn a_password_does_not_hold_what_others_know_about_its_owner() {
        let organisations = ["Harbour Clinic".to_owned(), "GP".to_owned()];
        let owner = PasswordOwner { organisations: &organisations, ..ADA };
        for (password, fault) in [
            ("Grace.H@Harbour.example", Some(EasyToGuess::Address)),
            ("my gra-ceh is here", Some(EasyToGuess::Address)),
            ("xx ADA lovelace xx", Some(EasyToGuess::Name)),
            ("harbourclinic", Some(EasyToGuess::Organisation)),
            ("the HarbourClinic herons", Some(EasyToGuess::Organisation)),
            ("Lovelace1815!!", Some(EasyToGuess::Common)),
            ("intakeintake1", Some(EasyToGuess::Common)),
            ("harbour-patients-2026", Some(EasyToGuess::Common)),
            ("a harbour of herons", None),
            ("gp gp gp herons", None),
            ("839201748261", None),
        ] {
            assert_eq!(owner.fault_of(password), fault, "{password}");
        }
        let short = PasswordOwner { email: "al@b.example", name: "Al", organisations: &[] };
        assert_eq!(short.fault_of("already alpine"), None);
        assert_eq!(short.fault_of("AL@B.example..."), Some(EasyToGuess::Address));
    }

    #[test]
    fn the_list_is_sorted_and_large() {
        assert!(COMMON.lines().is_sorted() && COMMON.lines().count() > 10_000);
        assert!(COMMON.lines().filter(|common| common.len() >= 12).count() == 10_000);
    }
}
