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

/// The numbers in a text that have three digits, without their commas.
fn numbers(text: &str) -> Vec<String> {
    let words = text.split(|letter: char| !(letter.is_ascii_digit() || ".,".contains(letter)));
    let words = words.map(|word| word.trim_end_matches(['.', ',']).replace(',', ""));
    words.filter(|word| word.chars().filter(char::is_ascii_digit).count() > 2).collect()
}

#[test]
fn every_figure_of_the_readme_is_measured_by_a_recipe_and_stands_in_its_page() {
    let documents = files(&[".md"]);
    let recipes = &files(&["justfile", ".toml"])["justfile"];
    let (_, table) = documents["README.md"].split_once("| Figure | Proved by |\n|---|---|\n").unwrap();
    let rows: Vec<_> = table.lines().take_while(|line| line.starts_with('|')).collect();
    assert!(rows.len() > 2, "{rows:?}");
    let pages = ["docs/performance.md", "docs/reliability.md"].map(|page| numbers(&documents[page]));
    for row in rows {
        let (figure, proof) = row.trim_matches('|').split_once('|').unwrap();
        let recipe = proof.split_once("`just ").unwrap().1.split('`').next().unwrap();
        assert!(recipes.contains(&format!("\n{recipe} ")), "{recipe}");
        assert!(numbers(figure).iter().all(|number| pages.iter().any(|page| page.contains(number))), "{row}");
    }
    assert_eq!(numbers("863,699 in 4.37 ms, 46 or 34.1."), ["863699", "4.37", "34.1"]);
}

#[test]
fn who_installs_finds_the_sizes() {
    let documents = files(&[".md"]);
    for page in ["README.md", "docs/operations/install.md"] {
        assert!(documents[page].contains("sizes.md)"), "{page}");
    }
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
