//! The Markdown files that the page is made of.

/// The files in the order of the page, each with the name by which the others link to it.
pub(super) const FILES: &[(&str, &str)] = &[
    (GUIDE, GUIDE_TEXT),
    ("forms.md", include_str!("../../../../docs/forms.md")),
    (REFERENCE, REFERENCE_TEXT),
    ("CHANGELOG.md", CHANGELOG),
];
/// Text of the changelog.
pub(super) const CHANGELOG: &str = include_str!("../../../../CHANGELOG.md");
pub(super) const GUIDE_TEXT: &str = include_str!("../../../../docs/integrating.md");
pub(super) const REFERENCE_TEXT: &str = include_str!("../../../../docs/api.md");
/// Name of the guide.
pub(super) const GUIDE: &str = "integrating.md";
/// Name of the reference.
pub(super) const REFERENCE: &str = "api.md";
