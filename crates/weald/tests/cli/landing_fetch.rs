//! The remote's target before a landing: ahead, diverged, gone; and nothing is ever pushed.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::Value;
use weald_testkit::TestEnv;

use crate::trees_fetch::{pushed, with_remote};
use crate::trees_remove::{commit, git_in, grow, repository};

/// Lands tree `a`; the exit code, the landing, and what was told beside it.
fn land(env: &TestEnv, policy: &str) -> (i32, Value, String) {
    let setting = format!("landing.fetch={policy}");
    let answer = env.weald(&["land", "a", "--keep", "--json", "--set", &setting]);
    (
        answer.code,
        answer.json()["landings"][0].clone(),
        answer.stderr,
    )
}

fn main_tip(env: &TestEnv) -> String {
    env.git(&["rev-parse", "main"]).trim().to_owned()
}

fn with_work(env: &TestEnv) {
    let tree = grow(env, "a", "sealed");
    commit(env, &tree, "mine", "m\n");
}

#[test]
fn m21_what_the_remote_has_more_comes_first_and_the_remote_is_not_written() {
    for policy in ["try", "require", "never"] {
        let (env, other) = with_remote();
        with_work(&env);
        let theirs = pushed(&env, &other, "theirs");
        let remote = env.root().join("remote.git");
        let refs = git_in(&env, &remote, &["for-each-ref"]);
        let (code, landing, told) = land(&env, policy);
        assert_eq!((code, told.as_str()), (0, ""), "{policy}: {landing}");
        assert_eq!(landing["outcome"], "landed");
        let log = env.git(&["log", "--format=%H", "main"]);
        assert_eq!(log.contains(&theirs), policy != "never", "{policy}");
        let files = env.git(&["ls-tree", "--name-only", "main"]);
        assert!(files.contains("mine"), "{files}");
        assert_eq!(files.contains("theirs"), policy != "never", "{policy}");
        assert_eq!(git_in(&env, &remote, &["for-each-ref"]), refs, "k19");
    }
}

#[test]
fn m21_a_remote_that_is_behind_or_equal_changes_nothing() {
    let (env, _) = with_remote();
    let ours = commit(&env, &env.repo(), "ours", "o\n");
    with_work(&env);
    let (code, landing, told) = land(&env, "require");
    assert_eq!((code, told.as_str()), (0, ""), "{landing}");
    assert_eq!(landing["old_tip"], ours);
}

#[test]
fn m21_a_target_that_diverged_is_refused_with_both_tips() {
    let (env, other) = with_remote();
    let ours = commit(&env, &env.repo(), "ours", "o\n");
    with_work(&env);
    let theirs = pushed(&env, &other, "theirs");
    for policy in ["try", "require"] {
        let (code, landing, _) = land(&env, policy);
        assert_eq!(code, 1, "{landing}");
        assert_eq!(landing["reason"]["code"], "target_diverged", "{landing}");
        let message = landing["reason"]["message"].as_str().unwrap();
        assert!(message.contains(&ours) && message.contains(&theirs));
        assert_eq!(main_tip(&env), ours);
    }
    // The hint works as it is printed.
    let hint = land(&env, "try").1["reason"]["hint"].clone();
    let (_, command) = hint.as_str().unwrap().split_once(": ").unwrap();
    let together = env.command("sh").args(["-c", command]).output().unwrap();
    assert!(together.status.success(), "{hint}: {together:?}");
    assert_eq!(land(&env, "try").1["outcome"], "landed");
}

#[test]
fn m21_without_an_answer_require_refuses_try_tells_and_never_is_silent() {
    let (env, _) = with_remote();
    with_work(&env);
    fs::rename(env.root().join("remote.git"), env.root().join("gone.git")).unwrap();
    let before = main_tip(&env);
    let (code, landing, _) = land(&env, "require");
    assert_eq!(code, 1, "{landing}");
    assert_eq!(landing["reason"]["code"], "not_fetched", "{landing}");
    let hint = landing["reason"]["hint"].as_str().unwrap();
    assert!(hint.ends_with("weald land NAME --set landing.fetch=never"));
    assert_eq!(main_tip(&env), before);
    let silent = land(&env, "never");
    assert_eq!((silent.0, silent.2.as_str()), (0, ""), "{}", silent.1);
    let tree = env.root().join("app.weald/a");
    for more in ["one", "two"] {
        commit(&env, &tree, more, "x\n");
        let (code, landing, told) = land(&env, "try");
        assert_eq!((code, &landing["outcome"]), (0, &"landed".into()));
        assert!(told.contains("origin/main could not be fetched"), "{told}");
    }
}

#[test]
fn m21_a_remote_that_hangs_is_waited_for_once() {
    let (env, _) = with_remote();
    with_work(&env);
    env.git(&["remote", "set-url", "origin", "ssh://nowhere.invalid/x"]);
    env.git(&["config", "core.sshCommand", "sleep 60;"]);
    env.ok(&["config", "set", "tree.fetch_limit", "1s"]);
    let started = Instant::now();
    let (code, _, told) = land(&env, "try");
    assert_eq!(code, 0);
    assert!(told.contains("was stopped"), "{told}");
    assert!(started.elapsed() > Duration::from_secs(1));
    commit(&env, &env.root().join("app.weald/a"), "more", "x\n");
    let (code, _, told) = land(&env, "try");
    assert!(code == 0 && told.contains("a moment ago"), "{told}");
    assert!(!told.contains("was stopped"), "{told}");
}

#[test]
fn m11_without_a_remote_only_require_refuses() {
    let env = repository();
    with_work(&env);
    let (code, landing, _) = land(&env, "require");
    assert_eq!(
        (code, &landing["reason"]["code"]),
        (1, &"not_fetched".into())
    );
    let (code, landing, told) = land(&env, "try");
    assert_eq!((code, told.as_str()), (0, ""), "{landing}");
}
