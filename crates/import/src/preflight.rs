//! What is found out before the rows are sent: whether the service takes the key, whether an earlier run's report is of
//! this organisation, and whether the register still has what the report lists.

use anyhow::bail;

use crate::arguments::Arguments;
use crate::check::check;
use crate::earlier::Earlier;
use crate::once::OnceKeys;
use crate::progress::Progress;
use crate::rows::Rows;
use crate::secret::Secret;
use crate::sender::{Sender, Sent};

const LOST: &str = "the register has lost rows that the report lists as created, as it does when it is restored from a backup: \
                    all of them are sent again";

/// Fails where no row of the file should be sent.
pub(crate) fn preflight(
    arguments: &Arguments,
    secret: &Secret,
    sender: &Sender,
    mut earlier: Option<&mut Earlier>,
    progress: &Progress,
) -> anyhow::Result<()> {
    let mut rows = Rows::of(arguments)?;
    let mut keys = OnceKeys::of(Some(secret), &arguments.run)?;
    let mut is_greeted = false;
    while let Some(row) = rows.next()? {
        let (tag, Ok(body)) = check(arguments, row, &mut keys) else { continue };
        if !is_greeted {
            sender.greet(&body)?;
            is_greeted = true;
        }
        let Some(earlier) = earlier.as_deref_mut().filter(|earlier| !earlier.is_empty()) else { break };
        // Sent again, which creates nothing where the register has it.
        if !earlier.meet(&tag.key) {
            continue;
        }
        let sent = sender.create(&body, &tag.key, |why| progress.wait(why))?;
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
