//! How far a span is settled, although its patients are not settled in their order.

use std::collections::BTreeMap;

use intake_domain::PatientId;

/// The patients of a span who were handed out, in the order of their ids, and are still open.
#[derive(Default)]
pub(crate) struct Window {
    /// Each with the patient who was handed out before.
    open: BTreeMap<PatientId, Option<PatientId>>,
    /// The last patient who was handed out.
    last: Option<PatientId>,
}

impl Window {
    /// A span that begins after this patient.
    pub(crate) fn after(after: Option<PatientId>) -> Self {
        Self { last: after, ..Self::default() }
    }

    /// The last patient up to whom everybody is settled.
    pub(crate) fn settled_up_to(&self) -> Option<PatientId> {
        self.open.first_key_value().map_or(self.last, |(_, before)| *before)
    }

    pub(crate) fn open(&mut self, id: PatientId) {
        self.open.insert(id, self.last.replace(id));
    }

    pub(crate) fn settle(&mut self, id: PatientId) {
        self.open.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_settled_up_to_the_first_patient_who_is_not() {
        let id = |number| PatientId::new(time::OffsetDateTime::UNIX_EPOCH, [number; 10]);
        let mut window = Window::after(Some(id(0)));
        (1..=4).for_each(|number| window.open(id(number)));
        let mut settle = |number| {
            window.settle(id(number));
            window.settled_up_to()
        };
        assert_eq!([2, 1, 4, 9, 3].map(&mut settle), [0, 2, 2, 2, 4].map(|number| Some(id(number))));
    }
}
