//! The headings of the files that make up a page, each with an id that no other has, and where links between the files
//! lead.

use std::collections::HashSet;

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

/// Ids that the frame of the page uses.
const IDS_OF_THE_FRAME: [&str; 2] = ["main", "try-it"];

/// Words of a long first cell that name its row.
const ROW_WORDS: usize = 8;

/// A heading of a file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Heading {
    pub(crate) level: HeadingLevel,
    pub(crate) text: String,
    pub(crate) id: String,
    /// Name by which links within the files call it.
    slug: String,
}

/// The headings of one file.
#[derive(Clone, Debug)]
pub(crate) struct Outline {
    pub(crate) file: &'static str,
    pub(crate) headings: Vec<Heading>,
    /// The ids of all rows of tables, in order. Each is made of the heading above and the text of the first cell.
    pub(crate) rows: Vec<String>,
}

impl Outline {
    /// The first heading, which names the file in the table of contents.
    pub(crate) fn title(&self) -> Option<&Heading> {
        self.headings.first()
    }

    /// The headings below the title in the table of contents.
    pub(crate) fn sections(&self) -> impl Iterator<Item = &Heading> {
        self.headings.iter().filter(|heading| heading.level == HeadingLevel::H2)
    }

    fn id_of(&self, slug: &str) -> Option<&str> {
        let found = self.headings.iter().find(|heading| heading.slug == slug || slug.is_empty());
        found.map(|heading| heading.id.as_str())
    }
}

/// The outlines of all files.
pub(crate) fn of_files(files: &[(&'static str, String)]) -> Vec<Outline> {
    let mut taken: HashSet<String> = IDS_OF_THE_FRAME.map(str::to_owned).into();
    let outline = |(file, text): &(&'static str, String)| {
        let headings = headings(text, &mut taken);
        let rows = rows(text, &headings, &mut taken);
        Outline { file, headings, rows }
    };
    files.iter().map(outline).collect()
}

/// Returns where a link of one file leads on the page of all of them. None: to a file that is not part of the page.
pub(crate) fn target(link: &str, from: &Outline, all: &[Outline]) -> Option<String> {
    if link.starts_with("https://") || link.starts_with("mailto:") {
        return Some(link.to_owned());
    }
    let (path, slug) = link.split_once('#').unwrap_or((link, ""));
    let name = path.rsplit('/').next()?;
    let outline = if path.is_empty() { Some(from) } else { all.iter().find(|outline| outline.file == name) };
    match outline {
        Some(outline) => outline.id_of(slug).map(|id| format!("#{id}")),
        None => (name == "openapi.json").then(|| "/api/v1/openapi.json".to_owned()),
    }
}

fn headings(text: &str, taken: &mut HashSet<String>) -> Vec<Heading> {
    let mut headings = Vec::new();
    let mut open = None;
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Heading { level, .. }) => open = Some((level, String::new())),
            Event::Text(part) | Event::Code(part) => {
                if let Some((_, text)) = &mut open {
                    text.push_str(&part);
                }
            }
            Event::End(TagEnd::Heading(_)) => headings.extend(open.take().map(|(level, text)| {
                let slug = slug(&text);
                Heading { level, id: free_id(&slug, taken), slug, text }
            })),
            _ => {}
        }
    }
    headings
}

fn rows(text: &str, headings: &[Heading], taken: &mut HashSet<String>) -> Vec<String> {
    let mut rows = Vec::new();
    let mut above = headings.iter().map(|heading| heading.id.as_str());
    let (mut heading, mut first_cell) = ("", None);
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = above.next().unwrap_or_default(),
            Event::Start(Tag::TableRow) => first_cell = Some(String::new()),
            Event::Text(part) | Event::Code(part) => {
                if let Some(text) = &mut first_cell {
                    text.push_str(&part);
                }
            }
            Event::End(TagEnd::TableCell) => rows.extend(first_cell.take().map(|cell| {
                let words: Vec<_> = slug(&cell).split('-').take(ROW_WORDS).map(str::to_owned).collect();
                free_id(&format!("{heading}-{}", words.join("-")), taken)
            })),
            _ => {}
        }
    }
    rows
}

/// The name of a heading in links, as code hosts make it: small letters, with hyphens for spaces.
fn slug(text: &str) -> String {
    let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn free_id(slug: &str, taken: &mut HashSet<String>) -> String {
    let numbered = (1..).map(|number| format!("{slug}-{number}"));
    let free = std::iter::once(slug.to_owned()).chain(numbered).find(|id| !taken.contains(id)).unwrap_or_default();
    taken.insert(free.clone());
    free
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outlines() -> Vec<Outline> {
        of_files(&[
            ("one.md", "# One\n## Safe `retry`, twice\n## Errors\n## Main\n".to_owned()),
            ("two.md", "# Two\n## Errors\n```\n# no heading\n```\n".to_owned()),
        ])
    }

    #[test]
    fn every_heading_has_an_id_of_its_own() {
        let ids: Vec<_> =
            outlines().into_iter().flat_map(|outline| outline.headings).map(|heading| heading.id).collect();
        assert_eq!(ids, ["one", "safe-retry-twice", "errors", "main-1", "two", "errors-1"]);
    }

    #[test]
    fn every_row_has_an_id_of_its_own() {
        let text = "# A\n## 422 Errors\n| M | C |\n|---|---|\n| is `required` | x |\n| is required | y |\n";
        let outlines = of_files(&[("one.md", text.to_owned())]);
        assert_eq!(outlines[0].rows, ["422-errors-is-required", "422-errors-is-required-1"]);
    }

    #[test]
    fn links_lead_to_the_heading_that_their_file_means() {
        let all = outlines();
        let two = &all[1];
        for (link, expected) in [
            ("#errors", Some("#errors-1")),
            ("one.md#errors", Some("#errors")),
            ("../docs/one.md", Some("#one")),
            ("one.md#nothing", None),
            ("operations.md", None),
            ("openapi.json", Some("/api/v1/openapi.json")),
            ("https://example.com/x", Some("https://example.com/x")),
            ("javascript:alert(1)", None),
        ] {
            assert_eq!(target(link, two, &all).as_deref(), expected, "{link}");
        }
    }
}
