//! What help says is so: the everyday page, and every example, typed into a shell.

use std::fs;
use std::path::Path;

use weald_testkit::{Answer, TestEnv};

/// Examples that no test can type, and why.
const NOT_RUN: &[(&str, &str)] = &[
    ("weald demo", "tests of its own run it"),
    ("weald demo --keep", "the same"),
    ("weald work 12 -i -- claude", "needs a terminal"),
    ("weald agent spawn 15 -i -- claude", "needs a real agent"),
    ("weald agent take a3", "needs a terminal"),
    ("weald approve fix-login", "needs a terminal"),
    (
        "weald msg inbox --consume --wait 60s",
        "waits for a message",
    ),
    (
        "weald msg ask alice \"May I land?\" --wait 5m",
        "waits for the answer",
    ),
    ("weald events --follow", "runs until Ctrl-C"),
    (
        "weald sandbox test",
        "takes a minute; tests of its own run it",
    ),
];

/// Examples that end with another code than 0, as they should.
const EXPECTED: &[(&str, i32)] = &[
    // The agent that is shown was stopped.
    ("weald attach a3", 1),
    ("weald agent attach a3", 1),
    // There is no terminal.
    ("weald shell -c fix-login", 2),
    ("weald shell -", 2),
    // There is work that would be lost.
    ("weald deinit", 1),
    ("weald deinit --apply", 1),
];

/// Commands whose examples run before all others, while what they need is there.
const FIRST: &[&str] = &["queue drop"];

/// Commands whose examples run after all others, in this order.
const LAST: &[&str] = &[
    "agent logs",
    "agent attach",
    "attach",
    "agent restart",
    "agent wait",
    "init",
    "deinit",
];

/// What has to be there before an example runs: commands of the same shell, joined by `&&`.
const NEEDS: &[(&str, &str)] = &[
    (
        "weald task done 13 --token 1 --report \"The login works\"",
        "weald task claim 13",
    ),
    (
        "weald task fail 14 --token 1 --report \"The API is down\"",
        "weald task claim 14",
    ),
    (
        "weald task bind 12 fix-login",
        "open 12 && weald task unbind 12 && weald new fix-login",
    ),
    (
        "weald task closeout 12 keep --reason \"Needed for the demo\"",
        "weald task bind 12 fix-login --rebind",
    ),
    (
        "weald task closeout 12 remove --reason \"Landed by hand\"",
        "weald task bind 12 fix-login --rebind",
    ),
    ("weald work 12 -- codex", "open 12"),
    ("weald agent spawn 14 -- claude", "open 14"),
    (
        "weald agent stop 14 --release --wait",
        "open 14 && weald agent spawn 14 -- loop",
    ),
    (
        "weald agent wait --any --timeout 10m",
        "weald agent stop 14 --wait && weald agent stop 3 --wait",
    ),
    ("weald phase 12 -- claude", "open 12"),
    ("weald phase 13 --only review -- claude", "open 13"),
    ("weald race 12 -n 2 -- claude", "open 12"),
    (
        "weald race 13 --with claude,codex",
        "open 13 && weald task unbind 13",
    ),
    ("weald race drop 13", "open 13"),
    ("weald resume 12", "fails_once 12"),
    (
        "weald resume 12 --feedback \"Keep the old API\"",
        "fails_once 12",
    ),
    ("weald rescue 12", "fails_once 12"),
    ("weald new fix-login", "absent"),
    ("weald exit", "cd \"$(weald path fix-login)\""),
    ("weald exit --remove", "cd \"$(weald path fix-login)\""),
    (
        "weald path fix-login --check \"$PWD/README.md\"",
        "weald ensure fix-login",
    ),
    ("weald diff fix-login", "absent && changed"),
    ("weald deinit", "changed"),
    ("weald deinit --apply", "changed"),
    (
        "weald adopt ../old-worktree",
        "git worktree add ../old-worktree",
    ),
    ("weald adopt --all", "git worktree add ../older-worktree"),
    ("weald land fix-login", "weald queue resume && committed"),
    (
        "weald land fix-login --commit -m \"Fix the login\"",
        "changed && weald run fix-login -- git add -A",
    ),
    ("weald land fix-login --dry-run", "committed"),
    (
        "weald conflicts fix-login --exit-code",
        "weald ensure fix-login",
    ),
    ("weald approve fix-login --yes", "committed"),
    ("weald rm fix-login", "absent && weald new fix-login"),
    ("weald rm fix-login --discard", "changed"),
    (
        "weald restore fix-login --snapshot 1",
        "weald snapshot create fix-login",
    ),
    (
        "weald undo --dry-run",
        "absent && weald new fix-login && weald rm fix-login",
    ),
];

/// Words for what several examples need.
const FUNCTIONS: &str = r#"
changed() { weald ensure fix-login && weald run fix-login -- sh -c 'date +%N > login.txt'; }
committed() {
  weald ensure fix-login && weald run fix-login -- sh -c 'date > login-$(date +%N).txt; git add -A; git commit -qm login'
}
absent() { ! weald path fix-login || { weald rm fix-login --discard --force && { git branch -D wt/fix-login || :; }; }; }
open() { weald task reopen "$1" || :; }
fails_once() {
  open "$1"; cp ~/bin/false ~/bin/flaky; ! weald work "$1" -- flaky && cp ~/bin/codex ~/bin/flaky
}
"#;

/// A project with fifteen tasks, and programs that stand for agents.
const PROJECT: &str = r#"
mkdir -p ~/bin
agent='#!/bin/sh
echo "$WEALD_AGENT" >> "work-$WEALD_TASK.txt"
test -z "$WEALD_VERDICT_FILE" || echo "{\"verdict\": \"PASS\"}" > "$WEALD_VERDICT_FILE"'
result='{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"7d2f1f9e-0000-4000-8000-000000000001"}'
program() { printf '%s\n' "$2" > ~/bin/"$1"; chmod +x ~/bin/"$1"; }
program claude "$agent
echo '$result'"
program codex "$agent
echo '{\"type\":\"turn.completed\"}'"
program loop '#!/bin/sh
echo begun > begun.txt
while :; do sleep 0.1; done'
program false '#!/bin/sh
exit 1'
program gh '#!/bin/sh
echo "[]"'
program make '#!/bin/sh'
printf '[user]\nname = Test\nemail = test@example.com\n' > ~/.gitconfig
printf '#!/bin/sh\nexit 0\n' > test.sh
chmod +x test.sh
mkdir build
touch build/.keep
echo hello > README.md
echo '- [ ] Write the manual' > tasks.md
git add -A
git commit -qm project
git tag v1.2
git branch release
seq 15 | sed 's/.*/{"subject": "Improve part &"}/' | weald task import -
"#;

/// Three agents: two that land something, and a3, which works until it is stopped.
const AGENTS: &str = "
weald config set work.retries 0
weald config set phase.list build,review
weald agent spawn 1 -- claude
weald agent spawn 2 -- codex
weald agent spawn 3 -- loop
";

/// Two messages to answer; landing 1 landed, landing 2 failed its test, landing 3 is in the queue.
const LANDINGS: &str = r#"
weald session register alice
weald session register bob
weald msg ask bob "Which port?" --session alice
weald msg send bob "First the API" --type plan --session alice
weald config set gate.command ./test.sh
committed
weald land fix-login
weald config set gate.command false
committed
! weald land fix-login
weald config set gate.command ./test.sh
weald queue pause
weald land fix-login --no-wait
"#;

/// Where the commands for tasks and agents are in docs/commands.md.
const PLANNING: &str = "Plan and hand out work";

fn shell(env: &TestEnv, script: &str) -> Answer {
    let binary = Path::new(env!("CARGO_BIN_EXE_weald")).parent().unwrap();
    let mut bash = env.command("bash");
    let path = bash.get_envs().find(|(name, _)| *name == "PATH");
    let path = path
        .and_then(|(_, path)| path?.to_str())
        .unwrap_or_default();
    let path = format!(
        "{}:{}:{path}",
        binary.display(),
        env.home().join("bin").display()
    );
    bash.args(["-c", script])
        .env("PATH", path)
        .env("WEALD_SESSION", "bob")
        .env("PAGER", "cat")
        // An agent in the background must not hold the test up.
        .env("TMPDIR", env.root());
    Answer::of(bash.output().unwrap())
}

/// The examples of docs/commands.md: the group of commands, the command, the line.
fn examples(env: &TestEnv) -> Vec<(String, String, String)> {
    let page = env.weald(&["man", "--markdown"]).stdout;
    let (mut found, mut group, mut command, mut is_example) = (Vec::new(), "", "", false);
    for line in page.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            group = title;
        } else if let Some((_, name)) = line.split_once("# weald ") {
            (command, is_example) = (name, false);
        } else if line == "Examples:" {
            is_example = true;
        } else if let (true, Some(line)) = (is_example, line.strip_prefix("    ")) {
            found.push((group.to_owned(), command.to_owned(), line.to_owned()));
        }
    }
    found
}

fn named<T: Copy>(list: &[(&str, T)], line: &str) -> Option<T> {
    list.iter()
        .find(|(named, _)| *named == line)
        .map(|(_, what)| *what)
}

/// Types the examples of some commands into a shell, one after another in one repository.
fn run_examples(state: &str, are_meant: impl Fn(&str) -> bool) {
    let env = crate::env();
    let made = shell(&env, &format!("set -e\n{PROJECT}{FUNCTIONS}{state}"));
    assert_eq!(made.code, 0, "{made:#?}");
    let mut examples = examples(&env);
    examples.retain(|(group, ..)| are_meant(group));
    examples.sort_by_key(|(_, command, _)| {
        let last = LAST.iter().position(|last| last == command);
        let is_first = FIRST.contains(&command.as_str());
        last.map_or(usize::from(!is_first), |place| place + 2)
    });
    assert!(examples.len() > 50, "{examples:?}");
    let (mut typed, mut wrong) = (Vec::new(), Vec::new());
    for (_, command, line) in &examples {
        // Some stand at a group of commands, too.
        if typed.contains(&line) || named(NOT_RUN, line).is_some() {
            continue;
        }
        typed.push(line);
        let script = match named(NEEDS, line) {
            Some(needs) => format!(
                "{FUNCTIONS}{{ {needs}; }} > ../needs 2>&1 || {{ cat ../needs; exit 99; }}\n{line}"
            ),
            None => line.clone(),
        };
        let answer = shell(&env, &script);
        if answer.code != named(EXPECTED, line).unwrap_or(0) {
            wrong.push(format!("{command}: {line}\n{answer:#?}"));
        }
    }
    let _ = shell(
        &env,
        "for agent in $(seq 40); do weald agent stop a$agent; done",
    );
    assert!(
        wrong.is_empty(),
        "These examples of ui/examples.rs do not end as they should (99: what they need failed).\n\
         In tests/surface/help.rs, NEEDS makes what an example needs, EXPECTED knows other codes than 0,\n\
         and NOT_RUN lists what no test can type.\n{}",
        wrong.join("\n")
    );
}

#[test]
fn u1_examples_of_tasks_and_agents_run_as_they_stand() {
    run_examples(AGENTS, |group| group == PLANNING);
}

#[test]
fn u1_examples_of_worktrees_and_all_else_run_as_they_stand() {
    run_examples(LANDINGS, |group| {
        group != PLANNING && group != "Older words"
    });
}

#[test]
fn u1_few_examples_are_not_typed_and_all_that_is_prepared_is_needed() {
    let env = TestEnv::without_repository(env!("CARGO_BIN_EXE_weald"));
    let examples = examples(&env);
    let is_example = |line: &str| examples.iter().any(|(.., known)| known == line);
    let lists = NOT_RUN.iter().chain(NEEDS).map(|(line, _)| *line);
    for line in lists.chain(EXPECTED.iter().map(|(line, _)| *line)) {
        assert!(is_example(line), "no example any more: {line}");
    }
    assert!(
        NOT_RUN.len() <= 10,
        "an example that is never typed may be wrong"
    );
}

#[test]
fn u1_help_shows_the_everyday_commands_and_all_the_rest_on_request() {
    let env = TestEnv::without_repository(env!("CARGO_BIN_EXE_weald"));
    let help = |args: &[&str]| {
        let answer = env.weald(args);
        assert_eq!((answer.code, answer.stderr.as_str()), (0, ""), "{args:?}");
        answer.stdout
    };
    let everyday = help(&["help"]);
    assert_eq!(everyday, help(&["--help"]));
    assert_eq!(everyday, help(&["-h"]));
    let lines: Vec<_> = everyday.lines().collect();
    assert!(
        lines.iter().all(|line| line.chars().count() <= 80),
        "{everyday}"
    );
    let shown = lines.iter().filter(|line| line.starts_with("  weald "));
    assert!(
        lines.len() <= 35 && (12..=18).contains(&shown.count()),
        "{everyday}"
    );
    for line in ["weald land fix-login ", "weald help --all "] {
        assert!(everyday.contains(line), "{line}: {everyday}");
    }
    assert!(!everyday.contains("--json") && !everyday.contains("snapshot"));
    let all = help(&["help", "--all"]);
    assert_eq!(all, help(&["--help", "--all"]));
    let (head, _) = everyday.split_once("More:").unwrap();
    assert!(all.starts_with(head), "{all}");
    for part in [
        "\n  snapshot ",
        "\n  completions ",
        "\n      --json ",
        "Configure:",
    ] {
        assert!(all.contains(part), "{part}: {all}");
    }
    // Of a command, with its examples at the end.
    for (words, last) in [
        (
            &["help", "agent", "pause"][..],
            "Examples:\n  weald agent pause a3\n",
        ),
        (
            &["agent", "pause", "--help"],
            "Examples:\n  weald agent pause a3\n",
        ),
        (&["help", "ls"], "\n  weald list --fresh\n"),
    ] {
        let said = help(words);
        assert!(said.ends_with(last), "{words:?}: {said}");
    }
    for (words, nearest) in [
        (&["lnd"][..], "'land'"),
        (&["help", "lnd"], "'land'"),
        (&["task", "clam"], "'claim'"),
        (&["agent", "pulsee", "a3"], "'pulse'"),
        (&["land", "--dryrun"], "'--dry-run'"),
    ] {
        let answer = env.weald(words);
        assert_eq!(answer.code, 2, "{answer:?}");
        assert!(answer.stderr.contains(nearest), "{answer:?}");
    }
    let folder = env.root().join("man");
    help(&["man", folder.to_str().unwrap()]);
    let page = fs::read_to_string(folder.join("weald-agent-pause.1")).unwrap();
    assert!(
        page.ends_with(".SH EXAMPLES\n.nf\nweald agent pause a3\n.fi\n"),
        "{page}"
    );
}
