//! `weald mcp` as others see it: the official SDKs of MCP list every tool, call it and check what it answers.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};

use serde_json::{Value, json};
use weald_testkit::{Answer, McpSdk, TestEnv, full_scale, skipped};

use crate::mcp::TOOLS;
use crate::mcp_ends::running;
use crate::trees_remove::{commit, grow, repository};

/// A kind of client: an SDK, and how it speaks.
pub struct Kind {
    sdk: McpSdk,
    mode: &'static str,
    /// What the protocol's version has to be.
    version: &'static str,
}

/// Every kind of client that this machine can have; the others are said aloud. Each SDK once, unless all is asked for.
pub fn kinds() -> Vec<Kind> {
    let target = Path::new(env!("CARGO_BIN_EXE_weald")).ancestors().nth(2);
    let target = target.unwrap();
    let clients = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients");
    let python = [("legacy", "2025-11-25"), ("auto", "2026-07-28")];
    let typescript = [
        ("v1", "v1"),
        ("legacy", "2025-11-25"),
        ("2026-07-28", "2026-07-28"),
    ];
    let mut kinds = Vec::new();
    type Find = fn(&Path, &Path) -> Result<McpSdk, String>;
    let sdks: [(&str, Find, &[_]); 2] = [
        ("Python", McpSdk::python, &python),
        ("TypeScript", McpSdk::typescript, &typescript),
    ];
    for (name, find, modes) in sdks {
        let is_told = |mode: &str| full_scale() || mode != "legacy";
        for (mode, version) in modes.iter().filter(|(mode, _)| is_told(mode)) {
            match find(target, &clients) {
                Ok(sdk) => kinds.push(Kind { sdk, mode, version }),
                Err(why) => skipped(&format!("the {name} SDK of MCP, {mode}: {why}")),
            }
        }
    }
    kinds
}

impl Kind {
    /// Starts a client that calls what the plan says.
    pub fn start(&self, env: &TestEnv, session: Option<&str>, plan: &Value) -> Child {
        let name = format!("plan-{}-{}.json", self.mode, session.unwrap_or_default());
        let file = env.home().join(name);
        fs::write(&file, plan.to_string()).unwrap();
        let (program, script) = self.sdk.start();
        let mut command = env.command(program);
        command.args(script).arg(self.mode).arg(file);
        command.args([env!("CARGO_BIN_EXE_weald"), "mcp"]);
        command.args(session.iter().flat_map(|name| ["--session", name]));
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    /// What such a client tells.
    #[track_caller]
    pub fn told(child: Child) -> Value {
        let answer = Answer::of(child.wait_with_output().unwrap());
        assert_eq!(answer.code, 0, "{answer:#?}");
        answer.json()
    }
}

/// Calls of every tool that succeed one after the other in a new repository.
fn plan() -> Vec<(&'static str, Value)> {
    vec![
        (
            "task_create",
            json!({"subject": "one", "description": "words", "labels": ["x"]}),
        ),
        ("task_create", json!({"subject": "two", "blocked_by": [1]})),
        ("task_list", json!({"status": ["ready"]})),
        ("task_claim", json!({})),
        ("task_get", json!({})),
        (
            "task_update",
            json!({"task_id": 2, "priority": "P1", "add_labels": ["y"]}),
        ),
        (
            "worktree_run",
            json!({"command": "echo new > new.py; git add -A; git commit -qm new; git status -sb"}),
        ),
        ("worktree_status", json!({})),
        ("worktree_diff", json!({"patch": true})),
        ("worktree_sync", json!({})),
        ("worktree_keep", json!({})),
        ("conflicts", json!({})),
        ("land", json!({"dry_run": true})),
        (
            "task_complete",
            json!({"report": "made it", "verified": "passed", "verified_by": "eyes"}),
        ),
        ("land", json!({"name": "one"})),
        ("land_status", json!({})),
        (
            "worktree_create",
            json!({"name": "other", "base_ref": "main"}),
        ),
        (
            "task_bind_worktree",
            json!({"task_id": "2", "name": "other"}),
        ),
        ("worktree_list", json!({"fresh": true})),
        ("worktree_remove", json!({"name": "other"})),
        ("worktree_restore", json!({"name": "other"})),
        ("worktree_events", json!({"name": "other", "limit": 50})),
        (
            "ask",
            json!({"to": "lead", "text": "to myself?", "timeout_seconds": 0}),
        ),
        ("reply", json!({"message_id": 1, "text": "yes"})),
        ("message_send", json!({"to": "lead", "text": "and this"})),
        ("message_inbox", json!({})),
    ]
}

/// The same of those about agents, after the first ones.
fn agents_plan() -> Vec<(&'static str, Value)> {
    vec![
        (
            "agent_spawn",
            json!({"task_id": 2, "command": "sleep 60", "name": "carol", "force": true}),
        ),
        ("check_agents", json!({})),
        ("agent_pulse", json!({"agent": "carol"})),
        ("agent_diff", json!({"agent": "carol", "patch": true})),
        ("agent_steer", json!({"agent": "carol", "text": "faster"})),
        ("agent_pause", json!({"agent": "carol"})),
        ("agent_resume", json!({"agent": "carol"})),
        ("agent_stop", json!({"agent": "carol", "wait": true})),
        (
            "wait_agents",
            json!({"agents": ["carol"], "timeout_seconds": 30}),
        ),
        ("rescue", json!({"task_id": 2})),
        ("agent_restart", json!({"agent": "carol"})),
        ("agent_stop", json!({"agent": "carol", "wait": true})),
        ("clean_preview", json!({"min_age": "0"})),
        ("worktree_remove", json!({"name": "other"})),
        ("trash_list", json!({})),
        ("task_create", json!({"subject": "three"})),
        (
            "race",
            json!({"task_id": 3, "count": 2, "command": "echo $WEALD_ROLE > raced"}),
        ),
        ("wait_agents", json!({"timeout_seconds": 30})),
        ("race_show", json!({"task_id": 3})),
        ("race_pick", json!({"task_id": 3, "entry": "a"})),
        ("task_create", json!({"subject": "four"})),
        ("race", json!({"task_id": 4, "command": "sleep 60"})),
        ("race_drop", json!({"task_id": 4})),
        ("task_claim", json!({"task_id": 4})),
        ("task_fail", json!({"reason": "it can't be done"})),
    ]
}

/// Calls that are refused, and how.
fn mistakes() -> [(&'static str, Value, &'static str); 4] {
    [
        (
            "task_create",
            json!({"subject": "x".repeat(10 << 20)}),
            "argument_too_long",
        ),
        ("task_create", json!({"subject": 7}), "bad_arguments"),
        (
            "task_create",
            json!({"subject": "x", "colour": "red"}),
            "bad_arguments",
        ),
        ("task_get", json!({"task_id": 99}), "task_not_found"),
    ]
}

#[test]
fn p13_the_official_sdks_call_every_tool_and_find_its_answers_valid() {
    let step = |tool: &str, arguments: &Value| json!({"tool": tool, "arguments": arguments});
    let mistakes = mistakes();
    let mut steps = vec![step("no_such_tool", &json!({}))];
    steps.extend(
        mistakes
            .iter()
            .map(|(tool, arguments, _)| step(tool, arguments)),
    );
    let (wrong, good) = (steps.len(), [plan(), agents_plan()].concat());
    let planned: BTreeSet<_> = good.iter().map(|(tool, _)| *tool).collect();
    assert_eq!(planned, TOOLS.into_iter().collect());
    steps.extend(good.iter().map(|(tool, arguments)| step(tool, arguments)));
    let plan = json!(steps);
    let kinds = kinds();
    let envs: Vec<_> = kinds.iter().map(|_| repository()).collect();
    let clients: Vec<_> = kinds
        .iter()
        .zip(&envs)
        .map(|(kind, env)| kind.start(env, Some("lead"), &plan))
        .collect();
    for ((kind, env), client) in kinds.iter().zip(&envs).zip(clients) {
        let told = Kind::told(client);
        assert_eq!(told["version"], kind.version);
        let listed = told["tools"].as_array().unwrap();
        assert!(
            TOOLS.iter().all(|tool| listed.contains(&json!(tool))),
            "{listed:?}"
        );
        let results = told["results"].as_array().unwrap();
        let unknown = results[0]["protocol_error"].as_str().unwrap();
        assert!(unknown.contains("there is no tool"), "{unknown}");
        for (result, (_, _, code)) in results[1..].iter().zip(&mistakes) {
            assert_eq!(result["error"], true, "{}: {result:#}", kind.mode);
            assert_eq!(result["answer"]["error"]["code"], *code, "{}", kind.mode);
        }
        for result in &results[wrong..] {
            assert_eq!(result["error"], false, "{}: {result:#}", kind.mode);
        }
        assert!(env.repo().join("new.py").exists());
        let task = env.ok(&["task", "show", "1"]);
        assert_eq!(task["task"]["status"], "completed");
    }
}

/// Cancelled in the server's process (an inbox, agents) as in one of its own (a landing): what waited has ended, and what
/// was waited for goes on.
#[test]
fn p13_the_official_sdks_hear_how_far_a_call_is_and_cancel_it() {
    let kinds = kinds();
    let envs: Vec<_> = kinds.iter().map(|_| repository()).collect();
    let started = kinds.iter().zip(&envs).enumerate();
    let clients: Vec<_> = started
        .map(|(number, (kind, env))| {
            let sleep = format!("sleep 64{number}.{}", std::process::id());
            let gate = format!("echo half way; {sleep}");
            env.ok(&["config", "set", "gate.command", &gate]);
            commit(env, &grow(env, "a", "sealed"), "mine", "m\n");
            env.ok(&["task", "add", "one"]);
            let steps = json!([
                {"tool": "worktree_create", "arguments": {"name": "b"}},
                {"tool": "land", "arguments": {"name": "a"}, "cancel_once": "half way"},
                {"tool": "land_status", "arguments": {}, "until": "dropped"},
                {"tool": "agent_spawn", "arguments": {"task_id": 1, "command": "sleep 600", "name": "carol"}},
                {"tool": "wait_agents", "arguments": {"timeout_seconds": 600}, "cancel_once": "0 of 1 ended"},
                {"tool": "check_agents", "arguments": {}},
                {"tool": "message_inbox", "arguments": {"wait_seconds": 600}, "cancel_once": "waiting for a message"},
                {"tool": "message_send", "arguments": {"to": "lead", "text": "still there?"}},
                {"tool": "message_inbox", "arguments": {}},
                {"tool": "agent_stop", "arguments": {"agent": "carol", "wait": true}},
            ]);
            (sleep, kind.start(env, Some("lead"), &steps))
        })
        .collect();
    for ((kind, env), (sleep, client)) in kinds.iter().zip(&envs).zip(clients) {
        let told = Kind::told(client);
        let results = told["results"].as_array().unwrap();
        let names = ["land", "wait_agents", "message_inbox"];
        let cancelled = results.iter().filter(|result| result["cancelled"] == true);
        let cancelled: Vec<_> = cancelled.map(|result| &result["tool"]).collect();
        assert_eq!(cancelled, names, "{}: {told:#}", kind.mode);
        // What comes just before an answer may be dropped by a client, so the short calls are not asked.
        let progress = results[1]["progress"].to_string();
        assert!(progress.contains("half way"), "{}: {told:#}", kind.mode);
        let agents = &results[5]["answer"]["agents"];
        assert_eq!(agents[0]["status"], "running", "{told:#}");
        let messages = &results[8]["answer"]["messages"];
        assert_eq!(messages[0]["text"], "still there?", "{told:#}");
        // Nothing landed, nothing is left running, and the queue is free.
        let queue = env.ok(&["queue", "status", "--all"]);
        assert_eq!(queue["queue"][0]["outcome"], "dropped");
        assert_eq!(queue["holder"], Value::Null);
        assert!(!env.repo().join("mine").exists());
        assert_eq!(running(&sleep), 0);
        env.ok(&["config", "set", "gate.command", "true"]);
        env.ok(&["land", "a"]);
    }
}

#[test]
fn p13_eight_clients_at_once_claim_eight_tasks() {
    let env = repository();
    for number in 1..=8 {
        env.ok(&["task", "add", &format!("task {number}")]);
    }
    let claim = json!([{"tool": "task_claim", "arguments": {}}, {"tool": "worktree_run", "arguments": {"command": "pwd"}}]);
    let kinds = kinds();
    if kinds.is_empty() {
        return;
    }
    // Under names: what a server without one holds is free again as soon as it ends.
    let clients: Vec<_> = (0..8)
        .map(|number| {
            let name = format!("client-{number}");
            kinds[number % kinds.len()].start(&env, Some(&name), &claim)
        })
        .collect();
    let mut tasks = BTreeSet::new();
    for client in clients {
        let told = Kind::told(client);
        let (claimed, ran) = (&told["results"][0]["answer"], &told["results"][1]["answer"]);
        let path = claimed["tree"]["path"]
            .as_str()
            .unwrap_or_else(|| panic!("{told:#}"));
        assert_eq!(ran["output"], format!("{path}\n"), "{told:#}");
        tasks.insert(claimed["task"]["id"].as_u64().unwrap());
    }
    assert_eq!(tasks, (1..=8).collect());
}
