//! What a new tree starts from when the repository has a remote.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use weald_testkit::TestEnv;

use crate::trees_remove::{commit, git_in, repository};

/// A repository whose `main` follows origin's, and a second clone in which others work.
pub fn with_remote() -> (TestEnv, PathBuf) {
    let env = repository();
    let remote = env.root().join("remote.git");
    env.git(&["clone", "-q", "--bare", ".", remote.to_str().unwrap()]);
    env.git(&["remote", "add", "origin", remote.to_str().unwrap()]);
    env.git(&["fetch", "-q", "origin"]);
    env.git(&["branch", "-q", "--set-upstream-to=origin/main", "main"]);
    let other = env.root().join("other");
    env.git(&[
        "clone",
        "-q",
        remote.to_str().unwrap(),
        other.to_str().unwrap(),
    ]);
    (env, other)
}

/// Somebody else pushes a commit and a tag.
pub fn pushed(env: &TestEnv, other: &Path, file: &str) -> String {
    let tip = commit(env, other, file, "theirs\n");
    git_in(env, other, &["tag", &format!("tag-{file}")]);
    git_in(env, other, &["push", "-q", "--tags", "origin", "main"]);
    tip
}

fn base(answer: &Value) -> (String, String) {
    let of = |field: &str| answer["tree"]["base"][field].as_str().unwrap().to_owned();
    (of("ref"), of("commit"))
}

/// Everything in main that a fetch must not move.
fn main_state(env: &TestEnv) -> Vec<String> {
    let fetched = env.repo().join(".git/FETCH_HEAD");
    vec![
        env.git(&["for-each-ref", "refs/heads", "refs/tags"]),
        env.git(&["status", "--porcelain", "--branch", "--untracked-files=all"])
            .lines()
            .skip(1)
            .collect(),
        env.git(&["reflog", "HEAD"]),
        fs::read_to_string(fetched).unwrap_or_default(),
    ]
}

const NOW: [&str; 2] = ["--set", "tree.fetch_every=1ns"];

fn new<'a>(name: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["new", name], more].concat()
}

#[test]
fn k15_a_tree_starts_from_what_the_remote_has_and_main_is_not_moved() {
    for policy in ["try", "require"] {
        let (env, other) = with_remote();
        let setting = format!("tree.fetch={policy}");
        let set = ["--set", &setting];
        let before = main_state(&env);
        let tip = pushed(&env, &other, "theirs");
        let answer = env.weald(&new("a", &set));
        assert_eq!(answer.code, 0, "{answer:#?}");
        assert!(
            answer.stderr.contains("main is behind origin/main"),
            "{answer:#?}"
        );
        let shown = env.ok(&["show", "a"]);
        assert_eq!(base(&shown), ("origin/main".to_owned(), tip), "{policy}");
        assert_eq!(shown["tree"]["target"], "main");
        let path = env.root().join("app.weald/a");
        assert!(path.join("theirs").is_file());
        let mut after = main_state(&env);
        after[0] = after[0]
            .lines()
            .filter(|line| !line.ends_with("/wt/a"))
            .map(|line| format!("{line}\n"))
            .collect();
        assert_eq!(after, before, "{policy}: only refs/remotes moved");
        // Nobody worked in it: what it started from is not work of its own.
        assert_eq!(env.ok(&["sync", "a"])["outcome"], "up_to_date");
        assert_eq!(env.ok(&["status", "a"])["tree"]["ahead"], 0);
        assert_eq!(env.ok(&["rm", "a"])["outcome"], "trashed");
    }
}

#[test]
fn k15_the_newer_one_is_taken_and_when_both_moved_the_local_one() {
    let (env, other) = with_remote();
    let ours = commit(&env, &env.repo(), "ours", "o\n");
    let made = env.ok(&new("ahead", &NOW));
    assert_eq!(base(&made), ("main".to_owned(), ours.clone()));
    pushed(&env, &other, "theirs");
    let answer = env.weald(&new("both", &NOW));
    assert!(answer.stderr.contains("have diverged"), "{answer:#?}");
    assert_eq!(base(&env.ok(&["show", "both"])), ("main".to_owned(), ours));
    // Somebody who names a base gets that one, without a word.
    let named = env.weald(&new(
        "named",
        &["--base", "main~1", "--set", "tree.fetch=require"],
    ));
    assert_eq!((named.code, named.stderr.as_str()), (0, ""), "{named:#?}");
}

#[test]
fn k15_offline_require_fails_try_warns_and_never_is_silent() {
    let (env, other) = with_remote();
    pushed(&env, &other, "theirs");
    fs::rename(env.root().join("remote.git"), env.root().join("gone.git")).unwrap();
    let before = (main_state(&env), env.ok(&["list"]));
    let refused = env.refused(
        &new("r", &["--set", "tree.fetch=require"]),
        1,
        "not_fetched",
    );
    assert_eq!(refused["error"]["details"]["base"], "origin/main");
    assert_eq!(
        (main_state(&env), env.ok(&["list"])),
        before,
        "nothing was made"
    );
    assert!(!env.root().join("app.weald").exists());
    let local = env.git(&["rev-parse", "main"]).trim().to_owned();
    let tried = env.weald(&new("t", &NOW));
    assert_eq!(tried.code, 0, "{tried:#?}");
    assert!(
        tried.stderr.contains("origin/main could not be fetched"),
        "{tried:#?}"
    );
    assert_eq!(
        base(&env.ok(&["show", "t"])),
        ("main".to_owned(), local.clone())
    );
    // A failure counts for a while, too: the next one does not wait for the network.
    let next = env.weald(&new("u", &[]));
    assert_eq!((next.code, next.stderr.as_str()), (0, ""), "{next:#?}");
    let silent = env.weald(&new("n", &["--set", "tree.fetch=never"]));
    assert_eq!(
        (silent.code, silent.stderr.as_str()),
        (0, ""),
        "{silent:#?}"
    );
    assert_eq!(base(&env.ok(&["show", "n"])).1, local);
}

#[test]
fn k15_without_a_remote_only_require_refuses() {
    let env = repository();
    env.refused(
        &new("r", &["--set", "tree.fetch=require"]),
        1,
        "not_fetched",
    );
    for policy in ["try", "never"] {
        let made = env.weald(&new(policy, &["--set", &format!("tree.fetch={policy}")]));
        assert_eq!((made.code, made.stderr.as_str()), (0, ""), "{made:#?}");
    }
    assert!(env.git(&["branch", "--list", "wt/r"]).is_empty());
}

#[test]
fn k15_try_asks_again_only_after_a_while() {
    let (env, other) = with_remote();
    let first = base(&env.ok(&new("a", &[]))).1;
    let tip = pushed(&env, &other, "theirs");
    assert_eq!(
        base(&env.ok(&new("b", &[]))).1,
        first,
        "it was asked just now"
    );
    assert_eq!(base(&env.ok(&new("c", &NOW))).1, tip);
    // Nobody asks again, but what was seen counts.
    assert_eq!(base(&env.ok(&new("d", &[]))).1, tip);
    let later = pushed(&env, &other, "later");
    let required = env.ok(&new("e", &["--set", "tree.fetch=require"]));
    assert_eq!(base(&required).1, later, "require always asks");
}

#[test]
fn k15_a_remote_that_hangs_is_not_waited_for() {
    let (env, _) = with_remote();
    env.git(&["remote", "set-url", "origin", "ssh://nowhere.invalid/x"]);
    env.git(&["config", "core.sshCommand", "sleep 60;"]);
    let started = Instant::now();
    let made = env.weald(&new("a", &["--set", "tree.fetch_limit=200ms"]));
    assert!(started.elapsed() < Duration::from_secs(20));
    assert_eq!(made.code, 0, "{made:#?}");
    assert!(made.stderr.contains("was stopped"), "{made:#?}");
}

#[test]
fn k15_a_mirror_is_not_fetched_into_the_users_own_branches() {
    let (env, other) = with_remote();
    env.git(&[
        "config",
        "remote.origin.fetch",
        "+refs/heads/*:refs/heads/*",
    ]);
    // git itself only refuses to move what is checked out.
    env.git(&["checkout", "-q", "-b", "elsewhere"]);
    let before = main_state(&env);
    pushed(&env, &other, "theirs");
    let made = env.ok(&new("a", &NOW));
    assert_eq!(base(&made).0, "main");
    let after = main_state(&env);
    let own: Vec<_> = after[0]
        .lines()
        .filter(|line| !line.ends_with("/wt/a"))
        .collect();
    assert_eq!(own, before[0].lines().collect::<Vec<_>>());
    assert_eq!(after[1..], before[1..]);
}

#[test]
fn k15_each_profile_has_its_way() {
    for (profile, policy) in [
        ("default", "try"),
        ("jean-claude", "try"),
        ("claude-code", "try"),
        ("classroom", "never"),
        ("two-plane", "never"),
        ("refact", "never"),
        ("jkz", "never"),
    ] {
        let env = repository();
        env.ok(&["init", "--profile", profile]);
        let shown = env.ok(&["config", "show"]).to_string();
        let found = env.weald(&["config", "show"]).stdout;
        let line = found.lines().find(|line| line.starts_with("tree.fetch "));
        assert!(
            line.is_some_and(|line| line.contains(policy)),
            "{profile}: {shown}"
        );
    }
    let (env, other) = with_remote();
    env.git(&["remote", "set-head", "origin", "main"]);
    let tip = pushed(&env, &other, "theirs");
    let made = env.ok(&new("a", &["--set", "tree.base=remote_default"]));
    assert_eq!(
        made["tree"]["base"],
        json!({"ref": "origin/HEAD", "commit": tip})
    );
}
