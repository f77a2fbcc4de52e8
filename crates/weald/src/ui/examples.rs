//! The examples at the end of each command's help, in one table. Help, manual pages and docs/commands.md print them, and
//! a test types every one of them into a shell (`tests/surface/help.rs`).

use clap::Command;

use super::{HEADING, paint};

/// A command and what a person types to use it: one to three lines, the most common one first.
const EXAMPLES: &[(&str, &[&str])] = &[
    ("demo", &["weald demo", "weald demo --keep"]),
    ("init", &["weald init", "weald init --profile claude-code"]),
    // Plan and hand out work
    (
        "task",
        &[
            r#"weald task add "Fix the login""#,
            "weald task",
            "weald task show 12",
        ],
    ),
    (
        "task add",
        &[
            r#"weald task add "Fix the login" --priority P1"#,
            r#"weald task add "Test the login" --after 12"#,
        ],
    ),
    (
        "task list",
        &[
            "weald task list",
            "weald task list --status in_progress",
            "weald task list --label backend",
        ],
    ),
    ("task ready", &["weald task ready"]),
    ("task show", &["weald task show 12"]),
    (
        "task edit",
        &[
            "weald task edit 12 --priority P0",
            "weald task edit 12 --label backend",
        ],
    ),
    (
        "task claim",
        &["weald task claim", "weald task claim 12 --with-tree"],
    ),
    ("task renew", &["weald task renew 12 --token 1"]),
    ("task release", &["weald task release 12 --token 1"]),
    ("task start", &["weald task start 12"]),
    (
        "task done",
        &[
            "weald task done 12",
            r#"weald task done 13 --token 1 --report "The login works""#,
        ],
    ),
    (
        "task fail",
        &[r#"weald task fail 14 --token 1 --report "The API is down""#],
    ),
    (
        "task cancel",
        &[r#"weald task cancel 15 --reason "No longer needed""#],
    ),
    ("task reopen", &["weald task reopen 12"]),
    (
        "task dep",
        &[
            "weald task dep 12 --add 11",
            "weald task dep 12 --remove 11",
        ],
    ),
    (
        "task bind",
        &[
            "weald task bind 12 fix-login",
            "weald task bind 12 fix-login --rebind --start",
        ],
    ),
    ("task unbind", &["weald task unbind 12"]),
    (
        "task closeout",
        &[
            r#"weald task closeout 12 keep --reason "Needed for the demo""#,
            r#"weald task closeout 12 remove --reason "Landed by hand""#,
        ],
    ),
    (
        "task import",
        &[
            "weald task import tasks.md",
            "weald task import --from gh --label bug",
        ],
    ),
    ("task export", &["weald task export > tasks.jsonl"]),
    (
        "work",
        &[
            r#"weald work "Fix the login" -- claude"#,
            "weald work 12 -- codex",
            "weald work 12 -i -- claude",
        ],
    ),
    ("attach", &["weald attach a3", "weald work 12 -i -- claude"]),
    (
        "agent",
        &[
            "weald agent",
            "weald agent spawn 14 -- claude",
            r#"weald agent steer a3 "Add a test, too""#,
        ],
    ),
    (
        "agent spawn",
        &[
            "weald agent spawn 14 -- claude",
            "weald agent spawn 15 -i -- claude",
        ],
    ),
    (
        "agent list",
        &[
            "weald agent list --all",
            "weald agent list --state stalled,waiting",
        ],
    ),
    ("agent pulse", &["weald agent pulse a3"]),
    (
        "agent show",
        &["weald agent show a3", "weald agent show 12 --json"],
    ),
    (
        "agent diff",
        &["weald agent diff a3", "weald agent diff 12 --stat"],
    ),
    (
        "agent logs",
        &[
            "weald agent logs a3 --tail 20",
            "weald agent logs a3 -f",
            "weald agent logs a3 --full | less",
        ],
    ),
    ("agent attach", &["weald agent attach a3"]),
    ("agent take", &["weald agent take a3"]),
    (
        "agent steer",
        &[
            r#"weald agent steer a3 "Use the existing helper""#,
            r#"weald agent steer a3 --urgent "Stop editing the schema""#,
        ],
    ),
    ("agent pause", &["weald agent pause a3"]),
    ("agent resume", &["weald agent resume a3"]),
    (
        "agent stop",
        &[
            "weald agent stop a3",
            "weald agent stop 14 --release --wait",
        ],
    ),
    (
        "agent restart",
        &["weald agent restart a3", "weald agent restart 14 --fresh"],
    ),
    (
        "agent wait",
        &[
            "weald agent wait a3",
            "weald agent wait --any --timeout 10m",
        ],
    ),
    (
        "phase",
        &[
            "weald phase 12 -- claude",
            "weald phase 13 --only review -- claude",
        ],
    ),
    (
        "race",
        &[
            "weald race 12 -n 2 -- claude",
            "weald race 13 --with claude,codex",
            "weald race pick 12 b",
        ],
    ),
    ("race show", &["weald race show 12"]),
    ("race pick", &["weald race pick 12 b"]),
    ("race drop", &["weald race drop 13"]),
    (
        "resume",
        &[
            "weald resume 12",
            r#"weald resume 12 --feedback "Keep the old API""#,
        ],
    ),
    (
        "rescue",
        &[
            "weald rescue 12",
            "weald rescue 12 --patch fix.patch",
            "weald rescue 12 --restart",
        ],
    ),
    ("worker", &["weald worker --name alice --max 1 -- claude"]),
    ("cost", &["weald cost", "weald cost --by day --since 7d"]),
    // Work in worktrees
    (
        "new",
        &[
            "weald new fix-login",
            "weald new --task 12",
            "weald new hotfix --base v1.2 --target release",
        ],
    ),
    (
        "ensure",
        &["weald ensure fix-login", "weald ensure --task 12"],
    ),
    ("list", &["weald list", "weald list --fresh"]),
    ("status", &["weald status fix-login", "weald status --all"]),
    ("show", &["weald show fix-login"]),
    (
        "run",
        &[
            "weald run fix-login -- git log --oneline",
            "weald run fix-login --timeout 5m -- ./test.sh",
        ],
    ),
    ("shell", &["weald shell -c fix-login", "weald shell -"]),
    ("enter", &["weald enter fix-login"]),
    ("exit", &["weald exit", "weald exit --remove"]),
    (
        "path",
        &[
            r#"cd "$(weald path fix-login)""#,
            r#"weald path fix-login --check "$PWD/README.md""#,
        ],
    ),
    (
        "diff",
        &[
            "weald diff fix-login",
            "weald diff fix-login --stat --against target",
        ],
    ),
    (
        "sync",
        &["weald sync fix-login", "weald sync fix-login --rebase"],
    ),
    ("pool", &["weald pool", "weald pool fill --count 2"]),
    ("pool status", &["weald pool status"]),
    (
        "pool fill",
        &["weald pool fill", "weald pool fill --count 2"],
    ),
    ("pool drain", &["weald pool drain"]),
    ("ports", &["weald ports", "weald ports fix-login"]),
    ("setup", &["weald setup fix-login"]),
    (
        "adopt",
        &["weald adopt ../old-worktree", "weald adopt --all"],
    ),
    // Land work
    (
        "land",
        &[
            "weald land fix-login",
            r#"weald land fix-login --commit -m "Fix the login""#,
            "weald land fix-login --dry-run",
        ],
    ),
    (
        "queue",
        &["weald queue", "weald queue log 2", "weald queue pause"],
    ),
    ("queue status", &["weald queue status --all"]),
    (
        "queue pause",
        &[r#"weald queue pause --reason "Release in progress""#],
    ),
    ("queue resume", &["weald queue resume"]),
    ("queue drop", &["weald queue drop 3"]),
    ("queue retry", &["weald queue retry 2"]),
    ("queue log", &["weald queue log 2"]),
    (
        "conflicts",
        &["weald conflicts", "weald conflicts fix-login --exit-code"],
    ),
    (
        "approve",
        &["weald approve fix-login", "weald approve fix-login --yes"],
    ),
    ("revert", &["weald revert 1"]),
    ("verify", &["weald verify", "weald verify --since v1.2"]),
    // Clean up and recover
    (
        "rm",
        &["weald rm fix-login", "weald rm fix-login --discard"],
    ),
    (
        "restore",
        &[
            "weald restore",
            "weald restore fix-login",
            "weald restore fix-login --snapshot 1",
        ],
    ),
    (
        "undo",
        &["weald undo --dry-run", "weald undo", "weald undo --list"],
    ),
    (
        "clean",
        &[
            "weald clean",
            "weald clean --apply",
            "weald clean --free 1G",
        ],
    ),
    ("doctor", &["weald doctor", "weald doctor --fix"]),
    (
        "snapshot",
        &[
            "weald snapshot create fix-login",
            "weald snapshot restore fix-login 1",
        ],
    ),
    ("snapshot create", &["weald snapshot create fix-login"]),
    ("snapshot list", &["weald snapshot list fix-login"]),
    (
        "snapshot restore",
        &[
            "weald snapshot restore fix-login",
            "weald snapshot restore fix-login 1",
        ],
    ),
    (
        "snapshot diff",
        &[
            "weald snapshot diff fix-login",
            "weald snapshot diff fix-login 1 2 --stat",
        ],
    ),
    (
        "keep",
        &["weald keep fix-login", "weald keep fix-login --undo"],
    ),
    (
        "lock",
        &[r#"weald lock fix-login --reason "Demo on Friday""#],
    ),
    ("unlock", &["weald unlock fix-login"]),
    ("deinit", &["weald deinit", "weald deinit --apply"]),
    // Talk to other sessions
    (
        "msg",
        &[
            r#"weald msg send alice "The API is ready""#,
            "weald msg inbox",
        ],
    ),
    (
        "msg send",
        &[
            r#"weald msg send alice "The API is ready""#,
            r#"weald msg send alice "Stop editing the schema" --priority urgent"#,
        ],
    ),
    (
        "msg inbox",
        &["weald msg inbox", "weald msg inbox --consume --wait 60s"],
    ),
    (
        "msg ask",
        &[
            r#"weald msg ask alice "Which port?""#,
            r#"weald msg ask alice "May I land?" --wait 5m"#,
        ],
    ),
    (
        "msg reply",
        &[r#"weald msg reply 1 "8080""#, "weald msg reply 2 --approve"],
    ),
    (
        "msg broadcast",
        &[r#"weald msg broadcast "main is frozen until noon""#],
    ),
    (
        "session",
        &["weald session", "weald session register alice --pid $$"],
    ),
    (
        "session register",
        &[
            "weald session register alice",
            "weald session register alice --pid $$",
        ],
    ),
    (
        "session heartbeat",
        &[
            "weald session heartbeat",
            "weald session heartbeat --task 12 --tree fix-login --renew",
        ],
    ),
    (
        "session check",
        &["weald session check alice", "weald session check --task 12"],
    ),
    ("session list", &["weald session list --all"]),
    ("session show", &["weald session show alice"]),
    (
        "session note",
        &[
            r#"weald session note "Port 8080 is taken""#,
            "weald session note",
        ],
    ),
    ("session end", &["weald session end alice"]),
    // History, agents' programs, sandbox, configuration
    (
        "events",
        &[
            "weald events --limit 50",
            "weald events --task 12 --json",
            "weald events --follow",
        ],
    ),
    (
        "install",
        &[
            "weald install claude --dry-run",
            "weald install claude",
            "weald install claude --remove",
        ],
    ),
    (
        "mcp",
        &["weald mcp", "weald mcp --role teammate --session alice"],
    ),
    (
        "sandbox",
        &[
            "weald sandbox exec --write . -- ./test.sh",
            "weald sandbox explain fix-login",
        ],
    ),
    (
        "sandbox exec",
        &[
            "weald sandbox exec --write . -- ./test.sh",
            "weald sandbox exec --write build --no-network -- make -C ..",
        ],
    ),
    (
        "sandbox explain",
        &["weald sandbox explain", "weald sandbox explain fix-login"],
    ),
    (
        "sandbox test",
        &["weald sandbox test", "weald sandbox test --only symlink"],
    ),
    (
        "config",
        &[
            "weald config list landing",
            "weald config get landing.strategy",
            "weald config set --global landing.strategy merge",
        ],
    ),
    (
        "config get",
        &[
            "weald config get gate.command",
            "weald config get gate.command --json",
        ],
    ),
    (
        "config list",
        &["weald config list", "weald config list gate"],
    ),
    (
        "config show",
        &["weald config show", "weald config show landing.strategy"],
    ),
    (
        "config set",
        &[
            "weald config set gate.command 'cargo test'",
            "weald config set --global agent.model opus",
        ],
    ),
    (
        "config unset",
        &[
            "weald config unset gate.command",
            "weald config unset --global agent.model",
        ],
    ),
    (
        "trust",
        &["weald trust --list", "weald trust", "weald trust --revoke"],
    ),
    ("shell-init", &[r#"eval "$(weald shell-init bash)""#]),
    ("completions", &["source <(weald completions bash)"]),
    (
        "man",
        &[
            "weald man ~/.local/share/man/man1",
            "weald man --markdown > commands.md",
        ],
    ),
];

/// The examples of a command, named as it is typed after `weald`.
pub fn of(name: &str) -> &'static [&'static str] {
    let found = EXAMPLES.iter().find(|(command, _)| *command == name);
    found.map_or(&[], |(_, lines)| lines)
}

/// A command that is built already, with examples at the end of its help and of that of all commands below it.
pub fn attached(command: Command) -> Command {
    below(command, "")
}

fn below(command: Command, above: &str) -> Command {
    command.mut_subcommands(|inner| {
        let name = format!("{above}{}", inner.get_name());
        let inner = match of(&name) {
            [] => inner,
            lines => {
                let heading = paint(HEADING, "Examples:");
                let lines: String = lines.iter().map(|line| format!("\n  {line}")).collect();
                inner.after_help(format!("{heading}{lines}"))
            }
        };
        below(inner, &format!("{name} "))
    })
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::cli::Cli;

    /// The words after `weald` as a shell splits them, up to a redirection.
    fn words(line: &str) -> Vec<String> {
        let start = line.find("weald ").expect("an example starts weald");
        let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
        // The number of a process.
        for c in line[start..].replace("$$", "1").chars() {
            match (quote, c) {
                (None, ')' | '>' | '|' | '#') => break,
                (None, '"' | '\'') => quote = Some(c),
                (Some(open), c) if open == c => quote = None,
                (None, ' ') if word.is_empty() => {}
                (None, ' ') => words.push(std::mem::take(&mut word)),
                (_, c) => word.push(c),
            }
        }
        words.extend((!word.is_empty()).then_some(word));
        words
    }

    fn visible(command: &Command, above: &str, names: &mut Vec<String>) {
        for inner in command.get_subcommands() {
            let name = format!("{above}{}", inner.get_name());
            if !inner.is_hide_set() && inner.get_name() != "help" {
                visible(inner, &format!("{name} "), names);
                names.push(name);
            }
        }
    }

    #[test]
    fn u1_every_command_has_examples_and_each_is_understood() {
        let mut command = Cli::command();
        command.build();
        let mut names = Vec::new();
        visible(&command, "", &mut names);
        for name in &names {
            assert!(
                (1..=3).contains(&of(name).len()),
                "`weald {name}` needs one to three examples: add a row to EXAMPLES in ui/examples.rs"
            );
        }
        for (name, lines) in EXAMPLES {
            assert!(
                names.iter().any(|known| known == name),
                "{name} is no command"
            );
            for line in *lines {
                let words = words(line);
                let parsed = Cli::try_parse_from(&words);
                assert!(parsed.is_ok(), "{line}: {:?}", parsed.err());
                let typed = words[1..].join(" ");
                let group = name.split(' ').next().unwrap();
                assert!(
                    typed.starts_with(name) || typed.starts_with(group) || *name == "attach",
                    "{name}: {line}"
                );
            }
        }
    }
}
