//! What people and programs do beside the clients that create patients, under every fault: patients are erased, keys
//! are blocked, files are imported, passwords are changed, and members lose what they may do.

use std::path::Path;
use std::process::Output;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use intake_infra::Durability;
use intake_test_support::ServiceBuilder;
use serde_json::Value;

use crate::audit::Findings;
use crate::imports::Import;
use crate::journal::Journal;
use crate::test_bed::TestBed;
use crate::traffic::Traffic;

/// Between two tries of what a fault prevents.
pub(crate) const PAUSE: Duration = Duration::from_millis(100);

/// The operations of one run.
pub(crate) struct Operations<'a> {
    pub(crate) program: &'a Path,
    pub(crate) seed: u64,
    pub(crate) bed: &'a TestBed,
    pub(crate) journal: &'a Journal,
    pub(crate) traffic: &'a Traffic<'a>,
    /// No fault strikes any more.
    pub(crate) is_over: &'a AtomicBool,
}

/// Findings of operations, and the imports that are complete.
pub(crate) type Outcome = anyhow::Result<(Findings, Vec<Import>)>;

impl<'a> Operations<'a> {
    /// Starts all of them; none where the database may forget what was done.
    pub(crate) fn start<'s>(&'s self, scope: &'s Scope<'s, 'a>) -> Vec<ScopedJoinHandle<'s, Outcome>>
    where
        'a: 's,
    {
        if self.bed.urls.service.durability() == Durability::None {
            return Vec::new();
        }
        vec![
            scope.spawn(|| Ok((self.erase_patients()?, Vec::new()))),
            scope.spawn(|| Ok((self.block_keys()?, Vec::new()))),
            scope.spawn(|| self.import_files()),
            scope.spawn(|| Ok((self.change_passwords()?, Vec::new()))),
            scope.spawn(|| Ok((self.change_members()?, Vec::new()))),
        ]
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    /// Tries something until it is done, which must be soon after the last fault.
    pub(crate) fn until_done<T>(
        &self,
        what: &str,
        mut attempt: impl FnMut() -> Result<T, String>,
    ) -> anyhow::Result<T> {
        let mut gives_up = None;
        loop {
            match attempt() {
                Ok(done) => return Ok(done),
                Err(error) if gives_up.is_some_and(|gives_up| Instant::now() > gives_up) => {
                    return Err(anyhow!("{what} fails, although all faults are over: {error}"));
                }
                Err(_) => std::thread::sleep(PAUSE),
            }
            if self.is_over() {
                gives_up.get_or_insert_with(|| Instant::now() + self.traffic.patience());
            }
        }
    }

    /// Runs a command that makes something, and returns what it printed.
    pub(crate) fn made(&self, arguments: &[&str]) -> anyhow::Result<Value> {
        let arguments = [arguments, &["--json"]].concat();
        Ok(serde_json::from_str(&self.until_done(&arguments.join(" "), || self.command(&arguments))?)?)
    }

    /// Runs a command of the program as the owner of the register. Returns its output, or its complaint.
    pub(crate) fn command(&self, arguments: &[&str]) -> Result<String, String> {
        command(self.program, self.bed, arguments)
    }
}

/// Runs a command of the program as the owner of a register.
pub(crate) fn command(program: &Path, bed: &TestBed, arguments: &[&str]) -> Result<String, String> {
    let builder = ServiceBuilder::in_folder(&program.to_string_lossy(), &bed.folder.join("operator"));
    let builder = builder.database_urls(&bed.urls.owner, &bed.urls.owner);
    // In production no link is made without it.
    let builder = builder.setting("INTAKE_PUBLIC_URL", "https://localhost");
    let builder = builder.setting("INTAKE_ENVIRONMENT", bed.environment.as_str());
    let Output { status, stdout, stderr } =
        arguments.iter().fold(builder, |builder, argument| builder.argument(argument)).run();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if status.success() { Ok(text(&stdout)) } else { Err(text(&stderr)) }
}

/// A member of what a command printed.
pub(crate) fn text<'a>(made: &'a Value, member: &str) -> anyhow::Result<&'a str> {
    made.get(member).and_then(Value::as_str).with_context(|| format!("a command printed no {member}"))
}
