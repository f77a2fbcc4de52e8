//! `weald help`: the everyday commands with an example each; with `--all`, every command in its group.

use clap::Command;

use super::{ACCENT, HEADING, examples, paint};

/// All commands in groups, for `weald help --all` and docs/commands.md. A test checks that every visible command is in one.
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
            "new", "ensure", "list", "status", "show", "shell", "run", "enter", "exit", "path",
            "diff", "sync", "pool", "ports", "setup", "adopt",
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
            "deinit",
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

/// What `weald help` shows: for each everyday command one line to type, which is among its examples, and what that does.
const EVERYDAY: &[(&str, &[(&str, &str)])] = &[
    (
        "Start",
        &[
            ("weald demo", "See weald at work in seconds"),
            ("weald init", "Detect tests and set-up"),
        ],
    ),
    (
        "Hand work to agents",
        &[
            ("weald task add \"Fix the login\"", "Plan a task"),
            (
                "weald work \"Fix the login\" -- claude",
                "Run an agent on a task, then land it",
            ),
            ("weald attach a3", "Watch an agent and talk to it"),
            ("weald agent", "List the agents at work"),
        ],
    ),
    (
        "Work in a worktree",
        &[
            ("weald new fix-login", "Create a worktree"),
            (
                "weald shell -c fix-login",
                "Open a sandboxed shell in a worktree",
            ),
            ("weald list", "List worktrees"),
            (
                "weald status fix-login",
                "Check for changes and new commits",
            ),
            ("weald diff fix-login", "Show its changes"),
        ],
    ),
    (
        "Land or take back",
        &[
            ("weald conflicts", "Find conflicts before they happen"),
            ("weald land fix-login", "Test it and merge it into main"),
            ("weald undo", "Take back the last operation"),
            ("weald rm fix-login", "Move a worktree to the trash"),
        ],
    ),
];

/// How much of the command line a page of help shows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// What a person needs every day.
    Everyday,
    /// All commands and options.
    All,
}

/// A command line that is built already, with help for people.
pub fn with_help(command: Command, extent: Extent) -> Command {
    let mut text = String::new();
    for (title, lines) in EVERYDAY {
        text.push_str(&format!("{}\n", paint(HEADING, format!("{title}:"))));
        for (line, about) in *lines {
            text.push_str(&format!(
                "  {} {about}\n",
                paint(ACCENT, format!("{line:<39}"))
            ));
        }
        text.push('\n');
    }
    match extent {
        Extent::Everyday => {
            let more = [
                ("weald", "Show what runs and what needs you"),
                ("weald help --all", "List all commands and options"),
                ("weald help work", "Explain a command, with examples"),
            ];
            let more = more
                .map(|(line, about)| format!("  {} {about}", paint(ACCENT, format!("{line:<39}"))));
            text.push_str(&format!("{}\n{}", paint(HEADING, "More:"), more.join("\n")));
        }
        Extent::All => {
            text.push_str(&others(&command));
            text.push_str(&format!("{}\n{{options}}", paint(HEADING, "Options:")));
        }
    }
    let command = examples::attached(command);
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{text}"
    ))
}

/// The name of the command in a line of help.
fn command_in(line: &str) -> &str {
    line.split(' ').nth(1).unwrap_or_default()
}

/// The commands that are no everyday ones, in their groups.
fn others(command: &Command) -> String {
    let shown = EVERYDAY.iter().flat_map(|(_, lines)| *lines);
    let shown: Vec<_> = shown.map(|(line, _)| command_in(line)).collect();
    let mut text = String::new();
    for (title, names) in GROUPS {
        let mut names = names.iter().filter(|name| !shown.contains(name)).peekable();
        if names.peek().is_none() {
            continue;
        }
        text.push_str(&format!("{}\n", paint(HEADING, format!("{title}:"))));
        for name in names {
            let found = command.find_subcommand(name);
            let about = found.and_then(Command::get_about).cloned();
            let name = paint(ACCENT, format!("{name:<12}"));
            text.push_str(&format!("  {name} {}\n", about.unwrap_or_default()));
        }
        text.push('\n');
    }
    text
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
    fn u1_everyday_help_is_short_and_each_line_is_an_example_of_its_command() {
        let lines: Vec<_> = EVERYDAY.iter().flat_map(|(_, lines)| *lines).collect();
        assert!(EVERYDAY.len() == 4 && lines.len() <= 15);
        let mut names: Vec<_> = lines.iter().map(|(line, _)| command_in(line)).collect();
        for (line, about) in &lines {
            assert!(line.len() <= 39 && about.len() <= 38, "{line} {about}");
            let name = command_in(line);
            let mut group = command_in(line).to_owned();
            if let Some(inner) = line.split(' ').nth(2) {
                group.push_str(&format!(" {inner}"));
            }
            let known = examples::of(name).iter().chain(examples::of(&group));
            assert!(
                known.clone().any(|known| known == line),
                "not an example of {name}: {line}"
            );
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), lines.len(), "one line for each command");
    }

    /// The first words of help lines. A line that starts with another word is one that describes a thing.
    const VERBS: &str = "Accept Add Adopt Allow Also Answer Approve Ask Attach Bind Block Cancel Change Check Choose Claim \
        Commit Compare Complete Connect Continue Count Create Delete Deliver Do Drop Edit End Exempt Exit Expire Explain \
        Export Fail Fetch Find Follow Force Give Hide Ignore Import Include Install Keep Kill Land Lift List Lock Make Mark \
        Merge Move Notify Open Overwrite Pause Permanently Print Queue Read Rebase Rebuild Recover Refuse Register Reject \
        Release Remove Renew Reopen Repair Replace Reply Report Restart Restore Resume Retry Return Revoke Run Save Send \
        Serve Set Share Show Skip Start Stop Take Test Treat Try Unbind Undo Unlock Use Verify Wait Work Write";

    fn check_lines(command: &Command, name: &str, wrong: &mut Vec<String>) {
        for argument in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
            let help = argument.get_help().map(ToString::to_string);
            let help = help.unwrap_or_default();
            let is_switch = !argument.get_action().takes_values();
            check_line(
                &format!("{name} {}", argument.get_id()),
                &help,
                is_switch,
                wrong,
            );
        }
        for inner in command.get_subcommands() {
            let name = format!("{name} {}", inner.get_name());
            let about = inner.get_about().map(ToString::to_string);
            if !inner.is_hide_set() && inner.get_name() != "help" {
                check_line(&name, &about.unwrap_or_default(), true, wrong);
                check_lines(inner, &name, wrong);
            }
        }
    }

    fn check_line(what: &str, help: &str, does_something: bool, wrong: &mut Vec<String>) {
        let first = help.split([' ', ',']).next().unwrap_or_default();
        let is_verb = VERBS.split_whitespace().any(|verb| verb == first)
            || help.starts_with("Accepted for compatibility");
        if help.is_empty() || help.chars().count() > 60 || (does_something && !is_verb) {
            wrong.push(format!("{what}: {help}"));
        }
    }

    #[test]
    fn u1_help_lines_fit_in_60_characters_and_say_what_to_do() {
        let mut command = crate::cli::Cli::command();
        command.build();
        let mut wrong = Vec::new();
        check_lines(&command, "weald", &mut wrong);
        assert!(
            wrong.is_empty(),
            "longer than 60 characters, or no verb in front (a new verb goes into VERBS):\n{}",
            wrong.join("\n")
        );
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
        with_help(command, Extent::Everyday).debug_assert();
    }
}
