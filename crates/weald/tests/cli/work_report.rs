//! Final reports of agents.

use serde_json::json;

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
