//! After a landing was undone, cut short right at its end, paused in the middle of its gate, or asked for in vain.

use std::fs;
use std::process::Stdio;

use serde_json::{Value, json};
use weald_testkit::TestEnv;

use crate::landing::{land, landed, rev};
use crate::landing_gate::wait_until;
use crate::trees_remove::{commit, git_in, grow, repository};

fn has(env: &TestEnv, file: &str) -> bool {
    let listed = env.git(&["ls-tree", "--name-only", "main"]);
    listed.lines().any(|line| line == file)
}

/// What becomes of a tree between the undoing and the second landing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Since {
    Nothing,
    AFix,
    Sync,
}

#[test]
fn m19_what_was_undone_comes_again_with_every_strategy() {
    for strategy in ["squash", "merge", "rebase", "ff"] {
        for since in [Since::Nothing, Since::AFix, Since::Sync] {
            let env = repository();
            let tree = grow(&env, "a", "sealed");
            commit(&env, &tree, "one", "1");
            commit(&env, &tree, "two", "2");
            let id = landed(&env, &["a", "--keep", "--strategy", strategy])[0]["id"].to_string();
            env.ok(&["revert", &id]);
            assert!(!has(&env, "one") && !has(&env, "two"));
            match since {
                Since::Nothing => {}
                Since::AFix => drop(commit(&env, &tree, "fix", "3")),
                Since::Sync => {
                    // The tree learns of the undoing: where git knew its commits as landed, its work is gone there, too.
                    env.ok(&["sync", "a"]);
                    for (file, text) in [("one", "1"), ("two", "2")] {
                        if !tree.join(file).exists() {
                            commit(&env, &tree, file, text);
                        }
                    }
                }
            }
            let again = match strategy {
                "ff" => "squash",
                other => other,
            };
            let done = landed(&env, &["a", "--keep", "--strategy", again]);
            assert_eq!(done[0]["outcome"], "landed", "{strategy}: {done:#?}");
            for file in ["one", "two"] {
                assert!(has(&env, file), "{strategy}: {file} did not come again");
            }
            assert_eq!(has(&env, "fix"), since == Since::AFix);
            // And after that nothing is left to land, and what comes next is only that.
            let (_, rest) = land(&env, &["a", "--keep", "--strategy", again]);
            assert_eq!(
                rest[0]["outcome"], "nothing_to_land",
                "{strategy}: {rest:#?}"
            );
            commit(&env, &tree, "one", "changed");
            landed(&env, &["a", "--keep", "--strategy", again]);
            assert_eq!(env.git(&["show", "main:one"]), "changed");
        }
    }
}

#[test]
fn m20_what_follows_a_landing_is_caught_up_with_by_whoever_comes() {
    for healer in ["doctor", "land", "other"] {
        let env = repository();
        env.ok(&["task", "add", "Fix it"]);
        env.ok(&["new", "a", "--task", "1"]);
        commit(&env, &env.root().join("app.weald/a"), "a", "a");
        let mut command = env.weald_command(&["land", "a"]);
        let killed = command
            .env("WEALD_STEP", "kill:land.recorded")
            .status()
            .unwrap();
        assert_eq!(killed.code(), None);
        assert_eq!(env.git(&["show", "main:a"]), "a");
        assert_eq!(env.ok(&["task", "show", "1"])["task"]["status"], "pending");
        match healer {
            "doctor" => {
                let found = env.weald(&["doctor", "--json"]);
                assert!(found.stdout.contains("landing_unsettled"), "{found:#?}");
                env.weald(&["doctor", "--fix"]);
            }
            "land" => drop(env.ok(&["land"])),
            _ => {
                let tree = grow(&env, "b", "sealed");
                commit(&env, &tree, "b", "b");
                landed(&env, &["b"]);
            }
        }
        assert_eq!(
            env.ok(&["task", "show", "1"])["task"]["status"],
            "completed",
            "{healer}"
        );
        assert!(!env.root().join("app.weald/a").exists(), "{healer}");
        assert_eq!(env.weald(&["doctor"]).code, 0, "{healer}");
    }
}

#[test]
fn m19_undoing_a_revert_completes_its_task_again() {
    let env = repository();
    env.ok(&["task", "add", "Fix it"]);
    let task = || env.ok(&["task", "show", "1"])["task"].clone();
    let args = [
        "work",
        "1",
        "--json",
        "--",
        "sh",
        "-c",
        "echo x > x; weald task done --report did",
    ];
    assert_eq!(env.weald(&args).code, 0);
    let told = env.weald(&["revert", "1"]);
    assert!(told.stdout.contains("task 1 is open again"), "{told:#?}");
    assert_eq!(
        (task()["status"].clone(), has(&env, "x")),
        (json!("pending"), false)
    );
    let told = env.weald(&["revert", "2"]);
    assert!(told.stdout.contains("task 1 is completed"), "{told:#?}");
    let done = task();
    assert_eq!(
        (&done["status"], &done["report"]),
        (&json!("completed"), &json!("did"))
    );
    assert!(has(&env, "x"));
    let error = env.refused(&["revert", "1"], 1, "reverted_already");
    assert_eq!(error["error"]["hint"], "weald revert 3 undoes it again");
    assert_eq!(env.weald(&["revert", "3"]).code, 0);
    assert_eq!(
        (task()["status"].clone(), has(&env, "x")),
        (json!("pending"), false)
    );
    // What somebody began on meanwhile is theirs.
    env.ok(&["task", "claim", "1", "--session", "me"]);
    assert_eq!(env.weald(&["revert", "4"]).code, 0);
    assert_eq!(
        (task()["status"].clone(), has(&env, "x")),
        (json!("in_progress"), true)
    );
}

#[test]
fn m20_an_undoing_that_was_cut_short_is_known_as_one() {
    let env = repository();
    let tree = grow(&env, "a", "sealed");
    commit(&env, &tree, "a", "a");
    let id = landed(&env, &["a", "--keep"])[0]["id"].to_string();
    let mut command = env.weald_command(&["revert", &id]);
    command
        .env("WEALD_STEP", "kill:land.recorded")
        .status()
        .unwrap();
    assert!(!has(&env, "a"));
    landed(&env, &["a", "--keep"]);
    assert!(has(&env, "a"), "it came again");
    env.refused(&["revert", &id], 1, "reverted_already");
}

#[test]
fn a_pause_holds_back_what_is_being_tested() {
    let env = repository();
    let tree = grow(&env, "a", "sealed");
    commit(&env, &tree, "a", "a");
    let gate = "until [ -e go.log ]; do sleep 0.05; done";
    env.ok(&["config", "set", "gate.command", gate]);
    let before = rev(&env, "main");
    let mut command = env.weald_command(&["land", "a", "--json"]);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let log = env.private().join("landings/1-1.log");
    let begins = format!("$ {gate}");
    wait_until(|| fs::read_to_string(&log).is_ok_and(|text| text.contains(&begins)));
    assert_eq!(env.ok(&["queue"])["queue"][0]["status"], "testing");
    env.ok(&["queue", "pause"]);
    let place = env.root().join("app.weald/.gate/1-1");
    fs::write(place.join("go.log"), "").unwrap();
    let answer = child.wait_with_output().unwrap();
    let done: Value = serde_json::from_slice(&answer.stdout).unwrap();
    assert_eq!(done["landings"][0]["outcome"], "queued", "{done:#}");
    assert_eq!(rev(&env, "main"), before);
    let done = env.ok(&["queue", "resume"]);
    assert_eq!(done["landings"][0]["outcome"], "landed");
    assert_eq!(done["landings"][0]["gate"]["cached"], true, "tested once");
}

#[test]
fn a_batch_that_can_t_be_queued_leaves_nothing_in_the_queue() {
    let env = repository();
    for name in ["a", "b"] {
        let tree = grow(&env, name, "sealed");
        commit(&env, &tree, name, name);
    }
    fs::remove_dir_all(env.root().join("app.weald/b")).unwrap();
    let before = rev(&env, "main");
    env.refused(&["land", "a", "b"], 4, "tree_missing");
    assert!(env.ok(&["queue"])["queue"].as_array().unwrap().is_empty());
    assert_eq!(rev(&env, "main"), before);
}

#[test]
fn m18_an_agent_does_not_undo_what_a_person_had_to_agree_to() {
    let env = repository();
    let tree = grow(&env, "a", "sealed");
    commit(&env, &tree, "weald.toml", "[landing]\nstrategy = 'merge'\n");
    env.ok(&["approve", "a", "--yes"]);
    let id = landed(&env, &["a", "--keep"])[0]["id"].to_string();
    let mut command = env.weald_command(&["revert", &id, "--json"]);
    let refused = command.env("CLAUDECODE", "1").output().unwrap();
    let text = String::from_utf8_lossy(&refused.stdout).into_owned();
    assert!(text.contains("agent_session"), "{text}");
    git_in(&env, &env.repo(), &["cat-file", "-e", "main:weald.toml"]);
    env.ok(&["revert", &id]);
    assert!(!has(&env, "weald.toml"));
}

#[test]
fn the_same_head_asked_for_twice_waits_once() {
    let env = repository();
    let tree = grow(&env, "a", "sealed");
    commit(&env, &tree, "a", "a");
    env.ok(&["queue", "pause"]);
    let first = land(&env, &["a", "--no-wait"]).1[0]["id"].clone();
    let second = land(&env, &["a", "--no-wait"]).1[0]["id"].clone();
    assert_eq!(first, second);
    assert_eq!(env.ok(&["queue"])["queue"].as_array().unwrap().len(), 1);
}

#[test]
fn m23_a_second_landing_takes_back_nothing_of_the_target() {
    let env = repository();
    fs::write(env.repo().join("lines"), "1\n2\n3\n4\n5\n6\n7\n8\n9\n").unwrap();
    env.git(&["add", "lines"]);
    env.git(&["commit", "-q", "-m", "lines"]);
    let tree = grow(&env, "x", "sealed");
    commit(&env, &tree, "own", "1");
    let text = fs::read_to_string(env.repo().join("lines")).unwrap();
    fs::write(env.repo().join("lines"), text.replace("5\n", "five\n")).unwrap();
    env.git(&["commit", "-qam", "five"]);
    let five = rev(&env, "main");
    landed(&env, &["x", "--keep"]);
    // A part of the target came into the tree, and not what landed.
    git_in(&env, &tree, &["merge", "-q", "--no-edit", &five]);
    env.git(&["revert", "--no-edit", &five]);
    commit(&env, &tree, "own", "2");
    landed(&env, &["x", "--keep"]);
    assert_eq!(
        env.git(&["show", "main:lines"]),
        text,
        "what main took back stays taken back"
    );
    assert_eq!(env.git(&["show", "main:own"]), "2");
}

#[test]
fn m1_a_rebase_that_would_drop_something_is_refused() {
    let env = repository();
    let tree = grow(&env, "x", "sealed");
    commit(&env, &tree, "own", "1");
    commit(&env, &env.repo(), "other", "2");
    env.ok(&["sync", "x"]);
    fs::write(tree.join("only-in-the-merge"), "3").unwrap();
    git_in(&env, &tree, &["add", "-A"]);
    git_in(&env, &tree, &["commit", "-q", "--amend", "--no-edit"]);
    let (code, done) = land(&env, &["x", "--strategy", "rebase"]);
    assert_eq!(
        (code, &done[0]["reason"]["code"]),
        (1, &json!("rebase_differs"))
    );
    assert!(tree.is_dir());
    landed(&env, &["x"]);
    assert!(has(&env, "only-in-the-merge"));
}

#[test]
fn m1_attributes_come_from_the_target_for_every_commit() {
    let env = repository();
    let tree = grow(&env, "x", "sealed");
    commit(&env, &tree, ".gitattributes", "* merge=union\n");
    commit(&env, &tree, "config.py", "theirs\n");
    commit(&env, &env.repo(), "config.py", "ours\n");
    for strategy in ["squash", "rebase"] {
        let (code, done) = land(&env, &["x", "--strategy", strategy]);
        assert_eq!(
            (code, &done[0]["outcome"]),
            (3, &json!("conflict")),
            "{strategy}"
        );
    }
}

#[test]
fn m24_a_window_tests_nothing_with_settings_that_are_about_to_change() {
    let env = repository();
    env.ok(&["config", "set", "landing.parallel", "2"]);
    fs::write(env.repo().join("weald.toml"), "gate.command = 'true'\n").unwrap();
    env.git(&["add", "-A"]);
    env.git(&["commit", "-q", "-m", "settings"]);
    env.ok(&["trust"]);
    let tree = grow(&env, "settings", "sealed");
    commit(
        &env,
        &tree,
        "weald.toml",
        "gate.command = 'test ! -e bad'\n",
    );
    env.ok(&["approve", "settings", "--yes"]);
    for name in ["b1", "b2"] {
        let tree = grow(&env, name, "sealed");
        commit(&env, &tree, &format!("{name}-file"), "1");
        commit(&env, &tree, "bad", "1");
    }
    let (code, done) = land(&env, &["settings", "b1", "b2"]);
    assert_eq!(code, 1, "{done:#?}");
    assert_eq!(done[0]["outcome"], "landed");
    for one in &done[1..] {
        assert_eq!(one["reason"]["code"], "not_trusted", "{one:#}");
    }
    assert!(!has(&env, "bad"));
}

#[test]
fn m19_what_is_undone_ahead_in_the_window_comes_again() {
    let env = repository();
    env.ok(&["config", "set", "gate.command", "true"]);
    env.ok(&["config", "set", "landing.parallel", "2"]);
    let tree = grow(&env, "x", "sealed");
    commit(&env, &tree, "one", "1");
    let id = landed(&env, &["x", "--keep"])[0]["id"].to_string();
    commit(&env, &tree, "two", "2");
    env.ok(&["queue", "pause"]);
    env.ok(&["revert", &id]);
    land(&env, &["x", "--no-wait", "--keep"]);
    env.ok(&["queue", "resume"]);
    assert!(has(&env, "one") && has(&env, "two"));
}
