//! How a page shows IP addresses and networks: one that is longer than its line breaks between its groups.

use std::fmt;

use askama::filters::{Html, HtmlSafe, escape};

/// A text with addresses, as a page shows it.
pub(crate) struct Breakable<'a>(&'a str);

/// The text, which may break after a colon.
pub(crate) fn breakable(text: &str) -> Breakable<'_> {
    Breakable(text)
}

impl fmt::Display for Breakable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ok(escaped) = escape(self.0, Html);
        f.write_str(&escaped.to_string().replace(':', ":<wbr>").replace(":<wbr>:", "::"))
    }
}

/// It is escaped.
impl HtmlSafe for Breakable<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_breaks_between_its_groups_and_is_escaped() {
        for (text, expected) in [
            ("203.0.113.7", "203.0.113.7"),
            ("2001:db8::7, curl/8.5.0", "2001:<wbr>db8::<wbr>7, curl/8.5.0"),
            ("<b>:", "&#60;b&#62;:<wbr>"),
        ] {
            assert_eq!(breakable(text).to_string(), expected);
        }
    }
}
