//! What is on the target that no landing brought there.

use std::fs;

use serde_json::{Value, json};
use weald_testkit::TestEnv;

use crate::landing_approval::approve;
use crate::trees_remove::{commit, grow, repository};

fn verify(env: &TestEnv, args: &[&str]) -> (i32, Value) {
    let answer = env.weald(&[&["verify", "--json"], args].concat());
    (answer.code, answer.json())
}

fn land(env: &TestEnv, name: &str, strategy: &str) -> String {
    let path = grow(env, name, "sealed");
    commit(env, &path, name, "1\n");
    commit(env, &path, name, "2\n");
    let landed = env.ok(&["land", name, "--strategy", strategy]);
    landed["landings"][0]["commit"].as_str().unwrap().to_owned()
}

fn head(env: &TestEnv) -> String {
    env.git(&["rev-parse", "main"]).trim().to_owned()
}

#[test]
fn m18_what_came_around_the_queue_is_found() {
    let env = repository();
    assert_eq!(verify(&env, &[]).1["since"], json!(null));
    let plain = env.weald(&["verify"]);
    assert!(plain.stdout.contains("nothing has landed"), "{plain:#?}");
    for (name, strategy) in [
        ("a", "squash"),
        ("b", "merge"),
        ("c", "rebase"),
        ("d", "ff"),
    ] {
        land(&env, name, strategy);
        let (code, found) = verify(&env, &[]);
        assert_eq!(
            (code, &found["unrecorded"]),
            (0, &json!([])),
            "{strategy}: {found:#}"
        );
    }
    assert!(env.weald(&["verify"]).stdout.contains("all recorded"));
    // Somebody commits, and somebody merges.
    fs::write(env.repo().join("mine"), "").unwrap();
    env.git(&["add", "mine"]);
    env.git(&["commit", "-q", "-m", "by hand"]);
    let by_hand = head(&env);
    env.git(&["switch", "-q", "-c", "side", "HEAD~1"]);
    env.git(&["commit", "-q", "--allow-empty", "-m", "aside"]);
    env.git(&["switch", "-q", "main"]);
    env.git(&["merge", "-q", "--no-ff", "-m", "merged by hand", "side"]);
    let merged = head(&env);
    land(&env, "e", "squash");
    let (code, found) = verify(&env, &[]);
    assert_eq!(code, 1);
    assert_eq!(found["unrecorded"], json!([merged, by_hand]), "{found:#}");
    let first = &found["commits"][0];
    assert_eq!(first["subject"], "merged by hand");
    assert_eq!(
        (&first["on_remote"], &found["missing"]),
        (&json!(false), &json!([]))
    );
    let plain = env.weald(&["verify"]);
    assert_eq!(plain.code, 1);
    for part in ["2 of ", "by hand", "No gate tested these", "not prevent it"] {
        assert!(plain.stdout.contains(part), "{part}: {}", plain.stdout);
    }
    assert_eq!(verify(&env, &["--since", &merged]).0, 0);
    let (code, found) = verify(&env, &["--since", "nothing"]);
    assert_eq!(
        (code, &found["error"]["code"]),
        (1, &json!("unknown_commit"))
    );
}

#[test]
fn m18_what_the_remote_has_was_judged_there() {
    let env = repository();
    let remote = env.root().join("remote.git");
    env.git(&["init", "-q", "--bare", remote.to_str().unwrap()]);
    env.git(&["remote", "add", "origin", remote.to_str().unwrap()]);
    land(&env, "a", "squash");
    env.git(&["commit", "-q", "--allow-empty", "-m", "by hand"]);
    assert_eq!(verify(&env, &[]).0, 1);
    env.git(&["push", "-q", "origin", "main"]);
    let (code, found) = verify(&env, &[]);
    assert_eq!((code, &found["unrecorded"]), (0, &json!([head(&env)])));
    assert_eq!(found["commits"][0]["on_remote"], true);
}

#[test]
fn m18_a_landing_that_was_taken_off_the_target_is_missed() {
    let env = repository();
    land(&env, "a", "squash");
    land(&env, "b", "squash");
    env.git(&["reset", "-q", "--hard", "HEAD~1"]);
    let (code, found) = verify(&env, &[]);
    assert_eq!((code, &found["missing"]), (1, &json!([2])), "{found:#}");
    let plain = env.weald(&["verify"]).stdout;
    assert!(!plain.contains("on the remote"), "there is none: {plain}");
    assert!(plain.contains("landing 2 is no longer on main"), "{plain}");
}

#[test]
fn m18_a_landing_that_nobody_approved_is_found() {
    let env = repository();
    env.ok(&["config", "set", "policy.gate", "human"]);
    let path = grow(&env, "a", "sealed");
    commit(&env, &path, "a", "1\n");
    approve(&env, "a");
    env.ok(&["land", "a"]);
    let (code, found) = verify(&env, &[]);
    assert_eq!((code, &found["unapproved"]), (0, &json!([])), "{found:#}");
    // Somebody says for one command that no person is needed.
    let approved = head(&env);
    let path = grow(&env, "b", "sealed");
    commit(&env, &path, "b", "1\n");
    let landed = env.weald_alone(&["land", "b", "--set", "policy.gate=none"]);
    assert_eq!(landed.code, 0, "{landed:#?}");
    let (code, found) = verify(&env, &[]);
    assert_eq!((code, &found["unapproved"]), (1, &json!([2])), "{found:#}");
    assert_eq!(found["unrecorded"], json!([]));
    let plain = env.weald(&["verify"]).stdout;
    assert!(plain.contains("landing 2 was not approved"), "{plain}");
    assert_eq!(verify(&env, &["--since", &approved]).0, 1);
    assert_eq!(verify(&env, &["--since", "main"]).0, 0);
}
