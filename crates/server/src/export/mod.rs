//! `intake export`: gives out what the change feed holds, and tells the token of what it gave only when all of it is
//! where it belongs. An export that is killed before that starts again from the earlier token.

mod csv;
mod fhir;
pub(crate) mod jsonl;
mod output;
mod progress;
mod state;
mod stop;
mod unfinished_file;

use std::error::Error;
use std::io::{Write as _, stderr};
use std::rc::Rc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use intake_domain::{FeedError, FeedRefusal, FeedScope, FeedToken, Mark, PatientFeed, Span, read_span};
use intake_infra::pooler::assert_own_sessions;
use intake_infra::readers::assert_reader;
use intake_infra::{DatabaseUrl, PostgresPatientFeed, SchemaError};

use crate::backend::{Backend, explain};
use crate::settings::command_line::ExportArguments;
use crate::settings::configuration::Configuration;
use output::Output;
use progress::Progress;
use state::State;
pub(crate) use stop::Stop;
use stop::has_room;

/// Time for which one export rides out a database that is away.
const PATIENCE: Duration = Duration::from_secs(30);
/// After so long a reader that follows says that it cannot look.
const SILENCE_MAX: Duration = Duration::from_secs(5);
/// Between two looks.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Time between two records of a reader that follows.
const RECORD_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// Time after which a request to stop is noticed.
const STOP_INTERVAL: Duration = Duration::from_millis(50);

pub(crate) fn run(arguments: &ExportArguments, configuration: &Configuration) -> anyhow::Result<()> {
    let backend = Backend::reach(configuration)?;
    // The embedded database has no role for readers: an account that may enter its folder owns it.
    let url = if backend.embedded.is_some() { &backend.owner } else { &backend.service };
    let (since, state) = State::open(arguments)?;
    let stop = arguments.follow.then(Stop::listen).transpose()?.unwrap_or_default();
    let (is_followed, until_stopped) = (arguments.follow, stop.clone());
    let keeps_trying = Rc::new(move |elapsed: Duration, error: &dyn Error| {
        if is_followed {
            if elapsed > SILENCE_MAX {
                let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
                until_stopped.say_once(&format!("the database cannot be read; still trying: {why}"));
            }
            !until_stopped.is_asked()
        } else {
            elapsed < PATIENCE
        }
    });
    wait_for_reader(url, backend.service_setting, &*keeps_trying)?;
    let mut feed = PostgresPatientFeed::new(url, move |elapsed, error| keeps_trying(elapsed, error));
    let scope = FeedScope { organisation_id: arguments.organisation, key_id: arguments.key };
    let since = feed.open(&scope, since).map_err(|error| advise(error, &state))?;
    let output = Output::open(arguments)?;
    let mut export = Export { feed, scope, output, state, stop, unrecorded: 0, recorded_at: None };
    let token = export.run(since, arguments.follow)?;
    export.output.finish()?;
    export.state.keep(token)?;
    export.tell(token)?;
    Ok(())
}

/// Makes sure that the role can read the feed over this address, while the database may be away.
fn wait_for_reader(
    url: &DatabaseUrl,
    setting: &'static str,
    keeps_trying: &dyn Fn(Duration, &dyn Error) -> bool,
) -> anyhow::Result<()> {
    let started = Instant::now();
    loop {
        let checked = match assert_own_sessions(url) {
            // A reader needs no second connection.
            Ok(_) | Err(SchemaError::NoSecondConnection) => assert_reader(url),
            Err(refused) => Err(refused),
        };
        match checked {
            // A database that goes away in between fails in whatever way.
            Err(error @ (SchemaError::Unreachable(_) | SchemaError::Failed(_)))
                if keeps_trying(started.elapsed(), &error) =>
            {
                sleep(STOP_INTERVAL);
            }
            Err(error @ SchemaError::NoReader) => {
                bail!("{setting}: {error}: `intake migrate --reader-role NAME` lets a role read them")
            }
            checked => return checked.map_err(explain(setting)),
        }
    }
}

struct Export {
    feed: PostgresPatientFeed,
    scope: FeedScope,
    output: Output,
    state: State,
    stop: Stop,
    /// Number of patients that were given out that are not on record yet.
    unrecorded: u64,
    recorded_at: Option<Instant>,
}

impl Export {
    /// Gives out what is to be given out; returns the token that comes after it.
    fn run(&mut self, since: Mark, is_followed: bool) -> anyhow::Result<FeedToken> {
        let token = self.give_out_all(since, is_followed)?;
        if self.unrecorded > 0 {
            self.record(token)?;
        }
        Ok(token)
    }

    fn give_out_all(&mut self, mut since: Mark, is_followed: bool) -> anyhow::Result<FeedToken> {
        let (mut before_last, mut last) = (None, None);
        loop {
            let until = match (self.feed.mark(&self.scope, before_last), last) {
                // Nothing was given out since.
                (Err(_), Some(token)) if self.stop.is_asked() => return Ok(token),
                (made, _) => made?,
            };
            let token = until.token.context("the mark has no token")?;
            since = self.give_out(since, until, token, is_followed)?;
            (before_last, last) = (last, Some(token));
            if !is_followed {
                return Ok(token);
            }
            if self.output.is_stream() {
                self.state.keep(token)?;
                self.tell(token)?;
            }
            if !self.wait_for_news(&since)? {
                return Ok(token);
            }
        }
    }

    fn give_out(&mut self, since: Mark, until: Mark, token: FeedToken, is_followed: bool) -> anyhow::Result<Mark> {
        let span = Span { since, until };
        let selection = self.feed.select(&self.scope, &span)?;
        if let (Some(key), 0, false) = (self.scope.key_id, selection.count(), is_followed) {
            say(&format!(
                "no patient by the API key {key}: if that is a surprise, compare its id with `intake key list`"
            ))?;
        }
        self.unrecorded += selection.count();
        // Before anything is given out, because nobody may come back to record it.
        if self.unrecorded > 0 && self.recorded_at.is_none_or(|at| at.elapsed() >= RECORD_INTERVAL) {
            self.record(token)?;
        }
        let progress = Progress::of(selection.count());
        let output = &mut self.output;
        read_span(&mut self.feed, &self.scope, &span, &selection, |change| {
            progress.step();
            output.write(&change).map_err(Failure::Output)
        })
        .map_err(|failure| match failure {
            Failure::Feed(error) => advise(error, &self.state),
            Failure::Output(error) => error,
        })?;
        self.output.end_batch(token)?;
        Ok(span.until)
    }

    /// Puts what was given out on record, under the mark at its end.
    fn record(&mut self, token: FeedToken) -> anyhow::Result<()> {
        self.feed.record(&self.scope, token, self.unrecorded)?;
        (self.unrecorded, self.recorded_at) = (0, Some(Instant::now()));
        Ok(())
    }

    /// Tells the token with which the next export goes on. A stream that is followed holds it, too, and does not wait
    /// for a reader here.
    fn tell(&self, token: FeedToken) -> anyhow::Result<()> {
        if self.output.is_followed() && !has_room() {
            return Ok(());
        }
        say(&format!("next: {token}"))
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
            self.output.expect_reader()?;
            match self.feed.has_news(&self.scope, since) {
                Ok(true) => return Ok(true),
                Ok(false) => self.stop.forget_what_was_said(),
                Err(_) if self.stop.is_asked() => return Ok(false),
                Err(error) => bail!(error),
            }
        }
    }
}

/// Reason why a span could not be given out.
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
fn advise(error: FeedError, state: &State) -> anyhow::Error {
    let FeedError::Refused(refusal) = error else { return error.into() };
    let begin_again;
    let advice = match refusal {
        FeedRefusal::Unreadable => "`intake migrate --reader-role NAME --organisation ID` lets a role read them",
        FeedRefusal::Standby => "export from the primary",
        FeedRefusal::Restored => "run `intake restored` as its owner first",
        FeedRefusal::UnknownToken | FeedRefusal::OtherCluster => {
            begin_again = state.advice();
            &begin_again
        }
        FeedRefusal::OtherOrganisation => "use it with the same --organisation",
        FeedRefusal::OtherKey => "use it with the same --key, or without one if it was made so",
    };
    anyhow!("{refusal}: {advice}")
}

/// Prints on standard error, because standard output holds patients.
fn say(line: &str) -> anyhow::Result<()> {
    writeln!(stderr(), "{line}").context("standard error cannot be written")
}
