//! From a file of Markdown to a part of the page: headings that can be linked to, tables that fit a telephone, code
//! that scrolls in itself. What the file has as HTML is shown as text, apart from comments.

use askama::filters::{Html, escape};
use pulldown_cmark::{CodeBlockKind, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

use super::outline::{Heading, Outline, target};
use crate::page::assets::path;

/// The HTML of a file whose outline this is, on a page with all of these.
pub(crate) fn to_html(text: &str, outline: &Outline, all: &[Outline]) -> String {
    let (headings, rows) = (outline.headings.iter(), outline.rows.iter());
    let mut writer = Writer { outline, all, headings, rows, table: Table::default(), links: vec![] };
    let events = Parser::new_ext(text, Options::ENABLE_TABLES).filter_map(|event| writer.event(event));
    let mut page = String::with_capacity(text.len() * 2);
    html::push_html(&mut page, events);
    page
}

struct Writer<'a> {
    outline: &'a Outline,
    all: &'a [Outline],
    headings: std::slice::Iter<'a, Heading>,
    rows: std::slice::Iter<'a, String>,
    table: Table,
    /// For each link that is open: whether it leads anywhere.
    links: Vec<bool>,
}

/// Position of the writer in a table.
#[derive(Default)]
struct Table {
    columns: Vec<String>,
    is_in_head: bool,
    column: usize,
    /// The id of the row.
    row: String,
}

impl Writer<'_> {
    fn event<'t>(&mut self, event: Event<'t>) -> Option<Event<'t>> {
        match event {
            Event::Start(Tag::Heading { level, .. }) => {
                let id = self.headings.next().map(|heading| heading.id.as_str()).unwrap_or_default();
                Some(raw(format!("<{} id=\"{id}\"><a href=\"#{id}\">", element(level))))
            }
            Event::End(TagEnd::Heading(level)) => Some(raw(format!("</a></{}>\n", element(level)))),
            Event::Start(Tag::Link { dest_url, .. }) => self.open_link(&dest_url),
            Event::End(TagEnd::Link) => self.links.pop().filter(|leads| *leads).map(|_| raw("</a>".to_owned())),
            // With the keyboard, only what can have the focus can be scrolled.
            Event::Start(Tag::CodeBlock(kind)) => {
                let language =
                    if let CodeBlockKind::Fenced(language) = kind { escaped(&language) } else { String::new() };
                Some(raw(format!(
                    "<div class=\"code\"><div class=\"code-head\" data-name=\"{}\"></div>\n\
                     <pre tabindex=\"0\" data-language=\"{language}\"><code>",
                    spelled(&language)
                )))
            }
            Event::End(TagEnd::CodeBlock) => Some(raw("</code></pre></div>\n".to_owned())),
            Event::Start(Tag::Image { dest_url, .. }) => Some(raw(picture(&dest_url))),
            Event::End(TagEnd::Image) => Some(raw("\"></picture>".to_owned())),
            Event::Html(text) if text.trim() == "<!-- tabs -->" => Some(raw("<div class=\"tabs\">\n".to_owned())),
            Event::Html(text) if text.trim() == "<!-- /tabs -->" => Some(raw("</div>\n".to_owned())),
            Event::Html(text) | Event::InlineHtml(text) => {
                (!text.trim_start().starts_with("<!--")).then_some(Event::Text(text))
            }
            other => self.table_event(other),
        }
    }

    fn open_link<'t>(&mut self, link: &str) -> Option<Event<'t>> {
        let target = target(link, self.outline, self.all);
        self.links.push(target.is_some());
        target.map(|target| raw(format!("<a href=\"{}\">", escaped(&target))))
    }

    /// Each cell of a body knows the name of its column, which is shown where columns do not fit beside each other. The
    /// first cell of a row is its heading.
    fn table_event<'t>(&mut self, event: Event<'t>) -> Option<Event<'t>> {
        let table = &mut self.table;
        match event {
            Event::Start(Tag::Table(_)) => {
                *table = Table::default();
                Some(raw("<table>\n".to_owned()))
            }
            Event::End(TagEnd::Table) => Some(raw("</tbody>\n</table>\n".to_owned())),
            Event::Start(Tag::TableHead) => {
                table.is_in_head = true;
                Some(raw("<thead><tr>".to_owned()))
            }
            Event::End(TagEnd::TableHead) => {
                table.is_in_head = false;
                Some(raw("</tr></thead>\n<tbody>\n".to_owned()))
            }
            Event::Start(Tag::TableRow) => {
                table.column = 0;
                table.row = self.rows.next().map(String::as_str).unwrap_or_default().to_owned();
                Some(raw(format!("<tr id=\"{}\">", table.row)))
            }
            Event::End(TagEnd::TableRow) => Some(raw("</tr>\n".to_owned())),
            Event::Start(Tag::TableCell) => Some(raw(table.open_cell())),
            Event::End(TagEnd::TableCell) => Some(raw(table.close_cell())),
            Event::Text(ref text) | Event::Code(ref text) if table.is_in_head => {
                if let Some(name) = table.columns.last_mut() {
                    name.push_str(text);
                }
                Some(event)
            }
            other => Some(other),
        }
    }
}

impl Table {
    fn open_cell(&mut self) -> String {
        if self.is_in_head {
            self.columns.push(String::new());
            return "<th scope=\"col\">".to_owned();
        }
        let name = self.columns.get(self.column).map(String::as_str).unwrap_or_default();
        match self.column {
            0 => "<th scope=\"row\">".to_owned(),
            _ if name.is_empty() => "<td>".to_owned(),
            _ => format!("<td data-label=\"{}\">", escaped(name)),
        }
    }

    fn close_cell(&mut self) -> String {
        if self.is_in_head {
            return "</th>".to_owned();
        }
        self.column += 1;
        if self.column == 1 {
            return format!(" <a class=\"row-link\" href=\"#{}\" aria-label=\"Link to this row\"></a></th>", self.row);
        }
        "</td>".to_owned()
    }
}

/// The page has a title of its own, so that every heading is one level lower than in its file.
fn element(level: HeadingLevel) -> &'static str {
    match level {
        HeadingLevel::H1 => "h2",
        HeadingLevel::H2 => "h3",
        HeadingLevel::H3 => "h4",
        HeadingLevel::H4 => "h5",
        HeadingLevel::H5 | HeadingLevel::H6 => "h6",
    }
}

/// The beginning of a picture in light and dark colours, up to its description. Both are assets of their names.
fn picture(link: &str) -> String {
    let light = link.trim_start_matches("images/");
    let [light, dark] = [light.to_owned(), light.replace("-light.", "-dark.")].map(|name| path(&name));
    format!(
        "<picture><source srcset=\"{dark}\" media=\"(prefers-color-scheme: dark)\">\
         <img src=\"{light}\" loading=\"lazy\" alt=\""
    )
}

/// The name of a language, as people spell it.
fn spelled(language: &str) -> &str {
    match language {
        "bash" | "sh" => "Shell",
        "csharp" => "C#",
        "go" => "Go",
        "http" => "HTTP",
        "java" => "Java",
        "js" => "JavaScript",
        "json" => "JSON",
        "php" => "PHP",
        "python" => "Python",
        "ruby" => "Ruby",
        "toml" => "TOML",
        "" => "Text",
        other => other,
    }
}

fn raw<'t>(html: String) -> Event<'t> {
    Event::Html(CowStr::from(html))
}

fn escaped(text: &str) -> String {
    escape(text, Html).map(|escaped| escaped.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::outline::of_files;
    use super::*;

    fn html(text: &str) -> String {
        let all = of_files(&[("one.md", text.to_owned())]);
        to_html(text, &all[0], &all)
    }

    #[test]
    fn headings_are_links_to_themselves() {
        assert_eq!(html("## A `b`"), "<h3 id=\"a-b\"><a href=\"#a-b\">A <code>b</code></a></h3>\n");
    }

    #[test]
    fn cells_know_their_columns() {
        let table = html("| A | \"B\" | |\n|---|---|---|\n| 1 | `2` | 3 |");
        let body = "</th><td data-label=\"&#34;B&#34;\"><code>2</code></td><td>3</td></tr>";
        assert!(table.contains("<tbody>\n<tr id=\"-1\"><th scope=\"row\">1 <a ") && table.contains(body), "{table}");
    }

    #[test]
    fn links_to_what_is_not_on_the_page_are_texts() {
        assert_eq!(html("[a](operations.md) [b](https://b.example/?x&y)"), {
            "<p>a <a href=\"https://b.example/?x&#38;y\">b</a></p>\n"
        });
    }

    #[test]
    fn code_says_its_language() {
        for (language, name) in [("sh", "Shell"), ("csharp", "C#"), ("", "Text"), ("lua", "lua")] {
            let page = html(&format!("```{language}\na\n```"));
            let head = format!("<div class=\"code\"><div class=\"code-head\" data-name=\"{name}\"></div>\n<pre ");
            assert!(page.starts_with(&head) && page.ends_with(">a\n</code></pre></div>\n"), "{page}");
        }
    }

    #[test]
    fn a_picture_has_the_colours_of_its_reader() {
        let page = html("![The list](images/help-keys-light.png)");
        let parts = [
            "<picture><source srcset=\"/assets/help-keys-dark-",
            ".png\" media=\"(prefers-color-scheme: dark)\"><img src=\"/assets/help-keys-light-",
            ".png\" loading=\"lazy\" alt=\"The list\"></picture>",
        ];
        assert!(parts.iter().all(|part| page.contains(part)), "{page}");
    }

    #[test]
    fn html_is_shown_and_comments_are_not() {
        assert_eq!(html("a <b onclick=\"x\">c</b>"), "<p>a &lt;b onclick=\"x\"&gt;c&lt;/b&gt;</p>\n");
        assert_eq!(html("<!-- fields -->\na"), "<p>a</p>\n");
        assert!(!html("```html\n<script>\n```").contains("<script>"));
    }
}
