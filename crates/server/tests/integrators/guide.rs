//! Every block of the guide runs as it is printed, against the running service: the base address alone is another one.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::fixtures::{Integration, work_folder};
use crate::tools::{self, run};

/// Address of the service in the guide.
const PRINTED_URL: &str = "https://localhost:8443/api/v1";

/// A fenced block.
pub(crate) struct Block {
    pub(crate) language: String,
    pub(crate) text: String,
}

/// This file of the documents.
fn document(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)).unwrap()
}

/// The guide, with its programs in place of the links to them.
pub(crate) fn guide() -> String {
    let block = |line: &str| {
        let (name, _) = line.strip_prefix('[')?.split_once("](examples/")?;
        Some(format!("```{name}\n{}```", program(name)))
    };
    let guide = document("integrating.md");
    guide.lines().map(|line| block(line).unwrap_or_else(|| line.to_owned()) + "\n").collect()
}

/// The blocks of the guide, in their order.
pub(crate) fn blocks() -> Vec<Block> {
    let guide = guide();
    let parts: Vec<_> = guide.split("```").collect();
    assert_eq!(parts.len() % 2, 1, "each block has an end");
    let blocks = parts.into_iter().skip(1).step_by(2).map(|block| block.split_once('\n').unwrap());
    blocks.map(|(language, text)| Block { language: language.to_owned(), text: text.to_owned() }).collect()
}

/// The program with this name.
pub(crate) fn program(name: &str) -> String {
    document(&format!("examples/{name}"))
}

#[test]
fn every_block_runs_as_it_is_printed() {
    let (Some(node), Some(python)) = (tools::node(), tools::python()) else { return };
    let folder = tempfile::tempdir().unwrap();
    symlink(node.join("node_modules"), folder.path().join("node_modules")).unwrap();
    let app =
        Integration::start_with(|builder| builder.data_folder(Path::new(".intake")).working_folder(folder.path()));
    // Where a first start leaves the key of the demo clinic.
    fs::write(folder.path().join(".intake/demo-key"), app.key.expose()).unwrap();
    let path = format!("{}:{}", python.join("bin").display(), std::env::var("PATH").unwrap());
    let run_block = |script: &str| {
        let mut shell = Command::new("bash");
        run(shell.args(["-euc", script]).env("PATH", &path).env("HOME", folder.path()).current_dir(&folder))
    };

    let mut settings = String::new();
    let mut created = Vec::new();
    for Block { language, text } in blocks() {
        let command = match language.as_str() {
            "sh" if settings.is_empty() => {
                assert_eq!(text.matches(PRINTED_URL).count(), 1, "the first block says where the service is");
                settings = text.replace(PRINTED_URL, &app.url());
                continue;
            }
            "sh" if text.contains("SSL_CERT_FILE") => {
                settings += &text;
                continue;
            }
            "sh" if text.starts_with("keytool") => {
                for line in text.lines() {
                    let is_here = |program: &str| !line.starts_with(program) || tools::language(program).is_some();
                    match line {
                        line if line.starts_with("export") => settings = format!("{settings}{line}\n"),
                        line if is_here("keytool") && is_here("cert-sync") => drop(run_block(line)),
                        _ => {}
                    }
                }
                continue;
            }
            "sh" => text,
            "toml" => continue,
            name => {
                let Some(command) = run_program(folder.path(), name, &text) else { continue };
                command
            }
        };
        let before = app.patients();
        // Twice, as a reader does who has missed the first answer.
        let printed = [(); 2].map(|()| run_block(&format!("{settings}\n{command}")));
        created.push((command.clone(), app.patients() - before));
        if created.last().unwrap().1 == 1 {
            assert_eq!(printed[0], printed[1], "the same patient");
        }
    }
    for (command, patients) in created {
        let creates = command.contains("reate") && !command.contains("/validate") || command.contains("/patients\" ");
        assert_eq!(patients, i64::from(creates), "{command}");
    }
}

/// Saves a program as a reader would. Returns the command that runs it, if its language is installed here.
pub(crate) fn run_program(folder: &Path, name: &str, text: &str) -> Option<String> {
    fs::write(folder.join(name), text).unwrap();
    let (program, command) = match Path::new(name).extension().unwrap().to_str().unwrap() {
        "py" => return Some(format!("python {name}")),
        "mjs" => return Some(format!("node {name}")),
        "sh" => return Some(format!("bash {name}")),
        "php" => return tools::php().map(|_| format!("php {name}")),
        "go" => ("go", format!("go run {name}")),
        "rb" => ("ruby", format!("ruby {name}")),
        "java" => ("java", format!("java {name}")),
        "cs" => {
            let compile = format!("mcs -langversion:latest -r:System.Net.Http.dll -out:{name}.exe {name}");
            ("mcs", format!("{compile} && mono {name}.exe"))
        }
        other => unreachable!("no reader of the guide expects {other}"),
    };
    tools::language(program).map(|()| command)
}

#[test]
fn the_requests_for_people_without_a_program_are_accepted() {
    let app = Integration::start();
    let page = document("forms.md");
    let block = |language: &str| page.split(&format!("```{language}\n")).nth(1).unwrap().split("\n```").next().unwrap();
    assert_eq!(app.create(block("json")).status, 201);
    let curl = block("sh").replace("YOUR_KEY", app.key.expose()).replace(PRINTED_URL, &app.url());
    let authority = app.service.data_dir().join("tls/ca.pem");
    let printed = run(Command::new("bash").args(["-euc", &curl]).env("CURL_CA_BUNDLE", authority));
    assert_eq!(printed, r#"{"data":null,"meta":{}}"#);
    let Some(node) = tools::node() else { return };
    let folder = work_folder(node, &["import_curl.mjs"]);
    let imported = run(app.command("node").arg("import_curl.mjs").arg(curl).current_dir(&folder));
    assert_eq!(imported.lines().collect::<Vec<_>>(), [&printed; 2]);
}

#[test]
fn the_telephone_numbers_for_tests_are_valid() {
    let app = Integration::start();
    let guide = guide();
    let (_, section) = guide.split_once("\n## 7. Test data").unwrap();
    let numbers: Vec<_> = section.split('`').filter(|text| text.starts_with("+61") && text.is_ascii()).collect();
    assert_eq!(numbers.len(), 8, "{numbers:?}");
    for number in numbers {
        let mut patient = intake_test_support::patient();
        patient["phoneNumber"] = number.into();
        assert_eq!(app.create(&patient.to_string()).status, 201, "{number}");
    }
}
