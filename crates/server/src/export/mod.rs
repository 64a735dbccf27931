//! `intake export`: gives out what the change feed holds, and tells the token of what it gave only when all of it is
//! where it belongs. An export that is killed before that starts again from the earlier token.

mod csv;
pub(crate) mod fhir;
pub(crate) mod jsonl;
mod output;
mod progress;
pub(crate) mod reading;
pub(crate) mod standard_error;
pub(crate) mod state;
mod stop;
pub(crate) mod unfinished_file;

use intake_domain::FeedScope;

use crate::settings::command_line::ExportArguments;
use crate::settings::configuration::Configuration;
use output::Output;
pub(crate) use output::sync;
use reading::Reading;
use state::State;
pub(crate) use stop::Stop;

pub(crate) fn run(arguments: &ExportArguments, configuration: &Configuration) -> anyhow::Result<()> {
    let (since, state) = State::open(arguments.state.as_deref(), arguments.since.as_deref())?;
    let stop = arguments.follow.then(Stop::listen).transpose()?;
    let scope = FeedScope { organisation_id: arguments.organisation, key_id: arguments.key };
    let output = |_| Output::open(arguments);
    let mut reading = Reading::open(configuration, scope, since, state, stop, output)?;
    let token = reading.run(arguments.follow)?;
    reading.receiver.finish()?;
    reading.keep(token)
}
