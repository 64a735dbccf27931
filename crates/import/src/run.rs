//! One run: reads rows, checks them, sends what is valid, several at a time, and reports each.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender as Outbox, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::Context;
use intake_domain::{Field, PatientDraft};
use serde_json::{Map, Value};
use time::OffsetDateTime;

use crate::arguments::Arguments;
use crate::once::OnceKeys;
use crate::phones;
use crate::progress::Progress;
use crate::report::{Earlier, Report};
use crate::rows::{Row, Rows, Texts};
use crate::sender::{Sender, Sent};

/// What became of all rows.
#[derive(Default)]
pub(crate) struct Totals {
    pub(crate) rows: u64,
    pub(crate) valid: u64,
    pub(crate) created: u64,
    pub(crate) created_before: u64,
    pub(crate) refused: u64,
    pub(crate) repeated: u64,
    pub(crate) phones_rewritten: u64,
}

/// A valid row on its way.
struct Job {
    row: u64,
    end: u64,
    body: String,
    key: String,
    notes: Notes,
}

/// What a report should say of a row besides its outcome.
#[derive(Clone, Copy, Default)]
struct Notes {
    is_repeated: bool,
    is_phone_rewritten: bool,
}

/// What became of a row.
enum Outcome {
    Valid,
    /// An earlier run's report has it.
    Skipped,
    Sent {
        id: String,
        is_replayed: bool,
    },
    Refused(String),
}

/// What is told of the rows.
enum News {
    Row { row: u64, end: u64, key: String, notes: Notes, outcome: Outcome },
    Waiting(String),
}

/// Runs to the end of the file.
pub(crate) fn run(arguments: &Arguments, sender: Option<&Sender>) -> anyhow::Result<Totals> {
    let file = || format!("{}", arguments.file.display());
    let mut rows = Rows::open(&arguments.file, &arguments.map, arguments.delimiter).with_context(file)?;
    let (report, earlier) = Report::open(arguments.report.as_deref()).context("--report")?;
    let progress = Progress::new(rows.size);
    let (news, told) = channel();
    let (jobs, waiting) = sync_channel::<Job>(arguments.in_flight.into());
    let waiting = Mutex::new(waiting);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let teller = scope.spawn(|| tell(told, report, &progress, &is_over));
        let mut senders = Vec::new();
        if let Some(sender) = sender {
            for _ in 0..arguments.in_flight {
                let (waiting, news, is_over) = (&waiting, news.clone(), &is_over);
                senders.push(scope.spawn(move || send(sender, waiting, &news, is_over)));
            }
        }
        let fed = feed(arguments, &mut rows, sender, &earlier, &Ways { jobs, news }, &is_over);
        let sent = senders.into_iter().try_for_each(joined);
        let totals = joined(teller);
        // What a sender met comes first: it is why nothing more was fed.
        sent.and(fed)?;
        totals
    })
}

/// The ways from where rows are read.
struct Ways {
    jobs: SyncSender<Job>,
    news: Outbox<News>,
}

/// Reads and checks all rows, and hands on those that are valid.
fn feed(
    arguments: &Arguments,
    rows: &mut Rows,
    sender: Option<&Sender>,
    earlier: &Earlier,
    ways: &Ways,
    is_over: &AtomicBool,
) -> anyhow::Result<()> {
    let mut keys = OnceKeys::of(&arguments.run);
    let mut is_greeted = false;
    let mut is_compared = false;
    while let Some(row) = rows.next().with_context(|| arguments.file.display().to_string())? {
        if is_over.load(Ordering::SeqCst) {
            break;
        }
        let job = match check(arguments, row, &mut keys) {
            Ok(job) => job,
            Err(refused) => {
                let _ = ways.news.send(refused);
                continue;
            }
        };
        let Some(sender) = sender else {
            let _ = ways.news.send(job.news(Outcome::Valid));
            continue;
        };
        if !is_greeted {
            sender.greet(&job.body)?;
            is_greeted = true;
        }
        if earlier.has_created(&job.key) {
            if !is_compared {
                // Sent again, which creates nothing if the report is this organisation's.
                if let Sent::Created { id, .. } = sender.create(&job.body, &job.key, |_| ())? {
                    earlier.compare(&job.key, &id)?;
                }
                is_compared = true;
            }
            let _ = ways.news.send(job.news(Outcome::Skipped));
        } else if ways.jobs.send(job).is_err() {
            break;
        }
    }
    Ok(())
}

/// The row as it is to be sent, or what is wrong with it.
fn check(arguments: &Arguments, row: Row, keys: &mut OnceKeys) -> Result<Job, News> {
    let Row { number: row, end, texts } = row;
    let mut key = String::new();
    let mut notes = Notes::default();
    let body = texts.and_then(|texts| {
        let once = keys.next(&texts);
        notes.is_repeated = once.is_repeated;
        key = once.text;
        body(arguments, texts, &mut notes)
    });
    match body {
        Ok(body) => Ok(Job { row, end, body, key, notes }),
        Err(why) => Err(News::Row { row, end, key, notes, outcome: Outcome::Refused(why) }),
    }
}

/// The patient as JSON, or everything that is wrong with it.
fn body(arguments: &Arguments, mut texts: Texts, notes: &mut Notes) -> Result<String, String> {
    let rewritten_date = texts[Field::DateOfBirth].as_deref().map(|date| arguments.date_format.rewrite(date));
    let is_date_unreadable = rewritten_date == Some(None);
    if let Some(Some(date)) = rewritten_date {
        texts[Field::DateOfBirth] = Some(date);
    }
    if let (true, Some(phone)) = (arguments.australian_phones, &texts[Field::PhoneNumber]) {
        // What cannot be rewritten is refused by the register's own rule.
        if let Some(rewritten) = phones::rewrite(phone).filter(|rewritten| rewritten != phone) {
            notes.is_phone_rewritten = true;
            texts[Field::PhoneNumber] = Some(rewritten);
        }
    }
    let sent = || Field::ALL.into_iter().filter_map(|field| Some((field, texts[field].as_deref()?)));
    let unreadable_date = || format!("dateOfBirth is not written as {}", arguments.date_format.as_str());
    match sent().collect::<PatientDraft>().validate(now()) {
        Ok(_) if is_date_unreadable => Err(unreadable_date()),
        Ok(_) => {
            let members = sent().map(|(field, text)| (field.name().to_owned(), Value::from(text)));
            Ok(Value::Object(members.collect::<Map<_, _>>()).to_string())
        }
        Err(faults) => {
            let faults = faults.into_iter().map(|fault| match fault.field {
                Some(Field::DateOfBirth) if is_date_unreadable => unreadable_date(),
                _ => fault.to_string(),
            });
            Err(faults.collect::<Vec<_>>().join("; "))
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a program reads the clock; the register's own decides")]
fn now() -> OffsetDateTime {
    OffsetDateTime::now_utc()
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
        let sent = sender.create(&job.body, &job.key, |why| {
            let _ = news.send(News::Waiting(why.to_owned()));
        });
        let outcome = match sent {
            Ok(Sent::Created { id, is_replayed }) => Outcome::Sent { id, is_replayed },
            Ok(Sent::Refused(why)) => Outcome::Refused(why),
            Err(error) => {
                is_over.store(true, Ordering::SeqCst);
                failure = Err(error);
                continue;
            }
        };
        let _ = news.send(job.news(outcome));
    }
}

/// Reports each row, and counts.
fn tell(told: Receiver<News>, mut report: Report, progress: &Progress, is_over: &AtomicBool) -> anyhow::Result<Totals> {
    let mut totals = Totals::default();
    for news in told {
        let told = tell_one(news, &mut report, progress, &mut totals);
        if told.is_err() {
            is_over.store(true, Ordering::SeqCst);
            return told.map(|()| totals);
        }
    }
    progress.finish();
    Ok(totals)
}

fn tell_one(news: News, report: &mut Report, progress: &Progress, totals: &mut Totals) -> anyhow::Result<()> {
    let (row, end, key, notes, outcome) = match news {
        News::Row { row, end, key, notes, outcome } => (row, end, key, notes, outcome),
        News::Waiting(why) => {
            progress.wait(&why);
            return Ok(());
        }
    };
    totals.rows += 1;
    totals.repeated += u64::from(notes.is_repeated);
    totals.phones_rewritten += u64::from(notes.is_phone_rewritten);
    match outcome {
        Outcome::Valid => totals.valid += 1,
        Outcome::Skipped => totals.created_before += 1,
        Outcome::Sent { id, is_replayed } => {
            if is_replayed {
                totals.created_before += 1;
            } else {
                totals.created += 1;
            }
            report.created(row, &id, &key, &notes.message(is_replayed))?;
        }
        Outcome::Refused(why) => {
            totals.refused += 1;
            if let Some(text) = report.refused(row, &key, &why)? {
                progress.print(&text);
            }
        }
    }
    progress.advance(end, totals.rows);
    Ok(())
}

impl Job {
    fn news(self, outcome: Outcome) -> News {
        News::Row { row: self.row, end: self.end, key: self.key, notes: self.notes, outcome }
    }
}

impl Notes {
    fn message(self, is_replayed: bool) -> String {
        let notes = [
            (is_replayed, "created by an earlier run"),
            (self.is_repeated, "the same as an earlier row in every field"),
            (self.is_phone_rewritten, "phone number rewritten as E.164"),
        ];
        let notes: Vec<_> = notes.into_iter().filter_map(|(is_so, note)| is_so.then_some(note)).collect();
        notes.join("; ")
    }
}

/// What a thread came to; its panic is a failure like others.
fn joined<T>(thread: thread::ScopedJoinHandle<'_, anyhow::Result<T>>) -> anyhow::Result<T> {
    thread.join().unwrap_or_else(|_| Err(anyhow::anyhow!("the program failed unexpectedly: run it again to go on")))
}
