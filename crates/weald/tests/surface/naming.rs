//! One way to say which worktree, task, agent or landing is meant, for every command.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;
use weald_testkit::{Answer, TestEnv, full_scale};

use crate::env;

/// A command with `{}` for the word, and what its answer says if the right thing was found.
struct Row {
    /// The page of the manual, and the argument on it.
    page: &'static str,
    argument: &'static str,
    command: &'static str,
    says: &'static str,
    /// What makes it possible before each call, and what takes it back afterwards.
    around: [&'static str; 2],
}

const fn row(
    page: &'static str,
    argument: &'static str,
    command: &'static str,
    says: &'static str,
) -> Row {
    Row {
        page,
        argument,
        command,
        says,
        around: ["", ""],
    }
}

impl Row {
    const fn before(mut self, command: &'static str) -> Self {
        self.around[0] = command;
        self
    }

    const fn after(mut self, command: &'static str) -> Self {
        self.around[1] = command;
        self
    }
}

/// Commands that take a worktree.
const TREES: &[Row] = &[
    row("show", "NAME", "show {}", "\"name\":\"fix\""),
    row("status", "NAME", "status {}", "\"name\":\"fix\""),
    row("path", "NAME", "path {}", "app.weald/fix"),
    row("ports", "NAME", "ports {}", "\"fix\""),
    row("diff", "NAME", "diff {}", "\"path\":\"made\""),
    row("enter", "NAME", "enter {}", "\"name\":\"fix\""),
    row("ensure", "NAME", "ensure {}", "\"outcome\":\"reused\""),
    row("events", "--tree", "events --tree {}", "\"tree\":\"fix\""),
    row("run", "NAME", "run {} -- pwd", "app.weald/fix"),
    row("sync", "NAME", "sync {}", "\"name\":\"fix\""),
    row("setup", "NAME", "setup {}", "\"name\":\"fix\""),
    row("conflicts", "NAME", "conflicts {}", "\"fix\""),
    row("clean", "--usage", "clean --usage {}", "\"fix\""),
    row(
        "sandbox-explain",
        "NAME",
        "sandbox explain {}",
        "app.weald/fix",
    ),
    row("approve", "NAME", "approve {} --yes", "\"name\":\"fix\""),
    row(
        "snapshot-create",
        "NAME",
        "snapshot create {}",
        "\"snapshot\":{",
    ),
    row("snapshot-list", "NAME", "snapshot list {}", "\"id\":1"),
    row("snapshot-diff", "NAME", "snapshot diff {}", "\"files\""),
    row(
        "snapshot-restore",
        "NAME",
        "snapshot restore {}",
        "\"name\":\"fix\"",
    ),
    row("keep", "NAME", "keep {}", "\"name\":\"fix\"").after("keep --undo fix"),
    row("lock", "NAME", "lock {}", "\"name\":\"fix\"").after("unlock fix --force"),
    row("unlock", "NAME", "unlock {} --force", "\"name\":\"fix\"").before("lock fix"),
    row(
        "new",
        "--for",
        "new near --scratch --for {}",
        "\"scratch_for\":\"fix\"",
    )
    .after("rm near"),
    row("task-bind", "TREE", "task bind 3 {}", "\"tree\":\"fix\""),
    row("land", "NAME", "land {} --dry-run", "\"tree\":\"fix\""),
    row("rm", "NAME", "rm {} --discard", "\"name\":\"fix\"").after("restore fix"),
    row("restore", "NAME", "restore {}", "\"name\":\"fix\"").before("rm fix --discard"),
    row(
        "session-heartbeat",
        "--tree",
        "session heartbeat alice --tree {}",
        "\"tree\":\"fix\"",
    ),
];

/// Commands that take a task. This one is completed, so most of them say that of it, and change nothing.
const TASKS: &[Row] = &[
    row("task-show", "ID", "task show {}", "\"id\":1"),
    row("task-edit", "ID", "task edit {} --priority P1", "\"id\":1"),
    row("task-claim", "ID", "task claim {}", "\"task\":1"),
    row("task-renew", "ID", "task renew {}", "\"task\":1"),
    row("task-release", "ID", "task release {}", "\"task\":1"),
    row("task-start", "ID", "task start {}", "\"task\":1"),
    row("task-done", "ID", "task done {}", "\"task\":1"),
    row("task-fail", "ID", "task fail {}", "\"task\":1"),
    row("task-cancel", "ID", "task cancel {}", "\"task\":1"),
    row("task-reopen", "ID", "task reopen {}", "\"id\":1").after("task done 1"),
    row(
        "task-closeout",
        "ID",
        "task closeout {} keep --reason r",
        "\"id\":1",
    )
    .after("keep --undo fix"),
    row(
        "task-unbind",
        "ID",
        "task unbind {}",
        "\"last_worktree\":\"fix\"",
    )
    .after("task bind 1 fix"),
    row("task-bind", "ID", "task bind {} other", "\"task\":1"),
    row("task-dep", "ID", "task dep {} --remove 3", "\"id\":1"),
    row(
        "task-dep",
        "--add",
        "task dep 3 --add {}",
        "\"blocked_by\":[1]",
    ),
    row(
        "task-dep",
        "--remove",
        "task dep 3 --remove {}",
        "\"blocked_by\":[]",
    )
    .before("task dep 3 --add 1"),
    row(
        "task-add",
        "--after",
        "task add Later --after {}",
        "\"blocked_by\":[1]",
    ),
    row("clean", "--task", "clean --task {}", "\"fix\""),
    row("events", "--task", "events --task {}", "\"task\":1"),
    row(
        "msg-send",
        "--task",
        "msg send alice hello --task {}",
        "\"task\":1",
    ),
    row(
        "msg-ask",
        "--task",
        "msg ask alice why --task {}",
        "\"task\":1",
    ),
    row(
        "msg-broadcast",
        "--task",
        "msg broadcast hello --task {}",
        "\"task\":1",
    ),
    row(
        "session-check",
        "--task",
        "session check --task {}",
        "\"task\":1",
    ),
    row(
        "session-heartbeat",
        "--task",
        "session heartbeat alice --task {}",
        "\"task\":1",
    ),
    row("new", "--task", "new more --task {}", "\"task\":1"),
    row("ensure", "--task", "ensure --task {}", "\"name\":\"fix\""),
    row("adopt", "--task", "adopt ../extra --task {}", "\"task\":1"),
    row("work", "TASK", "work {} -- true", "task 1"),
    row("resume", "TASK", "resume {}", "\"diagnosis\":\"completed\""),
    row("phase", "TASK", "phase {}", "\"task\":1"),
    row("rescue", "TASK", "rescue {}", "\"task\":1"),
    row("race", "TASK", "race {} -n 2 -- true", "task 1"),
    row("race-show", "TASK", "race show {}", "task 1"),
    row("race-pick", "TASK", "race pick {} a", "task 1"),
    row("race-drop", "TASK", "race drop {}", "task 1"),
    row(
        "agent-spawn",
        "TASK",
        "agent spawn {} --force -- true",
        "task 1",
    ),
];

/// Commands that take an agent. This one has ended.
const AGENTS: &[Row] = &[
    row("agent-show", "ID", "agent show {}", "\"id\":\"a1\""),
    row("agent-pulse", "ID", "agent pulse {}", "\"id\":\"a1\""),
    row("agent-diff", "ID", "agent diff {}", "\"path\":\"made\""),
    row("agent-logs", "ID", "agent logs {}", "\"agent\":\"a1\""),
    row("agent-wait", "ID", "agent wait {}", "\"id\":\"a1\""),
    row("agent-attach", "ID", "agent attach {}", "\"a1\""),
    row("attach", "ID", "attach {}", "\"a1\""),
    row("agent-steer", "ID", "agent steer {} hello", "a1"),
    row("agent-pause", "ID", "agent pause {}", "a1"),
    row("agent-resume", "ID", "agent resume {}", "a1"),
    row("agent-stop", "ID", "agent stop {}", "a1"),
    row("agent-restart", "ID", "agent restart {}", "task 1"),
];

/// Commands that take a landing. This one has landed without a gate.
const LANDINGS: &[Row] = &[
    row("queue-log", "LANDING", "queue log {}", "landing 2"),
    row("queue-drop", "LANDING", "queue drop {}", "landing 2"),
    row("queue-retry", "LANDING", "queue retry {}", "landing 2"),
    row("doctor", "--recover", "doctor --recover {}", "landing 2"),
];

/// The same, once it was taken back: the landing that took it back does not count.
const LANDED: &[Row] = &[row(
    "revert",
    "LANDING",
    "revert {}",
    "landing 2 was undone",
)];

/// Arguments of these names that mean something else.
const OTHERS: &[(&str, &str)] = &[
    ("new", "NAME"),
    ("adopt", "--name"),
    ("agent-spawn", "--name"),
    ("work", "--name"),
    ("worker", "--name"),
    ("phase", "--name"),
    ("rescue", "--name"),
    ("task-add", "--id"),
    ("msg-reply", "ID"),
    ("snapshot-restore", "ID"),
    ("snapshot-diff", "ID"),
    ("race-pick", "NAME"),
    ("resume", "--name"),
    ("agent-take", "ID"),
    // It opens on terminals alone: a test of the shell names it by its branch.
    ("shell", "NAME"),
];

/// What an answer says if nothing was found, or several things.
const UNFOUND: [&str; 5] = [
    "tree_not_found",
    "task_not_found",
    "agent_not_found",
    "landing_not_found",
    "ambiguous_name",
];

/// A repository with two of everything: task 1 in worktree `fix`, where agent `a1` worked, is the one that is meant.
fn repository() -> TestEnv {
    let env = env();
    env.ok(&["session", "register", "alice"]);
    env.ok(&["task", "add", "Add a login"]);
    env.ok(&["task", "add", "Write the manual"]);
    env.ok(&["task", "add", "Clean up"]);
    env.ok(&["new", "other", "--task", "2"]);
    env.ok(&["new", "fix", "--task", "1"]);
    let extra = env.root().join("extra");
    env.git(&[
        "worktree",
        "add",
        "-q",
        "-b",
        "extra",
        extra.to_str().unwrap(),
    ]);
    let made = "mkdir deep; echo x > made; echo y > deep/er";
    env.ok(&["work", "1", "--no-land", "--", "sh", "-c", made]);
    env
}

/// Everything that the one which is meant can be called.
fn forms(env: &TestEnv) -> Vec<String> {
    let deep = env.root().join("app.weald/fix/deep/er");
    let forms = ["fix", "#1", "a1", "wt/fix", "../app.weald/fix"];
    let forms = forms.into_iter().map(str::to_owned);
    forms.chain([deep.display().to_string()]).collect()
}

fn call(env: &TestEnv, command: &str, word: &str) -> Answer {
    let words = command.split_whitespace().map(|part| match part {
        "{}" => word,
        part => part,
    });
    let words: Vec<&str> = std::iter::once("--json").chain(words).collect();
    match command.starts_with("approve") {
        true => env.weald_alone(&words),
        false => env.weald(&words),
    }
}

/// Calls every command with two of the forms, each time with others; at full size with all of them.
fn check(env: &TestEnv, rows: &[Row], forms: &[String]) {
    let count = if full_scale() { forms.len() } else { 2 };
    let done = |command: &str| {
        if !command.is_empty() {
            let told = call(env, command, "");
            assert_eq!(told.code, 0, "{command}: {told:#?}");
        }
    };
    for (at, row) in rows.iter().enumerate() {
        let mut first = None;
        for number in 0..count {
            let form = &forms[(at + number * forms.len().div_ceil(count)) % forms.len()];
            done(row.around[0]);
            let answer = call(env, row.command, form);
            let told = format!("{} {form}: {answer:#?}", row.command);
            assert_eq!(answer.code, *first.get_or_insert(answer.code), "{told}");
            let not_found = UNFOUND.iter().any(|code| answer.stdout.contains(code));
            assert!(!not_found && answer.code != 2, "{told}");
            let all = format!("{}{}", answer.stdout, answer.stderr);
            assert!(all.contains(row.says), "no {}: {told}", row.says);
            done(row.around[1]);
        }
    }
}

#[test]
fn u2_every_command_takes_every_form() {
    let env = repository();
    let forms = forms(&env);
    check(&env, TREES, &forms);
    check(&env, TASKS, &forms);
    check(&env, AGENTS, &forms);
    // This one needs a terminal before all else.
    for form in &forms {
        let request = format!("{{\"request\": {{\"agent\": \"{form}\"}}}}");
        let told = env.weald_with_input(&["--json", "operate", "agent_take"], request.as_bytes());
        assert!(
            told.stdout.contains("a1 runs a command"),
            "{form}: {told:#?}"
        );
    }
    fs::write(env.root().join("app.weald/other/new"), "new\n").unwrap();
    env.ok(&["land", "other", "--keep", "--commit=all"]);
    env.ok(&["land", "fix", "--keep"]);
    let plain = ["2".to_owned()];
    // A number alone is the landing's, though task 2 has landed, too.
    let forms = [&plain[..], &forms].concat();
    check(&env, LANDINGS, &forms);
    env.ok(&["revert", "fix"]);
    check(&env, LANDED, &forms);
}

/// The arguments of every command, as the manual has them.
fn arguments(env: &TestEnv) -> BTreeSet<(String, String)> {
    let folder = env.root().join("man");
    assert_eq!(env.weald(&["man", folder.to_str().unwrap()]).code, 0);
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(&folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let page = name.strip_suffix(".1").unwrap();
        let Some(page) = page.strip_prefix("weald-") else {
            continue;
        };
        let text = fs::read_to_string(entry.path()).unwrap();
        let plain = text
            .replace("\\fB", "")
            .replace("\\fI", "")
            .replace("\\fR", "");
        let plain = plain.replace("\\-", "-");
        let mut lines = plain.lines();
        while let Some(line) = lines.next() {
            if line != ".TP" {
                continue;
            }
            let line = lines.next().unwrap_or_default();
            let mut values = line.split(['<', '[', '>', ']']).skip(1);
            let value = values.find(|value| !value.is_empty()).unwrap_or_default();
            let value = value.trim_end_matches('.');
            let names = ["NAME", "TREE", "WORKTREE", "TASK", "ID", "LANDING", "AGENT"];
            if !names.contains(&value) {
                continue;
            }
            let flag = line
                .split([',', ' ', '='])
                .find(|word| word.starts_with("--"));
            let argument = flag.unwrap_or(value);
            let is_session = page.starts_with("session-") && argument == "NAME";
            if !is_session && !["--session", "--owner", "--plan"].contains(&argument) {
                found.insert((page.to_owned(), argument.to_owned()));
            }
        }
    }
    found
}

#[test]
fn u2_no_argument_is_missing_from_the_table() {
    let env = env();
    let found = arguments(&env);
    let rows = [TREES, TASKS, AGENTS, LANDINGS, LANDED];
    let rows = rows.into_iter().flatten();
    let rows = rows.map(|row| (row.page, row.argument));
    let listed: BTreeSet<_> = rows
        .chain(OTHERS.iter().copied())
        .map(|(page, argument)| (page.to_owned(), argument.to_owned()))
        .collect();
    let missing: Vec<_> = found.difference(&listed).collect();
    assert!(missing.is_empty(), "not in the table: {missing:?}");
    assert!(found.len() > 60, "the manual was not understood: {found:?}");
}

#[test]
fn u2_what_is_ambiguous_is_refused_with_its_choices() {
    let env = env();
    env.ok(&["task", "add", "First"]);
    env.ok(&["task", "add", "Second"]);
    env.ok(&["new", "fix", "--task", "1"]);
    env.ok(&["new", "1", "--task", "2"]);
    let choices = |error: &Value| -> Vec<String> {
        let all = error["details"]["choices"].as_array().unwrap();
        all.iter()
            .map(|choice| choice["say"].as_str().unwrap().to_owned())
            .collect()
    };
    for command in [
        "show 1",
        "rm 1 --discard",
        "land 1",
        "task show 1",
        "task cancel 1",
        "ensure 1",
    ] {
        let words: Vec<_> = command.split(' ').collect();
        let error = env.refused(&words, 1, "ambiguous_name")["error"].clone();
        assert_eq!(
            choices(&error),
            ["worktree:1", "task:1"],
            "{command}: {error}"
        );
        let hint = error["hint"].as_str().unwrap();
        assert_eq!(hint, "say which: worktree:1 or task:1", "{command}");
    }
    for (word, tree, task) in [
        ("worktree:1", "1", 2),
        ("task:1", "fix", 1),
        ("#1", "fix", 1),
        ("fix", "fix", 1),
        ("#2", "1", 2),
        ("branch:wt/1", "1", 2),
    ] {
        assert_eq!(env.ok(&["show", word])["tree"]["name"], tree, "{word}");
        assert_eq!(
            env.ok(&["task", "show", word])["task"]["id"],
            task,
            "{word}"
        );
    }
    // A flag that asks for a task takes the id first.
    assert_eq!(env.ok(&["ensure", "--task", "1"])["tree"]["name"], "fix");
    // Both are still there.
    let names = env.ok(&["list"]);
    assert_eq!(names["trees"].as_array().unwrap().len(), 2, "{names}");
}

#[test]
fn u2_a_near_name_is_suggested_and_never_taken() {
    let env = env();
    env.ok(&["new", "fix-login"]);
    env.ok(&["task", "add", "First", "--id", "gh-12"]);
    for (command, code, near, list) in [
        ("rm fix-logn", "tree_not_found", "fix-login", "weald list"),
        ("land fix", "tree_not_found", "", "weald list"),
        (
            "show wt/fix-logi",
            "tree_not_found",
            "wt/fix-login",
            "weald list",
        ),
        (
            "task show gh12",
            "task_not_found",
            "gh-12",
            "weald task list",
        ),
        ("task cancel 12", "task_not_found", "", "weald task list"),
        (
            "agent show fix-logins",
            "agent_not_found",
            "fix-login",
            "weald agent list --all",
        ),
        (
            "queue log 7",
            "landing_not_found",
            "",
            "weald queue status --all",
        ),
    ] {
        let words: Vec<_> = command.split(' ').collect();
        let error = env.refused(&words, 4, code)["error"].clone();
        let hint = error["hint"].as_str().unwrap();
        let expected = match near {
            "" => list.to_owned(),
            near => format!("did you mean {near}? to list them: {list}"),
        };
        assert_eq!(hint, expected, "{command}");
    }
    assert_eq!(env.ok(&["list"])["trees"][0]["name"], "fix-login");
    // Inside a worktree a branch that nobody has is no path in it.
    let inside = env.root().join("app.weald/fix-login");
    fs::create_dir_all(inside.join("deep/er")).unwrap();
    let within = |word: &str| {
        let told = env.weald(&["-C", inside.to_str().unwrap(), "path", word]);
        (told.code, told.stdout.trim().to_owned())
    };
    let found = (0, inside.display().to_string());
    assert_eq!(within("./deep/er"), found);
    // A link that the repository brings is no other worktree's name.
    env.ok(&["new", "other"]);
    std::os::unix::fs::symlink(env.root().join("app.weald/other"), inside.join("deep/link"))
        .unwrap();
    assert_eq!(within("deep/link").0, 4);
    assert_eq!(within("./gone"), found);
    assert_eq!(within("wt/old").0, 4);
}

#[test]
fn u2_a_run_addresses_its_own_worktree_by_every_name_and_no_other() {
    let env = env();
    env.ok(&["task", "add", "First"]);
    env.ok(&["new", "fix", "--task", "1"]);
    env.ok(&["new", "other"]);
    let weald = env!("CARGO_BIN_EXE_weald");
    let script = format!(
        "mkdir -p deep/er; cd deep; for word in fix '#1' worktree:fix wt/fix . er path:er ../.. \
         other wt/other ../../other; do {weald} path \"$word\" || echo refused; done"
    );
    let told = env.weald(&["run", "fix", "--", "sh", "-c", &script]);
    let own = env.root().join("app.weald/fix");
    let expected = [
        true, true, true, true, true, false, true, false, false, false, false,
    ];
    let lines: Vec<_> = told.stdout.lines().collect();
    let own = own.to_str().unwrap();
    let is_own: Vec<_> = lines.iter().map(|line| *line == own).collect();
    assert_eq!(is_own, expected, "{told:#?}");
}
