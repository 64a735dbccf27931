//! Where an export goes on: the token that the command line gives, or the one in the file of `--state`.

use std::path::{Path, PathBuf};

use anyhow::Context;
use intake_domain::{FeedToken, PatientId};

use super::unfinished_file::{read_if_there, regular_file, replace};

/// Progress of a reader.
#[derive(Clone)]
pub(crate) struct State {
    /// The file that keeps it; none: the caller does.
    path: Option<PathBuf>,
    /// The span in which the last run ended.
    pub(crate) begun: Option<Begun>,
}

/// A span whose first patients are where they belong.
#[derive(Clone, Copy)]
pub(crate) struct Begun {
    /// Token of its end.
    pub(crate) until: FeedToken,
    /// The last of these patients.
    pub(crate) after: PatientId,
}

/// Stands for the token of a reader that has none yet.
const NO_TOKEN: &str = "-";

impl State {
    /// The token with which to go on, if there is one, and where the next one is kept.
    pub(crate) fn open(path: Option<&Path>, since: Option<&str>) -> anyhow::Result<(Option<FeedToken>, Self)> {
        let path = path.map(|path| regular_file("--state", path)).transpose()?;
        let mut state = Self { path, begun: None };
        let (option, text) = match (&state.path, since) {
            (Some(path), _) => {
                let option = format!("--state: {}", path.display());
                let Some(text) = read_if_there(path).with_context(|| option.clone())? else { return Ok((None, state)) };
                (option, text)
            }
            (None, Some(text)) => ("--since".to_owned(), text.to_owned()),
            (None, None) => return Ok((None, state)),
        };
        let (token, begun) =
            parse(&text).with_context(|| format!("{option}: this is not a token; a token looks like an id"))?;
        state.begun = begun;
        Ok((token, state))
    }

    /// Returns how to begin again.
    pub(crate) fn advice(&self) -> String {
        let how = match &self.path {
            Some(path) => format!("after removing {}", path.display()),
            None => "without --since".to_owned(),
        };
        format!("export everything once, {how}, and compare by id")
    }

    /// Replaces the token, when what comes before it is where it belongs.
    pub(crate) fn keep(&self, token: FeedToken) -> anyhow::Result<()> {
        self.write(&format!("{token}\n"))
    }

    /// Keeps how far the reader has come after the token that it has.
    pub(crate) fn keep_part(&self, since: Option<FeedToken>, Begun { until, after }: Begun) -> anyhow::Result<()> {
        let since = since.map_or_else(|| NO_TOKEN.to_owned(), |token| token.to_string());
        self.write(&format!("{since}\n{until} {after}\n"))
    }

    fn write(&self, text: &str) -> anyhow::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        replace("--state", path, text)
    }
}

fn parse(text: &str) -> Option<(Option<FeedToken>, Option<Begun>)> {
    let mut words = text.split_whitespace();
    let token = words.next()?;
    let begun = match (words.next(), words.next(), words.next()) {
        (None, ..) => None,
        (Some(until), Some(after), None) => Some(Begun { until: until.parse().ok()?, after: after.parse().ok()? }),
        _ => return None,
    };
    if token == NO_TOKEN { begun.map(|begun| (None, Some(begun))) } else { Some((Some(token.parse().ok()?), begun)) }
}
