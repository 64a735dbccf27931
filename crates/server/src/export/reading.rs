//! The change feed read from token to token, for a receiver.

use std::error::Error;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use intake_domain::{
    Change, FeedError, FeedRefusal, FeedScope, FeedToken, Mark, PatientFeed, PatientId, Span, read_span,
};
use intake_infra::pooler::assert_own_sessions;
use intake_infra::readers::assert_reader;
use intake_infra::{DatabaseUrl, PostgresPatientFeed, SchemaError};

use crate::backend::{Backend, explain};
use crate::export::progress::Progress;
use crate::export::standard_error::say;
use crate::export::state::{Begun, State};
use crate::export::stop::Stop;
use crate::settings::configuration::Configuration;

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

/// Destination of changes.
pub(crate) trait Receiver {
    /// Begins a span after the patient who was the last to be written by an earlier run.
    fn start_span(&mut self, _since: &Mark, _until: FeedToken, _after: Option<PatientId>) {}

    fn write(&mut self, change: &Change) -> anyhow::Result<()>;

    /// Ends a batch. When this has returned, all of it is where it belongs.
    fn end_batch(&mut self, token: FeedToken) -> anyhow::Result<()>;

    /// Returns whether what is written is where it belongs after each batch, and not at the end.
    fn is_stream(&self) -> bool;

    /// Does what is to be done while nothing changes. Fails where nobody receives any more.
    fn idle(&mut self) -> anyhow::Result<()>;

    /// Tells the token of what it has.
    fn tell(&self, token: FeedToken) -> anyhow::Result<()>;
}

/// A feed that is being read.
pub(crate) struct Reading<R> {
    feed: PostgresPatientFeed,
    scope: FeedScope,
    since: Mark,
    pub(crate) receiver: R,
    state: State,
    stop: Stop,
    /// Number of patients that were given out that are not on record yet.
    unrecorded: u64,
    recorded_at: Option<Instant>,
}

impl<R> Reading<R> {
    /// Waits for the database, and opens the feed where an earlier run ended. A reading that can be stopped waits for
    /// as long as it takes. The receiver gets a feed of its own.
    pub(crate) fn open(
        configuration: &Configuration,
        scope: FeedScope,
        since: Option<FeedToken>,
        state: State,
        stop: Option<Stop>,
        receiver: impl FnOnce(PostgresPatientFeed) -> anyhow::Result<R>,
    ) -> anyhow::Result<Self> {
        let backend = Backend::reach(configuration)?;
        let (is_followed, stop) = (stop.is_some(), stop.unwrap_or_default());
        let until_stopped = stop.clone();
        let keeps_trying = move |elapsed: Duration, error: &dyn Error| {
            if is_followed {
                if elapsed > SILENCE_MAX {
                    let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
                    until_stopped.say_once(&format!("the database cannot be read; still trying: {why}"));
                }
                !until_stopped.is_asked()
            } else {
                is_patient(elapsed, error)
            }
        };
        let mut feed = open_feed(&backend, keeps_trying.clone())?;
        let second = PostgresPatientFeed::new(reader_url(&backend), move |elapsed, error| keeps_trying(elapsed, error));
        let since = feed.open(&scope, since).map_err(|error| advise(error, &state.advice()))?;
        let receiver = receiver(second)?;
        Ok(Self { feed, scope, since, receiver, state, stop, unrecorded: 0, recorded_at: None })
    }
}

/// Returns whether one reading goes on trying to reach a database that is away.
pub(crate) fn is_patient(elapsed: Duration, _: &dyn Error) -> bool {
    elapsed < PATIENCE
}

/// The feed of the database that the settings name, as a reader, when it can be read.
pub(crate) fn open_feed(
    backend: &Backend,
    keeps_trying: impl Fn(Duration, &dyn Error) -> bool + Send + 'static,
) -> anyhow::Result<PostgresPatientFeed> {
    let url = reader_url(backend);
    wait_for_reader(url, backend.service_setting, &keeps_trying)?;
    Ok(PostgresPatientFeed::new(url, move |elapsed, error| keeps_trying(elapsed, error)))
}

/// The embedded database has no role for readers: an account that may enter its folder owns it.
fn reader_url(backend: &Backend) -> &DatabaseUrl {
    if backend.embedded.is_some() { &backend.owner } else { &backend.service }
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

impl<R: Receiver> Reading<R> {
    /// Gives out what is to be given out; returns the token that comes after it.
    pub(crate) fn run(&mut self, is_followed: bool) -> anyhow::Result<FeedToken> {
        let since = self.since.clone();
        let token = self.give_out_all(since, is_followed)?;
        if self.unrecorded > 0 {
            self.record(token)?;
        }
        Ok(token)
    }

    fn give_out_all(&mut self, mut since: Mark, is_followed: bool) -> anyhow::Result<FeedToken> {
        let (mut before_last, mut last) = (None, None);
        let (mut begun, mut after) = self.begun()?.unzip();
        loop {
            let made = begun.take().map_or_else(|| self.feed.mark(&self.scope, before_last), Ok);
            let until = match (made, last) {
                // Nothing was given out since.
                (Err(_), Some(token)) if self.stop.is_asked() => return Ok(token),
                (made, _) => made.map_err(|error| advise(error, &self.state.advice()))?,
            };
            let token = until.token.context("the mark has no token")?;
            self.receiver.start_span(&since, token, after);
            since = self.give_out(Span { since, until }, token, after.take(), is_followed)?;
            (before_last, last) = (last, Some(token));
            if !is_followed {
                return Ok(token);
            }
            if self.receiver.is_stream() {
                self.keep(token)?;
            }
            if !self.wait_for_news(&since)? {
                return Ok(token);
            }
        }
    }

    /// The end of the span in which the last run ended, and the last patient that it wrote. None, too, if the database
    /// does not know the mark any more.
    fn begun(&mut self) -> anyhow::Result<Option<(Mark, PatientId)>> {
        let Some(Begun { until, after }) = self.state.begun.take() else { return Ok(None) };
        match self.feed.open(&self.scope, Some(until)) {
            Ok(mark) => Ok(Some((mark, after))),
            Err(FeedError::Refused(FeedRefusal::UnknownToken)) => Ok(None),
            Err(error) => Err(advise(error, &self.state.advice())),
        }
    }

    fn give_out(
        &mut self,
        span: Span,
        token: FeedToken,
        after: Option<PatientId>,
        is_followed: bool,
    ) -> anyhow::Result<Mark> {
        let selection = self.feed.select(&self.scope, &span).map_err(|error| advise(error, &self.state.advice()))?;
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
        let receiver = &mut self.receiver;
        read_span(&mut self.feed, &self.scope, &span, &selection, after, |change| {
            progress.step();
            receiver.write(&change).map_err(Failure::Output)
        })
        .map_err(|failure| match failure {
            Failure::Feed(error) => advise(error, &self.state.advice()),
            Failure::Output(error) => error,
        })?;
        self.receiver.end_batch(token)?;
        Ok(span.until)
    }

    /// Puts what was given out on record, under the mark at its end.
    fn record(&mut self, token: FeedToken) -> anyhow::Result<()> {
        self.feed.record(&self.scope, token, self.unrecorded).map_err(|error| advise(error, &self.state.advice()))?;
        (self.unrecorded, self.recorded_at) = (0, Some(Instant::now()));
        Ok(())
    }

    /// Keeps the token with which the next run goes on, and tells it.
    pub(crate) fn keep(&self, token: FeedToken) -> anyhow::Result<()> {
        self.state.keep(token)?;
        self.receiver.tell(token)
    }

    /// Waits until something was committed after the mark. False: a signal came first.
    fn wait_for_news(&mut self, since: &Mark) -> anyhow::Result<bool> {
        loop {
            if self.stop.comes_within(LOOK_INTERVAL) {
                return Ok(false);
            }
            self.receiver.idle()?;
            match self.feed.has_news(&self.scope, since) {
                Ok(true) => return Ok(true),
                Ok(false) => self.stop.forget_what_was_said(),
                Err(_) if self.stop.is_asked() => return Ok(false),
                Err(error) => return Err(advise(error, &self.state.advice())),
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

/// Says what helps, and how to begin again without the token.
pub(crate) fn advise(error: FeedError, begin_again: &str) -> anyhow::Error {
    let FeedError::Refused(refusal) = error else { return error.into() };
    let advice = match refusal {
        FeedRefusal::Unreadable => "`intake migrate --reader-role NAME --organisation ID` lets a role read them",
        FeedRefusal::Standby => "export from the primary",
        FeedRefusal::Restored => "run `intake restored` as its owner first",
        FeedRefusal::UnknownToken | FeedRefusal::OtherCluster => begin_again,
        FeedRefusal::OtherOrganisation => "use it with the same --organisation",
        FeedRefusal::OtherKey => "use it with the same --key, or without one if it was made so",
    };
    anyhow!("{refusal}: {advice}")
}
