//! The Markdown files that the page is made of.

use std::sync::LazyLock;

use intake_domain::Doubt;

/// The names and texts of these programs in docs/examples.
macro_rules! programs {
    ($($name:literal)*) => { [$(($name, include_str!(concat!("../../../../docs/examples/", $name)))),*] };
}

/// Text of the changelog.
pub(super) const CHANGELOG: &str = include_str!("../../../../CHANGELOG.md");
/// Text of the guide, in which a link on a line of its own to a program becomes the program.
pub(super) static GUIDE_TEXT: LazyLock<String> =
    LazyLock::new(|| with_programs(include_str!("../../../../docs/integrating.md")));
/// Text of the reference, with a table of the marks of patients.
pub(super) static REFERENCE_TEXT: LazyLock<String> =
    LazyLock::new(|| with_marks(include_str!("../../../../docs/api.md")));
/// Name of the guide.
pub(super) const GUIDE: &str = "integrating.md";
/// Name of the reference.
pub(super) const REFERENCE: &str = "api.md";

const PROGRAMS: [(&str, &str); 20] = programs!(
    "create_patient.py" "create-patient.mjs" "CreatePatient.cs" "CreatePatient.java"
    "create_patient.php" "create_patient.go" "create_patient.rb" "create_patient.sh"
    "convert.py" "convert.mjs" "Convert.cs" "Convert.java" "convert.php" "convert.go" "convert.rb" "convert.sh"
    "send_many.py" "send-many.mjs" "send_many.go" "compare_day.py"
);
/// Languages of blocks of code by the endings of files, where they differ.
const LANGUAGES: [(&str, &str); 5] =
    [("py", "python"), ("mjs", "js"), ("cs", "csharp"), ("rb", "ruby"), ("sh", "bash")];

/// The files in the order of the page, each with the name by which the others link to it.
pub(super) fn files() -> [(&'static str, &'static str); 5] {
    [
        (GUIDE, &GUIDE_TEXT),
        ("forms.md", include_str!("../../../../docs/forms.md")),
        (REFERENCE, &REFERENCE_TEXT),
        ("errors.md", include_str!("../../../../docs/errors.md")),
        ("CHANGELOG.md", CHANGELOG),
    ]
}

fn with_programs(guide: &str) -> String {
    guide.lines().map(|line| program(line).unwrap_or_else(|| line.to_owned()) + "\n").collect()
}

/// The reference with the table in place of its note. A table in the file would repeat what the domain says.
fn with_marks(reference: &str) -> String {
    let row = |mark: Doubt| format!("| `{}` | {} | {} |\n", mark.name(), mark.meaning(), mark.remedy());
    let rows: String = Doubt::all().map(row).collect();
    reference.replace("<!-- marks -->\n", &format!("| Mark | The patient has | What to do |\n|---|---|---|\n{rows}"))
}

/// The block of code in place of this line, if it is a link to a program and nothing else.
fn program(line: &str) -> Option<String> {
    let (name, _) = line.strip_prefix('[')?.split_once("](examples/")?;
    let (_, text) = PROGRAMS.iter().find(|(program, _)| *program == name)?;
    let ending = name.rsplit('.').next()?;
    let language = LANGUAGES.iter().find(|(known, _)| *known == ending).map_or(ending, |(_, language)| language);
    Some(format!("```{language}\n{text}```"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_has_each_mark_with_its_remedy() {
        assert!(REFERENCE_TEXT.contains("| `state` | a state that is not a code such as NSW | Send ACT, NSW, NT,"));
        assert_eq!(REFERENCE_TEXT.matches("\n| `born-").count(), 2);
    }

    #[test]
    fn every_program_is_in_the_guide_in_place_of_its_link() {
        assert!(!GUIDE_TEXT.contains("(examples/"));
        for (name, text) in PROGRAMS {
            assert!(text.ends_with('\n') && GUIDE_TEXT.contains(text), "{name}");
        }
        assert!(GUIDE_TEXT.contains("\n```python\n# create_patient.py\n") && GUIDE_TEXT.contains("\n```go\n"));
        assert_eq!(with_programs("See [a](examples/a.py).\n[x](y)"), "See [a](examples/a.py).\n[x](y)\n");
    }
}
