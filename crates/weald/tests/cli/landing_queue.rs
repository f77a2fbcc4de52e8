//! The queue with a gate: what is red comes back, the rest lands, and the target is green at every commit.

use std::fs;

use serde_json::{Value, json};
use weald_testkit::TestEnv;

use crate::landing::{land, landed, rev};
use crate::trees_remove::{commit, git_in, grow, repository};

/// A repository whose tests fail when a file is called `bad-…`.
fn guarded(retries: &str, parallel: &str) -> TestEnv {
    let env = repository();
    let script =
        "for f in bad-*; do [ -e \"$f\" ] && echo \"$f is bad\" && exit 1; done; echo fine\n";
    fs::write(env.repo().join("check.sh"), script).unwrap();
    env.git(&["add", "check.sh"]);
    env.git(&["commit", "-q", "-m", "check"]);
    env.ok(&["config", "set", "gate.command", "sh check.sh"]);
    env.ok(&["config", "set", "gate.retries", retries]);
    env.ok(&["config", "set", "landing.parallel", parallel]);
    env
}

/// How often a gate ran: each run leaves a log.
fn gate_runs(env: &TestEnv) -> usize {
    fs::read_dir(env.private().join("landings")).map_or(0, |entries| {
        entries
            .flatten()
            .filter(|entry| entry.path().extension().is_some_and(|kind| kind == "log"))
            .count()
    })
}

fn twenty_with_two_red(retries: &str, parallel: usize) {
    let env = guarded(retries, &parallel.to_string());
    let before = rev(&env, "main");
    let names: Vec<String> = (1..=20).map(|number| format!("t{number}")).collect();
    for (place, name) in names.iter().enumerate() {
        let path = grow(&env, name, "sealed");
        let bad = matches!(place + 1, 7 | 13);
        let file = if bad {
            format!("bad-{name}")
        } else {
            name.clone()
        };
        commit(&env, &path, &file, "1");
    }
    let asked: Vec<_> = names.iter().map(String::as_str).collect();
    let (code, done) = land(&env, &asked);
    assert_eq!(code, 1);
    for (place, landing) in done.iter().enumerate() {
        let expected = if matches!(place + 1, 7 | 13) {
            "red"
        } else {
            "landed"
        };
        assert_eq!(landing["outcome"], expected, "{landing:#}");
        if expected == "red" {
            let text = fs::read_to_string(landing["log"].as_str().unwrap()).unwrap();
            assert!(
                text.contains(&format!("bad-t{} is bad", place + 1)),
                "{text}"
            );
            assert!(env.root().join("app.weald").join(&names[place]).is_dir());
        }
    }
    let retried: usize = retries.parse().unwrap();
    let most = 20 + 2 * (parallel - 1) + 2 * retried * parallel;
    assert!(
        (20..=most).contains(&gate_runs(&env)),
        "{} runs",
        gate_runs(&env)
    );
    // Green at every commit, by the same tests.
    let commits = env.git(&["rev-list", "--reverse", &format!("{before}..main")]);
    assert_eq!(commits.lines().count(), 18);
    let twin = env.root().join("twin");
    env.git(&["worktree", "add", "-q", "--detach", twin.to_str().unwrap()]);
    for one in commits.lines() {
        git_in(&env, &twin, &["checkout", "-q", "--detach", one]);
        let mut check = env.command("sh");
        let status = check
            .arg("check.sh")
            .current_dir(&twin)
            .output()
            .unwrap()
            .status;
        assert!(status.success(), "{one} is red");
    }
}

#[test]
fn m2_of_twenty_with_two_red_eighteen_land_and_main_is_green_at_every_commit() {
    twenty_with_two_red("0", 1);
}

#[test]
fn m2_a_window_of_three_gates_lands_the_same() {
    twenty_with_two_red("0", 3);
}

#[test]
fn m2_red_tests_are_tried_again_before_they_count() {
    twenty_with_two_red("1", 2);
}

#[test]
fn a_red_landing_is_told_to_its_owner_with_its_log() {
    let env = guarded("0", "1");
    env.ok(&["session", "register", "alice"]);
    env.ok(&["task", "add", "Fix it"]);
    env.ok(&["new", "a", "--task", "1"]);
    env.ok(&["task", "claim", "1", "--session", "alice"]);
    commit(&env, &env.root().join("app.weald/a"), "bad-a", "1");
    let (code, done) = land(&env, &["a"]);
    assert_eq!((code, &done[0]["outcome"]), (1, &json!("red")));
    let inbox = env.ok(&["msg", "inbox", "--session", "alice"]);
    let text = inbox["messages"][0]["text"].as_str().unwrap().to_owned();
    assert!(text.contains("bad-a is bad"), "{text}");
    let id = done[0]["id"].to_string();
    assert!(
        env.weald(&["queue", "log", &id])
            .stdout
            .contains("bad-a is bad")
    );
    assert_eq!(
        env.ok(&["task", "show", "1"])["task"]["status"],
        "in_progress"
    );
}

#[test]
fn only_green_is_remembered_and_by_content() {
    let env = guarded("0", "1");
    let path = grow(&env, "a", "sealed");
    commit(&env, &path, "one", "1");
    let first = landed(&env, &["a", "--keep"])[0].clone();
    assert_eq!(first["gate"]["cached"], Value::Null, "{first:#}");
    let id = first["id"].to_string();
    let undone = env.ok(&["revert", &id])["landing"].clone();
    assert_eq!(undone["outcome"], "landed");
    // The same tree as the first time: its receipt counts.
    let runs = gate_runs(&env);
    let again = landed(&env, &["a", "--keep"])[0].clone();
    assert_eq!(again["outcome"], "landed", "{again:#}");
    assert_eq!(again["gate"]["cached"], true, "{again:#}");
    assert_eq!(gate_runs(&env), runs);
}

#[test]
fn m17_a_red_check_after_the_landing_takes_it_back() {
    let env = repository();
    env.ok(&["config", "set", "landing.check", "test ! -e bad"]);
    env.ok(&["task", "add", "Fix it"]);
    env.ok(&["new", "a", "--task", "1"]);
    commit(&env, &env.root().join("app.weald/a"), "bad", "1");
    let before = rev(&env, "main^{tree}");
    let (code, done) = land(&env, &["a"]);
    assert_eq!((code, &done[0]["outcome"]), (1, &json!("landed")));
    assert_eq!(done[0]["reverted_by"], 2, "{done:#?}");
    assert_eq!(rev(&env, "main^{tree}"), before, "it was taken back");
    let story = env.git(&["log", "-2", "--format=%s", "main"]);
    assert_eq!(story, "Revert \"bad\"\nbad\n");
    let task = env.ok(&["task", "show", "1"])["task"]["status"].clone();
    assert_eq!(task, "pending");
    let tasks = env.ok(&["task", "list"])["tasks"].clone();
    let subjects: Vec<_> = tasks
        .as_array()
        .unwrap()
        .iter()
        .map(|task| task["subject"].clone())
        .collect();
    assert!(
        subjects.contains(&json!("Repair landing 1 of a")),
        "{subjects:?}"
    );
    let all = env.ok(&["queue", "status", "--all"])["queue"].clone();
    assert_eq!(all[1]["reverted_by"], all[0]["id"]);
    // A green one stays.
    let path = grow(&env, "b", "sealed");
    commit(&env, &path, "good", "1");
    landed(&env, &["b"]);
    assert_eq!(env.git(&["show", "main:good"]), "1");
}

#[test]
fn m7_what_is_in_the_way_is_said_before_anything_is_tested() {
    let env = guarded("0", "1");
    let path = grow(&env, "a", "sealed");
    commit(&env, &path, "config.py", "theirs\n");
    for edit in ["edited\n", "staged\n"] {
        fs::write(env.repo().join("config.py"), edit).unwrap();
        if edit == "staged\n" {
            env.git(&["add", "config.py"]);
        }
        let (code, done) = land(&env, &["a", "--keep"]);
        assert_eq!(
            (code, &done[0]["reason"]["code"]),
            (1, &json!("target_dirty"))
        );
        assert_eq!(done[0]["reason"]["paths"], json!(["config.py"]));
        assert_eq!(gate_runs(&env), 0, "{edit}");
    }
    env.git(&["reset", "-q", "--hard"]);
    landed(&env, &["a", "--keep"]);
    assert_eq!(gate_runs(&env), 1);
}
