//! Countries and states by name or code.

use crate::conversions::Conversion;
use crate::conversions::texts::trim;

const AUSTRALIA: [&str; 5] = ["au", "aus", "aust", "australia", "commonwealth of australia"];
const STATES: [(&str, &str); 8] = [
    ("ACT", "australian capital territory"),
    ("NSW", "new south wales"),
    ("NT", "northern territory"),
    ("QLD", "queensland"),
    ("SA", "south australia"),
    ("TAS", "tasmania"),
    ("VIC", "victoria"),
    ("WA", "western australia"),
];

/// The code of the country. Unclear for all but Australia, because the register takes no other.
#[must_use]
pub fn country(text: &str) -> Conversion {
    let is_australia = AUSTRALIA.contains(&plain(text).as_str());
    Conversion::read(text, is_australia.then(|| "AU".to_owned()))
}

/// The abbreviation of an Australian state or territory. Unclear for others, which the register takes as they are.
#[must_use]
pub fn state(text: &str) -> Conversion {
    let plain = plain(text);
    let found = STATES.iter().find(|(code, name)| plain == code.to_lowercase() || plain == *name);
    Conversion::read(text, found.map(|(code, _)| (*code).to_owned()))
}

/// Lower case, with single spaces and without dots.
fn plain(text: &str) -> String {
    let text = trim(text).replace('.', "").to_lowercase();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
