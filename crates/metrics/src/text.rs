//! Prometheus' text format, version 0.0.4.

use std::fmt::{Display, Write};

/// The media type of the text.
pub const MEDIA_TYPE: &str = "text/plain; version=0.0.4";

/// The text of all metrics, family after family.
#[derive(Debug, Default)]
pub struct MetricsText(String);

/// Kind of the numbers of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Numbers that only grow.
    Counter,
    /// Numbers that go up and down.
    Gauge,
    /// Counts in buckets.
    Histogram,
}

/// The samples of one metric, which differ by their labels.
#[derive(Debug)]
pub struct Family<'a> {
    text: &'a mut String,
    name: &'static str,
}

impl MetricsText {
    /// Begins a family.
    pub fn family(&mut self, name: &'static str, help: &str, kind: Kind) -> Family<'_> {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        Family { text: &mut self.0, name }
    }

    /// Adds a family of one counter without labels.
    pub fn counter(&mut self, name: &'static str, help: &str, value: impl Display) {
        self.family(name, help, Kind::Counter).sample(&[], value);
    }

    /// Adds a family of one gauge without labels.
    pub fn gauge(&mut self, name: &'static str, help: &str, value: impl Display) {
        self.family(name, help, Kind::Gauge).sample(&[], value);
    }

    /// The whole text.
    #[must_use]
    pub fn into_text(self) -> String {
        self.0
    }
}

impl Family<'_> {
    /// Adds a sample.
    pub fn sample(&mut self, labels: &[(&str, &str)], value: impl Display) {
        self.part("", labels, None, value);
    }

    pub(crate) fn part(
        &mut self,
        suffix: &str,
        labels: &[(&str, &str)],
        more: Option<(&str, &str)>,
        value: impl Display,
    ) {
        let _ = write!(self.text, "{}{suffix}", self.name);
        for (index, (name, value)) in labels.iter().chain(&more).enumerate() {
            let before = if index == 0 { '{' } else { ',' };
            let _ = write!(self.text, "{before}{name}=\"{}\"", escaped(value));
        }
        let end = if labels.is_empty() && more.is_none() { "" } else { "}" };
        let _ = writeln!(self.text, "{end} {value}");
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_label_stays_within_its_quotes() {
        let mut text = MetricsText::default();
        text.counter("a_total", "A.", 3);
        text.family("b", "B.", Kind::Gauge).sample(&[("x", "1"), ("y", "a\"b\\c\nd")], 0.5);
        let expected = "# HELP a_total A.\n# TYPE a_total counter\na_total 3\n\
            # HELP b B.\n# TYPE b gauge\nb{x=\"1\",y=\"a\\\"b\\\\c\\nd\"} 0.5\n";
        assert_eq!(text.into_text(), expected);
    }
}
