//! What is found out before the first patient is created: whether the service takes the key, and whether an earlier run's
//! report is of this organisation.

use anyhow::bail;

use crate::arguments::Arguments;
use crate::check::check;
use crate::once::OnceKeys;
use crate::progress::Progress;
use crate::report::Earlier;
use crate::rows::Rows;
use crate::sender::{Sender, Sent};

/// Fails where no row of the file should be sent.
pub(crate) fn preflight(
    arguments: &Arguments,
    sender: &Sender,
    earlier: &Earlier,
    progress: &Progress,
) -> anyhow::Result<()> {
    let mut rows = Rows::of(arguments)?;
    let mut keys = OnceKeys::of(&arguments.run);
    let mut is_greeted = false;
    while let Some(row) = rows.next()? {
        let (tag, Ok(body)) = check(arguments, row, &mut keys) else { continue };
        if !is_greeted {
            sender.greet(&body)?;
            is_greeted = true;
        }
        if earlier.is_empty() {
            break;
        }
        if !earlier.has_created(&tag.key) {
            continue;
        }
        // Sent again, which creates nothing if the report is this organisation's. A refusal (the patient has been erased since)
        // does not tell whose it is.
        if let Sent::Created { id, organisation, is_replayed } =
            sender.create(&body, &tag.key, |why| progress.wait(why))?
        {
            let Some(report) = earlier.contradicting(&tag.key, &id)? else { break };
            let row = tag.row;
            let found = if is_replayed {
                format!("an earlier run has created row {row} in organisation {organisation}")
            } else {
                format!("to find this out, row {row} was created in organisation {organisation}")
            };
            bail!(
                "--report {}: it was written for another organisation, or the register has been restored from a backup \
                 since: choose another --report; {found}: if the patient does not belong there, run \
                 intake patient erase --organisation {organisation} --patient {id}",
                report.display()
            );
        }
    }
    Ok(())
}
