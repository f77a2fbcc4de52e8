//! Hints that were followed to their end: what a refusal names works, or leads on.

use std::fs;

use crate::trees_remove::{commit, git_in, grow, repository, weald_in};

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
    assert_eq!(hint, "finish it: weald run a -- git commit --no-edit");
    let resolved = ["run", "a", "--", "git", "add", "config.py"];
    assert_eq!(env.weald(&resolved).code, 0);
    let finished = ["run", "a", "--", "git", "commit", "--no-edit"];
    assert_eq!(env.weald(&finished).code, 0);
    assert_eq!(env.weald(&["sync", "a"]).code, 0);
}

#[test]
fn y17_a_refusal_says_what_to_do_in_words_of_the_command_that_was_given() {
    let env = repository();
    grow(&env, "a", "sealed");
    let missing = ["--json", "work", "do it", "--", "no-such-program"];
    let refused = env.weald(&missing);
    assert_eq!(
        hint(&refused),
        "install `no-such-program`, or give another command"
    );
    for command in ["phase", "race"] {
        let refused = env.weald(&["--json", command, "no such task"]);
        assert_eq!(refused.error_code(), "bad_id", "{refused:?}");
        assert!(
            hint(&refused).starts_with("give the id of a task: weald task list"),
            "{refused:?}"
        );
    }
    let refused = env.weald(&["--json", "new", "b", "--base", "nope"]);
    assert!(
        hint(&refused).starts_with("git branch --all"),
        "{refused:?}"
    );
    let refused = env.weald(&["--json", "approve", "a"]);
    assert!(
        hint(&refused).starts_with("in a terminal: weald approve a;"),
        "{refused:?}"
    );
    env.git(&["switch", "-q", "-c", "wt/taken"]);
    let refused = env.weald(&["--json", "new", "taken", "--target", "main"]);
    let leaving = hint(&refused);
    let words = leaving.strip_prefix("git ").unwrap();
    let words: Vec<_> = words.split(' ').collect();
    env.git(&words);
    env.ok(&[
        "new",
        "taken",
        "--target",
        "main",
        "--on-branch-exists",
        "reuse",
    ]);
}

#[test]
fn y31_what_is_empty_says_so() {
    let env = repository();
    grow(&env, "a", "sealed");
    let board = env.weald(&[]).stdout;
    assert!(board.contains("tasks: none\n"), "{board}");
    let told = env.weald(&["sandbox", "explain", "a"]).stdout;
    assert!(told.contains("may connect to\n  "), "{told}");
}

#[test]
fn y17_commits_beside_head_are_not_sent_to_a_landing_that_has_nothing_to_land() {
    let env = repository();
    let path = grow(&env, "a", "sealed");
    fs::write(path.join("config.py"), "changed\n").unwrap();
    git_in(&env, &path, &["stash", "-q"]);
    let refused = env.refused(&["rm", "a"], 1, "tree_unlanded");
    let hint = refused["error"]["hint"].as_str().unwrap();
    assert!(!hint.contains("weald land"), "{hint}");
    let look = "weald run a -- git log --oneline --all --not HEAD";
    assert!(hint.contains(look), "{hint}");
    env.ok(&["rm", "a", "--discard"]);

    env.ok(&["task", "add", "Fix it"]);
    let script =
        "git checkout -q -b beside; echo x > x; git add x; git commit -qm x; git checkout -q -";
    let worked = env.weald(&["work", "1", "--", "sh", "-c", script]);
    let told = [&*worked.stdout, &*worked.stderr].concat();
    let merge = "weald run fix-it -- git merge BRANCH, then: weald land fix-it";
    assert!(told.contains(merge), "{worked:#?}");
    let merged = env.weald(&["run", "fix-it", "--", "git", "merge", "-q", "beside"]);
    assert_eq!(merged.code, 0, "{merged:#?}");
    let landed = env.ok(&["land", "fix-it"]);
    assert_eq!(landed["landings"][0]["status"], "landed", "{landed}");
}
