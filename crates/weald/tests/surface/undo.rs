//! What undo takes for the caller's own, and what it says before the target changes.

use weald_terminal::Size;
use weald_testkit::TestEnv;

use crate::env;

fn landed(env: &TestEnv) {
    let made = env.ok(&["new", "fix"]);
    let path = std::path::Path::new(made["tree"]["path"].as_str().unwrap());
    std::fs::write(path.join("new"), "new\n").unwrap();
    env.ok(&["land", "fix", "--commit=all"]);
}

#[test]
fn u9_what_agents_did_that_i_started_is_mine() {
    let env = env();
    env.ok(&["work", "Say hello", "--", "sh", "-c", "echo hello > hello"]);
    assert!(env.repo().join("hello").exists());
    let undone = env.weald(&["undo"]);
    assert_eq!(undone.code, 0, "{undone:?}");
    assert!(
        undone
            .stderr
            .contains("will land on main, through the queue and the gate"),
        "{undone:?}"
    );
    assert!(!env.repo().join("hello").exists());
    // Of somebody else it is not.
    landed(&env);
    env.ok(&["session", "register", "carol"]);
    let mut carol = env.weald_command(&["undo", "--json"]);
    let carol = carol.env("WEALD_SESSION", "carol").output().unwrap();
    assert!(
        String::from_utf8_lossy(&carol.stdout).contains("undo_unnamed"),
        "{carol:?}"
    );
}

#[test]
fn u9_undo_takes_back_my_last_revert() {
    let env = env();
    landed(&env);
    let new = env.repo().join("new");
    env.ok(&["revert", "1"]);
    assert!(!new.exists());
    let would = env.weald(&["undo", "--dry-run"]).stdout;
    assert!(
        would.contains("landing 2, which reverted landing 1"),
        "{would}"
    );
    let undone = env.ok(&["undo"]);
    assert_eq!(undone["landing"], 2, "{undone}");
    assert!(new.exists());
    // One that an undo made is no operation: the next undo goes one further back.
    let listed = env.ok(&["undo", "--list"]);
    for operation in listed["operations"].as_array().unwrap() {
        assert_ne!(operation["type"], "landing.landed", "{listed}");
    }
}

#[test]
fn u9_undo_asks_on_a_terminal_before_the_target_changes() {
    let env = env();
    landed(&env);
    let size = Size {
        columns: 120,
        rows: 30,
    };
    let (terminal, mut person) = env.shell(None, size);
    person.types("weald undo\r");
    person.sees("a commit that reverts it will land on main");
    person.sees("Undo it? [y/N]");
    person.types("n\r");
    person.sees("nothing was undone");
    assert!(env.repo().join("new").exists());
    // What is on the screen from before must not be taken for the second question.
    person.types("clear; printf 'sec%s\\n' ond; weald undo\r");
    person.sees("second");
    person.sees("Undo it? [y/N]");
    person.types("y\r");
    person.sees("undid landing 1");
    assert!(!env.repo().join("new").exists());
    person.types("exit\r");
    terminal.ended();
}
