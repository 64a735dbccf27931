//! Quality of patients: doubts about values that keep every rule, and how many patients of a key have each.

pub(crate) mod doubt;
#[cfg(feature = "access")]
pub(crate) mod of_key;
mod signs;

pub use doubt::Doubt;
#[cfg(feature = "access")]
pub use of_key::{COUNTED_MIN, DoubtCount, KeyQuality, patients_of};
