//! Files are imported by `intake-import`, which is killed now and then. In the end each row is there once.

use std::time::Instant;

use crate::audit::Findings;
use crate::imports::{Import, is_missing, said};
use crate::journal::Kind;
use crate::operations::{Operations, Outcome, PAUSE};
use crate::random::Random;

/// The random stream of kills.
const STREAM: u64 = 12_000;
/// A run is killed after this many milliseconds: sooner and later than it needs.
const KILLED: (u64, u64) = (20, 600);
/// Between two files, in milliseconds.
const BETWEEN: (u64, u64) = (100, 1_500);

impl Operations<'_> {
    /// Imports files until all faults are over.
    pub(crate) fn import_files(&self) -> Outcome {
        let (mut found, mut imports) = (Findings::default(), Vec::new());
        let mut random = Random::new(self.seed, STREAM);
        while is_missing(self.program).is_none() && !self.is_over() {
            let Some(import) = Import::write(self.bed, self.program, imports.len(), || self.traffic.next_number())?
            else {
                break;
            };
            for number in &import.numbers {
                self.journal.sent(*number, import.organisation, Kind::Imported);
            }
            match self.see_through(&import, &mut random)? {
                Ok(()) => import.note(self.journal)?,
                Err(why) => found.is_wrong(format!("an import does not end, although all faults are over: {why}")),
            }
            imports.push(import);
            std::thread::sleep(random.milliseconds(BETWEEN.0, BETWEEN.1));
        }
        Ok((found, imports))
    }

    fn see_through(&self, import: &Import, random: &mut Random) -> anyhow::Result<Result<(), String>> {
        let mut gives_up = None;
        loop {
            let instance = usize::from(random.one_in(2));
            let mut run = import.start(self.bed, instance)?;
            let killed = Instant::now() + random.milliseconds(KILLED.0, KILLED.1);
            let is_killed = !self.is_over() && random.one_in(2);
            while run.try_wait()?.is_none() {
                if self.is_over() {
                    gives_up.get_or_insert_with(|| Instant::now() + 2 * self.traffic.patience());
                }
                let is_late = gives_up.is_some_and(|gives_up| Instant::now() > gives_up);
                if is_late || (is_killed && Instant::now() > killed) {
                    run.kill()?;
                }
                std::thread::sleep(PAUSE / 10);
            }
            if run.wait()?.success() {
                return Ok(Ok(()));
            }
            if gives_up.is_some_and(|gives_up| Instant::now() > gives_up) {
                return Ok(Err(said(&mut run)));
            }
        }
    }
}
