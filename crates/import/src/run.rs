//! One run: reads rows, checks them, sends what is valid, several at a time, and reports each.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender as Outbox, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::arguments::Arguments;
use crate::check::{Checker, RowTag, body};
use crate::earlier::Earlier;
use crate::preflight::{greet, preflight};
use crate::progress::Progress;
use crate::report::{OpenReport, Report};
use crate::rows::Rows;
use crate::secret::Secret;
use crate::sender::{Sender, Sent};
use crate::tally::Tally;

/// Outcome of all rows.
#[derive(Default)]
pub(crate) struct Totals {
    pub(crate) rows: u64,
    pub(crate) valid: u64,
    pub(crate) created: u64,
    pub(crate) created_before: u64,
    pub(crate) refused: u64,
    /// Rows that were not refused, and are the same as an earlier one.
    pub(crate) repeated: u64,
    /// Reasons why rows were refused.
    pub(crate) faults: Tally,
    /// Changed values of rows that were not refused.
    pub(crate) changes: Tally,
    /// Their values that are probably wrong.
    pub(crate) suspicions: Tally,
    /// The rows that are the header again.
    pub(crate) repeated_headers: Option<String>,
    /// A line of the run could not be printed.
    pub(crate) is_untold: bool,
}

/// A valid row on its way.
struct Job {
    tag: RowTag,
    body: String,
}

/// Outcome of a row.
enum Outcome {
    Valid,
    /// An earlier run's report has it.
    Skipped,
    Sent {
        id: String,
        organisation: String,
        is_replayed: bool,
    },
    /// With everything that is wrong with it.
    Refused(Vec<String>),
}

/// Message to the thread that reports.
enum News {
    Row(RowTag, Outcome),
    Waiting(String),
}

/// Runs to the end of the file. What has become of the rows is counted also where it fails.
pub(crate) fn run(arguments: &Arguments, sender: Option<&Sender>, totals: &mut Totals) -> anyhow::Result<()> {
    let mut rows = Rows::of(arguments)?;
    // Before any file is made.
    sender.map_or(Ok(()), |sender| greet(arguments, sender))?;
    let mut open = Report::open(arguments, sender)?;
    let progress = Progress::new(rows.size());
    let secret = sender.map(|sender| secret(arguments, sender, open.as_mut(), &progress)).transpose()?;
    let report = Report::begin(open.as_ref())?;
    let checker = Checker::new(arguments, secret.as_ref())?;
    let earlier = open.as_ref().map(|OpenReport { earlier, .. }| earlier);
    let (news, received) = channel();
    let (jobs, waiting) = sync_channel::<Job>(arguments.in_flight.into());
    let waiting = Mutex::new(waiting);
    let is_over = AtomicBool::new(false);
    let counted = &mut *totals;
    let outcome = thread::scope(|scope| {
        let reporter = scope.spawn(|| report_news(received, report, earlier, &progress, &is_over, counted));
        let mut senders = Vec::new();
        if let Some(sender) = sender {
            for _ in 0..arguments.in_flight {
                let (waiting, news, is_over) = (&waiting, news.clone(), &is_over);
                senders.push(scope.spawn(move || send(sender, waiting, &news, is_over)));
            }
        }
        let reading = Reading { checker, rows: &mut rows, is_sent: sender.is_some(), earlier };
        let fed = feed(reading, &Ways { jobs, news }, &is_over);
        let sent = senders.into_iter().try_for_each(joined);
        let reported = joined(reporter);
        // What a sender met comes first: it is why nothing more was fed.
        sent.and(fed).and(reported)
    });
    totals.repeated_headers = rows.repeated_headers();
    outcome
}

/// The secret of this run, once nothing speaks against sending rows.
fn secret(
    arguments: &Arguments,
    sender: &Sender,
    open: Option<&mut OpenReport>,
    progress: &Progress,
) -> anyhow::Result<Secret> {
    let is_begun = open.as_ref().is_some_and(|open| !open.earlier.is_empty());
    let kept = Secret::keep(&arguments.file, arguments.report.as_deref(), is_begun).inspect_err(|_| {
        open.iter().for_each(|open| open.discard_if_empty());
    })?;
    if let Some(open) = open.filter(|open| !open.earlier.is_empty()) {
        preflight(arguments, &kept, sender, &mut open.earlier, progress)?;
    }
    Ok(kept)
}

/// The ways from where rows are read.
struct Ways {
    jobs: SyncSender<Job>,
    news: Outbox<News>,
}

/// Context in which rows are read.
struct Reading<'a> {
    checker: Checker<'a>,
    rows: &'a mut Rows,
    is_sent: bool,
    earlier: Option<&'a Earlier>,
}

/// Reads and checks all rows, and hands on those that are valid.
fn feed(reading: Reading<'_>, ways: &Ways, is_over: &AtomicBool) -> anyhow::Result<()> {
    let Reading { mut checker, rows, is_sent, earlier } = reading;
    while let Some(row) = rows.next()? {
        if is_over.load(Ordering::SeqCst) {
            break;
        }
        let (tag, texts) = checker.check(row);
        let outcome = match texts {
            Err(why) => Outcome::Refused(why),
            Ok(_) if !is_sent => Outcome::Valid,
            Ok(_) if earlier.is_some_and(|earlier| earlier.has_created(&tag.key)) => Outcome::Skipped,
            Ok(texts) => match ways.jobs.send(Job { tag, body: body(&texts) }) {
                Ok(()) => continue,
                Err(_) => break,
            },
        };
        let _ = ways.news.send(News::Row(tag, outcome));
    }
    Ok(())
}

/// Sends rows until there are no more.
fn send(
    sender: &Sender,
    waiting: &Mutex<Receiver<Job>>,
    news: &Outbox<News>,
    is_over: &AtomicBool,
) -> anyhow::Result<()> {
    let mut failure = Ok(());
    loop {
        let job = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = job else { return failure };
        if is_over.load(Ordering::SeqCst) {
            // Taken and left, so that nobody waits for a place in the queue.
            continue;
        }
        let sent = sender.create(&job.body, &job.tag.key, |why| {
            let _ = news.send(News::Waiting(why.to_owned()));
        });
        let outcome = match sent {
            Ok(Sent::Created { id, organisation, is_replayed }) => Outcome::Sent { id, organisation, is_replayed },
            Ok(Sent::Refused { why, .. }) => Outcome::Refused(why),
            Err(error) => {
                is_over.store(true, Ordering::SeqCst);
                failure = Err(error);
                continue;
            }
        };
        let _ = news.send(News::Row(job.tag, outcome));
    }
}

/// Counts each row and reports it. Where the report fails, the run ends, and what was under way is still counted.
fn report_news(
    received: Receiver<News>,
    mut report: Report,
    earlier: Option<&Earlier>,
    progress: &Progress,
    is_over: &AtomicBool,
    totals: &mut Totals,
) -> anyhow::Result<()> {
    let mut reported = Ok(());
    for news in received {
        let (tag, outcome) = match news {
            News::Row(tag, outcome) => (tag, outcome),
            News::Waiting(why) => {
                progress.wait(&why);
                continue;
            }
        };
        totals.count(&tag, &outcome, earlier);
        if reported.is_ok() {
            reported = tell_one(&tag, &outcome, &mut report);
            is_over.fetch_or(reported.is_err(), Ordering::SeqCst);
        }
        progress.advance(tag.end, totals.rows);
    }
    let faults = totals.faults.section("refused, by reason", 2);
    for line in faults.iter().chain(report.lines()) {
        progress.print(line);
    }
    totals.is_untold = progress.is_untold();
    progress.finish();
    reported
}

fn tell_one(tag: &RowTag, outcome: &Outcome, report: &mut Report) -> anyhow::Result<()> {
    match outcome {
        Outcome::Skipped => Ok(()),
        Outcome::Valid => report.valid(tag),
        Outcome::Sent { id, organisation, is_replayed } => report.created(tag, id, organisation, *is_replayed),
        Outcome::Refused(faults) => report.refused(tag, faults),
    }
}

impl Totals {
    fn count(&mut self, tag: &RowTag, outcome: &Outcome, earlier: Option<&Earlier>) {
        self.rows += 1;
        match outcome {
            Outcome::Valid => self.valid += 1,
            Outcome::Sent { is_replayed: false, .. } => self.created += 1,
            Outcome::Sent { .. } if earlier.is_some_and(|earlier| earlier.has_created_again(&tag.key)) => {
                self.created += 1;
            }
            Outcome::Skipped | Outcome::Sent { .. } => self.created_before += 1,
            Outcome::Refused(faults) => {
                self.refused += 1;
                self.faults.count(tag.row, faults);
                return;
            }
        }
        self.repeated += u64::from(tag.is_repeated);
        self.changes.count(tag.row, &tag.changes);
        for suspicion in &tag.suspicions {
            self.suspicions.count_rows(tag.row, suspicion.rows(), &suspicion.with_remedy());
        }
    }
}

/// Returns what a thread came to; its panic is a failure like others.
fn joined<T>(thread: thread::ScopedJoinHandle<'_, anyhow::Result<T>>) -> anyhow::Result<T> {
    thread.join().unwrap_or_else(|_| Err(anyhow::anyhow!("the program failed unexpectedly: run it again to continue")))
}
