//! The guide's rule for scanners of secrets finds each key by its form. Whether a checksum is right, no rule of theirs
//! can say.

use std::io::Write;
use std::process::{Command, Stdio};

use intake_domain::{Environment, KeyFormat, MalformedKey};

use crate::guide;

/// Returns what the rule finds in a text. It is plain enough for `grep` to read it as gitleaks does.
fn found(text: &str) -> String {
    let rule = guide::blocks().into_iter().find(|block| block.language == "toml").unwrap().text;
    let expression = rule.split("'''").nth(1).unwrap().to_owned();
    let mut grep = Command::new("grep");
    let mut grep = grep
        .args(["--only-matching", "--extended-regexp", &expression])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    grep.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    String::from_utf8(grep.wait_with_output().unwrap().stdout).unwrap().trim_end().to_owned()
}

#[test]
fn the_rule_finds_keys_of_both_environments_and_nothing_else() {
    for environment in [Environment::Development, Environment::Production] {
        let format = KeyFormat::new(&"intake".parse().unwrap(), environment);
        let key = format.mint([7; 32]);
        let key = key.expose();
        assert_eq!(found(&format!("INTAKE_KEY='{key}'\n")), key);
        let (head, last) = key.split_at(key.len() - 1);
        assert_eq!(found(head), "", "a digit too few");
        assert_eq!(found(&format!("{key}0")), "", "a digit too many");
        assert_eq!(found(&key.replace("intake", "other")), "", "another prefix");

        let other_digit = if last == "0" { "1" } else { "0" };
        let mistyped = format!("{head}{other_digit}");
        assert_eq!(format.parse(&mistyped), Err(MalformedKey::Checksum));
        assert_eq!(found(&mistyped), mistyped, "a scanner knows the form alone");
    }
}
