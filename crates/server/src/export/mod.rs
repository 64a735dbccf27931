//! `intake export`: gives out what the change feed holds, and tells the token of what it gave only when all of it is where it
//! belongs. Whoever is killed before that starts again from the earlier token.

mod csv;
mod fhir;
pub(crate) mod jsonl;
mod output;
mod progress;
mod stop;

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use intake_domain::{FeedError, FeedRefusal, FeedScope, FeedToken, Mark, PatientFeed, Span, read_span};
use intake_infra::readers::assert_reader;
use intake_infra::{PostgresPatientFeed, SchemaError};

use crate::backend::{Backend, explain};
use crate::command_line::ExportArguments;
use crate::configuration::Configuration;
use output::Output;
use progress::Progress;
use stop::Stop;

/// How long one export rides out a database that is away.
const PATIENCE: Duration = Duration::from_secs(30);
/// After so long a reader that follows says that it cannot look.
const SILENCE_MAX: Duration = Duration::from_secs(5);
/// Between two looks.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// How soon a request to stop is noticed.
const STOP_INTERVAL: Duration = Duration::from_millis(50);

pub(crate) fn run(arguments: &ExportArguments, configuration: &Configuration) -> anyhow::Result<()> {
    let backend = Backend::reach(configuration)?;
    // The embedded database has no role for readers: whoever may enter its folder owns it.
    let url = if backend.embedded.is_some() { &backend.owner } else { &backend.service };
    assert_reader(url).map_err(|error| match error {
        SchemaError::NoReader => {
            anyhow!("DATABASE_URL: {error}: `intake migrate --reader-role NAME` lets a role read them")
        }
        other => explain("DATABASE_URL")(other),
    })?;
    let stop = arguments.follow.then(Stop::listen).transpose()?.unwrap_or_default();
    let (is_followed, until_stopped) = (arguments.follow, stop.clone());
    let mut feed = PostgresPatientFeed::new(url, move |elapsed| {
        if is_followed {
            if elapsed > SILENCE_MAX {
                until_stopped.say_once("the database is away; still trying");
            }
            !until_stopped.is_asked()
        } else {
            elapsed < PATIENCE
        }
    });
    let scope = FeedScope { organisation_id: arguments.organisation, key_id: arguments.key };
    let since = open(&mut feed, &scope, arguments)?;
    let mut export = Export { feed, scope, output: Output::open(arguments)?, stop };
    let token = export.run(since, arguments.follow)?;
    export.output.finish()?;
    tell(token);
    Ok(())
}

struct Export {
    feed: PostgresPatientFeed,
    scope: FeedScope,
    output: Output,
    stop: Stop,
}

impl Export {
    /// Gives out what is to be given out; returns the token that comes after it.
    fn run(&mut self, mut since: Mark, is_followed: bool) -> anyhow::Result<FeedToken> {
        let mut last = None;
        loop {
            let until = match (self.feed.mark(&self.scope, last), last) {
                // Nothing was given out since.
                (Err(_), Some(token)) if self.stop.is_asked() => return Ok(token),
                (made, _) => made?,
            };
            let token = until.token.context("the mark has no token")?;
            since = self.give_out(since, until, is_followed)?;
            last = Some(token);
            if !is_followed {
                return Ok(token);
            }
            if self.output.is_stream() {
                tell(token);
            }
            if !self.wait_for_news(&since)? {
                return Ok(token);
            }
        }
    }

    fn give_out(&mut self, since: Mark, until: Mark, is_followed: bool) -> anyhow::Result<Mark> {
        let span = Span { since, until };
        let selection = self.feed.select(&self.scope, &span)?;
        if let (Some(key), 0, false) = (self.scope.key_id, selection.count(), is_followed) {
            say(&format!(
                "no patient by the API key {key}: if that is a surprise, compare its id with `intake key list`"
            ));
        }
        let progress = Progress::of(selection.count());
        let output = &mut self.output;
        read_span(&mut self.feed, &self.scope, &span, &selection, |change| {
            progress.step();
            output.write(&change).map_err(Failure::Output)
        })
        .map_err(|failure| match failure {
            Failure::Feed(error) => advise(error),
            Failure::Output(error) => error,
        })?;
        self.output.flush()?;
        Ok(span.until)
    }

    /// Waits until something was committed after the mark. False: a signal came first.
    fn wait_for_news(&mut self, since: &Mark) -> anyhow::Result<bool> {
        loop {
            let looked_at = Instant::now();
            while looked_at.elapsed() < LOOK_INTERVAL {
                if self.stop.is_asked() {
                    return Ok(false);
                }
                sleep(STOP_INTERVAL);
            }
            match self.feed.has_news(&self.scope, since) {
                Ok(true) => return Ok(true),
                Ok(false) => self.stop.forget_what_was_said(),
                Err(_) if self.stop.is_asked() => return Ok(false),
                Err(error) => bail!(error),
            }
        }
    }
}

/// Where the export begins.
fn open(feed: &mut dyn PatientFeed, scope: &FeedScope, arguments: &ExportArguments) -> anyhow::Result<Mark> {
    let token = arguments.since.as_deref().map(str::parse).transpose();
    let token = token.map_err(|_| anyhow!("--since: this is not a token; a token looks like an id"))?;
    feed.open(scope, token).map_err(advise)
}

/// Why a span could not be given out.
enum Failure {
    Feed(FeedError),
    Output(anyhow::Error),
}

impl From<FeedError> for Failure {
    fn from(error: FeedError) -> Self {
        Self::Feed(error)
    }
}

/// Says what helps.
fn advise(error: FeedError) -> anyhow::Error {
    let FeedError::Refused(refusal) = error else { return error.into() };
    let advice = match refusal {
        FeedRefusal::Unreadable => "`intake migrate --reader-role NAME --organisation ID` lets a role read them",
        FeedRefusal::Distributed => "use logical replication instead, as docs/reading.md describes",
        FeedRefusal::Standby => "export from the primary",
        FeedRefusal::Restored => "run `intake restored` as its owner first",
        FeedRefusal::UnknownToken | FeedRefusal::OtherCluster => {
            "export everything once, without --since, and compare by id"
        }
        FeedRefusal::OtherOrganisation => "use it with the same --organisation",
        FeedRefusal::OtherKey => "use it with the same --key, or without one if it was made so",
    };
    anyhow!("{refusal}: {advice}")
}

/// Tells the token with which the next export goes on.
fn tell(token: FeedToken) {
    say(&format!("next: {token}"));
}

#[expect(clippy::print_stderr, reason = "standard output holds patients")]
fn say(line: &str) {
    eprintln!("{line}");
}
