//! Output that nobody gets: every command fails in one line on the other stream, and names what it has done all the
//! same.

use std::collections::BTreeSet;
use std::process::Output;

use intake_infra::Durability;
use intake_test_support::{ServiceBuilder, patient};

use crate::fixtures::{TestApp, program};

/// Behaviour of a command whose output is not lost.
#[derive(Clone, Copy, PartialEq)]
enum Usually {
    Prints,
    /// It prints on both streams.
    PrintsOnBoth,
    Fails,
}
use Usually::{Fails, Prints, PrintsOnBoth};

/// Every command with its arguments, in an order in which each works, and what its error must name where its output
/// was lost: a text, or the result of a query.
const COMMANDS: [(&str, &str, Usually, &str); 41] = [
    ("serve", "--rate-limit wrong", Fails, "INTAKE_RATE_LIMIT"),
    ("probe", "--admin-addr 127.0.0.1:1", Fails, "127.0.0.1:1"),
    ("openapi", "", Prints, ""),
    ("migrate", "", Prints, ""),
    ("spread", "", Fails, "citus"),
    ("doctor", "", Prints, ""),
    ("audit", "", Prints, ""),
    ("organisation create", "--name Made", Prints, "SELECT id::text FROM organisations WHERE name = 'Made'"),
    ("organisation list", "", Prints, ""),
    ("organisation rename", "ORGANISATION --name Renamed", Prints, "ORGANISATION"),
    ("organisation time-zone", "ORGANISATION --zone Australia/Sydney", Prints, "ORGANISATION"),
    ("organisation suspend", "ORGANISATION", Prints, "ORGANISATION"),
    ("organisation resume", "ORGANISATION", Prints, "ORGANISATION"),
    ("organisation close", "DOOMED", Prints, "DOOMED"),
    ("organisation erase", "DOOMED", Prints, "DOOMED"),
    (
        "key create",
        "--organisation ORGANISATION --name Made",
        Prints,
        "SELECT id::text FROM api_keys WHERE name = 'Made'",
    ),
    ("key list", "", Prints, ""),
    ("key usage", "", Prints, ""),
    ("request", "unknown", Fails, "unknown"),
    ("key networks", "KEY --allow any", Prints, "KEY"),
    ("key contact", "KEY --set Acme", Prints, "KEY"),
    ("key pause", "KEY", Prints, "KEY"),
    ("key resume", "KEY", Prints, "KEY"),
    ("key clear-sent-in-clear", "KEY", Prints, "KEY"),
    ("key replace", "KEY", Prints, "SELECT id::text FROM api_keys WHERE replaces IS NOT NULL"),
    ("key revoke", "KEY", Prints, "KEY"),
    ("member invite", "--organisation ORGANISATION --email eve@clinic.example", Prints, "eve@clinic.example"),
    ("member list", "--organisation ORGANISATION", Prints, ""),
    (
        "member withdraw-invitation",
        "--organisation ORGANISATION --email eve@clinic.example",
        Prints,
        "eve@clinic.example",
    ),
    ("member reset-password", "--organisation ORGANISATION --email ada@clinic.example", Prints, "ada@clinic.example"),
    ("member link", "--organisation ORGANISATION --email ada@clinic.example", Prints, "ada@clinic.example"),
    (
        "member reset-second-factor",
        "--organisation ORGANISATION --email ada@clinic.example",
        Prints,
        "ada@clinic.example",
    ),
    (
        "member change-role",
        "--organisation ORGANISATION --email ada@clinic.example --role auditor",
        Prints,
        "ada@clinic.example",
    ),
    ("member remove", "--organisation ORGANISATION --email ada@clinic.example", Prints, "ada@clinic.example"),
    ("export", "--organisation ORGANISATION --format jsonl", PrintsOnBoth, ""),
    ("pairs", "--organisation ORGANISATION", Prints, ""),
    ("deliver status", "--state /nowhere", Fails, "/nowhere"),
    ("deliver retry", "--state /nowhere", Fails, "/nowhere"),
    ("deliver test", "--to /tmp", Prints, ""),
    ("patient show", "--organisation ORGANISATION --patient PATIENT", Prints, ""),
    ("patient erase", "--organisation ORGANISATION --patient PATIENT", Prints, "PATIENT"),
];

/// The commands of the program as its help lists them, the ones below this.
fn commands(above: &[&str]) -> BTreeSet<String> {
    let help = above.iter().fold(program(), |all, one| all.argument(one)).argument("--help").run();
    let help = String::from_utf8(help.stdout).unwrap();
    let Some((_, listed)) = help.split_once("\nCommands:\n") else { return BTreeSet::from([above.join(" ")]) };
    let lines = listed.lines().take_while(|line| !line.is_empty());
    let names = lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next().filter(|name| !name.is_empty()));
    names.filter(|name| *name != "help").flat_map(|name| commands(&[above, &[name]].concat())).collect()
}

#[test]
fn the_table_holds_every_command() {
    let mut table: BTreeSet<_> = COMMANDS.iter().map(|(command, ..)| (*command).to_owned()).collect();
    // Afterwards nobody is signed in, and every key is revoked: a test of its own.
    table.insert("restored".to_owned());
    // Its folder must be on disk: database/backup.rs.
    table.insert("backup".to_owned());
    assert_eq!(commands(&[]), table);
}

/// An organisation with what the commands need.
struct Setup {
    app: TestApp,
    words: [(&'static str, String); 4],
}

impl Setup {
    fn make() -> Self {
        let app = TestApp::on_one_server(|builder| builder);
        for email in ["ada@clinic.example", "bob@clinic.example"] {
            drop(app.member(email));
        }
        let doomed = app.other_clinic().organisation.to_string();
        let created = app.create(&patient()).json()["data"]["id"].as_str().unwrap().to_owned();
        let (organisation, key) = (app.clinic.organisation.to_string(), app.clinic.key().0.to_string());
        let words = [("ORGANISATION", organisation), ("KEY", key), ("DOOMED", doomed), ("PATIENT", created)];
        Self { app, words }
    }

    fn resolve(&self, text: &str) -> String {
        if text.starts_with("SELECT") {
            return self.app.database.texts(text).concat();
        }
        self.words.iter().fold(text.to_owned(), |text, (word, value)| text.replace(word, value))
    }

    fn run(&self, command: &str, arguments: &str, lose: fn(ServiceBuilder) -> ServiceBuilder) -> Output {
        let owner = self.app.database.owner.clone().with_durability(Durability::None);
        let builder = lose(program().database_urls(&owner, &owner));
        let words = format!("{command} {}", self.resolve(arguments));
        words.split_whitespace().fold(builder, ServiceBuilder::argument).run()
    }

    #[track_caller]
    fn fails_by_name(&self, command: &str, output: &Output, name: &str) {
        let said = String::from_utf8(output.stderr.clone()).unwrap();
        assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{command}: {said}");
        let name = self.resolve(name);
        let is_ours = said.starts_with("intake: ") || command == "serve";
        assert!(is_ours && said.contains(&name), "{command}, {name}: {said}");
    }
}

#[test]
fn a_command_whose_output_is_lost_fails_in_one_line_that_names_what_it_did() {
    let losses: [fn(ServiceBuilder) -> ServiceBuilder; 2] =
        [ServiceBuilder::full_stdout, ServiceBuilder::unread_stdout];
    std::thread::scope(|scope| {
        for lose in losses {
            scope.spawn(move || {
                let setup = Setup::make();
                for (command, arguments, _, name) in COMMANDS {
                    setup.fails_by_name(command, &setup.run(command, arguments, lose), name);
                }
                setup.fails_by_name("restored", &setup.run("restored", "--revoke-keys", lose), "Revoked 3 keys");
            });
        }
    });
}

#[test]
fn a_command_whose_errors_are_lost_tells_by_its_status_alone() {
    let setup = Setup::make();
    for (command, arguments, usually, _) in COMMANDS {
        let output = setup.run(command, arguments, ServiceBuilder::full_stderr);
        let (code, prints) = (output.status.code(), !output.stdout.is_empty());
        let expected = if usually == Prints { 0 } else { 1 };
        assert_eq!(code, Some(expected), "{command}");
        assert!(prints || usually == Fails, "{command}");
        let again = setup.run(command, "--unknown", |builder| builder.full_stdout().full_stderr());
        assert_eq!(again.status.code(), Some(2), "{command}: wrong usage");
    }
    let output = setup.run("restored", "--revoke-keys", ServiceBuilder::full_stderr);
    assert!(output.status.success() && !output.stdout.is_empty());
}
