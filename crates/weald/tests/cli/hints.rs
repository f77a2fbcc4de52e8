//! Hints that were followed to their end: what a refusal names works, or leads on.

use std::fs;

use crate::trees_remove::{commit, grow, repository, weald_in};

fn hint(answer: &weald_testkit::Answer) -> String {
    let hint = answer.json()["error"]["hint"].clone();
    hint.as_str().unwrap_or_default().to_owned()
}

#[test]
fn d14_who_stands_in_a_tree_is_led_out_of_it() {
    let env = repository();
    let path = grow(&env, "a", "sealed");
    fs::write(path.join("draft"), "mine").unwrap();
    let refused = weald_in(&env, &path, &["--json", "rm", "a", "--discard"]);
    assert!(
        hint(&refused).ends_with("weald exit --remove --discard"),
        "{refused:?}"
    );
    let refused = weald_in(&env, &path, &["--json", "exit", "--remove"]);
    assert!(
        hint(&refused).contains("weald exit --remove --discard"),
        "{refused:?}"
    );
    assert!(!hint(&refused).contains("weald rm"), "{refused:?}");
    let left = weald_in(&env, &path, &["--json", "exit", "--remove", "--discard"]);
    assert_eq!(left.code, 0, "{left:?}");
    assert!(!path.exists());
}

#[test]
fn bad_settings_are_mended_where_they_stand() {
    let env = repository();
    let refused = env.refused(
        &["--set", "landing.strategy=foo", "list"],
        2,
        "config_invalid",
    );
    let hint = refused["error"]["hint"].as_str().unwrap();
    assert!(hint.contains("--set landing.strategy=VALUE"), "{hint}");
}

#[test]
fn a_second_sync_says_how_to_finish_the_first() {
    let env = repository();
    let path = grow(&env, "a", "sealed");
    commit(&env, &path, "config.py", "theirs\n");
    commit(&env, &env.repo(), "config.py", "ours\n");
    assert_eq!(env.weald(&["sync", "a"]).code, 3);
    let refused = env.refused(&["sync", "a"], 1, "tree_in_operation");
    let hint = refused["error"]["hint"].as_str().unwrap();
    assert_eq!(hint, "finish it: weald run a -- git status");
    assert_eq!(env.weald(&["run", "a", "--", "git", "status"]).code, 0);
}
