//! `intake help`: the commands of the program, or the settings that each of them accepts.

use clap::CommandFactory;

use super::command_line::{CommandLine, HelpTopic};
use super::{SETTINGS, Setting};

pub(crate) fn text_of(topic: Option<HelpTopic>) -> String {
    match topic {
        None => CommandLine::command().render_help().to_string(),
        Some(HelpTopic::Settings) => SETTINGS.map(Setting::paragraph).join("\n\n"),
    }
}

#[cfg(test)]
mod tests {
    use clap::Command;

    use super::*;

    /// Lines that fit on a screen.
    const MOST_LINES: usize = 40;

    #[test]
    fn the_help_of_a_command_is_short_and_leaves_the_settings_to_a_topic() {
        let mut program = CommandLine::command();
        program.build();
        let (mut commands, mut count) = (vec![program], 0);
        while let Some(command) = commands.pop() {
            commands.extend(command.get_subcommands().cloned());
            let (name, help) = (command.get_name().to_owned(), Command::render_help(&mut command.clone()).to_string());
            assert!(help.lines().count() <= MOST_LINES, "{name}:\n{help}");
            assert!(!help.contains("INTAKE_HTTPS_ADDR"), "{name}:\n{help}");
            count += 1;
        }
        assert!(count > 30, "{count}");
        let settings = text_of(Some(HelpTopic::Settings));
        for setting in SETTINGS {
            assert!(settings.contains(&format!("{}  {}", setting.flag_name(), setting.value)), "{}", setting.variable);
        }
    }
}
