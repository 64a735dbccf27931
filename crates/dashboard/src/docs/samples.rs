//! The programs of the guide, as the page of a new key shows them: the tests of the guide run each as it is printed.

use intake_domain::Environment;

use crate::docs::files::GUIDE_TEXT;

/// Checks a made-up patient with curl, and stores nothing.
const CHECK: &str = "## 3. Check without creating\n";
/// Path at which the guide has a certificate authority of one's own.
const AUTHORITY_IN_FILES: &str = "\"$PWD/.intake/tls/ca.pem\"";

/// A program in one language.
pub(crate) struct Sample {
    pub(crate) language: &'static str,
    pub(crate) text: &'static str,
}

/// curl, and in development a program for each language of the guide. Those create made-up patients, so none is shown
/// where patients are real.
pub(crate) fn samples(environment: Environment) -> Vec<Sample> {
    let mut samples = vec![Sample { language: "curl", text: block_below(&GUIDE_TEXT, CHECK) }];
    if environment == Environment::Development {
        let tabs = after(&GUIDE_TEXT, "<!-- tabs -->\n").split("<!-- /tabs -->").next().unwrap_or_default();
        let sections = tabs.split("\n### ").skip(1);
        samples.extend(sections.filter_map(|section| {
            let (language, text) = section.split_once('\n')?;
            Some(Sample { language, text: block(text) })
        }));
    }
    samples
}

/// The commands that set a shell's address, key, and certificate authority, if programs do not trust it anyway.
pub(crate) fn settings(base_url: &str, authority: Option<&str>) -> String {
    let mut text = format!("export INTAKE_URL={base_url}/api/v1\nread -rs INTAKE_KEY && export INTAKE_KEY");
    if let Some(file) = authority {
        let trust = GUIDE_TEXT.split("```sh\n").find(|block| block.contains("CURL_CA_BUNDLE=")).unwrap_or_default();
        let trust = trust.split("\n```").next().unwrap_or_default().replace(AUTHORITY_IN_FILES, file);
        text = format!("{trust}\n{text}");
    }
    text
}

/// The first block below a heading.
pub(super) fn block_below(text: &'static str, heading: &str) -> &'static str {
    block(after(text, heading))
}

fn after(text: &'static str, start: &str) -> &'static str {
    text.split_once(start).map_or("", |(_, rest)| rest)
}

/// The first fenced block.
fn block(text: &'static str) -> &'static str {
    let fenced = text.split_once("```").and_then(|(_, rest)| rest.split_once('\n'));
    fenced.map_or("", |(_, rest)| rest.split("\n```").next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_of_the_guide_has_its_program() {
        let found = samples(Environment::Development);
        let languages: Vec<_> = found.iter().map(|sample| sample.language).collect();
        assert_eq!(languages, ["curl", "Python", "JavaScript", "C#", "Java", "PHP", "Go", "Ruby", "Bash"]);
        for Sample { language, text } in &found {
            assert!(text.contains("INTAKE_KEY") && text.contains("INTAKE_URL"), "{language}: {text}");
            assert!(!text.contains("```") && !text.ends_with('\n'), "{language}: {text}");
        }
    }

    #[test]
    fn nothing_that_creates_a_made_up_patient_is_shown_where_patients_are_real() {
        let [curl] = &samples(Environment::Production)[..] else { panic!("curl alone") };
        assert!(curl.text.starts_with("curl ") && curl.text.contains("\"$INTAKE_URL/patients/validate\""));
    }

    #[test]
    fn a_shell_learns_of_the_authority_that_it_has_to_trust() {
        let text = settings("https://intake.example", Some("/data/tls/ca.pem"));
        assert_eq!(text.matches("_CA_BUNDLE=/data/tls/ca.pem ").count(), 2, "of curl and of requests: {text}");
        assert!(text.contains("export NODE_EXTRA_CA_CERTS=/data/tls/ca.pem") && !text.contains(".intake"), "{text}");
        let public = settings("https://intake.example", None);
        assert_eq!(public, "export INTAKE_URL=https://intake.example/api/v1\nread -rs INTAKE_KEY && export INTAKE_KEY");
    }
}
