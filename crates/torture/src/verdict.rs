//! The result of a run: a table, and a verdict of one word.

use std::fmt::Write;
use std::time::Duration;

use crate::audit::Findings;

/// The result of a run.
#[derive(Debug, Default)]
pub struct Verdict {
    pub(crate) lines: Vec<Line>,
    /// Faults that could not be tried, and why.
    pub left_out: Vec<String>,
}

/// Finding that a control must make, or the run would not notice it either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MustSee {
    Lost,
    Doubled,
    Returned,
    Misread,
    Admitted,
    Unnoticed,
    Unfollowed,
}

/// One fault, or one control.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) fault: &'static str,
    /// Finding that a control must make.
    pub(crate) must_see: Option<MustSee>,
    pub(crate) times: u64,
    pub(crate) found: Findings,
    pub(crate) time: Duration,
}

impl Verdict {
    /// Returns whether every control saw what it must, and no fault did any harm.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.lines.iter().all(|line| line.must_see.map_or_else(|| line.found.is_good(), |_| !line.is_blind()))
    }

    /// A table, and the verdict in words.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::from(
            "| fault | times | acknowledged | outcome unknown at first | lost | doubled | phantom | altered | wrong organisation | erased and back | misread | blocked and accepted | replacement not noticed | entry not followed | wrong answer | s until served | MiB of memory | seconds |\n\
             |---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
        );
        for Line { fault, must_see, times, found, time } in &self.lines {
            let role = if must_see.is_some() { "control: " } else { "" };
            let Findings {
                acknowledged,
                unknown,
                lost,
                doubled,
                phantom,
                altered,
                misplaced,
                returned,
                misread,
                admitted,
                unnoticed,
                unfollowed,
                wrong,
                ..
            } = found;
            let away = found.away.map(|away| format!("{:.2}", away.as_secs_f64())).unwrap_or_default();
            let memory = found.memory.map(|memory| (memory / 1024 / 1024).to_string()).unwrap_or_default();
            let _ = writeln!(
                text,
                "| {role}{fault} | {times} | {acknowledged} | {unknown} | {lost} | {doubled} | {phantom} | {altered} | {misplaced} | {returned} | {misread} | {admitted} | {unnoticed} | {unfollowed} | {wrong} | {away} | {memory} | {:.0} |",
                time.as_secs_f64()
            );
        }
        for line in self.lines.iter().filter(|line| line.must_see.is_none()) {
            for example in &line.found.examples {
                let _ = writeln!(text, "{}: {example}", line.fault);
            }
        }
        for left_out in &self.left_out {
            let _ = writeln!(text, "left out: {left_out}");
        }
        for Line { fault, must_see, .. } in self.lines.iter().filter(|line| line.is_blind()) {
            let what = must_see.map(|what| format!("{what:?}").to_lowercase()).unwrap_or_default();
            let _ = writeln!(text, "blind: a control found nothing {what}: {fault}");
        }
        text + if self.is_good() { "verdict: good\n" } else { "verdict: BAD\n" }
    }
}

impl Line {
    /// Returns whether it is a control that has not seen what it must.
    fn is_blind(&self) -> bool {
        let Findings { lost, doubled, returned, misread, admitted, unnoticed, unfollowed, .. } = &self.found;
        let seen = self.must_see.map(|must_see| match must_see {
            MustSee::Lost => lost,
            MustSee::Doubled => doubled,
            MustSee::Returned => returned,
            MustSee::Misread => misread,
            MustSee::Admitted => admitted,
            MustSee::Unnoticed => unnoticed,
            MustSee::Unfollowed => unfollowed,
        });
        seen == Some(&0)
    }
}
