//! What the commit of a landing says.

use weald_testkit::TestEnv;

use crate::repository;

/// Makes a worktree with a commit for each message.
fn worktree(env: &TestEnv, name: &str, options: &[&str], messages: &[&str]) {
    env.ok(&[&["new", name], options].concat());
    for (number, message) in messages.iter().enumerate() {
        let script =
            format!("echo {name} > {name}-{number}; git add -A; git commit -qm '{message}'");
        let run = env.weald(&["run", name, "--", "sh", "-c", &script]);
        assert_eq!(run.code, 0, "{run:#?}");
    }
}

/// The message of the newest commit on the target.
fn message(env: &TestEnv) -> String {
    env.git(&["log", "-1", "--format=%B", "main"])
        .trim_end()
        .to_owned()
}

#[test]
fn u6_my_words_are_the_message_of_the_landed_commit() {
    let env = repository();
    env.ok(&["config", "set", "landing.trailers", "false"]);
    let words = ["-m", "Fix the login", "-m", "It hung."];
    let told = "Fix the login\n\nIt hung.";
    for (number, strategy) in ["squash", "merge"].into_iter().enumerate() {
        let name = format!("fix-{number}");
        worktree(&env, &name, &[], &["one", "two"]);
        env.ok(&[&["land", &name, "--strategy", strategy], &words[..]].concat());
        assert_eq!(message(&env), told, "{strategy}");
    }
    // With changes that no commit has yet, for every strategy.
    for (number, strategy) in ["squash", "merge", "rebase", "ff"].into_iter().enumerate() {
        let name = format!("new-{number}");
        env.ok(&["new", &name]);
        assert_eq!(env.weald(&["run", &name, "--", "touch", &name]).code, 0);
        let commit = ["land", &name, "--commit=all", "--strategy", strategy];
        env.ok(&[&commit, &words[..]].concat());
        assert_eq!(message(&env), told, "{strategy}");
    }
    // Where there is no commit for it, or one for several.
    worktree(&env, "a", &[], &["as it is"]);
    worktree(&env, "b", &[], &["as it is"]);
    let before = env.git(&["rev-parse", "main"]);
    for strategy in ["rebase", "ff"] {
        let refused = ["land", "a", "-m", "Mine", "--strategy", strategy];
        env.refused(&refused, 1, "message_unused");
    }
    env.refused(&["land", "a", "b", "-m", "Mine"], 2, "usage");
    env.refused(&["land", "a", "-m", " "], 2, "usage");
    env.refused(&["land", "-m", "Mine"], 2, "usage");
    assert_eq!(env.git(&["rev-parse", "main"]), before);
    assert_eq!(env.ok(&["queue"])["queue"], serde_json::json!([]));
    // Whoever lands it later knows the words.
    env.ok(&["land", "a", "--no-wait", "-m", "Later"]);
    env.ok(&["land"]);
    assert_eq!(message(&env), "Later");
}

#[test]
fn u6_without_words_the_commit_says_what_was_done() {
    let env = repository();
    let trailers = |env: &TestEnv| env.git(&["log", "-1", "--format=%(trailers:only)", "main"]);
    env.ok(&["task", "add", "Fix the login"]);
    env.ok(&["task", "add", "Fix the logout"]);
    worktree(
        &env,
        "one",
        &["--task", "1"],
        &["Renew the token\n\nFixes: #3"],
    );
    env.ok(&["land", "one"]);
    assert!(
        message(&env).starts_with("Renew the token\n\nFixes: #3\nWeald-Task: 1\nWeald-Tree: one\n")
    );
    assert_eq!(trailers(&env).trim().lines().count(), 5);
    env.ok(&["config", "set", "landing.trailers", "false"]);
    worktree(&env, "two", &["--task", "2"], &["first", "second"]);
    env.ok(&["land", "two"]);
    assert_eq!(message(&env), "Fix the logout\n\n- first\n- second");
    worktree(&env, "three", &[], &["first", "second"]);
    env.ok(&["land", "three"]);
    assert_eq!(message(&env), "first; second\n\n- first\n- second");
    env.ok(&["new", "four"]);
    let write = "mkdir src; touch src/four.rs";
    assert_eq!(env.weald(&["run", "four", "--", "sh", "-c", write]).code, 0);
    env.ok(&["land", "four", "--commit=all"]);
    assert_eq!(message(&env), "Update src/four.rs");
    assert_eq!(trailers(&env).trim(), "");
    env.ok(&["revert", "4"]);
    assert!(message(&env).starts_with("Revert \"Update src/four.rs\"\n\nThis reverts commit "));
    assert_eq!(trailers(&env).trim(), "");
}
