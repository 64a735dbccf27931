//! Small drawings beside words, in the colour of the words. All are in one file, which browsers keep.

use crate::page::assets::path;

/// The element that shows a drawing of `icon.svg`. Screen readers pass over it: the words beside it say everything.
pub(crate) fn icon(name: &str) -> String {
    let file = path("icon.svg");
    format!("<svg class=\"icon\" viewBox=\"0 0 16 16\" aria-hidden=\"true\"><use href=\"{file}#{name}\"/></svg>")
}

/// The sign of a status, by the class of its pill. A sign says without colour what the colour says.
pub(crate) fn sign(class: &str) -> String {
    icon(match class {
        "active" => "dot",
        "paused" => "pause",
        "revoked" => "cross",
        "expired" => "clock",
        "done" => "check",
        "warn" | "bad" => "warning",
        _ => "circle",
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    /// The texts between these two, in a text.
    fn all_between(text: &str, before: &str, after: &str) -> BTreeSet<String> {
        text.split(before).skip(1).filter_map(|rest| rest.split_once(after)).map(|(name, _)| name.to_owned()).collect()
    }

    /// The text of all files in a folder.
    fn text_of(folder: &Path) -> String {
        let entries = folder.read_dir().unwrap().map(|entry| entry.unwrap().path());
        entries
            .map(|path| if path.is_dir() { text_of(&path) } else { std::fs::read_to_string(&path).unwrap() })
            .collect()
    }

    #[test]
    fn every_drawing_that_is_named_is_there_and_no_other() {
        let drawn = all_between(include_str!("../../assets/icon.svg"), "<path id=\"", "\"");
        let templates = text_of(&Path::new(env!("CARGO_MANIFEST_DIR")).join("templates"));
        let mut named = all_between(&templates, "icon::icon(\"", "\"");
        for class in ["active", "paused", "revoked", "expired", "done", "warn", "open"] {
            named.extend(all_between(&sign(class), "#", "\""));
        }
        assert_eq!(named, drawn);
    }
}
