//! Who a person is at the provider of single sign-on.

/// A person at the provider. An address can change, or pass to another person; this pair never does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The provider, as it names itself.
    pub issuer: String,
    /// The person's id there.
    pub id: String,
}
