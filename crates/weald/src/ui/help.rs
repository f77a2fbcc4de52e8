//! `weald --help`: commands in groups, one line each, and an example.

use clap::Command;

use super::{HEADING, paint};

/// The groups, in the order a newcomer needs them. A test checks that every visible command is in one.
pub(super) const GROUPS: &[(&str, &[&str])] = &[
    ("Start here", &["demo", "init"]),
    (
        "Plan and hand out work",
        &[
            "task", "work", "attach", "agent", "phase", "race", "resume", "rescue", "worker",
            "cost",
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
            "rm", "restore", "undo", "clean", "doctor", "snapshot", "keep", "lock", "unlock",
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

/// Commands from before there was one for each job, and what does the same now. They work as ever, for scripts, and no
/// list shows them but the reference.
pub(super) const OLDER: &[(&str, &[(&str, &str)])] = &[
    (
        "trash",
        &[
            ("trash list", "restore"),
            ("trash restore ID", "restore ID"),
            ("trash purge", "clean --trash"),
        ],
    ),
    (
        "vault",
        &[
            ("vault status", "clean --vault"),
            ("vault list", "restore --purged"),
            (
                "vault restore ID COMMIT",
                "restore ID --purged --commit COMMIT",
            ),
            (
                "vault restore ID --snapshot 1",
                "restore ID --purged --snapshot 1",
            ),
            ("vault maintain", "clean --vault --apply"),
        ],
    ),
    (
        "sweep",
        &[
            ("sweep", "clean --leftovers --apply"),
            ("sweep --dry-run", "clean --leftovers"),
        ],
    ),
    (
        "usage",
        &[
            ("usage NAME", "clean --usage NAME"),
            ("usage --free 1G --apply", "clean --free 1G --apply"),
        ],
    ),
    (
        "queue recover",
        &[("queue recover 1", "doctor --recover 1")],
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
    use clap::{CommandFactory, Parser};

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
    fn every_older_command_is_hidden_and_leads_to_one_that_is_shown() {
        let mut command = crate::cli::Cli::command();
        command.build();
        let mut hidden = Vec::new();
        for (name, pairs) in OLDER {
            let mut words = name.split(' ');
            let found = words.try_fold(&command, |above, word| above.find_subcommand(word));
            let found = found.unwrap_or_else(|| panic!("{name} is no command"));
            assert!(found.is_hide_set(), "{name}");
            hidden.push(*name);
            for (old, new) in *pairs {
                assert!(old.starts_with(name), "{old}");
                for line in [old, new] {
                    let words = ["weald"].into_iter().chain(line.split(' '));
                    let parsed = crate::cli::Cli::try_parse_from(words);
                    assert!(parsed.is_ok(), "{line}: {:?}", parsed.err());
                }
                let first = new.split(' ').next().unwrap();
                let mut groups = GROUPS.iter().flat_map(|(_, names)| *names);
                assert!(groups.any(|name| *name == first), "{new}");
            }
            // Everything that it can do is in the list.
            for inner in found
                .get_subcommands()
                .filter(|one| one.get_name() != "help")
            {
                let line = format!("{name} {}", inner.get_name());
                assert!(
                    pairs.iter().any(|(old, _)| old.starts_with(&line)),
                    "{line}"
                );
            }
        }
        assert_eq!(
            hidden,
            ["trash", "vault", "sweep", "usage", "queue recover"]
        );
    }

    #[test]
    fn the_definition_of_the_command_line_is_sound() {
        let mut command = crate::cli::Cli::command();
        command.build();
        with_groups(command).debug_assert();
    }
}
