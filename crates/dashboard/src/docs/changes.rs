//! The changes of the interface as an Atom feed (RFC 4287), for those who follow it: the part of the changelog that is
//! for integrators, with an entry for each version that was released.

use std::fmt::Write;

use askama::filters::{Html, escape};
use pulldown_cmark::{Event, Parser, Tag, TagEnd, html};

/// The heading of the part, in each version.
const PART: &str = "### For integrators\n";

/// A version with changes for integrators.
struct Version<'a> {
    number: &'a str,
    /// The day of the release, as the changelog writes it.
    day: &'a str,
    changes: &'a str,
}

/// The feed of a service that is reached at this address.
pub(super) fn feed(changelog: &str, base_url: &str) -> String {
    let versions: Vec<_> = changelog.split("\n## [").skip(1).filter_map(version).collect();
    let (base, newest) = (escaped(base_url), versions.first().map_or("1970-01-01", |version| version.day));
    let mut feed = format!(
        r#"<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom">
<id>{base}/docs/changes.atom</id>
<title>intake: changes for integrators</title>
<updated>{newest}T00:00:00Z</updated>
<author><name>intake</name></author>
<link rel="self" type="application/atom+xml" href="{base}/docs/changes.atom"/>
<link rel="alternate" type="text/html" href="{base}/docs"/>
"#
    );
    for Version { number, day, changes } in versions {
        let (number, content) = (escaped(number), escaped(&to_html(changes)));
        let _ = write!(
            feed,
            r#"<entry>
<id>{base}/docs/changes/{number}</id>
<title>intake {number}</title>
<updated>{day}T00:00:00Z</updated>
<link rel="alternate" type="text/html" href="{base}/docs#changelog"/>
<content type="html">{content}</content>
</entry>
"#
        );
    }
    feed + "</feed>\n"
}

/// A section of the changelog, from the number in its heading on. None: it is not released, or has nothing for
/// integrators.
fn version(section: &str) -> Option<Version<'_>> {
    let (heading, text) = section.split_once('\n')?;
    let (number, day) = heading.split_once("] - ")?;
    let (_, changes) = text.split_once(PART)?;
    Some(Version { number, day, changes: changes.split("\n### ").next().unwrap_or_default() })
}

/// The text without its links, which lead from the changelog's own place.
fn to_html(text: &str) -> String {
    let is_link = |event: &Event<'_>| matches!(event, Event::Start(Tag::Link { .. }) | Event::End(TagEnd::Link));
    let mut page = String::new();
    html::push_html(&mut page, Parser::new(text).filter(|event| !is_link(event)));
    page
}

fn escaped(text: &str) -> String {
    escape(text, Html).map(|escaped| escaped.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANGELOG: &str = "# Changelog\n\n## What stays\n\n## [Unreleased]\n\n### For integrators\n\n- Soon\n
## [0.3.0] - 2026-12-24\n\n### For integrators\n\n- `POST` & [more](docs/api.md)\n\n### Added\n\n- A command\n
## [0.2.1] - 2026-12-03\n\n### Fixed\n\n- A page\n
## [0.2.0] - 2026-11-23\n\n### For integrators\n\n- The first\n";

    #[test]
    fn each_released_version_with_changes_for_integrators_is_an_entry() {
        let feed = feed(CHANGELOG, "https://intake.example");
        assert_eq!(feed.matches("<entry>").count(), 2, "{feed}");
        assert!(feed.contains("<title>intake 0.3.0</title>\n<updated>2026-12-24T00:00:00Z</updated>"), "{feed}");
        let newest = feed.split("<updated>").nth(1).unwrap();
        assert!(newest.starts_with("2026-12-24T00:00:00Z</updated>\n<author>"), "{newest}");
        assert!(!feed.contains("Soon") && !feed.contains("A command") && !feed.contains("A page"), "{feed}");
        assert!(feed.contains("https://intake.example/docs/changes.atom"));
    }

    #[test]
    fn the_text_is_html_that_is_escaped_for_xml() {
        let feed = feed(CHANGELOG, "https://intake.example");
        let content = feed.split_once("<content type=\"html\">").unwrap().1.split('<').next().unwrap();
        let html = content.replace("&#60;", "<").replace("&#62;", ">").replace("&#38;", "&");
        assert_eq!(html, "<ul>\n<li><code>POST</code> &amp; more</li>\n</ul>\n");
    }

    #[test]
    fn the_changelog_of_this_program_has_an_entry() {
        let feed = feed(include_str!("../../../../CHANGELOG.md"), "https://intake.example");
        assert!(feed.contains("<title>intake 0.2.0</title>") && feed.contains("/api/v1/patients"), "{feed}");
    }
}
