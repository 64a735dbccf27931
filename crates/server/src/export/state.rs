//! Where an export goes on: the token that the command line gives, or the one in the file of `--state`.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use anyhow::{Context, anyhow};
use intake_domain::FeedToken;

use super::output::regular_file;
use super::unfinished_file::UnfinishedFile;
use crate::settings::command_line::ExportArguments;

/// The file that keeps the token; none: the caller does.
pub(crate) struct State(Option<PathBuf>);

impl State {
    /// The token with which to go on, if there is one, and where the next one is kept.
    pub(crate) fn open(arguments: &ExportArguments) -> anyhow::Result<(Option<FeedToken>, Self)> {
        let state = Self(arguments.state.as_deref().map(|path| regular_file("--state", path)).transpose()?);
        let (option, text) = match (&state.0, &arguments.since) {
            (Some(path), _) => match fs::read_to_string(path) {
                Ok(text) => (format!("--state: {}", path.display()), text),
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok((None, state)),
                Err(error) => return Err(error).with_context(|| format!("--state: {}", path.display())),
            },
            (None, Some(text)) => ("--since".to_owned(), text.clone()),
            (None, None) => return Ok((None, state)),
        };
        let token =
            text.trim().parse().map_err(|_| anyhow!("{option}: this is not a token; a token looks like an id"))?;
        Ok((Some(token), state))
    }

    /// Returns how to begin again.
    pub(crate) fn advice(&self) -> String {
        let how = match &self.0 {
            Some(path) => format!("after removing {}", path.display()),
            None => "without --since".to_owned(),
        };
        format!("export everything once, {how}, and compare by id")
    }

    /// Replaces the token, when what comes before it is where it belongs.
    pub(crate) fn keep(&self, token: FeedToken) -> anyhow::Result<()> {
        let Some(path) = &self.0 else { return Ok(()) };
        let mut file = UnfinishedFile::create("--state", path.clone())?;
        file.write(&format!("{token}\n"))?;
        file.finish()
    }
}
