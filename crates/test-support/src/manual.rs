//! The man pages of a program and its completions for shells, made from its command line. `just package` installs the
//! files that the tests write.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process;

use clap::Command;
use clap_complete::{Shell, generate};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

/// Programs for users, in the numbering of man pages.
const SECTION: &str = "1";

/// File contents by name.
type Files = BTreeMap<String, Vec<u8>>;

/// Writes the folders `man` and `completions` of a program to `target/manual` and returns their parent. The first page
/// ends with these sections: a heading, and its paragraphs.
#[must_use]
pub fn write_manual(program: &Command, sections: &[(&str, &[&str])]) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/manual").join(program.get_name());
    // The settings that every command accepts are listed once, though help leaves them out.
    let program = program.clone().mut_args(|arg| arg.global(false).hide_short_help(false));
    for (name, files) in [("man", pages(&program, sections)), ("completions", completions(&program))] {
        let folder = folder.join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("the folder can be made");
        for (name, content) in files {
            assert_complete(&program, &name, &content);
            fs::write(folder.join(name), content).expect("the file can be written");
        }
    }
    folder
}

/// Asserts that the file of a command, or of a shell, names each of its flags.
fn assert_complete(program: &Command, file: &str, content: &[u8]) {
    let text = String::from_utf8_lossy(content).replace("\\-", "-");
    let is_page = Path::new(file).extension().is_some_and(|extension| extension == SECTION);
    // The page of `key create` is `intake-key-create.1`.
    let words = file.strip_prefix(program.get_name()).and_then(|name| name.strip_suffix(".1")).unwrap_or_default();
    let name = words.strip_prefix('-').unwrap_or_default().replace('-', " ");
    for (path, flag) in flags(program, "") {
        if !is_page || path.trim().replace('-', " ") == name {
            assert!(text.contains(&flag), "{file} does not name {flag} of {path}");
        }
    }
}

/// All flags of a command and its subcommands, each with the words of its command.
fn flags(command: &Command, path: &str) -> Vec<(String, String)> {
    let own = command.get_arguments().filter(|arg| !arg.is_hide_set()).filter_map(|arg| arg.get_long());
    let own = own.map(|flag| (path.to_owned(), flag.to_owned()));
    let inner = command.get_subcommands().filter(|command| !command.is_hide_set());
    own.chain(inner.flat_map(|inner| flags(inner, &format!("{path} {}", inner.get_name())))).collect()
}

/// The words that bash suggests in place of the last of these words, by the completions in a folder that
/// [`write_manual`] made.
#[must_use]
pub fn completed_by_bash(folder: &Path, program: &str, words: &[&str]) -> Vec<String> {
    let line = [&[program], words].concat();
    let [.., before, last] = line.as_slice() else { panic!("no words") };
    let script = format!(
        "source \"$0\"; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); \
         function=$(complete -p {program} | sed 's/.* -F \\([^ ]*\\) .*/\\1/'); \
         $function {program} '{last}' '{before}'; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    );
    let file = folder.join("completions").join(format!("{program}.bash"));
    let output = process::Command::new("bash").args(["-c", &script]).arg(file).args(line).output().expect("bash runs");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
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
