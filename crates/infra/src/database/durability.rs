//! What a commit is worth, which every connection asks for and a service in production insists on.

/// What a commit is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// It survives a power cut.
    Full,
    /// Nothing, but it is fast: for tests.
    None,
}
