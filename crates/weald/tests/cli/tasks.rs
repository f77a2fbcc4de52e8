//! Tasks on the command line.

use serde_json::{Value, json};

use crate::env;

fn ids(answer: &Value) -> Vec<Value> {
    answer["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| task["id"].clone())
        .collect()
}

#[test]
fn t1_a_task_record_has_its_fields() {
    let env = env();
    let args = [
        "task",
        "add",
        "Fix it",
        "--description",
        "all of it",
        "--priority",
        "P0",
        "--label",
        "ui",
    ];
    let added = env.ok(&args);
    assert_eq!(added["schema_version"], 1);
    let task = &added["task"];
    for (field, value) in [
        ("id", json!(1)),
        ("subject", json!("Fix it")),
        ("description", json!("all of it")),
        ("status", json!("pending")),
        ("priority", json!("P0")),
        ("owner", json!(null)),
        ("worktree", json!(null)),
        ("last_worktree", json!(null)),
        ("blocked_by", json!([])),
    ] {
        assert_eq!(task[field], value, "{field}");
    }
    for time in ["created_at", "updated_at"] {
        let text = task[time].as_str().unwrap();
        assert!(text.ends_with('Z') && text.contains('T'), "{text}");
    }
    let shown = env.ok(&["task", "show", "#1"]);
    assert_eq!(shown["task"]["subject"], "Fix it");
    assert_eq!(shown["task"]["ready"], true);
    assert_eq!(shown["task"]["worktree_state"], json!(null));
    let external = env.ok(&["task", "add", "From elsewhere", "--id", "gh-12"]);
    assert_eq!(external["task"]["id"], "gh-12");
    assert_eq!(env.ok(&["task", "add", "Next"])["task"]["id"], 2);
}

#[test]
fn t6_claims_follow_the_rules() {
    let env = env();
    env.ok(&["task", "add", "first"]);
    let told = env.weald(&["task", "add", "second", "--after", "1", "--after", "gh-9"]);
    assert_eq!(told.code, 0, "{told:#?}");
    let told = told.stderr;
    assert!(
        told.contains("depends on task gh-9,") && !told.contains("task 1,"),
        "{told}"
    );
    let refused = env.refused(
        &["task", "claim", "2", "--session", "alice"],
        1,
        "task_waiting",
    );
    assert_eq!(refused["error"]["details"]["open"], json!([1]));
    assert_eq!(refused["error"]["details"]["missing"], json!(["gh-9"]));
    let claimed = env.ok(&["task", "claim", "1", "--session", "alice", "--ttl", "1h"]);
    assert_eq!(claimed["task"]["status"], "in_progress");
    assert_eq!(claimed["task"]["owner"], "alice");
    assert_eq!(claimed["lease"]["token"], 1);
    assert_eq!(claimed["lease"]["session"], "alice");
    assert!(claimed["lease"]["expires_at"].is_string());
    env.refused(&["task", "claim", "1", "--session", "bob"], 5, "task_held");
    env.refused(
        &["task", "claim", "1", "--session", "alice"],
        5,
        "task_held",
    );
    env.refused(&["task", "claim", "--session", "bob"], 4, "nothing_ready");
    env.refused(
        &["task", "claim", "77", "--session", "bob"],
        4,
        "task_not_found",
    );
    for ttl in ["0s", "-5m", "soon", ""] {
        let answer = env.weald(&["task", "claim", "1", "--json", &format!("--ttl={ttl}")]);
        assert_eq!(
            (answer.code, answer.error_code().as_str()),
            (2, "invalid_value"),
            "{ttl}"
        );
    }
}

#[test]
fn the_next_claim_goes_by_priority_then_age() {
    let env = env();
    for (subject, priority) in [("a", "P2"), ("b", "P0"), ("c", "P2"), ("d", "P0")] {
        env.ok(&["task", "add", subject, "--priority", priority]);
    }
    let order: Vec<_> = (0..4)
        .map(|_| env.ok(&["task", "claim", "--session", "x"])["task"]["id"].clone())
        .collect();
    assert_eq!(order, [2, 4, 1, 3]);
}

#[test]
fn t8_completion_lists_what_it_unblocks_and_happens_once() {
    let env = env();
    env.ok(&["task", "add", "first"]);
    env.ok(&["task", "add", "second", "--after", "1"]);
    env.ok(&["task", "add", "third", "--after", "1,2"]);
    env.ok(&["task", "claim", "1", "--session", "alice"]);
    env.refused(&["task", "done", "1"], 1, "token_required");
    env.refused(&["task", "done", "1", "--token", "9"], 1, "stale_token");
    let done = env.ok(&["task", "done", "1", "--token", "1", "--report", "it works"]);
    assert_eq!(done["unblocked"], json!([2]));
    assert_eq!(done["task"]["status"], "completed");
    assert_eq!(done["task"]["report"], "it works");
    env.refused(&["task", "done", "1", "--token", "1"], 1, "illegal_move");
    let events = env.weald(&["events", "--task", "1", "--json"]).stdout;
    assert_eq!(events.matches("dev.weald.task.completed").count(), 1);
}

#[test]
fn t9_the_graph_refuses_circles_and_knows_what_is_ready() {
    let env = env();
    env.ok(&["task", "add", "a"]);
    env.ok(&["task", "add", "b", "--after", "1"]);
    env.ok(&["task", "add", "c", "--after", "2"]);
    let refused = env.refused(&["task", "dep", "1", "--add", "3"], 1, "dependency_cycle");
    assert_eq!(refused["error"]["details"]["cycle"], json!([1, 3, 2, 1]));
    env.refused(&["task", "dep", "1", "--add", "1"], 1, "dependency_cycle");
    // A circle can also close by making the missing end of a dependency.
    env.ok(&["task", "add", "d", "--after", "gh-1"]);
    env.refused(
        &["task", "add", "e", "--id", "gh-1", "--after", "4"],
        1,
        "dependency_cycle",
    );
    assert_eq!(ids(&env.ok(&["task", "ready"])), [1]);
    assert_eq!(
        ids(&env.ok(&["task", "list", "--status", "blocked"])),
        [2, 3, 4]
    );
    env.ok(&["task", "start", "1"]);
    env.ok(&["task", "done", "1"]);
    assert_eq!(ids(&env.ok(&["task", "ready"])), [2]);
    env.ok(&["task", "dep", "4", "--remove", "gh-1"]);
    assert_eq!(ids(&env.ok(&["task", "ready"])), [2, 4]);
    env.ok(&["task", "claim", "2", "--session", "a"]);
    env.ok(&["task", "claim", "4", "--session", "a"]);
    env.ok(&["task", "fail", "4", "--token", "1"]);
    for (status, expected) in [
        ("in_progress", 2),
        ("completed", 1),
        ("done", 1),
        ("failed", 4),
    ] {
        assert_eq!(
            ids(&env.ok(&["task", "list", "--status", status])),
            [expected],
            "{status}"
        );
    }
}

#[test]
fn t11_states_move_as_documented_and_refusals_name_the_legal_ones() {
    let env = env();
    env.ok(&["task", "add", "a"]);
    env.ok(&["task", "cancel", "1", "--reason", "not now"]);
    let refused = env.refused(&["task", "claim", "1", "--session", "x"], 1, "illegal_move");
    assert_eq!(refused["error"]["details"]["legal"], json!(["pending"]));
    let reopened = env.ok(&["task", "reopen", "1"]);
    assert_eq!(reopened["task"]["status"], "pending");
    assert_eq!(reopened["task"].get("closed_at"), None, "absent, not null");
    env.ok(&["task", "claim", "1", "--session", "x"]);
    env.refused(&["task", "reopen", "1"], 1, "illegal_move");
    env.ok(&["task", "cancel", "1"]);
    env.refused(&["task", "done", "1", "--token", "1"], 1, "illegal_move");
    env.ok(&["task", "reopen", "1"]);
    let again = env.ok(&["task", "claim", "1", "--session", "y"]);
    assert_eq!(again["lease"]["token"], 2);
    env.refused(&["task", "release", "1", "--token", "1"], 1, "stale_token");
    env.ok(&["task", "release", "1", "--token", "2"]);
    env.refused(&["task", "renew", "1", "--token", "2"], 1, "stale_token");
}

#[test]
fn t13_unknown_fields_survive_updates_and_come_back() {
    let env = env();
    let lines = b"{\"id\":\"gh-1\",\"subject\":\"A\",\"estimate\":{\"days\":3},\"zz\":null}\n\
        {\"subject\":\"B\",\"blocked_by\":[\"gh-1\"]}\n";
    let imported = env.weald_with_input(&["task", "import", "--json"], lines);
    assert_eq!(imported.json()["imported"], 2);
    assert_eq!(imported.json()["errors"], json!([]));
    env.ok(&["task", "edit", "gh-1", "--subject", "A2"]);
    env.ok(&["task", "claim", "gh-1", "--session", "x"]);
    env.ok(&["task", "done", "gh-1", "--token", "1"]);
    let exported = env.weald(&["task", "export"]).stdout;
    let first: Value = serde_json::from_str(exported.lines().next().unwrap()).unwrap();
    assert_eq!(first["estimate"], json!({"days": 3}));
    assert!(first.as_object().unwrap().contains_key("zz"));
    assert_eq!(
        (&first["subject"], &first["status"]),
        (&json!("A2"), &json!("completed"))
    );
    // What was exported here can be taken in elsewhere.
    let elsewhere = crate::env();
    let answer = elsewhere.weald_with_input(&["task", "import", "--json"], exported.as_bytes());
    assert_eq!(answer.json()["imported"], 2, "{answer:?}");
    let again: Value = serde_json::from_str(
        elsewhere
            .weald(&["task", "export"])
            .stdout
            .lines()
            .next()
            .unwrap(),
    )
    .unwrap();
    assert_eq!(again["estimate"], json!({"days": 3}));
    assert_eq!(again.get("lease"), None);
}

#[test]
fn imports_report_bad_lines_and_refuse_circles_whole() {
    let env = env();
    let mixed = b"{\"subject\":\"good\"}\nnonsense\n{\"id\":\"gh-1\",\"subject\":\"x\"}\n{\"id\":\"gh-1\",\"subject\":\"y\"}\n";
    let answer = env.weald_with_input(&["task", "import", "-", "--json"], mixed);
    assert_eq!(answer.code, 1);
    assert_eq!(answer.json()["imported"], 2);
    let errors = answer.json()["errors"].clone();
    assert_eq!(
        (&errors[0]["line"], &errors[0]["code"]),
        (&json!(2), &json!("bad_json"))
    );
    assert_eq!(
        (&errors[1]["line"], &errors[1]["code"]),
        (&json!(4), &json!("task_exists"))
    );
    // What another repository counts as 1 is not what is counted so here.
    let other = b"{\"id\":1,\"subject\":\"other\",\"status\":\"completed\"}\n{\"id\":\"gh-1\",\"subject\":\"z\"}\n";
    let answer = env.weald_with_input(&["task", "import", "--json"], other);
    assert_eq!(answer.code, 1);
    assert_eq!(answer.json()["errors"][0]["code"], "task_exists");
    assert_eq!(answer.json()["updated"], json!(["gh-1"]));
    let first = &env.ok(&["task", "show", "1"])["task"];
    assert_eq!(
        (&first["subject"], &first["status"]),
        (&json!("good"), &json!("pending"))
    );
    let round = b"{\"id\":\"a\",\"subject\":\"a\",\"blocked_by\":[\"b\"]}\n\
        {\"id\":\"b\",\"subject\":\"b\",\"blocked_by\":[\"a\"]}\n{\"id\":\"c\",\"subject\":\"c\"}\n";
    let answer = env.weald_with_input(&["task", "import", "--json"], round);
    assert_eq!(
        (answer.code, answer.error_code().as_str()),
        (1, "dependency_cycle")
    );
    env.refused(&["task", "show", "c"], 4, "task_not_found");
    let list = "# Plan\n- [ ] Ship (id: ship)\n  - [x] Build\n  - [ ] Test (P1)\n";
    std::fs::write(env.repo().join("plan.md"), list).unwrap();
    assert_eq!(env.ok(&["task", "import", "plan.md"])["imported"], 3);
    let ship = env.ok(&["task", "show", "ship"]);
    assert_eq!(
        ship["task"]["waiting_for"]["open"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    env.refused(&["task", "import", "nosuch.md"], 4, "file");
}

#[test]
fn n7_n8_ids_are_checked_before_anything_happens() {
    let env = env();
    let refused = |bad: &str, code: (i32, &str)| {
        for args in [
            ["task", "show", "--json", "--", bad],
            ["task", "claim", "--json", "--", bad],
        ] {
            let answer = env.weald(&args);
            assert_eq!((answer.code, answer.error_code().as_str()), code, "{bad:?}");
        }
        let id = format!("--id={bad}");
        assert_eq!(env.weald(&["task", "add", "x", &id]).code, 2, "{bad:?}");
    };
    for bad in ["a;rm -rf .", "-x", "", "a b", "$(id)"] {
        refused(bad, (2, "invalid_value"));
    }
    assert!(!env.private().exists(), "nothing was written");
    // These may be a path, a branch or the name of a worktree; here is none.
    for bad in ["../x", "a/b", "0"] {
        refused(bad, (4, "task_not_found"));
    }
    assert_eq!(env.ok(&["task", "list"])["tasks"], json!([]));
}

#[test]
fn a_large_number_does_not_end_all_numbering() {
    let env = env();
    env.ok(&["task", "add", "large", "--id", "9007199254740991"]);
    assert_eq!(env.ok(&["task", "add", "next"])["task"]["id"], 1);
    assert_eq!(
        env.weald(&["task", "add", "x", "--id", "9223372036854775807"])
            .code,
        2
    );
}

#[test]
fn s2_t6_whoever_started_a_task_owns_it_until_they_end() {
    let env = env();
    env.ok(&["task", "add", "a"]);
    env.ok(&["session", "register", "alice"]);
    let mut start = env.weald_command(&["task", "start", "1"]);
    assert!(
        start
            .env("WEALD_SESSION", "alice")
            .output()
            .unwrap()
            .status
            .success()
    );
    env.refused(&["task", "claim", "1", "--session", "bob"], 5, "task_held");
    env.refused(
        &["session", "check", "--task", "1", "--session", "bob"],
        1,
        "task_contested",
    );
    env.ok(&["session", "end", "alice"]);
    env.refused(&["session", "heartbeat", "alice"], 1, "session_ended");
    env.ok(&["task", "claim", "1", "--session", "bob"]);
}
