//! What an agent lands itself, while it works: under its own claim, and its task is not done by that.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;
use weald_testkit::{Answer, TestEnv};

use crate::landing::{rev, show};
use crate::trees_remove::repository;
use crate::work::status;

/// weald where a run sees it.
fn with_binary() -> TestEnv {
    let env = repository();
    fs::copy(env!("CARGO_BIN_EXE_weald"), env.home().join("weald")).unwrap();
    env
}

fn start(env: &TestEnv, script: &str) -> Answer {
    let weald = env.home().join("weald").display().to_string();
    let script =
        format!("w={weald}; until_there() {{ until test -e $1; do sleep 0.05; done; }}; {script}");
    env.weald(&["work", "1", "--detach", "--json", "--", "sh", "-c", &script])
}

#[track_caller]
fn wait_for(path: &Path) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !path.exists() {
        assert!(Instant::now() < deadline, "{} never came", path.display());
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn wait_for_end(env: &TestEnv) {
    let done = env.weald(&["agent", "wait", "a1", "--timeout", "60s"]);
    assert_eq!(done.code, 0, "{done:#?}");
}

const COMMIT: &str = "echo $n > f$n; git add .; git commit -qm $n;";

#[test]
fn x12_what_an_agent_lands_while_it_works_does_not_complete_its_task() {
    let env = with_binary();
    env.ok(&["task", "add", "In parts"]);
    env.ok(&["task", "add", "Afterwards", "--after", "1"]);
    let script = format!(
        "n=1; {COMMIT} $w land || exit 7; touch landed; until_there go; n=2; {COMMIT} exit 1"
    );
    assert_eq!(start(&env, &script).code, 0);
    let tree = env.root().join("app.weald/in-parts");
    wait_for(&tree.join("landed"));
    assert_eq!(show(&env, "f1"), "1\n");
    assert_eq!(status(&env, "1"), "in_progress");
    assert_eq!(env.ok(&["task", "ready"])["tasks"], json!([]));
    fs::write(tree.join("go"), "").unwrap();
    wait_for_end(&env);
    assert_eq!(status(&env, "1"), "failed", "the rest of it was not done");
    let again = env.weald(&["resume", "1", "--json", "--", "true"]);
    assert_eq!(again.code, 0, "{again:#?}");
    assert_eq!(show(&env, "f2"), "2\n");
    assert_eq!(status(&env, "1"), "completed");
}

#[test]
fn t14_an_agent_whose_claim_was_taken_lands_nothing_and_takes_nothing_away() {
    let env = with_binary();
    env.ok(&["task", "add", "Taken"]);
    let script =
        format!("n=1; {COMMIT} touch ready; until_there go; $w land; echo $? > code; exit 0");
    assert_eq!(start(&env, &script).code, 0);
    let tree = env.root().join("app.weald/taken");
    wait_for(&tree.join("ready"));
    let before = rev(&env, "main");
    env.ok(&["task", "release", "1", "--token", "1"]);
    env.ok(&["session", "register", "bob"]);
    env.ok(&["task", "claim", "1", "--session", "bob"]);
    fs::write(tree.join("bobs"), "mine\n").unwrap();
    fs::write(tree.join("go"), "").unwrap();
    wait_for_end(&env);
    assert_eq!(fs::read_to_string(tree.join("code")).unwrap(), "1\n");
    assert_eq!(rev(&env, "main"), before);
    let task = env.ok(&["task", "show", "1"])["task"].clone();
    assert_eq!(
        (&task["status"], &task["owner"]),
        (&json!("in_progress"), &json!("bob"))
    );
    assert_eq!(task["lease"]["token"], 2);
    let tracked = env.git(&["-C", tree.to_str().unwrap(), "ls-files"]);
    assert!(
        !tracked.contains("bobs"),
        "nothing of bob's was committed: {tracked}"
    );
}

#[test]
fn s2_a_conflict_that_an_agent_meets_while_it_works_leaves_it_its_task() {
    let env = with_binary();
    fs::write(env.repo().join("f"), "0\n").unwrap();
    env.git(&["add", "f"]);
    env.git(&["commit", "-qm", "f"]);
    env.ok(&["task", "add", "Clash"]);
    let script = "echo theirs > f; git commit -qam theirs; touch ready; until_there go; $w land; touch tried; until_there end; \
                  git reset -q --hard HEAD~1; rm -f ready go tried end; echo other > other; exit 0";
    assert_eq!(start(&env, script).code, 0);
    let tree = env.root().join("app.weald/clash");
    wait_for(&tree.join("ready"));
    fs::write(env.repo().join("f"), "ours\n").unwrap();
    env.git(&["commit", "-qam", "ours"]);
    fs::write(tree.join("go"), "").unwrap();
    wait_for(&tree.join("tried"));
    assert_eq!(status(&env, "1"), "in_progress");
    env.refused(&["work", "1", "--", "true"], 5, "task_held");
    fs::write(tree.join("end"), "").unwrap();
    wait_for_end(&env);
    assert_eq!(status(&env, "1"), "completed");
}

#[test]
fn s12_a_stop_also_stops_the_landing_that_an_agent_waits_for() {
    let env = with_binary();
    env.ok(&["config", "set", "gate.command", "sleep 300"]);
    env.ok(&["task", "add", "Slow gate"]);
    let before = rev(&env, "main");
    let script = format!("n=1; {COMMIT} touch ready; $w land");
    assert_eq!(start(&env, &script).code, 0);
    wait_for(&env.root().join("app.weald/slow-gate/ready"));
    let deadline = Instant::now() + Duration::from_secs(30);
    let is_tested = || {
        let queue = env.ok(&["queue"]);
        queue["queue"][0]["status"] == "testing"
    };
    while !is_tested() {
        assert!(Instant::now() < deadline, "{}", env.ok(&["queue"]));
        std::thread::sleep(Duration::from_millis(50));
    }
    let begun = Instant::now();
    let stopped = env.weald(&["agent", "stop", "a1", "--wait", "--json"]);
    assert_eq!(stopped.code, 0, "{stopped:#?}");
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(rev(&env, "main"), before);
    assert_eq!(status(&env, "1"), "failed");
}
