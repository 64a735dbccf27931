//! Pairs of patients that may be one person, for people to decide. Texts are folded for the comparison alone: nothing
//! is changed, merged or refused, and a pair shows no value of a patient.

pub(crate) mod clues;
pub(crate) mod compare;
pub(crate) mod fold;
pub(crate) mod folded;
pub(crate) mod newcomers;
pub(crate) mod nicknames;
pub(crate) mod register;
pub(crate) mod search;

pub use clues::PairClues;
pub use compare::{PairRank, Resemblance};
pub use folded::FoldedPatient;
pub use newcomers::search_newcomers;
pub use register::PairRegister;
pub use search::{Pair, PairSearch, search_pairs};
