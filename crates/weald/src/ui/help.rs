//! `weald --help`: commands in groups, one line each, and an example.

use clap::Command;

use super::{HEADING, paint};

/// The groups, in the order a newcomer needs them. A test checks that every visible command is in one.
pub(super) const GROUPS: &[(&str, &[&str])] = &[
    ("Start here", &["demo", "init"]),
    (
        "Plan and hand out work",
        &[
            "task", "work", "agent", "phase", "race", "resume", "rescue", "worker",
        ],
    ),
    (
        "Work in worktrees",
        &[
            "new", "ensure", "list", "status", "show", "run", "enter", "exit", "path", "diff",
            "sync", "pool", "ports", "setup", "adopt",
        ],
    ),
    (
        "Land work",
        &["land", "queue", "conflicts", "approve", "revert", "verify"],
    ),
    (
        "Clean up and recover",
        &[
            "keep", "rm", "undo", "clean", "trash", "snapshot", "lock", "unlock", "sweep", "usage",
            "doctor", "vault",
        ],
    ),
    ("Talk to other sessions", &["msg", "session"]),
    ("See the history", &["events"]),
    ("Connect agents", &["install", "mcp"]),
    ("Sandbox", &["sandbox"]),
    (
        "Configure",
        &["config", "trust", "shell-init", "completions", "man"],
    ),
];

const EXAMPLE: &str = "  weald task add \"Fix the login\" --priority P1
  weald work 1 -- claude          # or, by hand:
  weald new fix-login --task 1
  weald run fix-login -- sh -c 'echo done > notes && git add . && git commit -m notes'
  weald land fix-login
  weald events --task 1";

/// The same command, which is built already, with grouped help.
pub fn with_groups(command: Command) -> Command {
    let mut text = String::new();
    for (title, names) in GROUPS {
        text.push_str(&format!("{}\n", paint(HEADING, format!("{title}:"))));
        for name in *names {
            let about = command
                .find_subcommand(name)
                .and_then(Command::get_about)
                .cloned()
                .unwrap_or_default();
            text.push_str(&format!("  {name:<12} {about}\n"));
        }
        text.push('\n');
    }
    let rest = format!(
        "{}\n{EXAMPLE}\n\nRun `weald` for the board, `weald help COMMAND` for more on a command.",
        paint(HEADING, "Example:")
    );
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{text}{rest}\n\n{}\n{{options}}",
        paint(HEADING, "Options:")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn every_visible_command_is_in_exactly_one_group() {
        let command = crate::cli::Cli::command();
        let visible = command
            .get_subcommands()
            .filter(|sub| !sub.is_hide_set())
            .map(|sub| sub.get_name());
        for name in visible.filter(|name| *name != "help") {
            let groups = GROUPS
                .iter()
                .filter(|(_, names)| names.contains(&name))
                .count();
            assert_eq!(groups, 1, "{name}");
        }
        for name in GROUPS.iter().flat_map(|(_, names)| *names) {
            assert!(
                command.find_subcommand(name).is_some(),
                "{name} is no command"
            );
        }
    }

    #[test]
    fn the_definition_of_the_command_line_is_sound() {
        let mut command = crate::cli::Cli::command();
        command.build();
        with_groups(command).debug_assert();
    }
}
