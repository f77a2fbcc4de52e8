//! `weald init` knows the project: what it proposes works in a new worktree.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use weald_terminal::Size;
use weald_testkit::{Answer, TestEnv, python_tool, skipped};

use crate::env;

const SIZE: Size = Size {
    columns: 100,
    rows: 30,
};

fn write(env: &TestEnv, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = env.repo().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// The machine's tools, whose state is in the real home.
#[expect(clippy::disallowed_methods, reason = "tools have to be found")]
fn with_tools(command: &mut Command, more: Option<&Path>) {
    for (name, below) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
        let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(below));
        let named = std::env::var_os(name).map(PathBuf::from).or(home);
        if let Some(path) = named.filter(|path| path.is_dir()) {
            command.env(name, path);
        }
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = more.into_iter().map(Path::to_owned);
    let folders = folders.chain(std::env::split_paths(&path));
    command.env("PATH", std::env::join_paths(folders).unwrap());
}

/// A program in the repository; false where this machine has none.
fn prepared(env: &TestEnv, more: Option<&Path>, words: &[&str]) -> bool {
    let mut command = env.command(words[0]);
    // Which program it is depends on the path of this process.
    let own = more
        .map(|more| more.join(words[0]))
        .filter(|own| own.is_file());
    if let Some(own) = own {
        command = env.command(own);
    }
    with_tools(&mut command, more);
    let done = command.args(&words[1..]).output();
    let why = match done {
        Ok(output) if output.status.success() => return true,
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    skipped(&format!(
        "{words:?}: {}",
        why.lines().last().unwrap_or_default()
    ));
    false
}

fn weald(env: &TestEnv, more: Option<&Path>, args: &[&str]) -> Answer {
    let mut command = env.weald_command(args);
    with_tools(&mut command, more);
    Answer::of(command.output().unwrap())
}

/// Commits the project, takes what is proposed, and tests a new worktree with it.
#[track_caller]
fn first_test_passes(env: &TestEnv, more: Option<&Path>, tools: &[&str]) -> Value {
    env.git(&["add", "-A"]);
    env.git(&["commit", "-qm", "project"]);
    // Without a terminal it proposes and sets nothing.
    let proposed = weald(env, more, &["init"]);
    assert!(
        proposed
            .stdout
            .contains("to set all of it: weald init --yes"),
        "{proposed:?}"
    );
    assert_eq!(
        env.weald(&["config", "get", "gate.command"]).stdout.trim(),
        ""
    );
    let taken = weald(env, more, &["init", "--yes", "--json"]).json()["init"].clone();
    let found: Vec<_> = taken["project"]["detected"]
        .as_array()
        .unwrap()
        .iter()
        .collect();
    let found: Vec<_> = found
        .iter()
        .map(|one| one["tool"].as_str().unwrap())
        .collect();
    assert_eq!(found, tools);
    let made = weald(env, more, &["new", "first", "--json"]);
    let outcome = made.json();
    assert_ne!(outcome["setup"]["outcome"], "failed", "{made:?}");
    let test = env.weald(&["config", "get", "gate.command"]).stdout;
    let tested = weald(env, more, &["run", "first", "--", "sh", "-c", test.trim()]);
    assert_eq!(tested.code, 0, "{test}: {tested:?}\n{made:?}");
    taken
}

#[test]
fn u7_an_npm_project_is_installed_tested_and_landed() {
    let env = env();
    let package = r#"{"name": "app", "version": "1.0.0", "scripts": {"test": "node test.js"}, "dependencies": {"answer": "file:answer"}}"#;
    write(
        &env,
        &[
            ("package.json", package),
            (
                "answer/package.json",
                r#"{"name": "answer", "version": "1.0.0", "main": "index.js"}"#,
            ),
            ("answer/index.js", "module.exports = 42;\n"),
            (
                "test.js",
                "require('assert').equal(require('answer'), 42);\n",
            ),
            (".gitignore", "node_modules\n.env\n"),
            (".env", "PORT=3000\n"),
        ],
    );
    let install = [
        "npm",
        "install",
        "--offline",
        "--no-audit",
        "--no-fund",
        "--silent",
    ];
    if !prepared(&env, None, &install) {
        return;
    }
    // Main works, and the first worktree would not: it says so, once.
    env.git(&["add", "-A"]);
    env.git(&["commit", "-qm", "early"]);
    let hint = "node_modules is in main and not in new worktrees; to set them up: weald init";
    for (name, is_said) in [("early", true), ("again", false)] {
        let made = env.weald(&["new", name]);
        assert_eq!(made.stderr.contains(hint), is_said, "{made:?}");
    }
    write(&env, &[("notes", "x\n")]);
    let taken = first_test_passes(&env, None, &["npm"]);
    assert_eq!(
        taken["written"],
        serde_json::json!(["gate.command", "setup.commands", "tree.share_paths"])
    );
    let notes = taken["project"]["notes"][0].as_str().unwrap();
    assert!(notes.contains("3000 (.env)"), "{notes}");
    let first = env.root().join("app.weald/first");
    assert_eq!(
        fs::read_to_string(first.join(".env")).unwrap(),
        "PORT=3000\n"
    );
    // The gate uses the same: what breaks the test does not land, what passes does.
    let land = ["land", "first", "--commit=all"];
    fs::write(first.join("answer/index.js"), "module.exports = 41;\n").unwrap();
    let red = weald(&env, None, &land);
    assert_ne!(red.code, 0, "{red:?}");
    fs::write(first.join("answer/index.js"), "module.exports = 40 + 2;\n").unwrap();
    let landed = weald(&env, None, &land);
    assert_eq!(landed.code, 0, "{landed:?}");
    // What somebody has set stays, and nothing is left to propose.
    env.ok(&["config", "set", "gate.command", "npm run mine"]);
    let again = weald(&env, None, &["init", "--yes", "--json"]).json();
    assert_eq!(again["init"]["written"], serde_json::json!([]));
    let mine = env.weald(&["config", "get", "gate.command"]).stdout;
    assert_eq!(mine, "npm run mine\n");
}

#[test]
fn u7_a_cargo_project_is_tested_with_its_lock_and_its_warm_target() {
    let env = env();
    write(
        &env,
        &[
            (
                "Cargo.toml",
                "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
            ),
            ("src/lib.rs", "#[test]\nfn works() {}\n"),
            (".gitignore", "target/\n"),
        ],
    );
    if !prepared(&env, None, &["cargo", "generate-lockfile", "--offline"]) {
        return;
    }
    let taken = first_test_passes(&env, None, &["cargo"]);
    let settings = taken["project"]["settings"].as_array().unwrap();
    let values: Vec<_> = settings
        .iter()
        .map(|one| one["value"].as_str().unwrap())
        .collect();
    assert_eq!(values, ["cargo test --locked", "target"]);
}

#[test]
fn u7_a_uv_project_is_synced_from_its_lock() {
    let env = env();
    let target = Path::new(env!("CARGO_BIN_EXE_weald"))
        .ancestors()
        .nth(2)
        .unwrap();
    let uv = match python_tool(target, "uv", "uv==0.13.8") {
        Ok(folder) => folder,
        Err(why) => return skipped(&format!("no uv: {why}")),
    };
    write(
        &env,
        &[
            (
                "pyproject.toml",
                "[project]\nname = \"app\"\nversion = \"0.1.0\"\nrequires-python = \">=3.9\"\n[dependency-groups]\ndev = [\"pytest>=8\"]\n",
            ),
            ("test_app.py", "def test_app():\n    assert True\n"),
            (".gitignore", ".venv\n__pycache__\n"),
        ],
    );
    if !prepared(&env, Some(&uv), &["uv", "lock", "-q"]) {
        return;
    }
    let taken = first_test_passes(&env, Some(&uv), &["uv"]);
    assert_eq!(
        taken["written"],
        serde_json::json!(["gate.command", "setup.commands"])
    );
}

#[test]
fn u7_make_and_compose_are_one_proposal_for_everyone() {
    let env = env();
    write(
        &env,
        &[
            ("Makefile", "test:\n\ttest -f README\n"),
            ("README", "app\n"),
            ("web/.env", "WEB_PORT=4000\n"),
            (".gitignore", ".env\n"),
            (
                "compose.yaml",
                "services:\n  db:\n    image: postgres\n    ports:\n      - \"5432:5432\"\n",
            ),
        ],
    );
    let taken = first_test_passes(&env, None, &["docker compose", "make"]);
    let note = taken["project"]["notes"][0].as_str().unwrap();
    assert!(
        note.contains("5432 (compose.yaml), 4000 (web/.env)"),
        "{note}"
    );
    // For everyone it is written next to weald.toml, and counts once it is committed and approved.
    let shared = self::env();
    for file in ["Makefile", "README", "compose.yaml", ".gitignore"] {
        fs::copy(env.repo().join(file), shared.repo().join(file)).unwrap();
    }
    fs::write(shared.repo().join(".env"), "A=1\n").unwrap();
    let told = shared.weald(&["init", "--shared", "--yes"]).stdout;
    for wanted in [
        "set gate.command, .worktreeinclude",
        "git add weald.toml .worktreeinclude && git commit",
        "weald trust",
    ] {
        assert!(told.contains(wanted), "{wanted}: {told}");
    }
    let written = fs::read_to_string(shared.repo().join("weald.toml")).unwrap();
    assert!(written.contains("command = \"make test\""), "{written}");
    shared.git(&["add", "-A"]);
    shared.git(&["commit", "-qm", "weald"]);
    shared.ok(&["new", "a"]);
    assert!(shared.root().join("app.weald/a/.env").exists());
}

#[test]
fn u7_init_asks_on_a_terminal_and_a_strangers_names_stay_harmless() {
    let env = env();
    write(
        &env,
        &[
            ("Makefile", "test:\n\ttrue\n"),
            ("sub\u{1b}]0;title\u{7}/go.mod", "module a\n"),
            ("$(touch proof)/go.mod", "module a\n"),
            (".env", "A=1\n"),
            (".gitignore", ".env\n"),
        ],
    );
    let (terminal, mut person) = env.shell(None, SIZE);
    let get = |key: &str| env.weald(&["config", "get", key]).stdout.trim().to_owned();
    person.types("weald init\r");
    person.sees("detected make (Makefile)");
    person.sees("Set these? [Y/n/e]");
    person.types("n\r");
    person.sees("to set all of it: weald init --yes");
    assert_eq!(get("gate.command"), "");
    // One by one: another value, and one left out.
    person.types("clear; printf 'sec%s\\n' ond; weald init\r");
    person.sees("second");
    person.sees("Set these? [Y/n/e]");
    person.types("what\r");
    person.sees("e asks for each one");
    person.types("e\r");
    person.sees("gate.command [make test]:");
    person.types("make -k test\r");
    person.sees("tree.share_paths [.env]:");
    person.types("-\r");
    person.sees("set gate.command");
    assert_eq!(get("gate.command"), "make -k test");
    assert_eq!(get("tree.share_paths"), "");
    person.types("clear; printf 'thi%s\\n' rd; weald init\r");
    person.sees("third");
    person.sees("Set these? [Y/n/e]");
    person.types("\r");
    person.sees("set tree.share_paths");
    assert_eq!(get("tree.share_paths"), ".env");
    person.types("clear; weald init; echo again-$?\r");
    person.sees("again-0");
    let text = person.terminal.text().join("\n");
    assert!(!text.contains("[Y/n/e]"), "{text}");
    assert!(!env.repo().join("proof").exists());
    person.types("exit\r");
    terminal.ended();
}
