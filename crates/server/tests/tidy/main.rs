//! The rules of docs/STYLE.md that a program can check.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

mod entrance;
mod facts;
mod glossary;

const MOST_COLUMNS: usize = 120;
const MOST_WORDS: usize = 40;
/// Without the tests at the end of a file.
const MOST_LINES: usize = 300;

/// A count from before this rule. Lower it; never raise it.
const LONG_SOURCES: usize = 9;

/// Words and phrases that make sentences hard to read, or that have a plainer twin.
const BANNED: [&str; 15] = [
    "whoever",
    "somebody",
    "is told",
    "are told",
    "so many",
    "whose a key",
    "deed",
    "in the ordinary way",
    "stands under",
    "has the right of way",
    "vouch",
    "weakness",
    "tells of",
    "that is none",
    "at a moment",
];

/// First words of a doc comment that is a fragment.
const PREPOSITIONS: [&str; 4] = ["Of", "By", "From", "Into"];

/// First words of a doc comment that asks instead of naming.
const QUESTIONS: [&str; 6] = ["What", "How", "Whether", "Why", "When", "Where"];

/// Tests aside.
const FUNCTION_LINES_MAX: usize = 50;

/// Things that one name may mean in a crate.
const MEANINGS_MAX: usize = 3;

/// Functions whose name says little. They count as types do.
const VAGUE_FUNCTIONS: [&str; 3] = ["begin", "of", "page"];

/// Names with more meanings from before this rule. Lower them; never raise one.
const WORN_NAMES: [(&str, &str, usize); 7] = [
    ("dashboard", "page", 28),
    ("domain", "of", 8),
    ("http", "of", 6),
    ("infra", "Found", 5),
    ("infra", "begin", 10),
    ("infra", "of", 4),
    ("server", "of", 4),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

/// The files of the repository with one of these endings, without what is built or downloaded, and their text.
fn files(endings: &[&str]) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root().to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()) {
            let name = entry.file_name().into_string().unwrap();
            if entry.file_type().unwrap().is_dir() {
                if !["target", ".git", ".intake", "node_modules", "corpus"].contains(&name.as_str()) {
                    folders.push(entry.path());
                }
            } else if endings.iter().any(|ending| name.ends_with(ending)) {
                let path = entry.path().strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
                found.insert(path, fs::read_to_string(entry.path()).unwrap());
            }
        }
    }
    assert!(found.len() > 5, "{found:?}");
    found
}

/// The lines of a document outside blocks of code and comments, with their numbers.
fn prose(document: &str) -> Vec<(usize, &str)> {
    let mut is_code = false;
    let mut lines = Vec::new();
    for (number, line) in (1..).zip(document.lines()) {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code && !line.trim_start().starts_with("<!--") {
            lines.push((number, line));
        }
    }
    lines
}

/// The sentences of a document, without headings, tables and code; an item of a list is one or more.
fn sentences(document: &str) -> Vec<String> {
    let mut paragraphs = vec![String::new()];
    for (_, line) in prose(document) {
        let line = line.trim();
        let is_text = !line.starts_with(['#', '|', '<']) && !line.is_empty();
        let is_item = line.starts_with("- ") || line.split_once(". ").is_some_and(|(n, _)| n.parse::<u8>().is_ok());
        if !is_text || is_item {
            paragraphs.push(String::new());
        }
        if is_text {
            paragraphs.last_mut().unwrap().push_str(&format!("{line} "));
        }
    }
    let ends = [". ", "? ", "! ", ": ", "; "];
    let split = |text: String| {
        let text = ends.iter().fold(text, |text, end| text.replace(end, "\n"));
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    paragraphs.into_iter().flat_map(split).collect()
}

/// As platforms make it of a heading.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text.chars().filter(|letter| letter.is_alphanumeric() || "-_ ".contains(*letter));
    kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}

fn links(document: &str) -> Vec<String> {
    let text: String = prose(document).into_iter().map(|(_, line)| format!("{line}\n")).collect();
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
    let local = targets.filter(|target| !target.contains("://") && !target.starts_with('/'));
    local.map(str::to_owned).collect()
}

/// Looks if a part of this link does not exist.
fn is_dead(from: &str, target: &str, documents: &BTreeMap<String, String>) -> bool {
    let (path, heading) = target.split_once('#').unwrap_or((target, ""));
    let mut found = PathBuf::from(from);
    if !path.is_empty() {
        found.pop();
        for part in Path::new(path).components() {
            if part.as_os_str() == ".." {
                found.pop();
            } else {
                found.push(part);
            }
        }
    }
    let has_heading = |document: &String| {
        let headings = prose(document).into_iter().filter(|(_, line)| line.starts_with('#'));
        headings.into_iter().any(|(_, line)| anchor(line) == heading)
    };
    let document = documents.get(found.to_str().unwrap());
    !root().join(&found).exists() || (!heading.is_empty() && !document.is_some_and(has_heading))
}

#[test]
fn every_link_leads_somewhere() {
    let documents = files(&[".md"]);
    let dead: Vec<_> = documents
        .iter()
        .flat_map(|(path, document)| links(document).into_iter().map(move |target| (path, target)))
        .filter(|(path, target)| is_dead(path, target, &documents))
        .collect();
    assert!(dead.is_empty(), "{dead:#?}");
    for (target, expected) in [("api.md", false), ("api.md#fields", false), ("api.md#none", true), ("no.md", true)] {
        assert_eq!(is_dead("docs/reading.md", target, &documents), expected, "{target}");
    }
}

#[test]
fn the_index_has_every_page_once() {
    let documents = files(&[".md"]);
    let index = "docs/README.md";
    let listed = links(&documents[index]);
    // A folder that is listed as one, because its files are named after their content.
    let is_page = |page: &&str| *page != "README.md" && !page.starts_with("decisions/");
    let pages = documents.keys().filter_map(|path| path.strip_prefix("docs/")).filter(is_page);
    let wrong: Vec<_> = pages.filter(|page| listed.iter().filter(|target| target == page).count() != 1).collect();
    assert_eq!(wrong, [""; 0], "{index}");
}

#[test]
fn documents_name_only_sources_that_exist() {
    let sources: Vec<_> = files(&[".rs"]).into_keys().map(|path| format!("/{path}")).collect();
    let mut missing = Vec::new();
    for (path, document) in files(&[".md"]) {
        let lines: String = prose(&document).into_iter().map(|(_, line)| format!("{line}\n")).collect();
        let names = lines.split('`').filter(|name| name.ends_with(".rs") && !name.contains(char::is_whitespace));
        let missed = names.filter(|name| !sources.iter().any(|source| source.ends_with(&format!("/{name}"))));
        missing.extend(missed.map(|name| format!("{path}: {name}")));
    }
    assert_eq!(missing, [""; 0]);
}

/// Returns what follows this text in a file: the name of a version.
fn version_after(file: &str, before: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join(file)).unwrap();
    let versions = text.split(before).skip(1).filter(|rest| rest.starts_with(|first: char| first.is_ascii_digit()));
    let versions: Vec<_> = versions
        .map(|rest| rest.split(|letter: char| !(letter.is_ascii_digit() || letter == '.')).next().unwrap())
        .map(|version| version.trim_end_matches('.').to_owned())
        .collect();
    assert!(!versions.is_empty(), "{file}: {before}");
    versions
}

#[test]
fn every_version_is_the_same_everywhere() {
    let tools = "crates/server/tests/integrators/tools";
    let [python, generators, node] =
        ["requirements.txt", "generators.txt", "package.json"].map(|file| format!("{tools}/{file}"));
    let guide = "docs/integrating.md";
    for (source, before, copies) in [
        (
            "Cargo.toml",
            "\nversion = \"",
            &[
                ("compose.dev.yaml", "image: intake:"),
                ("docs/operations/install.md", "intake_"),
                ("docs/operations/kubernetes.yaml", "registry.example/intake:"),
                ("docs/operations/kubernetes-deliver.yaml", "registry.example/intake:"),
            ][..],
        ),
        (
            "Cargo.toml",
            "rust-version = \"",
            &[
                ("README.md", "rustup.rs) "),
                ("docs/CONTRIBUTING.md", "rustup.rs) ("),
                ("crates/fuzz/Cargo.toml", "rust-version = \""),
                ("crates/server/packaging/Containerfile", "rust:"),
                (".github/workflows/ci.yml", "rust:"),
                (".github/workflows/nightly.yml", "rust:"),
            ],
        ),
        (
            ".github/workflows/ci.yml",
            "cargo-auditable@",
            &[("crates/server/packaging/Containerfile", "cargo-auditable@")],
        ),
        (".github/workflows/ci.yml", "just@", &[(".github/workflows/nightly.yml", "just@")]),
        (&generators, "openapi-generator-cli==", &[(guide, "| openapi-generator | ")]),
        (&python, "openapi-python-client==", &[(guide, "| openapi-python-client | ")]),
        (&python, "datamodel-code-generator==", &[(guide, "| datamodel-code-generator | ")]),
        (&node, "openapi-typescript\": \"", &[(guide, "| openapi-typescript with openapi-fetch | ")]),
        (&node, "@hey-api/openapi-ts\": \"", &[(guide, "| @hey-api/openapi-ts | ")]),
        (&node, "orval\": \"", &[(guide, "| orval | ")]),
        (&node, "swagger-typescript-api\": \"", &[(guide, "| swagger-typescript-api | ")]),
    ] {
        let version = version_after(source, before).remove(0);
        for (file, before) in copies {
            assert!(version_after(file, before).iter().all(|copy| *copy == version), "{file}: {before}{version}");
        }
    }
}

#[test]
fn lines_are_not_too_long() {
    let documents = files(&[".md"]).into_iter().flat_map(|(path, text)| {
        let lines = prose(&text).into_iter().filter(|(_, line)| !line.starts_with(['|', '<']) && !line.contains("://"));
        lines.map(|(number, line)| (format!("{path}:{number}"), line.to_owned())).collect::<Vec<_>>()
    });
    let long: Vec<_> = documents.filter(|(_, line)| line.chars().count() > MOST_COLUMNS).collect();
    assert!(long.is_empty(), "{long:#?}");
}

#[test]
fn sentences_are_short_and_plain() {
    let mut faults = Vec::new();
    for (path, text) in files(&[".md"]) {
        for sentence in sentences(&text) {
            // Without code.
            let lower = sentence.split('`').step_by(2).collect::<String>().to_lowercase();
            let banned = BANNED.iter().filter(|word| lower.contains(*word) && path != "docs/STYLE.md");
            faults.extend(banned.map(|word| format!("{path}: \"{word}\" in: {sentence}")));
            if sentence.split_whitespace().count() > MOST_WORDS {
                faults.push(format!("{path}: too long: {sentence}"));
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    let text = "# Whoever\n\n```sh\nwhoever\n```\n\n- One. Two\n  continues; three.\n- Four\n";
    let found: Vec<_> =
        sentences(text).iter().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect();
    assert_eq!(found, ["- One", "Two continues", "three", "- Four"]);
}

#[test]
fn sources_do_not_grow_too_long() {
    let lines = |text: &str| text.split("#[cfg(test)]\nmod ").next().unwrap().lines().count();
    let sources = files(&[".rs"]).into_iter().filter(|(path, _)| !path.contains("/tests/"));
    let long: Vec<_> = sources.filter(|(_, text)| lines(text) > MOST_LINES).map(|(path, _)| path).collect();
    assert!(long.len() <= LONG_SOURCES, "{long:#?}");
}

#[test]
fn comments_and_names_are_narrow_and_plain() {
    let mut faults = Vec::new();
    for (path, text) in files(&[".rs"]) {
        // A test's name is a sentence, too.
        let is_prose = |line: &str| line.starts_with("//") || line.starts_with("fn ");
        for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| is_prose(line.trim_start())) {
            let lower = line.split('`').step_by(2).collect::<String>().to_lowercase().replace('_', " ");
            let is_banned = BANNED.iter().any(|word| lower.contains(word));
            if is_banned || (line.contains("//") && line.chars().count() > MOST_COLUMNS) {
                faults.push(format!("{path}:{number}: {line}"));
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

/// The first lines of the doc comments of a source, with their numbers.
fn doc_comments(text: &str) -> Vec<(usize, &str)> {
    let lines = || text.lines().map(str::trim_start);
    let starts = (2..).zip(lines().zip(lines().skip(1))).filter(|(_, (before, _))| !before.starts_with("///"));
    starts.filter_map(|(number, (_, line))| Some((number, line.strip_prefix("/// ")?))).collect()
}

/// Says if a comment begins with a preposition or a question, instead of a noun or a verb.
fn is_fragment(comment: &str) -> bool {
    let first = comment.split(|letter: char| !letter.is_alphabetic()).next().unwrap_or_default();
    PREPOSITIONS.contains(&first) || QUESTIONS.contains(&first)
}

#[test]
fn doc_comments_begin_with_a_noun_or_a_verb() {
    let mut found = Vec::new();
    for (path, text) in files(&[".rs"]) {
        let comments = doc_comments(&text).into_iter().filter(|(_, comment)| is_fragment(comment));
        found.extend(comments.map(|(line, comment)| format!("{path}:{line}: {comment}")));
    }
    assert!(found.is_empty(), "{found:#?}");
    let text = "fn a() {}\n/// Whether, or not.\n/// When\nfn b() {}\n    /// Howling\n";
    let found = doc_comments(text).into_iter().map(|(line, comment)| (line, is_fragment(comment)));
    assert_eq!(found.collect::<Vec<_>>(), [(2, true), (5, false)]);
}

/// The folder of a crate's source.
fn crate_of(path: &str) -> &str {
    path.split('/').nth(1).unwrap_or_default()
}

/// The source of all crates by path, without tests.
fn sources() -> impl Iterator<Item = (String, String)> {
    let sources = files(&[".rs"]).into_iter().filter(|(path, _)| path.starts_with("crates/") && path.contains("/src/"));
    sources.map(|(path, text)| (path, text.split("#[cfg(test)]\nmod ").next().unwrap().to_owned()))
}

/// The name that a line defines with one of these keywords.
fn defined<'a>(line: &'a str, keywords: &[&str]) -> Option<&'a str> {
    let mut words = line.split_whitespace();
    let is_before = |word: &&str| word.starts_with("pub") || ["async", "const", "unsafe"].contains(word);
    keywords.contains(&words.find(|word| !is_before(word))?).then_some(())?;
    words.next()?.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next()
}

/// The functions of a source as rustfmt writes it, with their numbers of lines.
fn functions(text: &str) -> Vec<(&str, usize)> {
    let depth = |line: &str| line.len() - line.trim_start().len();
    let length = |at: usize, first: &str| {
        let is_end = |line: &str| depth(line) == depth(first) && (line.ends_with(';') || line.ends_with('}'));
        1 + text.lines().skip(at).position(is_end).unwrap()
    };
    let starts = text.lines().enumerate().filter_map(|(at, line)| Some((at, line, defined(line, &["fn"])?)));
    starts.map(|(at, line, name)| (name, length(at, line))).collect()
}

#[test]
fn functions_do_not_grow_too_long() {
    let mut long = Vec::new();
    for (path, text) in sources() {
        let found = functions(&text).into_iter().filter(|(_, lines)| *lines > FUNCTION_LINES_MAX);
        long.extend(found.map(|(name, lines)| format!("{path}: {name}: {lines}")));
    }
    assert!(long.is_empty(), "{long:#?}");
    let text =
        "trait A {\n    fn a(\n        &self,\n    );\n    fn b() {}\n}\npub(crate) async fn c() {\n    d();\n}\n";
    assert_eq!(functions(text), [("a", 3), ("b", 1), ("c", 3)]);
}

#[test]
fn a_name_means_few_things_in_a_crate() {
    let mut meanings = BTreeMap::<_, Vec<_>>::new();
    for (path, text) in sources() {
        let types = text.lines().filter_map(|line| defined(line, &["enum", "struct", "trait"]));
        let functions = text.lines().filter_map(|line| defined(line, &["fn"]));
        for name in types.chain(functions.filter(|name| VAGUE_FUNCTIONS.contains(name))) {
            meanings.entry((crate_of(&path).to_owned(), name.to_owned())).or_default().push(path.clone());
        }
    }
    let most = |(of, name): &(String, String)| {
        let worn = WORN_NAMES.iter().find(|worn| (worn.0, worn.1) == (of, name));
        worn.map_or(MEANINGS_MAX, |(_, _, left)| *left)
    };
    meanings.retain(|name, places| places.len() > most(name));
    assert!(meanings.is_empty(), "{meanings:#?}");
}

#[test]
fn the_hook_checks_the_form_of_commit_messages() {
    let accepts = |message: &str| {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(message.as_bytes()).unwrap();
        let hook = root().join(".ci/hooks/commit-msg");
        Command::new("sh").arg(hook).arg(file.path()).output().unwrap().status.success()
    };
    for good in ["keys: refuse a second note\n", "docs, tests: name the page\n\nWhy.\n", "Merge branch 'x'\n"] {
        assert!(accepts(good), "{good}");
    }
    let long = format!("keys: {}\n", "x".repeat(67));
    for bad in ["Refuse a note\n", "keys: refuse a note.\n", "keys: refuse\nWhy.\n", "keys:\n", &long] {
        assert!(!accepts(bad), "{bad}");
    }
}
