//! One word for one thing, wherever people read: the table at the end of docs/STYLE.md names the words to leave out.

use crate::{BANNED, files};

/// Not words of ours, or about the words themselves.
const LEFT_OUT: [&str; 4] = ["docs/STYLE.md", "docs/openapi.json", "package-lock.json", "conversions.json"];
/// Files that operators and integrators read, edit and run, beside documents.
const PACKAGING: [&str; 6] =
    ["crates/server/packaging/", "docs/operations/", "docs/examples/", "compose.dev.yaml", "justfile", ".github/"];
const ENDINGS: &str = ".yml .yaml .cfg .conf .service .socket .timer .env .json .sql .py .sh .mjs .cs .java .php .go .rb \
    justfile Containerfile archive audit-copy bill-of-materials check check-inside documents drill postinst release restore";

/// The words in the left column of the table.
fn banned(style: &str) -> Vec<&str> {
    let (_, rows) = style.split_once("\n| Not | But |\n").unwrap();
    rows.lines().filter_map(|row| row.split('|').nth(1)).flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect()
}

/// A text in lower case without code, with one space between its words.
fn plain(text: &str) -> String {
    spaced(&text.split('`').step_by(2).collect::<Vec<_>>().join(" "))
}

fn spaced(text: &str) -> String {
    let text = text.to_lowercase().replace("\\n", " ").replace('\\', " ");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The blocks of code of a document, with their comments.
fn code_of(document: &str) -> String {
    document.split("```").skip(1).step_by(2).collect()
}

fn has(text: &str, word: &str) -> bool {
    let is_letter =
        |letter: Option<char>| letter.is_some_and(|letter| letter.is_alphanumeric() || "_-{}".contains(letter));
    text.match_indices(word).any(|(at, _)| {
        let is_whole = !is_letter(text[..at].chars().next_back());
        is_whole
            && !is_letter(text[at + word.len()..].chars().next())
            && !text[at + word.len()..].starts_with(" server")
    })
}

/// The texts of a page, without its tags and the names of values.
fn of_template(template: &str) -> String {
    let mut text = template.to_owned();
    for (start, end) in [("{%", "%}"), ("{{", "}}"), ("<", ">")] {
        while let Some((before, rest)) = text.split_once(start) {
            text = format!("{before} {}", rest.split_once(end).map_or("", |(_, after)| after));
        }
    }
    text
}

/// The strings of a source that have more than one word, and what its command line says of itself: comments there are
/// help.
fn of_source(source: &str) -> Vec<String> {
    let code = source.split("#[cfg(test)]\nmod ").next().unwrap();
    let is_comment = |line: &&str| line.trim_start().starts_with("//");
    let help = code.lines().filter(|line| code.contains("clap::") && line.trim_start().starts_with("/// "));
    let mut texts: Vec<_> = help.map(str::to_owned).collect();
    let code = code.lines().filter(|line| !is_comment(line)).map(|line| format!("{line}\n")).collect::<String>();
    let code = code.replace("'\"'", "").replace("\\\"", "");
    texts.extend(code.split('"').skip(1).step_by(2).filter(|text| text.contains(' ')).map(str::to_owned));
    texts
}

#[test]
fn one_word_stands_for_one_thing_wherever_people_read() {
    let documents = files(&[".md"]);
    let words = banned(&documents["docs/STYLE.md"]);
    assert!(words.len() > 12, "{words:?}");
    let is_shown = |path: &str| path.starts_with("crates/") && path.contains("/src/") && !path.contains("test-support");
    let sources = files(&[".rs"]).into_iter().filter(|(path, _)| is_shown(path));
    let mut texts: Vec<(String, String)> = documents.clone().into_iter().collect();
    texts.extend(sources.flat_map(|(path, text)| of_source(&text).into_iter().map(move |text| (path.clone(), text))));
    texts.extend(files(&[".html"]).into_iter().map(|(path, text)| (path, of_template(&text))));
    let mut texts: Vec<_> = texts.into_iter().map(|(path, text)| (path, plain(&text))).collect();
    texts.extend(documents.iter().map(|(path, text)| (path.clone(), spaced(&code_of(text)))));
    let endings: Vec<_> = ENDINGS.split_whitespace().collect();
    let packaging = files(&endings).into_iter().filter(|(path, _)| PACKAGING.iter().any(|at| path.starts_with(at)));
    texts.extend(packaging.map(|(path, text)| (path, spaced(&text))));
    let mut faults = Vec::new();
    for (path, text) in texts.iter().filter(|(path, _)| !LEFT_OUT.iter().any(|name| path.ends_with(name))) {
        let found = words.iter().chain(&BANNED).filter(|word| has(text, word));
        faults.extend(found.map(|word| format!("{path}: {word}")));
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn words_are_found_in_what_is_shown() {
    assert!(has(&plain("It goes\non."), "goes on") && has("a mail", "a mail"));
    assert!(!has("a mail server", "a mail") && !has("intake_mails_sent", "mails") && !has(&plain("`anew`"), "anew"));
    assert_eq!(spaced(&code_of("a\n```sh\n# Anew\n```\nb\n```\nc `d`\n```\n")), "sh # anew c `d`");
    assert_eq!(plain(&of_template("<a href=\"anew\">Go {{ anew }} on</a>{% if anew %}")), "go on");
    let source = "use clap::Args;\n/// Goes on.\nfn a() {\n    // \"anew\"\n    b(\"x y\", '\"', \"z\")\n}\n#[cfg(test)]\nmod tests {\n \"p q\" }";
    assert_eq!(of_source(source), ["/// Goes on.", "x y"]);
}
