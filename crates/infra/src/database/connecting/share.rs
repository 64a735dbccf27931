//! The owner of a piece of work, for which it gets connections of the pool.

use uuid::Uuid;

/// Whose work it is. Work that waits must not take the connections of others.
#[derive(Clone, Copy)]
pub(crate) enum Share {
    /// Work of one owner, an organisation or a person: it uses only a part of the connections at once.
    Of(Uuid),
    /// Work of the service and of operators, and short reads for visitors who are not known yet.
    Common,
}

impl Share {
    /// The organisation's, whose members do it, or an operator's.
    pub(crate) fn within(organisation: Option<Uuid>) -> Self {
        organisation.map_or(Self::Common, Self::Of)
    }
}
