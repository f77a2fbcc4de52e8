//! Phases: one agent after the other in one tree, each with a verdict; what fails goes back, what was done is not redone.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};

use serde_json::Value;
use weald_testkit::{Answer, TestEnv};

use crate::landing::show;
use crate::landing_gate::{set, wait_until};
use crate::trees_remove::repository;

/// Events of one kind about task 1, oldest first.
pub fn events(env: &TestEnv, kind: &str) -> Vec<Value> {
    let all = env.weald(&["events", "--task", "1", "--limit", "200", "--json"]);
    let lines = all
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let wanted = format!("dev.weald.{kind}");
    lines
        .filter(|event: &Value| event["type"] == wanted)
        .collect()
}

/// The agents of task 1 as they were when they were over, by role.
pub fn ended(env: &TestEnv) -> Vec<Value> {
    let over = events(env, "agent.exited").into_iter();
    over.map(|event| event["data"]["after"]["agent"].clone())
        .collect()
}

pub fn roles(env: &TestEnv) -> Vec<String> {
    let role = |agent: &Value| agent["role"].as_str().unwrap_or("land").to_owned();
    ended(env).iter().map(role).collect()
}

fn phase(env: &TestEnv, script: &str) -> Answer {
    env.weald(&["phase", "1", "--json", "--", "sh", "-c", script])
}

#[test]
fn p4_phases_share_a_tree_and_a_failure_goes_back_with_what_to_fix() {
    let env = repository();
    env.ok(&["task", "add", "Fix the login"]);
    let script = r#"
        echo "$WEALD_ROLE" >> order
        case $WEALD_ROLE in
        build) ! grep "say it twice" "$WEALD_PROMPT_FILE" || echo again >> order ;;
        review) if grep -q again order; then exit 0; fi
            echo '{"verdict":"FAIL","must_fix":["say it twice"],"notes":"no"}' > "$WEALD_VERDICT_FILE" ;;
        qa) echo '{"verdict":"FAIL","must_fix":[]}' > "$WEALD_VERDICT_FILE" ;;
        esac
        test -z "$(git status --porcelain | grep -i verdict)""#;
    let answer = phase(&env, script);
    assert_eq!(answer.code, 0, "{answer:#?}");
    let told = answer.json();
    assert_eq!(told["phase"]["outcome"], "passed");
    assert_eq!(told["task"]["status"], "completed");
    assert_eq!(told["landing"]["status"], "landed");
    let cleanup = &told["landing"]["cleanup"];
    assert_eq!(
        cleanup["directory"], "trashed",
        "nobody is there any more: {cleanup}"
    );
    let order = "plan\nbuild\nreview\nbuild\nagain\nreview\nqa\n";
    assert_eq!(show(&env, "order"), order);
    let agents = ended(&env);
    assert_eq!(
        roles(&env).join(" "),
        "plan build review build review qa land"
    );
    assert!(
        agents
            .iter()
            .all(|agent| agent["tree"] == agents[0]["tree"])
    );
    assert_eq!(agents[2]["verdict"]["must_fix"][0], "say it twice");
    assert_eq!(agents[5]["verdict"]["verdict"], "FAIL", "as it said");
}

#[test]
fn p4_three_failures_block_the_task_and_tell_its_owner() {
    let env = repository();
    env.ok(&["task", "add", "Never good"]);
    set(&env, "phase.list", "build,review");
    let script = r#"test $WEALD_ROLE != review || exit 7"#;
    let mut command = env.weald_command(&["phase", "1", "--json", "--", "sh", "-c", script]);
    command.env("WEALD_SESSION", "boss");
    let answer = Answer::of(command.output().unwrap());
    assert_eq!(answer.code, 1, "{answer:#?}");
    assert_eq!(answer.json()["phase"]["outcome"], "blocked");
    assert_eq!(roles(&env).join(" "), ["build review"; 3].join(" "));
    let task = &env.ok(&["task", "show", "1"])["task"];
    assert_eq!(task["status"], "blocked");
    let report = task["report"].as_str().unwrap();
    for part in [
        "review",
        "ended with 7",
        "weald agent logs a6",
        "weald phase 1",
    ] {
        assert!(report.contains(part), "{report}");
    }
    let inbox = env.ok(&["msg", "inbox", "--session", "boss"]);
    assert_eq!(inbox["messages"][0]["priority"], "urgent", "{inbox}");
    // Whoever goes on all the same goes back to the work, and is counted anew.
    assert_eq!(phase(&env, "echo x > x").code, 0);
    assert_eq!(roles(&env)[6..].join(" "), "build review land");
    env.refused(
        &["phase", "1", "--only", "nobody", "--", "true"],
        2,
        "bad_phase",
    );
}

#[test]
fn p4_one_phase_alone_lands_nothing_and_a_later_one_can_be_first() {
    let env = repository();
    env.ok(&["task", "add", "In parts"]);
    let answer = env.weald(&["phase", "1", "--only", "review", "--json", "--", "true"]);
    assert_eq!(answer.code, 0, "{answer:#?}");
    let task = &env.ok(&["task", "show", "1"])["task"];
    assert_eq!(
        (&task["status"], &task["owner"]),
        (&"pending".into(), &Value::Null)
    );
    let failing = env.weald(&["phase", "1", "--only", "qa", "--", "false"]);
    assert_eq!(failing.code, 1, "{failing:#?}");
    let script = "echo $WEALD_ROLE >> order";
    let rest = ["phase", "1", "--from", "review", "--", "sh", "-c", script];
    assert_eq!(env.weald(&rest).code, 0);
    assert_eq!(show(&env, "order"), "review\nqa\n");
}

#[test]
fn p4_commands_of_phases_come_from_the_configuration() {
    let env = repository();
    env.ok(&["task", "add", "By key"]);
    set(&env, "phase.list", "build,look");
    set(
        &env,
        "phase.commands",
        r#"["build: echo built > a", "look: grep -q 'Only look' $WEALD_PROMPT_FILE && cp a b"]"#,
    );
    set(&env, "phase.prompts", r#"["look: Only look."]"#);
    let answer = env.weald(&["phase", "1"]);
    assert_eq!(answer.code, 0, "{answer:#?}");
    assert_eq!(show(&env, "b"), "built\n");
}

#[test]
fn p4_a_verdict_is_a_small_plain_file_or_none() {
    let odd = [
        "ln -s $HOME/pass.json $WEALD_VERDICT_FILE",
        "mkfifo $WEALD_VERDICT_FILE",
        "mkdir $WEALD_VERDICT_FILE",
        "head -c 3000000 /dev/zero > $WEALD_VERDICT_FILE",
        "echo nonsense > $WEALD_VERDICT_FILE",
        "rm -rf $(dirname $WEALD_VERDICT_FILE); echo '{\"verdict\":\"FAIL\",\"must_fix\":[\"x\"]}' > $WEALD_VERDICT_FILE",
    ];
    for script in odd {
        let env = repository();
        env.ok(&["task", "add", "Odd"]);
        fs::write(env.home().join("pass.json"), r#"{"verdict":"PASS"}"#).unwrap();
        let answer = env.weald(&[
            "phase", "1", "--only", "review", "--json", "--", "sh", "-c", script,
        ]);
        assert_eq!(answer.code, 1, "{script}: {answer:#?}");
        assert_eq!(
            answer.json()["phase"]["stages"][0]["state"],
            "FAIL",
            "{script}"
        );
    }
}

/// A process that leads its own group, so that nothing of the test's is hit.
pub fn begin(env: &TestEnv, args: &[&str]) -> Child {
    let mut command = env.weald_command(args);
    command.process_group(0);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

fn kill(pid: u64) {
    let status = std::process::Command::new("kill")
        .args(["-9", &pid.to_string()])
        .status();
    assert!(status.unwrap().success());
}

#[test]
fn w9_after_a_kill_phases_go_on_behind_the_last_one_that_was_completed() {
    for go_on in ["phase", "resume"] {
        let env = repository();
        env.ok(&["task", "add", "Cut short"]);
        set(&env, "phase.list", "plan,build,review");
        let script =
            "echo $WEALD_ROLE >> order; test $WEALD_ROLE != build || test -e go || sleep 600";
        let mut child = begin(&env, &["phase", "1", "--", "sh", "-c", script]);
        // Of one that ends at once no start may be seen.
        wait_until(|| {
            let started = events(&env, "agent.started");
            let mut agents = started
                .iter()
                .map(|event| &event["data"]["after"]["agent"]["id"]);
            agents.any(|id| id == "a2")
        });
        let order = env.root().join("app.weald/cut-short/order");
        wait_until(|| fs::read_to_string(&order).is_ok_and(|order| order == "plan\nbuild\n"));
        child.kill().unwrap();
        child.wait().unwrap();
        let supervised = events(&env, "agent.supervised");
        kill(
            supervised[1]["data"]["after"]["agent"]["supervisor"]["pid"]
                .as_u64()
                .unwrap(),
        );
        wait_until(|| {
            let stages = env.ok(&["task", "show", "1"])["stages"].clone();
            stages[1]["state"] == "crashed"
        });
        let shown = env.ok(&["status", "cut-short"]);
        assert_eq!(shown["stages"][0]["state"], "PASS", "{shown}");
        let said = env.weald(&["show", "cut-short"]).stdout;
        assert!(said.contains("phases: plan PASS, build crashed"), "{said}");
        let tree = env.root().join("app.weald/cut-short");
        fs::write(tree.join("go"), "").unwrap();
        let answer = env.weald(&[go_on, "1", "--", "sh", "-c", script]);
        assert_eq!(answer.code, 0, "{answer:#?}");
        // The plan was done once, and its commit is there; the build was begun twice.
        assert_eq!(show(&env, "order"), "plan\nbuild\nbuild\nreview\n");
    }
}

#[test]
fn w9_a_phase_that_outlives_its_conductor_is_waited_for() {
    let env = repository();
    env.ok(&["task", "add", "Outlived"]);
    set(&env, "phase.list", "build,review");
    let script = "echo $WEALD_ROLE >> order; test $WEALD_ROLE = review || until test -e go; do sleep 0.05; done";
    let mut child = begin(&env, &["phase", "1", "--", "sh", "-c", script]);
    wait_until(|| events(&env, "agent.started").len() == 1);
    let second = env.weald(&["phase", "1", "--", "true"]);
    assert_ne!(second.code, 0, "somebody is at it: {second:#?}");
    child.kill().unwrap();
    child.wait().unwrap();
    let mut again = begin(&env, &["phase", "1", "--", "sh", "-c", script]);
    fs::write(env.root().join("app.weald/outlived/go"), "").unwrap();
    assert!(again.wait().unwrap().success());
    assert_eq!(show(&env, "order"), "build\nreview\n");
}
