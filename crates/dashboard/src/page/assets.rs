//! The few files that pages load, built into the program. Their names contain a digest of their content, so browsers
//! keep them for a year, and load them anew after an upgrade that has changed them.

use std::sync::LazyLock;

use actix_web::HttpResponse;
use actix_web::web::{Bytes, Path};
use sha2::{Digest, Sha256};

use crate::page::compression::{self, Compressed};
use crate::page::error::PageError;

const ICON: &str = "icon.svg";
/// Digits of a digest: enough to tell all versions of a file apart.
const DIGITS: usize = 12;

static FILES: LazyLock<[Asset; 15]> = LazyLock::new(|| {
    let icon = Asset::new(ICON, "image/svg+xml", include_str!("../../assets/icon.svg").to_owned());
    let style = include_str!("../../assets/style.css").replace("/assets/icon.svg", &icon.path);
    let css = |name, text: String| Asset::new(name, "text/css; charset=utf-8", without_space(&without_comments(&text)));
    macro_rules! picture {
        ($name:literal) => {
            Asset::new($name, "image/png", *include_bytes!(concat!("../../../../docs/images/", $name)))
        };
    }
    let script = |name, text| Asset::new(name, "text/javascript; charset=utf-8", without_comments(text));
    [
        css("style.css", style),
        css("key.css", include_str!("../../assets/key.css").to_owned()),
        script("script.js", include_str!("../../assets/script.js")),
        css("docs.css", include_str!("../../assets/docs.css").to_owned()),
        script("docs.js", include_str!("../../assets/docs.js")),
        script("try-it.js", include_str!("../../assets/try-it.js")),
        script("passkey.js", include_str!("../../assets/passkey.js")),
        script("password.js", include_str!("../../assets/password.js")),
        picture!("help-keys-light.png"),
        picture!("help-keys-dark.png"),
        picture!("help-created-light.png"),
        picture!("help-created-dark.png"),
        picture!("help-replace-light.png"),
        picture!("help-replace-dark.png"),
        icon,
    ]
});

struct Asset {
    name: &'static str,
    path: String,
    media_type: &'static str,
    content: Bytes,
    compressed: Option<Bytes>,
}

impl Asset {
    fn new(name: &'static str, media_type: &'static str, content: impl Into<Vec<u8>>) -> Self {
        let content = content.into();
        let digest: String = Sha256::digest(&content).iter().map(|byte| format!("{byte:02x}")).collect();
        let digest = digest.get(..DIGITS).unwrap_or_default();
        let (stem, ending) = name.split_once('.').unwrap_or((name, ""));
        // A picture would not become smaller.
        let is_picture = media_type == "image/png";
        let compressed = (!is_picture).then(|| compression::gzip(&content)).flatten().map(Bytes::from);
        Self {
            name,
            path: format!("/assets/{stem}-{digest}.{ending}"),
            media_type,
            content: content.into(),
            compressed,
        }
    }
}

/// The text without its indentation and the comments that have lines of their own: a third of what a browser would
/// load, and nothing that it needs.
fn without_comments(text: &str) -> String {
    let mut is_comment = false;
    let mut kept = String::with_capacity(text.len());
    for line in text.lines().map(str::trim_start) {
        is_comment |= line.starts_with("/*");
        if !is_comment && !line.is_empty() && !line.starts_with("//") {
            kept.push_str(line);
            kept.push('\n');
        }
        is_comment &= !line.ends_with("*/");
    }
    kept
}

/// A style sheet, whose lines have no indentation and no comments, in one line.
fn without_space(style: &str) -> String {
    let one = style.lines().map(|line| if line.ends_with([',', '>']) { format!("{line} ") } else { line.to_owned() });
    one.collect::<String>().replace(" {", "{").replace(";}", "}")
}

/// The path under which pages load a file.
pub(crate) fn path(name: &str) -> &'static str {
    FILES.iter().find(|file| file.name == name).map_or("", |file| &file.path)
}

/// Serves a file. One of another digest is asked for by a page of another version of the program: it gets the file of
/// this version, once.
pub(crate) async fn asset(name: Path<String>) -> Result<HttpResponse, PageError> {
    let is_same = |file: &&Asset| file.path.strip_prefix("/assets/") == Some(name.as_str());
    let is_other = |file: &&Asset| name_without_digest(&name).as_deref() == Some(file.name);
    let found = FILES.iter().find(is_same);
    let file = found.or_else(|| FILES.iter().find(is_other)).ok_or(PageError::NotFound)?;
    let mut response = HttpResponse::Ok().content_type(file.media_type).body(file.content.clone());
    if found.is_some() {
        response.extensions_mut().insert(intake_http::Immutable);
    }
    if let Some(compressed) = &file.compressed {
        response.extensions_mut().insert(Compressed(compressed.clone()));
    }
    Ok(response)
}

/// `style.css` for `style-0123456789ab.css`, and for itself.
fn name_without_digest(name: &str) -> Option<String> {
    let (stem, ending) = name.rsplit_once('.')?;
    let is_digest = |text: &str| text.len() == DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    match stem.rsplit_once('-') {
        Some((stem, digest)) if is_digest(digest) => Some(format!("{stem}.{ending}")),
        _ => Some(name.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_left_out_and_rules_stay() {
        let text =
            "/* One. */\na {\n    /* Two\n       lines. */\n    b: url(\"//c\"); /* kept */\n}\n\n// Three.\nd();\n";
        assert_eq!(without_comments(text), "a {\nb: url(\"//c\"); /* kept */\n}\nd();\n");
    }

    #[test]
    fn a_style_sheet_is_one_line_with_the_same_rules() {
        let style = "a,\nb > c {\nd: e,\nf;\n}\n@media (g) {\nh {\ni: url(j);\n}\n}\n";
        assert_eq!(without_space(style), "a, b > c{d: e, f}@media (g){h{i: url(j)}}");
    }

    #[test]
    fn the_path_of_a_file_names_its_content() {
        let paths: Vec<_> = FILES.iter().map(|file| path(file.name)).collect();
        for (file, path) in FILES.iter().zip(&paths) {
            let name = path.strip_prefix("/assets/").unwrap();
            assert_eq!(name_without_digest(name).as_deref(), Some(file.name), "{path}");
            assert_ne!(name, file.name);
        }
        let style = FILES.iter().find(|file| file.name == "style.css").unwrap();
        assert!(String::from_utf8_lossy(&style.content).contains(&format!("url(\"{}\")", path(ICON))));
        assert_eq!(path("nothing"), "");
        assert_eq!(name_without_digest("try-it.js").as_deref(), Some("try-it.js"));
    }
}
