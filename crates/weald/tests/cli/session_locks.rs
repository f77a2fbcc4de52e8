//! What becomes of a lock at the end of a session.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use weald_testkit::TestEnv;

use crate::sweep::is_locked;
use crate::trees_remove::{commit, grow, repository, weald_in};

/// Ends alice's session from a directory; answers what became of the lock of `a`.
fn end_from(env: &TestEnv, directory: &Path) -> Value {
    let answer = weald_in(env, directory, &["--json", "session", "end", "alice"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    answer.json()["locks"][0].clone()
}

#[test]
fn l12_the_end_of_a_session_opens_its_lock_if_everything_is_over() {
    let env = repository();
    env.ok(&["task", "add", "a"]);
    let tree = grow(&env, "a", "sealed");
    env.ok(&["task", "bind", "1", "a"]);
    env.ok(&["session", "register", "alice"]);
    let mut lock = env.weald_command(&["lock", "a", "--reason", "mine"]);
    assert!(
        lock.env("WEALD_SESSION", "alice")
            .status()
            .unwrap()
            .success()
    );
    let stays = |expected: Value, from: &Path| {
        let found = end_from(&env, from);
        assert_eq!(
            (&found["unlocked"], &found["why"]),
            (&json!(false), &expected)
        );
        env.ok(&["session", "register", "alice"]);
        assert!(is_locked(&env));
    };
    stays(json!(["task_open"]), &tree);
    env.ok(&["task", "start", "1"]);
    env.ok(&["task", "done", "1"]);
    stays(json!(["elsewhere"]), &env.repo());
    fs::write(tree.join("draft"), "mine").unwrap();
    stays(json!(["unlanded"]), &tree);
    fs::remove_file(tree.join("draft")).unwrap();
    let head = commit(&env, &tree, "work", "work");
    stays(json!(["unlanded"]), &tree);
    let reset = format!("{head}^");
    crate::trees_remove::git_in(&env, &tree, &["reset", "-q", "--hard", &reset]);
    let plain = weald_in(&env, &env.repo(), &["session", "end", "alice"]).stdout;
    assert!(
        plain.contains("a stays locked: the shell is not in it"),
        "{plain}"
    );
    env.ok(&["session", "register", "alice"]);
    let found = end_from(&env, &tree);
    assert_eq!(found, json!({"tree": "a", "unlocked": true, "why": []}));
    assert!(!is_locked(&env));
}

#[test]
fn l12_leaving_a_tree_opens_what_its_profile_locked() {
    let env = repository();
    env.ok(&["task", "add", "a"]);
    env.ok(&["new", "a", "--task", "1", "--set", "tree.lock=create"]);
    let tree = env.root().join("app.weald/a");
    let left = weald_in(&env, &tree, &["--json", "exit"]).json();
    assert_eq!(left["locks"][0]["why"], json!(["task_open"]), "{left}");
    assert!(is_locked(&env));
    env.ok(&["task", "cancel", "1"]);
    let left = weald_in(&env, &tree, &["--json", "exit"]).json();
    assert_eq!(left["locks"][0]["unlocked"], true, "{left}");
    assert!(!is_locked(&env));
    env.refused(&["undo"], 1, "nothing_to_undo");
}
