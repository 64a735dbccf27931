//! What is found out before the rows are sent: whether the service takes the key, whether an earlier run's report is of
//! this organisation, and whether the register still has what the report lists.

use anyhow::bail;

use crate::arguments::Arguments;
use crate::check::{Checker, body};
use crate::earlier::Earlier;
use crate::progress::Progress;
use crate::rows::Rows;
use crate::secret::Secret;
use crate::sender::{Sender, Sent};

const LOST: &str = "the register has lost rows that the report lists as created, as it does when it is restored from a backup: \
                    all of them are sent again";

/// Fails where the service does not take the key. Creates nothing.
pub(crate) fn greet(arguments: &Arguments, sender: &Sender) -> anyhow::Result<()> {
    let (mut rows, mut checker) = (Rows::of(arguments)?, Checker::new(arguments, None)?);
    while let Some(row) = rows.next()? {
        if let (_, Ok(texts)) = checker.check(row) {
            return sender.greet(&body(&texts));
        }
    }
    Ok(())
}

/// Finds out whether the register has what earlier runs created. Fails where no row of the file should be sent.
pub(crate) fn preflight(
    arguments: &Arguments,
    secret: &Secret,
    sender: &Sender,
    earlier: &mut Earlier,
    progress: &Progress,
) -> anyhow::Result<()> {
    let mut rows = Rows::of(arguments)?;
    let mut checker = Checker::new(arguments, Some(secret))?;
    while let Some(row) = rows.next()? {
        let (tag, Ok(texts)) = checker.check(row) else { continue };
        // Sent again, which creates nothing where the register has it.
        if !earlier.meet(&tag.key) {
            continue;
        }
        let sent = sender.create(&body(&texts), &tag.key, |why| progress.wait(why))?;
        if let Sent::Created { organisation, id, is_replayed } = &sent
            && let Some(report) = earlier.of_other_organisation(organisation)
        {
            let row = tag.row;
            let found = if *is_replayed {
                format!("an earlier run has created row {row} in organisation {organisation}")
            } else {
                format!("to find this out, row {row} was created in organisation {organisation}")
            };
            bail!(
                "--report {}: it was written for another organisation: choose another --report; {found}: if the patient does \
                 not belong there, run intake patient erase --organisation {organisation} --patient {id}",
                report.display()
            );
        }
        if earlier.compare(&tag.key, &sent) {
            progress.print(LOST);
        }
    }
    Ok(())
}
