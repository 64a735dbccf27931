//! The entrance: documents are short, the README above all, and the roadmap names nothing that exists.

use crate::files;

/// Enough for a newcomer with five minutes.
const README_WORDS_MAX: usize = 500;
/// All documents together, without docs/examples. Before you raise it, say each thing once and link.
const DOCUMENTS_WORDS_MAX: usize = 36_000;
/// Letters of a word that are compared: "archive" and "archives" are one word.
const STEM: usize = 6;

#[test]
fn documents_are_short() {
    let documents = files(&[".md"]);
    let words = |text: &String| text.split_whitespace().count();
    assert!(words(&documents["README.md"]) <= README_WORDS_MAX, "{} words", words(&documents["README.md"]));
    let all: usize = documents.values().map(words).sum();
    assert!((10_000..=DOCUMENTS_WORDS_MAX).contains(&all), "{all} words");
}

/// The items of a list, each in one line, from this heading on.
fn items(document: &str, heading: &str) -> Vec<String> {
    let mut items = Vec::new();
    for line in document.split_once(heading).unwrap().1.lines() {
        let is_item = line.starts_with("- ") || line.starts_with(|first: char| first.is_ascii_digit());
        match items.last_mut() {
            _ if is_item => items.push(line.to_owned()),
            Some(item) if line.starts_with("  ") => *item = format!("{item} {}", line.trim()),
            _ => {}
        }
    }
    items
}

fn stems(item: &str) -> Vec<String> {
    let words = item.split(|letter: char| !letter.is_alphanumeric()).map(str::to_lowercase);
    words.filter(|word| word.len() > 4).map(|word| word.chars().take(STEM).collect()).collect()
}

/// Says if most of what an item of the roadmap is about is in one item of the changelog.
fn is_done(item: &str, change: &str) -> bool {
    let (item, change) = (stems(item), stems(change));
    5 * item.iter().filter(|stem| change.contains(stem)).count() >= 3 * item.len()
}

#[test]
fn the_roadmap_names_nothing_that_the_changelog_has() {
    let documents = files(&[".md"]);
    let ahead = items(&documents["ROADMAP.md"], "**Before 1.0**");
    let changes = items(&documents["CHANGELOG.md"], "## [Unreleased]");
    assert!(ahead.len() >= 3 && changes.len() > 30, "{ahead:?}");
    let done: Vec<_> = ahead.iter().filter(|item| changes.iter().any(|change| is_done(item, change))).collect();
    assert!(done.is_empty(), "{done:#?}");
    let traces = "- `/livez`, and metrics;\n  traces with the feature `otlp`.";
    assert!(is_done("4. OpenTelemetry traces, as a feature.", &items(&format!("#\n{traces}"), "#")[0]));
}
