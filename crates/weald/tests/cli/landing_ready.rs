//! What a landing requires of those who worked in the tree.

use serde_json::{Value, json};
use weald_testkit::TestEnv;

use crate::landing::land;
use crate::landing_gate::set;
use crate::phases::{ended, events};
use crate::trees_remove::{commit, grow, repository};

/// Lands by force as a person would.
fn force(env: &TestEnv, tree: &str) -> Value {
    let answer = env.weald_alone(&["land", tree, "--force", "--json"]);
    assert_eq!(answer.code, 0, "{answer:#?}");
    answer.json()["landings"][0].clone()
}

#[test]
fn m15_a_verdict_that_failed_refuses_and_force_is_recorded() {
    let env = repository();
    env.ok(&["task", "add", "Fix it"]);
    let script =
        r#"echo x > x; echo '{"verdict":"FAIL","must_fix":["the tests"]}' > $WEALD_VERDICT_FILE"#;
    let judged = env.weald(&["phase", "1", "--only", "review", "--", "sh", "-c", script]);
    assert_eq!(judged.code, 1, "{judged:#?}");
    let before = env.git(&["rev-parse", "main"]);
    let asked = env.weald_alone(&["land", "fix-it", "--json"]);
    let landings = asked.json()["landings"].clone();
    let outcome = &landings[0]["outcome"];
    assert_eq!((asked.code, outcome), (1, &json!("refused")));
    let reason = landings[0]["reason"].to_string();
    for part in ["not_ready_to_land", "the tests", "weald phase 1", "--force"] {
        assert!(reason.contains(part), "{part}: {reason}");
    }
    let (code, landings) = land(&env, &["fix-it", "--dry-run"]);
    assert_eq!((code, &landings[0]["outcome"]), (1, &json!("refused")));
    assert_eq!(env.git(&["rev-parse", "main"]), before);
    let mut agent = env.weald_command(&["land", "fix-it", "--json"]);
    let refused = agent.env("CLAUDECODE", "1").output().unwrap();
    let said = String::from_utf8_lossy(&refused.stdout);
    assert!(
        said.contains("weald phase 1") && !said.contains("--force"),
        "{said}"
    );
    let mut agent = env.weald_command(&["land", "fix-it", "--force", "--json"]);
    let refused = agent.env("CLAUDECODE", "1").output().unwrap();
    assert!(String::from_utf8_lossy(&refused.stdout).contains("agent_session"));
    let landing = force(&env, "fix-it");
    assert_eq!(landing["outcome"], "landed", "{landing}");
    let event = &events(&env, "landing.landed")[0]["data"]["after"]["landing"];
    assert!(
        event["forced"].as_str().unwrap().contains("the tests"),
        "{event}"
    );
}

#[test]
fn m15_a_report_can_be_required() {
    let env = repository();
    set(&env, "landing.requires", "report");
    env.ok(&["task", "add", "Fix it"]);
    env.ok(&["new", "fix", "--task", "1"]);
    commit(&env, &env.root().join("app.weald/fix"), "one", "1\n");
    let (code, landings) = land(&env, &["fix"]);
    let reason = landings[0]["reason"]["message"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(code, 1);
    assert!(
        reason.contains("done") && reason.contains("report"),
        "{reason}"
    );
    // The words may come with the landing, or from before.
    env.ok(&["task", "add", "Another"]);
    env.ok(&["new", "another", "--task", "2"]);
    commit(&env, &env.root().join("app.weald/another"), "other", "1\n");
    let (code, landings) = land(&env, &["another", "--report", "this and that"]);
    assert_eq!((code, &landings[0]["outcome"]), (0, &json!("landed")));
    let told = &env.ok(&["task", "show", "2"])["task"];
    assert_eq!(
        (&told["status"], &told["report"]),
        (&json!("completed"), &json!("this and that"))
    );
    let token = env.ok(&["task", "claim", "1", "--session", "me"])["lease"]["token"].to_string();
    env.ok(&[
        "task",
        "done",
        "1",
        "--token",
        &token,
        "--report",
        "all of it",
    ]);
    let (code, landings) = land(&env, &["fix"]);
    assert_eq!(
        (code, &landings[0]["outcome"]),
        (0, &json!("landed")),
        "{landings:?}"
    );
    // A tree without a task is nobody's business.
    let path = grow(&env, "free", "sealed");
    commit(&env, &path, "two", "2\n");
    assert_eq!(land(&env, &["free"]).0, 0);
    let profile = env.ok(&["config", "show", "--set", "profile=refact"]);
    assert!(profile.to_string().contains(r#""landing.requires""#));
}

#[test]
fn m15_why_something_failed_is_no_report_of_what_was_done() {
    let env = repository();
    env.ok(&["init", "--profile", "refact"]);
    let tree = |id: &str| env.ok(&["task", "show", id])["task"]["worktree"].clone();
    let run = |args: &[&str], script: &str| {
        let args = [args, &["--json", "--", "sh", "-c", script]].concat();
        env.weald(&args).code
    };
    for (id, script) in [
        ("1", "echo h > h; exit 1"),
        (
            "2",
            "echo i > i; weald task fail --report \"it can't be done\"",
        ),
    ] {
        env.ok(&["task", "add", "Fix it"]);
        assert_eq!(run(&["work", id], script), 1);
        let why = env.ok(&["task", "show", id])["task"]["report"].clone();
        assert!(why.is_string(), "{why}");
        assert_eq!(run(&["resume", id], &format!("echo more > more{id}")), 0);
        let task = env.ok(&["task", "show", id])["task"].clone();
        assert_eq!(
            (&task["status"], &task["report"]),
            (&json!("completed"), &json!(null))
        );
        let tree = tree(id);
        let (code, landings) = land(&env, &[tree.as_str().unwrap()]);
        let reason = landings[0]["reason"]["message"].to_string();
        assert_eq!(code, 1, "{landings:?}");
        assert!(reason.contains("no report"), "{reason}");
        assert_eq!(
            land(&env, &[tree.as_str().unwrap(), "--report", "did it"]).0,
            0
        );
        assert_eq!(env.ok(&["task", "show", id])["task"]["report"], "did it");
    }
}

#[test]
fn m15_work_that_has_no_report_is_kept() {
    let env = repository();
    set(&env, "landing.requires", "report");
    let answer = env.weald(&[
        "work",
        "Say nothing",
        "--json",
        "--",
        "sh",
        "-c",
        "echo x > x",
    ]);
    assert_eq!(answer.code, 1, "{answer:#?}");
    assert_eq!(ended(&env)[0]["end"]["outcome"], "not_landed");
    assert!(env.root().join("app.weald/say-nothing/x").exists());
}
