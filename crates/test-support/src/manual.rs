//! The man pages of a program and its completions for shells, which packages install. They are made from its command line, and
//! kept as files: `UPDATE_DOCS=1 cargo test` writes them anew, and no build has to make them.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;

use clap::Command;
use clap_complete::{Shell, generate};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

/// Programs for users, in the numbering of man pages.
const SECTION: &str = "1";

/// The files of a folder, by their names.
type Files = BTreeMap<String, Vec<u8>>;

/// Asserts that `man` and `completions` in this folder are those of a program, or makes them so. The first page has these further
/// sections: a heading, and its paragraphs.
pub fn assert_manual(program: &Command, sections: &[(&str, &[&str])], folder: &Path) {
    // What every command takes is told once, instead of with each.
    let program = program.clone().mut_args(|arg| arg.global(false));
    assert_current(&folder.join("man"), &pages(&program, sections));
    assert_current(&folder.join("completions"), &completions(&program));
}

/// Asserts that a folder holds these files and no others, or makes it so.
fn assert_current(folder: &Path, expected: &Files) {
    let found: Files = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .map(|entry| entry.expect("the folder can be read"))
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path()).expect("a file")))
        .collect();
    if found == *expected {
        return;
    }
    assert!(
        std::env::var_os("UPDATE_DOCS").is_some(),
        "{} is not what the command line makes of it: run `UPDATE_DOCS=1 cargo test` and look at what changed",
        folder.display()
    );
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).expect("the folder can be made");
    for (name, content) in expected {
        fs::write(folder.join(name), content).expect("the file can be written");
    }
}

fn completions(program: &Command) -> Files {
    let name = program.get_name();
    let file = |(shell, file): (Shell, String)| {
        let mut text = Vec::new();
        generate(shell, &mut program.clone(), name, &mut text);
        (file, text)
    };
    let named = [
        (Shell::Bash, format!("{name}.bash")),
        (Shell::Fish, format!("{name}.fish")),
        (Shell::Zsh, format!("_{name}")),
    ];
    named.into_iter().map(file).collect()
}

/// A page for the program, and one for each of its commands.
fn pages(program: &Command, sections: &[(&str, &[&str])]) -> Files {
    let mut program = program.clone().disable_help_subcommand(true);
    program.build();
    let mut files = Files::new();
    for command in program.get_subcommands() {
        add_pages_of_command(command, &program, &mut files);
    }
    let mut first = program.clone();
    if program.has_subcommands() {
        // All settings by name would be a long synopsis.
        first = first.override_usage(format!("{} [SETTINGS] [COMMAND]", program.get_name()));
    }
    add_page(Man::new(first), sections, &program, &mut files);
    files
}

fn add_pages_of_command(command: &Command, parent: &Command, files: &mut Files) {
    for inner in command.get_subcommands() {
        add_pages_of_command(inner, command, files);
    }
    let see = format!("{}({SECTION})", parent.get_display_name().unwrap_or_else(|| parent.get_name()));
    add_page(Man::new(command.clone()), &[("SEE ALSO", &[&see])], command, files);
}

fn add_page(man: Man, sections: &[(&str, &[&str])], command: &Command, files: &mut Files) {
    let man = man.section(SECTION).source(env!("CARGO_PKG_VERSION"));
    let mut page = Vec::new();
    write_page(&man, sections, command, &mut page).expect("memory can be written");
    files.insert(man.get_filename(), page);
}

fn write_page(man: &Man, sections: &[(&str, &[&str])], command: &Command, page: &mut dyn Write) -> std::io::Result<()> {
    man.render_title(page)?;
    man.render_name_section(page)?;
    man.render_synopsis_section(page)?;
    man.render_options_section(page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(page)?;
    }
    let mut more = Roff::new();
    for (heading, paragraphs) in sections {
        more.control("SH", [*heading]);
        for paragraph in *paragraphs {
            more.control("PP", []);
            more.text([roman(*paragraph)]);
        }
    }
    more.to_writer(page)
}
