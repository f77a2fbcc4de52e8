//! A person's shell in a worktree: there in one step, confined, and asked at the end about what it wished to land.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use weald_terminal::Size;
use weald_testkit::{Answer, OnTerminal, TestEnv, Watcher, skipped};

fn env() -> TestEnv {
    TestEnv::with_files(env!("CARGO_BIN_EXE_weald"))
}

const SIZE: Size = Size {
    columns: 120,
    rows: 40,
};

const QUESTION: &str = "(default: keep):";

/// A person at a terminal, whose shells in worktrees say so in their prompt.
fn person(env: &TestEnv) -> (OnTerminal, Watcher) {
    let own = env.home().join("own-shell");
    fs::write(
        &own,
        "#!/bin/sh\nexec env 'PS1=in '$WEALD_TREE'> ' bash --norc --noprofile \"$@\"\n",
    )
    .unwrap();
    fs::set_permissions(&own, fs::Permissions::from_mode(0o755)).unwrap();
    let (terminal, mut person) = env.shell(None, SIZE);
    person.types("export SHELL=$HOME/own-shell; clear\r");
    person.sees("prompt>");
    (terminal, person)
}

fn path_of(env: &TestEnv, name: &str) -> PathBuf {
    let path = env.ok(&["path", name])["path"].clone();
    PathBuf::from(path.as_str().unwrap())
}

const COMMIT: &str = "echo work > $WEALD_TREE.txt; git add .; git commit -qm work; clear";

#[test]
fn u5_one_step_creates_a_worktree_and_opens_a_sandboxed_shell_in_it() {
    let env = env();
    let (terminal, mut person) = person(&env);
    person.types("weald shell -c fix\r");
    person.sees("fix (branch wt/fix), sandboxed: only this worktree can change; to leave: exit");
    person.sees("in fix>");
    person.types("pwd; echo x > $WEALD_MAIN/stolen; echo status $?; echo mine > own\r");
    person.sees("/app.weald/fix\n");
    person.sees("stolen: Read-only file system");
    person.sees("status 1");
    person.types("clear; sh -c 'echo go; exec sleep 100'\r");
    person.takes_until("go", |person| {
        person.terminal.text().iter().any(|line| line == "go")
    });
    person.types("\x1a");
    person.sees("Stopped");
    person.types("fg\r");
    person.sees("fg\nsh -c");
    person.types("\x03");
    person.sees("^C");
    person.types("clear; vi -u NONE own\r");
    person.sees("~");
    person.sees("mine");
    person.types(":q\r");
    person.no_longer_sees("~");
    person.types("clear; exit 7\r");
    person.sees("left fix; back: weald shell -");
    person.types("echo code $?\r");
    person.sees("code 7");
    assert!(!env.repo().join("stolen").exists());
    assert_eq!(
        fs::read_to_string(path_of(&env, "fix").join("own")).unwrap(),
        "mine\n"
    );
    // Without a name it is the only one; with several, the last one by `-`.
    for (command, prompt) in [
        ("weald shell", "in fix>"),
        ("weald shell -c other", "in other>"),
        ("weald shell wt/fix", "in fix>"),
        ("weald shell -", "in fix>"),
    ] {
        person.types(&format!("clear; {command}\r"));
        person.sees(prompt);
        person.types("clear; exit\r");
        person.sees("; back: weald shell -");
    }
    person.types("clear; weald shell; echo code $?\r");
    person.sees("error: which worktree? There are fix, other");
    person.sees("code 4");
    person.types("clear; weald shell missing\r");
    person.sees("hint: weald shell -c missing");
    // Nobody who has no terminal gets one.
    env.refused(&["shell", "fix"], 2, "no_terminal");
    person.types("exit\r");
    terminal.ended();
}

#[test]
fn u5_a_wish_to_land_waits_for_the_persons_answer() {
    let env = env();
    let (terminal, mut person) = person(&env);
    person.types("weald shell -c fix\r");
    person.sees("in fix>");
    // What would land nothing, or not all, is said at once.
    person.types("clear; weald land\r");
    person.sees("error: nothing to land");
    person.types("clear; echo new > new.txt; weald land\r");
    person.sees("error: fix has uncommitted changes");
    person.types("clear; git add .; git commit -qm new; weald land\r");
    person.sees("noted: weald asks whether to land it when this shell ends (exit)");
    // Another one's worktree is no wish, and whatever the shell types ahead is no answer.
    person.types("clear; weald land other; echo code $?\r");
    person.sees("code 1");
    assert!(!env.repo().join("new.txt").exists());
    person.types("clear; echo later > later.txt; git add .; git commit -qm later; exit\r");
    person.sees("later.txt | 1 +");
    person.sees("new.txt   | 1 +");
    person.sees(QUESTION);
    assert!(!env.repo().join("new.txt").exists());
    person.types("perhaps\r");
    person.types("l\r");
    person.sees("fix landed on main");
    assert!(env.repo().join("new.txt").exists() && env.repo().join("later.txt").exists());
    // Kept, with the command that lands it.
    person.types("clear; weald shell -c second\r");
    person.sees("in second>");
    person.types(&format!("{COMMIT}; weald land --keep; exit 3\r"));
    person.sees("asked for: weald land second --keep");
    person.sees(QUESTION);
    person.types("d\r");
    person.sees("+work");
    person.takes_until("the question again", |person| {
        person.terminal.text().join("\n").matches(QUESTION).count() == 2
    });
    person.types("\r");
    person.sees("second is kept; to land it: weald land second");
    person.types("echo code $?\r");
    person.sees("code 3");
    assert!(!env.repo().join("second.txt").exists());
    // Without a wish nobody asks.
    person.types("clear; weald shell second\r");
    person.sees("in second>");
    person.types("clear; exit\r");
    person.sees("left second; back: weald shell -");
    // Where nobody can be asked nothing lands either.
    person.types("clear; weald --json shell second\r");
    person.sees("in second>");
    person.types("clear; weald land --commit=all -m 'my words'; exit\r");
    person.sees("second is kept; to land it: weald land second --commit=all -m 'my words'");
    assert!(!env.repo().join("second.txt").exists());
    person.types("exit\r");
    terminal.ended();
}

#[test]
fn u5_what_changes_while_the_person_is_asked_is_shown_before_it_lands() {
    let env = env();
    let (terminal, mut person) = person(&env);
    person.types("weald shell -c fix\r");
    person.sees("in fix>");
    person.types(&format!("{COMMIT}; weald land; exit\r"));
    person.sees("fix.txt | 1 +");
    person.sees(QUESTION);
    let script = "echo more > more.txt; git add .; git commit -qm more";
    assert_eq!(env.weald(&["run", "fix", "--", "sh", "-c", script]).code, 0);
    person.types("l\r");
    person.sees("warning: fix has changed since");
    person.sees("more.txt | 1 +");
    assert!(!env.repo().join("fix.txt").exists());
    person.types("l\r");
    person.sees("fix landed on main");
    assert!(env.repo().join("more.txt").exists());
    person.types("exit\r");
    terminal.ended();
}

/// Runs a script in a shell that knows weald by its name; `None` where there is no such shell.
fn lines(env: &TestEnv, words: &[&str], script: &str) -> Option<Vec<String>> {
    let bin = env.home().join("bin");
    if !bin.exists() {
        fs::create_dir(&bin).unwrap();
        symlink(env!("CARGO_BIN_EXE_weald"), bin.join("weald")).unwrap();
    }
    let mut command = env.command(words[0]);
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display());
    command.args(&words[1..]).arg(script).env("PATH", path);
    let answer = match command.output() {
        Ok(output) => Answer::of(output),
        Err(error) => {
            skipped(&format!("a test with {}: {error}", words[0]));
            return None;
        }
    };
    assert_eq!(answer.code, 0, "{answer:#?}");
    Some(answer.stdout.lines().map(str::to_owned).collect())
}

const STORY: &str = r#"
mkdir -p deep; cd deep
weald enter a; pwd; weald exit
weald enter b; weald enter -; pwd; weald enter -; pwd
echo b > b.txt; git add .; git commit -qm b
weald land > /dev/null; pwd; echo "[$WEALD_TREE]"; weald list
weald enter a; weald enter - 2>&1 || true"#;

#[test]
fn u5_enter_goes_back_to_the_last_worktree_and_land_returns_to_main() {
    for (words, init) in [
        (
            ["bash", "--norc", "-c"],
            "eval \"$(weald shell-init bash)\"",
        ),
        (["zsh", "-f", "-c"], "eval \"$(weald shell-init zsh)\""),
        (
            ["fish", "--no-config", "-c"],
            "weald shell-init fish | source",
        ),
    ] {
        let env = env();
        let [a, b] = ["a", "b"].map(|name| {
            env.ok(&["new", name]);
            path_of(&env, name).display().to_string()
        });
        let Some(told) = lines(&env, &words, &format!("{init}{STORY}")) else {
            continue;
        };
        let deep = env.repo().join("deep").display().to_string();
        assert_eq!(
            told[..5],
            [&a, &a, &b, &deep, "[]"].map(str::to_owned),
            "{told:#?}"
        );
        let rest = told[5..].join("\n");
        assert!(!rest.contains("wt/b") && rest.contains("wt/a"), "{rest}");
        assert!(
            rest.contains("you have not entered another worktree yet"),
            "{rest}"
        );
        assert!(!PathBuf::from(b).exists() && env.repo().join("b.txt").exists());
    }
    // A shell that nobody can move keeps its directory.
    let env = env();
    env.ok(&["new", "a"]);
    let path = path_of(&env, "a");
    fs::write(path.join("a.txt"), "a\n").unwrap();
    let mut land = env.weald_command(&["land", "--commit=all"]);
    let landed = Answer::of(land.current_dir(&path).output().unwrap());
    assert!(
        landed
            .stdout
            .contains("the current directory is in worktree a"),
        "{landed:#?}"
    );
    assert!(path.is_dir());
}

#[test]
fn u5_enter_says_once_per_worktree_that_it_does_not_sandbox() {
    let env = env();
    for name in ["a", "b"] {
        env.ok(&["new", name]);
        let said = [(); 2].map(|()| env.weald(&["enter", name]).stderr);
        let hint = format!("(weald shell {name} does)");
        assert!(
            said[0].contains("enter does not sandbox") && said[0].contains(&hint),
            "{said:?}"
        );
        assert!(!said[1].contains("sandbox"), "{said:?}");
    }
}
