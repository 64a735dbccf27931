//! The owner of a piece of work, for which it gets connections of the pool.

use uuid::Uuid;

/// Whose work it is. Work that waits must not take the connections of others.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Share {
    /// Work of one owner, an organisation or a person: it uses only a part of the connections at once.
    Of(Uuid),
    /// Changes by people who belong to several organisations, or to none yet: any of those can make them wait, and must
    /// not hold up the pages of another.
    Several,
    /// Work of the service and of operators, and short reads for visitors who are not known yet.
    Common,
}

impl Share {
    /// Number of connections that it may use at once. One organisation and all people of several leave a connection
    /// for others. None: all.
    pub(crate) fn connections(self) -> Option<usize> {
        match self {
            Self::Of(_) => Some(2),
            Self::Several => Some(1),
            Self::Common => None,
        }
    }

    /// The organisation's, whose members do it, or an operator's.
    pub(crate) fn within(organisation: Option<Uuid>) -> Self {
        organisation.map_or(Self::Common, Self::Of)
    }

    /// A person's, who belongs to these organisations.
    pub(crate) fn of_member(organisations: &[Uuid]) -> Self {
        match organisations {
            [only] => Self::Of(*only),
            _ => Self::Several,
        }
    }
}
