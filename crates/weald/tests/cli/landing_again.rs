//! Landing: batches, undoing, landing again, the queue's commands, dry runs.

use std::fs;

use serde_json::{Value, json};

use crate::landing::{conflicting, land, landed, rev, show};
use crate::trees_remove::{KINDS, commit, git_in, grow, repository, try_git};

#[test]
fn m16_a_batch_lands_in_the_order_of_dependencies_with_a_result_each() {
    let env = repository();
    env.ok(&["task", "add", "First"]);
    env.ok(&["task", "add", "Second", "--after", "1"]);
    env.ok(&["task", "add", "Third", "--after", "2"]);
    for (task, name) in [("1", "a"), ("2", "b"), ("3", "c")] {
        env.ok(&["new", name, "--task", task]);
        let path = env.root().join("app.weald").join(name);
        commit(&env, &path, name, name);
    }
    let before = rev(&env, "main");
    let done = landed(&env, &["c", "b", "a"]);
    let order: Vec<_> = done.iter().map(|one| one["tree"].clone()).collect();
    assert_eq!(order, ["a", "b", "c"]);
    let range = format!("{before}..main");
    let subjects = env.git(&["log", "--reverse", "--format=%s", &range]);
    assert_eq!(subjects, "a\nb\nc\n");
}

#[test]
fn m16_a_conflict_in_a_batch_ends_one_or_all_behind_it() {
    for (flags, third) in [
        (&[][..], "landed"),
        (&["--stop-on-conflict"][..], "dropped"),
    ] {
        let env = repository();
        for (name, file) in [("a", "config.py"), ("b", "config.py"), ("c", "other")] {
            let path = grow(&env, name, "sealed");
            commit(&env, &path, file, name);
        }
        let (code, done) = land(&env, &[&["a", "b", "c"], flags].concat());
        let outcomes: Vec<_> = done.iter().map(|one| one["outcome"].clone()).collect();
        assert_eq!(outcomes, ["landed", "conflict", third]);
        assert_eq!(code, 3);
        assert_eq!(show(&env, "config.py"), "a");
    }
}

#[test]
fn m19_revert_takes_back_what_a_landing_changed() {
    for strategy in ["squash", "merge", "rebase", "ff"] {
        let env = repository();
        env.ok(&["task", "add", "Fix it"]);
        env.ok(&["new", "a", "--task", "1"]);
        let path = env.root().join("app.weald/a");
        commit(&env, &path, "one", "1");
        commit(&env, &path, "two", "2");
        let before = rev(&env, "main^{tree}");
        let id = landed(&env, &["a", "--strategy", strategy])[0]["id"].to_string();
        let done = env.ok(&["revert", &id])["landing"].clone();
        assert_eq!(done["outcome"], "landed", "{strategy}");
        assert_eq!(rev(&env, "main^{tree}"), before, "{strategy}");
        assert_eq!(env.ok(&["task", "show", "1"])["task"]["status"], "pending");
        let subject = env.git(&["log", "-1", "--format=%s", "main"]);
        assert!(subject.starts_with("Revert \""), "{subject}");
        env.refused(&["revert", &id], 1, "reverted_already");
        env.refused(&["revert", "99"], 4, "landing_not_found");
    }
}

#[test]
fn m19_a_revert_that_conflicts_changes_nothing() {
    let env = repository();
    let path = grow(&env, "a", "sealed");
    commit(&env, &path, "config.py", "one\n");
    let id = landed(&env, &["a"])[0]["id"].to_string();
    let path = grow(&env, "b", "sealed");
    commit(&env, &path, "config.py", "two\n");
    landed(&env, &["b"]);
    let before = rev(&env, "main");
    let answer = env.weald(&["revert", &id, "--json"]);
    assert_eq!(answer.code, 3, "{answer:#?}");
    assert_eq!(answer.json()["landing"]["outcome"], "conflict");
    assert_eq!(rev(&env, "main"), before);
    // It says how to go on, and that goes on.
    let told = env.weald(&["revert", &id]).stdout;
    assert!(told.contains(&format!("weald new undo-{id}")), "{told}");
    let line = told.lines().find(|line| line.contains("-- git revert"));
    let (_, run) = line.unwrap().split_once("weald ").unwrap();
    env.ok(&["new", &format!("undo-{id}")]);
    env.weald(&run.split(' ').collect::<Vec<_>>());
    let tree = env.root().join(format!("app.weald/undo-{id}"));
    let status = git_in(&env, &tree, &["status", "--porcelain"]);
    assert_eq!(status, "UU config.py\n", "{told}");
}

#[test]
fn m23_a_second_landing_does_not_conflict_with_the_first() {
    for kind in KINDS {
        for strategy in ["squash", "rebase"] {
            let env = repository();
            let path = grow(&env, "a", kind);
            commit(&env, &path, "config.py", "one\n");
            landed(&env, &["a", "--keep", "--strategy", strategy]);
            // Somebody else lands in between, so that nothing is a mere fast-forward.
            env.git(&["commit", "-q", "--allow-empty", "-m", "elsewhere"]);
            commit(&env, &path, "config.py", "two\n");
            landed(&env, &["a", "--keep", "--strategy", strategy]);
            assert_eq!(show(&env, "config.py"), "two\n");
            // The target comes into the tree, and a third time.
            assert_eq!(env.ok(&["sync", "a"])["outcome"], "merged");
            commit(&env, &path, "config.py", "three\n");
            landed(&env, &["a", "--keep", "--strategy", strategy]);
            assert_eq!(show(&env, "config.py"), "three\n");
            let (code, done) = land(&env, &["a", "--keep"]);
            assert_eq!((code, &done[0]["outcome"]), (0, &json!("nothing_to_land")));
        }
    }
}

#[test]
fn m8_uncommitted_changes_refuse() {
    for kind in KINDS {
        let env = repository();
        let path = grow(&env, "a", kind);
        commit(&env, &path, "one", "1");
        fs::write(path.join("config.py"), "not committed").unwrap();
        let (code, done) = land(&env, &["a"]);
        assert_eq!(
            (code, &done[0]["reason"]["code"]),
            (1, &json!("tree_dirty"))
        );
        assert_eq!(
            fs::read_to_string(path.join("config.py")).unwrap(),
            "not committed"
        );
        assert!(!try_git(&env, &env.repo(), &["cat-file", "-e", "main:one"]).0);
    }
}

#[test]
fn m2_five_at_once_all_land() {
    let env = repository();
    let names = ["a", "b", "c", "d", "e"];
    for name in names {
        let path = grow(&env, name, "sealed");
        commit(&env, &path, name, name);
    }
    let children: Vec<_> = names
        .iter()
        .map(|name| {
            let mut command = env.weald_command(&["land", name, "--json"]);
            command
                .stdout(std::process::Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(output.status.success(), "{answer:#}");
        assert_eq!(answer["landings"][0]["outcome"], "landed");
    }
    for name in names {
        assert_eq!(show(&env, name), name);
    }
    env.git(&["fsck", "--strict"]);
    assert!(env.ok(&["queue"])["queue"].as_array().unwrap().is_empty());
}

#[test]
fn the_queue_can_be_paused_dropped_from_and_gone_on_with() {
    let env = repository();
    for name in ["a", "b"] {
        let path = grow(&env, name, "sealed");
        commit(&env, &path, name, name);
    }
    env.ok(&["queue", "pause", "--reason", "release day"]);
    let (code, done) = land(&env, &["a"]);
    assert_eq!((code, &done[0]["outcome"]), (0, &json!("queued")));
    let (_, done) = land(&env, &["b", "--no-wait"]);
    let second = done[0]["id"].to_string();
    let queue = env.ok(&["queue", "status"]);
    assert_eq!(queue["paused"]["reason"], "release day");
    assert_eq!(queue["queue"].as_array().unwrap().len(), 2);
    assert_eq!(
        env.ok(&["queue", "drop", &second])["landing"]["outcome"],
        "dropped"
    );
    env.refused(&["queue", "drop", &second], 1, "landing_ended");
    env.refused(&["queue", "drop", "77"], 4, "landing_not_found");
    env.refused(&["queue", "log", &second], 4, "no_log");
    let done = env.ok(&["queue", "resume"]);
    assert_eq!(done["landings"][0]["outcome"], "landed");
    assert_eq!(
        env.ok(&["queue", "retry", &second])["landings"][0]["outcome"],
        "landed"
    );
    assert_eq!(
        (show(&env, "a"), show(&env, "b")),
        ("a".to_owned(), "b".to_owned())
    );
}

#[test]
fn a_dry_run_says_what_would_happen_and_does_nothing() {
    let env = conflicting("sealed");
    let path = grow(&env, "b", "sealed");
    commit(&env, &path, "other", "1");
    let before = (rev(&env, "main"), env.ok(&["queue", "status", "--all"]));
    let (code, done) = land(&env, &["a", "b", "--dry-run"]);
    let outcomes: Vec<_> = done.iter().map(|one| one["outcome"].clone()).collect();
    assert_eq!(
        (code, outcomes),
        (3, vec![json!("conflict"), json!("would_land")])
    );
    assert_eq!(
        (rev(&env, "main"), env.ok(&["queue", "status", "--all"])),
        before
    );
    // What would be refused is said, too.
    fs::write(env.repo().join("other"), "mine").unwrap();
    let (code, done) = land(&env, &["b", "--dry-run"]);
    assert_eq!(
        (code, &done[0]["reason"]["code"]),
        (1, &json!("target_dirty"))
    );
    fs::remove_file(env.repo().join("other")).unwrap();
    env.refused(&["land", "nobody"], 4, "tree_not_found");
    env.ok(&["task", "add", "Without a tree"]);
    env.refused(&["land", "2"], 1, "task_without_tree");
}

#[test]
fn a_tasks_number_names_its_tree_and_what_it_waits_for_is_told() {
    let env = repository();
    env.ok(&["task", "add", "First"]);
    env.ok(&["task", "add", "Second", "--after", "1"]);
    env.ok(&["new", "a", "--task", "2"]);
    let path = env.root().join("app.weald/a");
    commit(&env, &path, "one", "1");
    assert_eq!(env.ok(&["sync", "2"])["tree"]["name"], "a");
    assert_eq!(env.ok(&["diff", "2"])["files"][0]["path"], "one");
    assert_eq!(env.weald(&["conflicts", "2", "--exit-code"]).code, 0);
    let approved = env.weald_alone(&["approve", "2", "--yes", "--json"]);
    assert_eq!(approved.json()["tree"]["name"], "a", "{approved:#?}");
    env.refused(&["sync", "1"], 1, "task_without_tree");
    let answer = env.weald(&["land", "2", "--json", "--keep"]);
    let told = "task 2 of a is waiting for 1, which is not done";
    assert!(answer.stderr.contains(told), "{answer:#?}");
    assert_eq!(answer.json()["landings"][0]["outcome"], "landed");
    let id = answer.json()["landings"][0]["id"].to_string();
    env.refused(&["queue", "retry", &id], 1, "landed_already");
}
