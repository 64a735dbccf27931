//! The result of a run: a table, and a verdict of one word.

use std::fmt::Write;
use std::time::Duration;

use crate::audit::Findings;

/// The result of a run.
#[derive(Debug, Default)]
pub struct Verdict {
    pub(crate) lines: Vec<Line>,
    /// What could not be tried, and why.
    pub left_out: Vec<String>,
}

/// One fault, or one control.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) fault: &'static str,
    pub(crate) is_control: bool,
    pub(crate) times: u64,
    pub(crate) found: Findings,
    pub(crate) time: Duration,
}

impl Verdict {
    /// Whether every control lost something, and no fault did any harm.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.lines.iter().all(|line| if line.is_control { line.found.lost > 0 } else { line.found.is_good() })
    }

    /// A table, and the verdict in words.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::from(
            "| fault | times | acknowledged | outcome unknown at first | lost | doubled | phantom | altered | wrong organisation | wrong answer | s until served | MiB of memory | seconds |\n\
             |---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
        );
        for Line { fault, is_control, times, found, time } in &self.lines {
            let role = if *is_control { "control: " } else { "" };
            let Findings { acknowledged, unknown, lost, doubled, phantom, altered, misplaced, wrong, .. } = found;
            let away = found.away.map(|away| format!("{:.2}", away.as_secs_f64())).unwrap_or_default();
            let memory = found.memory.map(|memory| (memory / 1024 / 1024).to_string()).unwrap_or_default();
            let _ = writeln!(
                text,
                "| {role}{fault} | {times} | {acknowledged} | {unknown} | {lost} | {doubled} | {phantom} | {altered} | {misplaced} | {wrong} | {away} | {memory} | {:.0} |",
                time.as_secs_f64()
            );
        }
        for line in self.lines.iter().filter(|line| !line.is_control) {
            for example in &line.found.examples {
                let _ = writeln!(text, "{}: {example}", line.fault);
            }
        }
        for left_out in &self.left_out {
            let _ = writeln!(text, "left out: {left_out}");
        }
        let blind = self.lines.iter().filter(|line| line.is_control && line.found.lost == 0);
        for line in blind {
            let _ = writeln!(text, "blind: a control lost nothing: {}", line.fault);
        }
        text + if self.is_good() { "verdict: good\n" } else { "verdict: BAD\n" }
    }
}
