//! `intake deliver`: gives each patient and each erasure of an organisation to a target, at least once and in the order
//! of each patient. The token of the feed moves on when everything before it was taken, refused, or kept in the folder
//! for another attempt.

mod capabilities;
mod event;
mod figures;
mod folder;
mod lock;
mod monitor;
mod pauses;
mod queue;
mod register;
mod secrets;
mod target;
mod window;
mod workers;

use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use intake_domain::{Change, FeedScope, FeedToken, Mark, PatientId, timestamp};
use intake_edge as edge;
use intake_infra::Backlog;
use serde::Serialize;

use crate::commands::deliver::folder::{Folder, Status};
use crate::commands::deliver::pauses::PAUSES;
use crate::commands::deliver::register::Register;
use crate::commands::deliver::secrets::SecretFiles;
use crate::commands::deliver::target::Target;
use crate::commands::deliver::workers::{Shared, Stopped, Workers};
use crate::commands::output::{print, print_result};
use crate::export::Stop;
use crate::export::reading::{Reading, Receiver};
use crate::export::standard_error::say;
use crate::export::state::{Begun, State};
use crate::settings::arguments::Output;
use crate::settings::configuration::Configuration;
use crate::settings::deliver_command::{DeliverAction, DeliverArguments, TargetArguments};

/// Between two records of the state.
const STATUS_INTERVAL: Duration = Duration::from_secs(1);
/// Between two counts of what waits in the feed, which read it.
const COUNT_INTERVAL: Duration = Duration::from_secs(10);

/// Does what needs neither the database nor its settings: only the delivery's folder, or the target.
pub(crate) fn look_after(action: &DeliverAction) -> anyhow::Result<()> {
    match action {
        DeliverAction::Status { state, output } => print_status(&Folder::open(state)?, output),
        DeliverAction::Retry { state } => {
            let count = Folder::open(state)?.retry()?;
            print(&format!("{count} refused events will be sent again by the delivery that runs, or by its next run"))
        }
        DeliverAction::Test { target } => print(&open(target, false)?.try_out()?),
    }
}

pub(crate) fn deliver(arguments: &DeliverArguments, configuration: &Configuration) -> anyhow::Result<()> {
    let target = open(&arguments.target, arguments.thin)?;
    let folder = Folder::create(arguments.state.as_deref().context("--state is missing")?)?;
    let Some(lock) = folder.lock()? else { bail!("--state: another delivery uses this folder") };
    let to = arguments.target.to.clone().unwrap_or_default();
    let status = folder.status()?.unwrap_or_else(|| Status { to: to.clone(), ..Status::default() });
    if status.to != to {
        bail!("--state: this folder belongs to the target {}: another target needs another folder", status.to);
    }
    let (since, state) = State::open(Some(&folder.part("token")), None)?;
    let organisation_id = arguments.organisation.context("--organisation is missing")?;
    let scope = FeedScope { organisation_id, key_id: None };
    let stop = Stop::listen()?;
    let watched = arguments.monitor.map(monitor::serve).transpose()?;
    let (stop_workers, position) = (stop.clone(), state.clone());
    let delivery = |feed| {
        let register = Register::new(feed, scope);
        let count = arguments.in_flight;
        let workers = Workers::start(count, target, folder, &status, register, stop_workers, PAUSES)?;
        watched.iter().for_each(|watched| watched.begin(workers.shared()));
        Ok(Delivery { workers, status, position, span: None, written_at: None, counted_at: None, _lock: lock })
    };
    let stopped = |result: anyhow::Result<()>| match result {
        Err(error) if error.is::<Stopped>() => Ok(()),
        result => result,
    };
    let reading = Reading::open(configuration, scope, since, state, Some(stop), delivery);
    stopped(reading.and_then(|mut reading| {
        let token = reading.run(true)?;
        reading.receiver.note(false)?;
        reading.keep(token)
    }))
}

fn open(arguments: &TargetArguments, is_thin: bool) -> anyhow::Result<Target> {
    let address = arguments.to.as_deref().context("--to is missing")?;
    let address = address.parse().map_err(|why: String| anyhow!("--to: {why}"))?;
    let secrets = SecretFiles::open(arguments.secrets.as_deref(), arguments.headers.as_deref())?;
    Target::new(address, is_thin, secrets, Duration::from_secs(arguments.timeout.into()))
}

/// The receiver of a feed that hands events to the workers.
struct Delivery {
    workers: Workers,
    status: Status,
    position: State,
    /// Begin and end of the span.
    span: Option<(Mark, FeedToken)>,
    written_at: Option<Instant>,
    counted_at: Option<Instant>,
    /// Held for as long as events are delivered.
    _lock: File,
}

impl Delivery {
    /// Records the state, and says on standard error when the target begins or ends to take nothing.
    fn note(&mut self, is_up_to_date: bool) -> anyhow::Result<()> {
        let shared = self.workers.shared();
        let fault = shared.fault();
        if fault != self.status.fault {
            say(&match &fault {
                Some(why) => format!("nothing is delivered at present, trying again: {why}"),
                None => "delivering again".to_owned(),
            })?;
        } else if self.written_at.is_some_and(|at| at.elapsed() < STATUS_INTERVAL) {
            return Ok(());
        }
        self.workers.take_kept()?;
        self.status.fault = fault;
        let figures = &shared.figures;
        (self.status.delivered, self.status.erased) = (figures.delivered(), figures.erased());
        self.status.answer_ms = figures.answer_time().and_then(|time| u64::try_from(time.as_millis()).ok());
        if is_up_to_date && shared.folder.waiting()? == 0 {
            let now = edge::now();
            figures.note_up_to_date(now);
            self.status.up_to_date_at = Some(timestamp(now));
        }
        self.written_at = Some(Instant::now());
        if let (Some((since, until)), Some(after)) = (&self.span, shared.after()) {
            self.position.keep_part(since.token, Begun { until: *until, after })?;
        }
        let shared = Arc::clone(shared);
        self.count(&shared, is_up_to_date);
        shared.folder.set_status(&self.status)
    }

    /// Counts what waits in the feed. A database that is away is reported by those who read it.
    fn count(&mut self, shared: &Shared, is_up_to_date: bool) {
        let is_due = self.counted_at.is_none_or(|at| at.elapsed() >= COUNT_INTERVAL);
        let counted = match &self.span {
            _ if is_up_to_date => Ok(Backlog::default()),
            Some((since, _)) if is_due => shared.register.backlog(since, shared.after()),
            _ => return,
        };
        self.counted_at = (!is_up_to_date).then(Instant::now);
        if let Ok(backlog) = counted {
            shared.figures.note_backlog(backlog);
            (self.status.backlog, self.status.oldest_at) = (backlog.count, backlog.oldest_at.map(timestamp));
        }
    }

    fn finish(&mut self) -> anyhow::Result<()> {
        while !self.workers.is_settled()? {
            self.note(false)?;
        }
        Ok(())
    }
}

impl Receiver for Delivery {
    fn start_span(&mut self, since: &Mark, until: FeedToken, after: Option<PatientId>) {
        self.span = Some((since.clone(), until));
        self.workers.start_span(after);
    }

    fn write(&mut self, change: &Change) -> anyhow::Result<()> {
        while !self.workers.has_room()? {
            self.note(false)?;
        }
        self.workers.write(change);
        self.note(false)
    }

    fn end_batch(&mut self, _: FeedToken) -> anyhow::Result<()> {
        self.finish()?;
        // The token of its end takes the place.
        self.span = None;
        self.note(true)
    }

    fn is_stream(&self) -> bool {
        true
    }

    fn idle(&mut self) -> anyhow::Result<()> {
        self.finish()?;
        self.note(true)
    }

    fn tell(&self, _: FeedToken) -> anyhow::Result<()> {
        Ok(())
    }
}

/// The state as JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    #[serde(flatten)]
    status: &'a Status,
    is_running: bool,
    /// Events that failed, and are tried again.
    waiting: usize,
    refused: usize,
}

/// Prints the state; fails where an operator has to act.
fn print_status(folder: &Folder, output: &Output) -> anyhow::Result<()> {
    let status = folder.status()?.context("nothing was delivered yet")?;
    let (is_running, waiting, refused) = (folder.is_locked()?, folder.waiting()?, folder.refused()?);
    let Status { to, up_to_date_at, delivered, erased, fault, backlog, oldest_at, answer_ms } = &status;
    let (up_to_date, why) = (up_to_date_at.as_deref().unwrap_or("never"), fault.as_deref().unwrap_or("none"));
    let oldest = oldest_at.as_ref().map(|at| format!(", the oldest of {at}")).unwrap_or_default();
    let answer = answer_ms.map_or("none yet".to_owned(), |time| format!("after {time} ms"));
    let text = format!(
        "{to}\n  up to date: {up_to_date}\n  patients: {delivered}, erasures: {erased}\n  to be sent: {backlog}{oldest}\n  \
         to be tried again: {waiting}\n  refused: {refused}\n  answers of the target: {answer}\n  fault: {why}"
    );
    let shown = serde_json::to_value(Shown { status: &status, is_running, waiting, refused })?;
    print_result(output, &shown, &text)?;
    match (is_running, &status.fault, refused) {
        (false, ..) => bail!("no delivery runs"),
        (_, Some(why), _) => bail!("nothing is delivered at present: {why}"),
        (.., 1..) => bail!("the target refused {refused} events: see {}", folder.part("refused").display()),
        _ => Ok(()),
    }
}
