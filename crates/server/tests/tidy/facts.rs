//! What documents name exists: filters of tests, names of the code, cells of tables, and rules that two pages state.

use std::collections::BTreeSet;
use std::fs;

use crate::{files, prose, root};

/// Makes a path of a file and a function the name by which a filter of `cargo test` finds it, as far as filters need.
fn tests_of(path: &str, text: &str) -> Vec<String> {
    let module = path.trim_end_matches(".rs").trim_end_matches("/mod").replace('/', "::");
    let after_attribute = text.split("#[test]").skip(1).chain(text.split("#[actix_web::test]").skip(1));
    let names = after_attribute.filter_map(|rest| rest.split_once("fn ")?.1.split(['(', '<']).next());
    names.map(|name| format!("{module}::{name}")).collect()
}

/// The filters of each `cargo test` in a text that names one target of tests, with the target.
fn filters(text: &str) -> Vec<(&str, &str)> {
    let commands = text.split("cargo test ").skip(1).map(|rest| rest.split(['`', '\n', '#']).next().unwrap());
    let parts = commands.filter_map(|command| command.split_once(" -- "));
    parts
        .filter_map(|(cargo, filters)| Some((cargo.split("--test ").nth(1)?.split(' ').next()?, filters)))
        .flat_map(|(target, filters)| filters.split_whitespace().map(move |filter| (target, filter)))
        .filter(|(_, filter)| !filter.starts_with('-') && !filter.contains(|letter: char| letter.is_ascii_uppercase()))
        .collect()
}

#[test]
fn every_filter_of_tests_that_is_named_finds_a_test() {
    let tests: Vec<_> = files(&[".rs"]).iter().flat_map(|(path, text)| tests_of(path, text)).collect();
    assert!(tests.len() > 500, "{}", tests.len());
    let finds = |target: &str, filter: &str| {
        let target = format!("tests::{target}::");
        tests.iter().any(|name| name.split_once(&target).is_some_and(|(_, test)| test.contains(filter)))
    };
    let (mut missing, mut found) = (Vec::new(), 0);
    for (path, text) in files(&[".md", "justfile"]) {
        for (target, filter) in filters(&text) {
            found += 1;
            missing.extend((!finds(target, filter)).then(|| format!("{path}: --test {target} -- {filter}")));
        }
    }
    assert!(missing.is_empty() && found > 3, "{found}: {missing:#?}");
    assert_eq!(filters("`cargo test -p intake --test a -- --ignored b::c NAME`"), [("a", "b::c")]);
    assert!(finds("blackbox", "api::") && !finds("blackbox", "whoever_floods"));
}

#[test]
fn every_fuzz_target_runs_each_night() {
    let workflow = &files(&[".yml"])[".github/workflows/nightly.yml"];
    let sources = files(&[".rs"]);
    let targets = sources.keys().filter_map(|path| path.strip_prefix("crates/fuzz/targets/")?.strip_suffix(".rs"));
    let targets: Vec<_> = targets.collect();
    assert!(targets.len() > 5, "{targets:?}");
    let missing: Vec<_> = targets.iter().filter(|target| !workflow.contains(&format!("- fuzz {target} "))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// The number of cells in the row of a table. A bar in code or behind a backslash separates none.
fn cells(row: &str) -> usize {
    let text: String = row.trim().replace("\\|", "").split('`').step_by(2).collect();
    text.matches('|').count().saturating_sub(1)
}

/// The rows outside a table, or with another number of cells than its header.
fn bad_rows(document: &str) -> Vec<usize> {
    let is_separator = |line: &str| line.contains('-') && line.chars().all(|letter| "|-: ".contains(letter));
    let lines = prose(document);
    let (mut bad, mut header) = (Vec::new(), None);
    for (at, (number, line)) in lines.iter().enumerate() {
        let is_row = line.trim_start().starts_with('|');
        if !is_row {
            header = None;
            continue;
        }
        let is_header = header.is_none() && lines.get(at + 1).is_some_and(|(_, next)| is_separator(next.trim()));
        header = header.or_else(|| is_header.then(|| cells(line)));
        bad.extend((header != Some(cells(line))).then_some(*number));
    }
    bad
}

#[test]
fn every_row_of_a_table_has_a_header_and_all_its_cells() {
    let documents = files(&[".md"]);
    let bad: Vec<_> = documents
        .iter()
        .flat_map(|(path, text)| bad_rows(text).into_iter().map(move |line| format!("{path}:{line}")))
        .collect();
    assert!(bad.is_empty(), "{bad:#?}");
    assert_eq!(bad_rows("| a | b |\n|---|---|\n| `c|d` | e |\n| f | | g |\n\n| h | i |\n"), [4, 6]);
}

/// The names in code spans such as `Field::ALL`: a type and its member.
fn names(document: &str) -> BTreeSet<(String, String)> {
    let text: String = prose(document).into_iter().map(|(_, line)| format!("{line}\n")).collect();
    let is_name = |text: &str| text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    let is_type = |text: &str| is_name(text) && text.starts_with(|first: char| first.is_ascii_uppercase());
    let spans = text.split('`').skip(1).step_by(2).filter_map(|span| span.split_once("::"));
    let members = spans.filter(|(of, member)| is_type(of) && is_name(member));
    members.map(|(of, member)| (of.to_owned(), member.to_owned())).collect()
}

#[test]
fn every_member_of_a_type_that_is_named_exists() {
    let sources = files(&[".rs"]);
    let is_letter = |letter: Option<char>| letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '_');
    let has = |text: &str, word: &str| {
        text.match_indices(word).any(|(at, _)| {
            !is_letter(text[..at].chars().next_back()) && !is_letter(text[at + word.len()..].chars().next())
        })
    };
    let exists = |of: &str, member: &str| {
        let is_about = |line: &str| ["struct", "enum", "trait", "impl"].iter().any(|word| has(line, word));
        let defines = |text: &str| text.lines().any(|line| has(line, of) && is_about(line));
        sources.values().any(|text| has(text, member) && defines(text))
    };
    let mut missing = Vec::new();
    for (path, document) in files(&[".md"]) {
        let absent = names(&document).into_iter().filter(|(of, member)| !exists(of, member));
        missing.extend(absent.map(|(of, member)| format!("{path}: {of}::{member}")));
    }
    assert!(missing.is_empty(), "{missing:#?}");
    assert!(exists("Field", "ALL") && !exists("Field", "COUNT"));
    assert_eq!(names("`Field::ALL` `a::b` ``").len(), 1);
}

/// The numbers of three digits in a text.
fn statuses(text: &str) -> BTreeSet<&str> {
    text.split(|letter: char| !letter.is_ascii_digit()).filter(|number| number.len() == 3).collect()
}

/// The statuses in the rows of a table that end in this cell.
fn statuses_of_rows<'a>(table: &'a str, end: &str) -> BTreeSet<&'a str> {
    let rows = table.lines().filter(|row| row.ends_with(&format!("| {end} |")));
    rows.filter_map(|row| row.split('|').nth(1)).flat_map(statuses).collect()
}

#[test]
fn forms_and_programs_retry_the_same_statuses() {
    let documents = files(&[".md"]);
    let (_, forms) = documents["docs/forms.md"].split_once("\nretry on ").unwrap();
    let guide = statuses_of_rows(&documents["docs/integrating.md"], "Retry, as in section 4.");
    assert_eq!(statuses(forms.split_once('.').unwrap().0), guide);
    // The service sends neither 502 nor 504: these are a proxy's.
    let own = statuses_of_rows(&documents["docs/errors.md"], "yes");
    assert_eq!(own.union(&["502", "504"].into()).copied().collect::<BTreeSet<_>>(), guide);
    assert_eq!(own.len(), 4, "{own:?}");
}

#[test]
fn every_command_of_the_page_that_installs_is_run() {
    let page = &files(&[".md"])["docs/operations/install.md"];
    let check = fs::read_to_string(root().join("crates/server/packaging/check-inside")).unwrap();
    let sections = page.split("\n## ").skip(1).filter(|section| section.contains("```sh\n"));
    let headings: Vec<_> = sections.filter_map(|section| section.lines().next()).collect();
    assert!(headings.len() > 7, "{headings:?}");
    let is_run = |heading: &&str| check.contains(&format!("\"{heading}\""));
    let missing: Vec<_> = headings.into_iter().filter(|heading| !is_run(heading)).collect();
    assert_eq!(missing, ["Run in a container"], "what `just package-check` does not run");
}

#[test]
fn help_explains_every_status_of_a_key() {
    let help = &files(&[".md"])["docs/clinics.md"];
    let list = &files(&[".rs"])["crates/dashboard/src/api_keys/status.rs"];
    let calls = list.split("of(\"").skip(1).chain(list.split("noted(\"").skip(1));
    let words: Vec<_> = calls.filter_map(|rest| rest.split("\", \"").nth(1)?.split('"').next()).collect();
    assert!(words.len() > 8, "{words:?}");
    let missing: Vec<_> = words.into_iter().filter(|word| !help.contains(&format!("**{word}**"))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
