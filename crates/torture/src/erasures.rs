//! Acknowledged patients are erased by the command line, while statements that may store them once more still hang.

use crate::audit::Findings;
use crate::operations::{Operations, PAUSE};
use crate::random::Random;
use crate::traffic::{Acknowledged, Sender};

/// The random stream of the client that repeats requests of erased patients.
const STREAM: u64 = 10_000;
/// Number of waiting patients that are erased after the last fault.
const LAST: usize = 5;
/// Number of times that an erased patient's request is sent again.
const REPEATS: usize = 3;

impl Operations<'_> {
    /// Erases patients until all faults are over.
    pub(crate) fn erase_patients(&self) -> anyhow::Result<Findings> {
        let mut found = Findings::default();
        let mut random = Random::new(self.seed, STREAM);
        let mut sender = Sender::new(self.traffic, STREAM);
        let mut left = LAST;
        while left > 0 {
            left -= usize::from(self.is_over());
            match self.traffic.next_to_erase() {
                Some(patient) => self.erase(&patient, &mut random, &mut sender, &mut found)?,
                None if self.is_over() => break,
                None => std::thread::sleep(PAUSE),
            }
        }
        Ok(found)
    }

    fn erase(
        &self,
        patient: &Acknowledged,
        random: &mut Random,
        sender: &mut Sender<'_>,
        found: &mut Findings,
    ) -> anyhow::Result<()> {
        let Acknowledged { number, organisation, id, request } = patient;
        self.journal.erasing(*number, id);
        let organisation = organisation.to_string();
        let arguments = ["patient", "erase", "--organisation", &organisation, "--patient", id, "--json"];
        self.until_done("erasing a patient", || self.command(&arguments))?;
        self.journal.erased(*number, id);
        if random.one_in(4) {
            self.until_done("erasing a patient twice", || self.command(&arguments))?;
        }
        for _ in 0..REPEATS {
            match request.as_ref().and_then(|request| sender.send_again(request)) {
                None | Some(410) => {}
                Some(status) => found.is_wrong(format!("number {number} was erased and sent again: {status}")),
            }
        }
        Ok(())
    }
}
