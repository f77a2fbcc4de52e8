//! Final reports of agents.

use std::fs;

use serde_json::json;
use weald_testkit::Answer;

use crate::landing::show;
use crate::trees_remove::repository;

#[test]
fn s20_a_final_report_tells_success_and_the_files_that_git_says() {
    let env = repository();
    let script = "echo one > one; git add one; git commit -q -m one; echo two > 'two words'; echo x >> config.py; echo no > a.log";
    let answer = env.weald(&["work", "Change files", "--json", "--", "sh", "-c", script]);
    assert_eq!(answer.code, 0, "{answer:#?}");
    let report = &answer.json()["agent"]["report"];
    assert_eq!(report["success"], true);
    assert_eq!(
        report["files_changed"],
        json!(["config.py", "one", "two words"])
    );
    assert_eq!(report["verification"], "none");
    assert_eq!(
        show(&env, "two words"),
        "two\n",
        "what was left is committed"
    );
    let failed = env.weald(&[
        "work",
        "Fail after all",
        "--json",
        "--",
        "sh",
        "-c",
        "echo x > x; exit 4",
    ]);
    let report = &failed.json()["agent"]["report"];
    assert_eq!(
        (&report["success"], &report["files_changed"]),
        (&json!(false), &json!(["x"]))
    );
}

#[test]
fn s20_whatever_is_known_of_a_finished_run_is_not_looked_for_again() {
    let commit = "echo x > x; git add x; git commit -q -m x";
    for (name, script, landing, expected) in [
        // To populate the worktree; the rest is seen from outside.
        ("nothing", "true", "--land", 1),
        // The end of the run, and the removal, which looks again whatever is known.
        ("committed", commit, "--land", 3),
        ("left", "echo y > y", "--land", 4),
        ("kept", "echo z > z", "--no-land", 3),
        ("failed", "echo z > z; false", "--no-land", 2),
    ] {
        let env = repository();
        let visits = env.root().join("visits");
        fs::write(&visits, "").unwrap();
        let mut work =
            env.weald_command(&["work", "--new", name, landing, "--", "sh", "-c", script]);
        work.env("WEALD_STEP", "count:visit.begun")
            .env("WEALD_STEP_MARK", &visits);
        let answer = Answer::of(work.output().unwrap());
        assert_eq!(
            fs::read(&visits).unwrap().len(),
            expected,
            "{name}: {answer:#?}"
        );
    }
}

#[test]
fn s20_finishing_twice_and_under_an_old_claim_is_refused() {
    let env = repository();
    env.ok(&["task", "add", "Once"]);
    let first = env.ok(&["task", "claim", "1", "--session", "one"])["lease"]["token"].to_string();
    env.ok(&["task", "release", "1", "--token", &first]);
    let second = env.ok(&["task", "claim", "1", "--session", "two"])["lease"]["token"].to_string();
    env.refused(&["task", "done", "1", "--token", &first], 1, "stale_token");
    env.ok(&[
        "task", "done", "1", "--token", &second, "--report", "did it",
    ]);
    env.refused(
        &["task", "done", "1", "--token", &second],
        1,
        "illegal_move",
    );
}
