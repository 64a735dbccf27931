//! What a commit must survive: set by every connection, and required of the server in production.

/// Failures that a commit must survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// A power cut.
    Full,
    /// Nothing, which is fast: for tests.
    None,
}
