//! The tools as people of other systems call them, by the official SDKs: their names, their stories, and what a lead has.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use weald_testkit::TestEnv;

use crate::landing::show;
use crate::mcp_client::McpClient;
use crate::mcp_sdks::{Kind, kinds};
use crate::trees_remove::repository;

fn step(tool: &str, arguments: Value) -> Value {
    json!({"tool": tool, "arguments": arguments})
}

/// Calls what a plan says with the first SDK that is here; nothing where there is none, which is said aloud.
fn played(env: &TestEnv, plan: &[Value]) -> Option<Vec<Value>> {
    let kind = kinds().into_iter().next()?;
    let told = Kind::told(kind.start(env, Some("lead"), &json!(plan)));
    let results = told["results"].as_array().unwrap().clone();
    assert_eq!(results.len(), plan.len());
    Some(results)
}

#[track_caller]
fn answer(result: &Value) -> &Value {
    assert_eq!(result["error"], false, "{result:#}");
    &result["answer"]
}

/// Calls with the names of other systems, two of them wrong.
fn seeds_calls() -> Vec<Value> {
    let wrong = json!({"name": "b", "discard_change": true});
    vec![
        step("create_task", json!({"subject": "one"})),
        step("create_task", json!({"subject": "two", "blockedBy": [1]})),
        step("task_create", json!({"subject": "three", "plan": "epic"})),
        step("create_worktree", json!({"name": "a"})),
        step("create_worktree", json!({"name": "b"})),
        step(
            "bind_task_to_worktree",
            json!({"task_id": 1, "worktree_name": "a"}),
        ),
        step(
            "task_bind_worktree",
            json!({"task_id": 3, "worktree": "b", "owner": "carol"}),
        ),
        step(
            "task_update",
            json!({"task_id": 1, "status": "in_progress", "owner": "bob"}),
        ),
        step("task_update", json!({"task_id": 1, "status": "completed"})),
        step("task_update", json!({"task_id": 3, "status": "pending"})),
        step("task_update", json!({"task_id": 2, "status": "deleted"})),
        step(
            "worktree_run",
            json!({"name": "b", "command": "echo x > left"}),
        ),
        step("remove_worktree", wrong),
        step(
            "remove_worktree",
            json!({"name": "b", "discard_changes": true, "force": true}),
        ),
        step(
            "remove_worktree",
            json!({"name": "b", "discard_changes": true}),
        ),
        step(
            "worktree_remove",
            json!({"name": "a", "complete_task": true}),
        ),
    ]
}

#[test]
fn y14_arguments_have_the_names_that_other_systems_gave_them() {
    for profile in ["classroom", "two-plane"] {
        let env = repository();
        env.ok(&["init", "--profile", profile]);
        let mut plan = seeds_calls();
        if profile == "two-plane" {
            plan.iter_mut().for_each(own_name);
        }
        if let Some(told) = played(&env, &plan) {
            // There binding starts a task.
            let bound = match profile {
                "two-plane" => "in_progress",
                _ => "pending",
            };
            judge_seeds(&told, bound);
        }
    }
}

/// The name of the same tool outside of the classroom.
fn own_name(step: &mut Value) {
    for (theirs, ours) in [
        ("create_task", "task_create"),
        ("create_worktree", "worktree_create"),
        ("bind_task_to_worktree", "task_bind_worktree"),
        ("remove_worktree", "worktree_remove"),
    ] {
        if step["tool"] == theirs {
            step["tool"] = json!(ours);
        }
    }
}

#[track_caller]
fn judge_seeds(told: &[Value], bound: &str) {
    let task = |number: usize, field: &str| answer(&told[number])["task"][field].clone();
    assert_eq!(task(1, "blocked_by"), json!([1]));
    assert_eq!(task(2, "plan"), "epic");
    assert_eq!(
        (task(5, "worktree"), task(5, "status")),
        (json!("a"), json!(bound))
    );
    assert_eq!(
        (task(6, "worktree"), task(6, "owner")),
        (json!("b"), json!("carol"))
    );
    assert_eq!(
        (task(7, "status"), task(7, "owner")),
        (json!("in_progress"), json!("bob"))
    );
    assert_eq!(task(8, "status"), "completed");
    assert_eq!(
        (task(9, "status"), task(9, "owner")),
        (json!("pending"), Value::Null)
    );
    assert_eq!(task(10, "status"), "cancelled");
    // What is no name of anything is refused, with the nearest one.
    for (number, hint) in [
        (12, "did you mean force? It takes: name, "),
        (13, "give one of them"),
    ] {
        let error = &told[number]["answer"]["error"];
        assert_eq!(error["code"], "bad_arguments", "{error:#}");
        assert!(
            error["hint"].as_str().unwrap().starts_with(hint),
            "{error:#}"
        );
    }
    let removed = answer(&told[14]);
    assert_eq!(removed["outcome"], "trashed", "{removed:#}");
    let restore = removed["restore"].as_str().unwrap();
    assert!(
        restore.starts_with("worktree_restore {\"name\":"),
        "{restore}"
    );
    // A task that is completed already is no reason to keep its worktree.
    assert_eq!(answer(&told[15])["task"]["status"], "completed");
}

/// What a teammate does: waits until both are there, works where it is led, reports, and writes to the lead.
const MATE: &str = r#"weald msg inbox --consume --wait 60s >/dev/null
sed -n 's/^You are .*/&/p' "$WEALD_PROMPT_FILE" > "who-$WEALD_TASK"
grep -c 'Ask before you rename' "$WEALD_PROMPT_FILE" >> "who-$WEALD_TASK"
pwd >> "who-$WEALD_TASK"
git add -A; git commit -qm "work of $WEALD_SESSION"
weald msg send lead "task $WEALD_TASK is done"
weald task done --report "by $WEALD_SESSION""#;

/// The story of the classroom, as its lead calls it.
fn classroom_calls() -> Vec<Value> {
    let mate = |name: &str, role: &str| {
        let prompt = "Ask before you rename anything.";
        step(
            "spawn_teammate",
            json!({"name": name, "role": role, "prompt": prompt, "command": MATE}),
        )
    };
    vec![
        step("create_task", json!({"subject": "the backend"})),
        step("create_task", json!({"subject": "the frontend"})),
        step("create_worktree", json!({"name": "lane-1", "task_id": 1})),
        step("create_worktree", json!({"name": "lane-2", "task_id": 2})),
        mate("alice", "backend developer"),
        mate("bob", "frontend developer"),
        step("send_message", json!({"to": "alice", "content": "go"})),
        step("send_message", json!({"to": "bob", "content": "go"})),
        step("wait_agents", json!({"timeout_seconds": 60})),
        step("list_tasks", json!({})),
        step("check_inbox", json!({})),
        step("request_shutdown", json!({"teammate": "alice"})),
        step("request_shutdown", json!({"teammate": "bob"})),
        step("land", json!({"name": "lane-1"})),
        step("land", json!({"name": "lane-2"})),
        step("remove_worktree", json!({"name": "lane-1"})),
        step("keep_worktree", json!({"name": "lane-2"})),
        step(
            "spawn_teammate",
            json!({"name": "carol", "role": "tester", "prompt": "Test.", "command": "true"}),
        ),
        step("request_shutdown", json!({"teammate": "carol"})),
        step("create_task", json!({"subject": "the docs"})),
        step(
            "spawn_teammate",
            json!({"name": "dora", "role": "writer", "prompt": "Ask before you rename anything.", "task_id": 3,
                "command": "sed -n 's/^You are .*/&/p' \"$WEALD_PROMPT_FILE\" > who-3; git add -A; git commit -qm docs"}),
        ),
        step("wait_agents", json!({"timeout_seconds": 60})),
        step("land", json!({"name": "3"})),
    ]
}

#[test]
fn y15_alice_and_bob_claim_by_themselves_and_the_lead_has_nothing_but_mcp() {
    let env = repository();
    env.ok(&["init", "--profile", "classroom"]);
    let Some(told) = played(&env, &classroom_calls()) else {
        return;
    };
    let claims: Vec<_> = [4, 5]
        .map(|number| &answer(&told[number])["agents"][0])
        .to_vec();
    for (agent, name) in claims.iter().zip(["alice", "bob"]) {
        assert_eq!(agent["session"], name, "{agent:#}");
        assert_eq!(agent["spawned_by"], "lead", "{agent:#}");
    }
    assert_eq!(answer(&told[4])["worker"]["name"], "alice");
    let board = answer(&told[9])["tasks"].as_array().unwrap();
    for (number, task) in board.iter().enumerate() {
        assert_eq!(task["status"], "completed", "{task:#}");
        // Whoever claimed it worked in the worktree that it was bound to, with its own role.
        let id = task["id"].as_u64().unwrap();
        let agent = claims
            .iter()
            .find(|agent| agent["task"] == id)
            .expect("each has one");
        let (name, role) = match agent["session"].as_str().unwrap() {
            "alice" => ("alice", "backend developer"),
            name => (name, "frontend developer"),
        };
        let lane = env.repo().join(format!(".worktrees/lane-{}", number + 1));
        let who = format!(
            "You are {name}. Your role: {role}.\n1\n{}\n",
            lane.display()
        );
        assert_eq!(show(&env, &format!("who-{id}")), who);
        assert_eq!(task["report"], format!("by {name}"));
    }
    let inbox = answer(&told[10])["messages"].as_array().unwrap();
    let mut words: Vec<_> = inbox
        .iter()
        .map(|message| message["text"].as_str().unwrap())
        .collect();
    words.sort_unstable();
    assert_eq!(words, ["task 1 is done", "task 2 is done"]);
    assert_eq!(answer(&told[15])["outcome"], "trashed");
    assert_eq!(answer(&told[16])["outcome"], "kept");
    // Without a task that is ready the lead is told, and the teammate waits.
    let carol = answer(&told[17]);
    assert_eq!(carol["agents"], json!([]));
    assert!(
        carol["notices"][0]
            .as_str()
            .unwrap()
            .starts_with("no task is ready; carol waits"),
        "{carol:#}"
    );
    // One that is for a single task has its role, too.
    assert_eq!(answer(&told[20])["agents"][0]["session"], "dora");
    assert_eq!(show(&env, "who-3"), "You are dora. Your role: writer.\n");
    ended(&env, &["alice", "bob", "carol"]);
}

/// Waits until sessions have said goodbye.
fn ended(env: &TestEnv, names: &[&str]) {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let listed = env.ok(&["session", "list"])["sessions"].clone();
        let open = |name: &&&str| {
            let mut all = listed.as_array().unwrap().iter();
            all.any(|session| session["name"] == ***name && session["ended_at"].is_null())
        };
        let Some(name) = names.iter().find(open) else {
            return;
        };
        assert!(Instant::now() < deadline, "{name} does not end: {listed:#}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn server(env: &TestEnv, role: &str, session: &str) -> McpClient {
    let mut client = McpClient::start(env, &["--role", role, "--session", session]);
    client.initialize();
    client
}

#[test]
fn y16_a_lead_removes_a_worktree_that_its_teammate_refers_to() {
    let env = repository();
    let mut lead = server(&env, "lead", "lead");
    let mut alice = server(&env, "teammate", "alice");
    lead.call("task_create", json!({"subject": "hers"}));
    let tree = alice.call("task_claim", json!({}))["tree"]["name"].clone();
    let refused = lead.refused("worktree_remove", json!({"name": tree}), "tree_referenced");
    let hint = format!(
        "worktree_remove {}",
        json!({"name": tree, "referenced": true})
    );
    assert_eq!(refused["hint"], hint, "{refused:#}");
    let removed = lead.call("worktree_remove", json!({"name": tree, "referenced": true}));
    assert_eq!(removed["outcome"], "trashed", "{removed:#}");
    let listed = lead.call("trash_list", json!({}));
    assert_eq!(listed["trash"][0]["name"], tree, "{listed:#}");
    lead.call("worktree_restore", json!({"name": tree}));
    // One that the lead itself started, and that works no more, need not be named.
    lead.call("task_create", json!({"subject": "his"}));
    let spawn = json!({"task_id": 2, "name": "bob", "command": "echo x > f; git add f; git commit -qm f", "land": false});
    let his = lead.call("agent_spawn", spawn)["agents"][0]["tree"].clone();
    lead.call("wait_agents", json!({"agents": ["bob"]}));
    env.ok(&["session", "register", "bob"]);
    env.ok(&[
        "session",
        "heartbeat",
        "bob",
        "--tree",
        his.as_str().unwrap(),
    ]);
    env.refused(
        &["rm", his.as_str().unwrap(), "--discard"],
        1,
        "tree_referenced",
    );
    let removed = lead.call("worktree_remove", json!({"name": his, "force": true}));
    assert_eq!(removed["outcome"], "trashed", "{removed:#}");
}

#[test]
fn y16_a_lead_pauses_restarts_and_rescues_agents() {
    let env = repository();
    let mut lead = server(&env, "lead", "lead");
    lead.call("task_create", json!({"subject": "one"}));
    let spawn = json!({"task_id": 1, "name": "bob", "command": "echo half > f; sleep 60"});
    lead.call("agent_spawn", spawn);
    let state = |answer: &Value| answer["agents"][0]["state"].as_str().unwrap().to_owned();
    assert_eq!(
        state(&lead.call("agent_pause", json!({"agent": "bob"}))),
        "paused"
    );
    assert_eq!(
        state(&lead.call("agent_resume", json!({"agent": "bob"}))),
        "running"
    );
    let refused = lead.refused("agent_restart", json!({"agent": "bob"}), "agent_running");
    let hint = "to stop it first: agent_restart {\"agent\":\"a1\",\"force\":true}";
    assert_eq!(refused["hint"], hint, "{refused:#}");
    let again = lead.call("agent_restart", json!({"agent": "bob", "force": true}));
    assert_eq!(again["agents"][0]["id"], "a2", "{again:#}");
    lead.call("agent_stop", json!({"agent": "bob", "wait": true}));
    let found = lead.call("rescue", json!({"task_id": 1}))["rescue"].clone();
    assert_eq!(found["uncommitted"][0]["path"], "f", "{found:#}");
    assert_eq!(
        found["choices"][0], "rescue {\"task_id\":1,\"choice\":\"continue\"}",
        "{found:#}"
    );
    let begun = lead.call(
        "rescue",
        json!({"task_id": 1, "choice": "continue", "command": "git add f; git commit -qm f"}),
    );
    assert_eq!(begun["agent"]["resumes"], "a2", "{begun:#}");
    let waited = lead.call("wait_agents", json!({}));
    assert_eq!(waited["timed_out"], false, "{waited:#}");
    assert_eq!(show(&env, "f"), "half\n");
}

#[test]
fn y16_a_lead_races_agents_gives_tasks_up_and_sees_what_a_clean_up_would_take() {
    let env = repository();
    let mut lead = server(&env, "lead", "lead");
    lead.call("task_create", json!({"subject": "one"}));
    let command = "echo $WEALD_ROLE > raced";
    let race = json!({"task_id": 1, "count": 2, "command": command});
    let begun = lead.call("race", race)["race"]["entries"].clone();
    assert_eq!(begun.as_array().unwrap().len(), 2, "{begun:#}");
    lead.call("wait_agents", json!({}));
    let shown = lead.call("race_show", json!({"task_id": 1}))["race"]["entries"].clone();
    assert_eq!(shown[1]["state"], "done", "{shown:#}");
    // What the refusal names is a call, and that lands it.
    env.ok(&["config", "set", "landing.requires", "report"]);
    let pick = json!({"task_id": 1, "entry": "b"});
    let refused = lead.refused("race_pick", pick, "not_ready_to_land");
    let hint = r#"race_pick {"task_id":1,"entry":"b","report":"TEXT"}"#;
    assert_eq!(refused["hint"], hint, "{refused:#}");
    let report = json!({"task_id": 1, "entry": "b", "report": "ran it"});
    let picked = lead.call("race_pick", report);
    assert_eq!(picked["task"]["status"], "completed", "{picked:#}");
    assert_eq!(picked["task"]["report"], "ran it", "{picked:#}");
    assert_eq!(show(&env, "raced"), "race:b\n");
    lead.call("task_create", json!({"subject": "two"}));
    let tree = lead.call("task_claim", json!({}))["tree"]["name"].clone();
    let failed = lead.call("task_fail", json!({"reason": "no way"}));
    assert_eq!(failed["task"]["status"], "failed", "{failed:#}");
    let clean = lead.call("clean_preview", json!({"min_age": "0"}));
    assert_eq!(clean["applied"], false, "{clean:#}");
    assert_eq!(clean["skipped"][0]["tree"], tree, "{clean:#}");
}

#[test]
fn y15_a_task_that_somebody_works_on_is_handed_over_when_it_was_given_back() {
    let env = repository();
    let mut lead = server(&env, "lead", "lead");
    let mut alice = server(&env, "teammate", "alice");
    lead.call("task_create", json!({"subject": "hers"}));
    lead.call("task_create", json!({"subject": "his"}));
    alice.call("task_claim", json!({"task_id": 1}));
    let carol = |task: u64| json!({"task_id": task, "owner": "carol"});
    let refused = lead.refused("task_update", carol(1), "task_held");
    let ask = r#"message_send {"to":"alice","text":"please release task 1"}"#;
    assert!(
        refused["hint"].as_str().unwrap().ends_with(ask),
        "{refused:#}"
    );
    env.ok(&["task", "start", "2", "--owner", "bob"]);
    let refused = lead.refused("task_update", carol(2), "task_held");
    let hint = r#"if bob is gone: task_update {"task_id":2,"action":"release"}"#;
    assert_eq!(refused["hint"], hint, "{refused:#}");
    lead.call("task_update", json!({"task_id": 2, "action": "release"}));
    let given = lead.call("task_update", carol(2));
    assert_eq!(given["task"]["owner"], "carol", "{given:#}");
}
