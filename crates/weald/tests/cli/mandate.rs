//! Landing needs a mandate, and a run is nobody: what runs in a worktree lands only what the person's command lands, and
//! speaks for itself alone.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use weald_testkit::{Answer, TestEnv};

use crate::broker::{LEVELS, agent_field, field, weald};
use crate::in_agent::{InAgent, begin, begin_by, ended};
use crate::landing::rev;
use crate::landing_gate::{log_of, set};
use crate::trees_remove::repository;
use crate::work::status;

const COMMIT: &str = "echo x > stolen; git add stolen; git -c user.name=a -c user.email=a@example.com commit -qm stolen";

/// Tries every way to land from inside; each has to name what the person types.
#[track_caller]
fn lands_nothing(env: &TestEnv, agent: &mut InAgent, command: &str) {
    let before = rev(env, "main");
    agent.sh(COMMIT);
    let judge = |way: &str, error: &Value| {
        assert_eq!(error["code"], "no_mandate", "{way}: {error:#}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("no mandate to land"), "{way}: {message}");
        assert!(message.contains("kept in worktree"), "{way}: {message}");
        let hint = error["hint"].as_str().unwrap();
        assert!(hint.ends_with(command), "{way}: {hint}");
    };
    for args in [
        &["land"][..],
        &["land", "--no-wait"],
        &["land", "--report", "x"],
    ] {
        judge(&args.join(" "), &agent.refused(args, "no_mandate"));
    }
    for arguments in [json!({}), json!({"no_wait": true}), json!({"report": "x"})] {
        let error = agent.mcp("land", arguments.clone()).unwrap_err();
        judge(&format!("land {arguments}"), &error);
    }
    assert_eq!(rev(env, "main"), before);
    assert_eq!(env.ok(&["queue"])["queue"], json!([]), "nothing is queued");
    assert!(!env.repo().join("stolen").exists());
}

#[test]
fn x15_a_plain_run_lands_nothing_also_where_its_caller_holds_the_task() {
    for level in LEVELS {
        let env = field();
        let child = begin(&env, &["run", "fix", "--sandbox", level]);
        let mut agent = InAgent::at(&env, "fix");
        lands_nothing(&env, &mut agent, "weald land fix");
        agent.exit(0);
        assert_eq!(ended(child).code, 0);
        assert!(!env.repo().join("stolen").exists());
        // What it committed is kept, and the person lands it.
        let landed = env.ok(&["land", "fix"]);
        assert_eq!(landed["landings"][0]["outcome"], "landed", "{level}");
    }
}

#[test]
fn x15_an_agent_whose_work_is_to_be_kept_lands_nothing() {
    for (key, flags) in [("true", &["--no-land"][..]), ("false", &[])] {
        let env = agent_field();
        set(&env, "work.land", key);
        let child = begin(&env, &[&["work", "1"], flags].concat());
        let mut agent = InAgent::at(&env, "fix");
        // What leads to an end leads to no landing either.
        agent.ok(&["task", "done", "--report", "done"]);
        lands_nothing(&env, &mut agent, "weald land fix");
        let again = agent.mcp("task_complete", json!({"report": "done"}));
        assert_eq!(again.unwrap_err()["code"], "already_reported");
        agent.exit(0);
        let answer = ended(child);
        assert_eq!(answer.code, 0, "{answer:#?}");
        assert_eq!(status(&env, "1"), "completed");
        assert!(!env.repo().join("stolen").exists());
        assert!(env.root().join("app.weald/fix/stolen").exists());
    }
}

#[test]
fn x15_a_phase_lands_nothing_before_the_last_pass() {
    let env = agent_field();
    let child = begin(&env, &["phase", "1", "--only", "build"]);
    let mut agent = InAgent::at(&env, "fix");
    lands_nothing(&env, &mut agent, "weald phase 1");
    agent.exit(0);
    let answer = ended(child);
    assert_eq!(answer.code, 0, "{answer:#?}");
    assert!(!env.repo().join("stolen").exists());
}

#[test]
fn x15_an_entry_of_a_race_lands_nothing_before_it_is_picked() {
    let env = repository();
    env.ok(&["task", "add", "Fix it"]);
    let child = begin(&env, &["race", "1", "-n", "2"]);
    let mut agent = InAgent::at(&env, "fix-it-a");
    let other = InAgent::at(&env, "fix-it-b");
    lands_nothing(&env, &mut agent, "weald race pick 1 fix-it-a");
    agent.exit(0);
    other.exit(0);
    let answer = ended(child);
    assert_eq!(answer.code, 0, "{answer:#?}");
    assert!(!env.repo().join("stolen").exists());
    let picked = env.ok(&["race", "pick", "1", "fix-it-a"]);
    assert_eq!(picked["landing"]["status"], "landed", "{picked}");
}

/// They have no broker: there is nobody to ask.
#[test]
fn x15_set_up_gates_and_hooks_have_nobody_to_ask() {
    let env = repository();
    fs::copy(env!("CARGO_BIN_EXE_weald"), weald(&env)).unwrap();
    let own = weald(&env);
    let ways = "W land --json; W land --no-wait --json; W task done 1 --json; \
        printf '%s\\n' '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}' \
        '{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}' \
        '{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"task_complete\",\"arguments\":{\"task_id\":1}}}' | W mcp; \
        env | grep -c 'WEALD_BROKER\\|WEALD_SESSION\\|WEALD_TOKEN'; true"
        .replace("W ", &format!("{} ", own.display()));
    let script = env.home().join("ways.sh");
    fs::write(&script, &ways).unwrap();
    let line = format!("sh {} > said 2>&1", script.display());
    env.ok(&["task", "add", "Fix it"]);
    env.ok(&["config", "set", "setup.commands", &line]);
    set(
        &env,
        "gate.command",
        &format!("sh {} >&2; true", script.display()),
    );
    let mut command = env.weald_command(&["new", "fix", "--task", "1", "--json"]);
    let made = command
        .env("WEALD_SESSION", "alice")
        .env("WEALD_TOKEN", "1");
    let made = Answer::of(made.output().unwrap());
    assert_eq!(made.code, 0, "{made:#?}");
    let tree = env.root().join("app.weald/fix");
    let said = fs::read_to_string(tree.join("said")).unwrap();
    judge_nobody("set-up", &said);
    fs::remove_file(tree.join("said")).unwrap();
    let before = rev(&env, "main");
    assert_eq!(env.weald(&["run", "fix", "--", "sh", "-c", COMMIT]).code, 0);
    assert_eq!(rev(&env, "main"), before);
    let landed = env.ok(&["land", "fix", "--keep"]);
    assert_eq!(landed["landings"][0]["outcome"], "landed", "{landed}");
    judge_nobody("gate", &log_of(&landed["landings"][0]));
    let hook = env.repo().join(".git/hooks/pre-commit");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    let lines = format!("#!/bin/sh\nsh {} > hooked 2>&1\n", script.display());
    fs::write(&hook, lines).unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(tree.join("left"), "x\n").unwrap();
    env.ok(&["land", "fix", "--keep", "--commit=all"]);
    let said = fs::read_to_string(tree.join("hooked")).unwrap();
    judge_nobody("hook", &said);
}

#[track_caller]
fn judge_nobody(place: &str, said: &str) {
    let count = said.matches("inside_sandbox").count();
    assert_eq!(count, 4, "{place}: {said}");
    let last = said
        .lines()
        .rev()
        .find(|line| line.trim().parse::<u32>().is_ok());
    assert_eq!(last.map(str::trim), Some("0"), "{place}: {said}");
}

#[test]
fn x15_with_a_mandate_an_agent_lands_by_command_and_by_tool() {
    let env = agent_field();
    let child = begin(&env, &["work", "1"]);
    let mut agent = InAgent::at(&env, "fix");
    agent.sh(&COMMIT.replace("stolen", "first"));
    assert_eq!(agent.ok(&["land"])["landings"][0]["outcome"], "landed");
    agent.sh(&COMMIT.replace("stolen", "second"));
    let landed = agent.mcp("land", json!({})).unwrap();
    assert_eq!(landed["landings"][0]["outcome"], "landed", "{landed}");
    assert!(env.repo().join("first").exists() && env.repo().join("second").exists());
    agent.exit(0);
    assert_eq!(ended(child).code, 0);
}

/// A mandate ends with the run: what the agent left in the queue does not land when it failed.
#[test]
fn x15_what_an_agent_queued_is_withdrawn_when_it_ends() {
    let env = agent_field();
    env.ok(&["queue", "pause"]);
    let child = begin(&env, &["work", "1"]);
    let mut agent = InAgent::at(&env, "fix");
    agent.sh(COMMIT);
    agent.ok(&["land", "--no-wait"]);
    assert_eq!(env.ok(&["queue"])["queue"].as_array().unwrap().len(), 1);
    agent.exit(1);
    assert_eq!(ended(child).code, 1);
    assert_eq!(env.ok(&["queue"])["queue"], json!([]));
    env.ok(&["queue", "resume"]);
    env.weald(&["land"]);
    assert!(!env.repo().join("stolen").exists());
    assert!(
        env.root().join("app.weald/fix/stolen").exists(),
        "it is kept"
    );
}

/// Requests that arrive while the run ends are decided before or after its end; either way a run that failed lands
/// nothing afterwards.
#[test]
fn x15_a_landing_that_races_the_end_of_its_run_leaves_nothing_queued() {
    let env = repository();
    set(&env, "gate.command", "sleep 1");
    for number in 1..=4 {
        env.ok(&["task", "add", &format!("Race {number}")]);
        let script = format!(
            "{}; for i in 1 2 3 4 5 6; do weald land --no-wait & done; sleep 0.{number}; exit 1",
            COMMIT.replace("stolen", &format!("raced{number}"))
        );
        let answer = env.weald(&["work", &number.to_string(), "--", "sh", "-c", &script]);
        assert_eq!(answer.code, 1, "{answer:#?}");
        assert_eq!(env.ok(&["queue"])["queue"], json!([]), "round {number}");
        env.weald(&["land"]);
        assert!(!env.repo().join(format!("raced{number}")).exists());
    }
}

/// Everything that is a person's own is refused to a command that the person runs.
#[track_caller]
fn acts_for_nobody(env: &TestEnv, level: &str, plan: &str) {
    for args in [
        &["msg", "inbox"][..],
        &["msg", "inbox", "--consume"],
        &["msg", "inbox", "--session", "alice"],
        &["msg", "reply", plan, "fine", "--approve"],
        &["msg", "send", "bob", "x"],
        &["task", "done"],
        &["task", "done", "1", "--token", "1"],
        &["task", "fail"],
        &["task", "claim"],
        &["task", "renew"],
        &["session", "note", "x"],
        &["snapshot", "create"],
    ] {
        let mut command = env.weald_command(&["run", "fix", "--sandbox", level, "--"]);
        command.arg(weald(env)).args(args).arg("--json");
        command
            .env("WEALD_SESSION", "alice")
            .env("WEALD_TOKEN", "1");
        let answer = Answer::of(command.output().unwrap());
        assert_eq!(answer.code, 1, "{level} {args:?}: {answer:#?}");
        assert_eq!(
            answer.error_code(),
            "not_allowed_inside",
            "{level} {args:?}"
        );
    }
}

#[test]
fn x24_a_command_under_run_is_not_the_person_who_ran_it() {
    for level in LEVELS {
        let env = field();
        env.ok(&["session", "register", "alice"]);
        env.ok(&[
            "msg",
            "send",
            "alice",
            "for alice alone",
            "--session",
            "bob",
        ]);
        let plan = env.ok(&[
            "msg",
            "send",
            "alice",
            "the plan",
            "--type",
            "plan",
            "--session",
            "bob",
        ]);
        let plan = plan["messages"][0]["id"].to_string();
        let mut command = env.weald_command(&["run", "fix", "--sandbox", level, "--", "sh", "-c"]);
        let script =
            "for name in WEALD_SESSION WEALD_TOKEN; do eval echo \"$name=\\${$name-none}\"; done";
        command.arg(script);
        command
            .env("WEALD_SESSION", "alice")
            .env("WEALD_TOKEN", "1");
        let seen = Answer::of(command.output().unwrap());
        assert_eq!(
            seen.stdout, "WEALD_SESSION=none\nWEALD_TOKEN=none\n",
            "{level}: {seen:#?}"
        );
        acts_for_nobody(&env, level, &plan);
        let mut command = env.weald_command(&["run", "fix", "--sandbox", level, "--"]);
        command
            .arg(weald(&env))
            .args(["events", "--json", "--limit", "100"]);
        let events = Answer::of(command.env("WEALD_SESSION", "alice").output().unwrap());
        assert!(events.stdout.contains("message.sent"), "{events:#?}");
        assert!(
            !events.stdout.contains("for alice alone"),
            "{level}: the log is no inbox"
        );
        let inbox = env.ok(&["msg", "inbox", "--session", "alice"]);
        assert_eq!(inbox["messages"].as_array().unwrap().len(), 2, "{level}");
        assert_eq!(status(&env, "1"), "in_progress");
        assert_eq!(
            env.ok(&[
                "msg",
                "reply",
                &plan,
                "no",
                "--reject",
                "--session",
                "alice"
            ])["outcome"],
            "sent"
        );
    }
}

#[test]
fn x24_a_tool_call_under_run_is_not_the_person_either() {
    let env = field();
    env.ok(&[
        "msg",
        "send",
        "alice",
        "for alice alone",
        "--session",
        "bob",
    ]);
    let child = begin(&env, &["run", "fix"]);
    let mut agent = InAgent::at(&env, "fix");
    for (tool, arguments) in [
        ("message_inbox", json!({})),
        ("reply", json!({"id": 1, "text": "yes"})),
        ("message_send", json!({"to": "bob", "text": "x"})),
        ("task_complete", json!({"report": "x"})),
        ("task_claim", json!({})),
        ("task_update", json!({"action": "fail"})),
    ] {
        let error = agent.mcp(tool, arguments).unwrap_err();
        assert_eq!(error["code"], "not_allowed_inside", "{tool}: {error:#}");
    }
    assert_eq!(agent.mcp("task_get", json!({})).unwrap()["task"]["id"], 1);
    agent.exit(0);
    assert_eq!(ended(child).code, 0);
}

#[test]
fn x24_an_agent_under_run_has_a_session_of_its_own_and_no_mandate() {
    let env = field();
    let program = env.agent_that_is("claude", "/usr/bin/python3");
    let program = program.to_str().unwrap();
    for (number, level) in [(1, "full"), (2, "landlock")] {
        let child = begin_by(&env, &["run", "fix", "--sandbox", level], program);
        let mut agent = InAgent::at(&env, "fix");
        let name = format!("claude-fix-{number}");
        let known = agent.run(&["sh", "-c", "echo $WEALD_SESSION"], "");
        assert_eq!(known.stdout.trim(), name);
        env.ok(&["msg", "send", &name, "hello", "--session", "bob"]);
        let inbox = agent.ok(&["msg", "inbox", "--consume"]);
        assert_eq!(inbox["messages"][0]["text"], "hello");
        agent.ok(&["msg", "send", "bob", "hi"]);
        let got = env.ok(&["msg", "inbox", "--session", "bob", "--consume"]);
        assert_eq!(got["messages"][0]["from"], name.as_str());
        agent.ok(&["session", "note", "half way"]);
        // alice holds the task, and this is not alice.
        agent.refused(&["task", "done"], "not_allowed_inside");
        agent.refused(
            &["msg", "inbox", "--session", "alice"],
            "not_allowed_inside",
        );
        if level == "full" {
            lands_nothing(&env, &mut agent, "weald land fix");
        }
        let shown = env.ok(&["session", "show", "--session", &name]);
        assert_eq!(shown["session"]["liveness"], "alive", "{shown:#}");
        agent.exit(0);
        assert_eq!(ended(child).code, 0);
        let shown = env.ok(&["session", "show", "--session", &name]);
        assert!(!shown["session"]["ended_at"].is_null(), "{shown:#}");
        fs::remove_dir_all(env.root().join("app.weald/fix/.git/exchange")).unwrap();
    }
}

/// A socket and a secret that were kept lead nowhere once the run is over.
#[test]
fn x24_the_way_to_the_host_ends_with_the_run() {
    let env = agent_field();
    let tree = env.root().join("app.weald/fix");
    let script = "printf '%s\\n%s' \"$WEALD_BROKER\" \"$WEALD_BROKER_SECRET\" > .git/kept; exit 1";
    env.weald(&["work", "1", "--", "sh", "-c", script]);
    let kept = fs::read_to_string(tree.join(".git/kept")).unwrap();
    let (path, secret) = kept.split_once('\n').unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    while fs::exists(path).unwrap() {
        assert!(Instant::now() < deadline, "{path} is still there");
        std::thread::sleep(Duration::from_millis(20));
    }
    // The next run has another secret, and does not see the old folder.
    let ask = format!(
        "import os, socket, json\ns = socket.socket(socket.AF_UNIX)\nfolder, name = os.path.split(os.environ['WEALD_BROKER'])\nos.chdir(folder)\ns.connect(name)\n\
         s.sendall(json.dumps({{'secret': {secret:?}, 'ask': {{'op': 'land'}}}}).encode() + b'\\n')\nprint(s.recv(65536).decode())"
    );
    let told = env.weald(&["run", "fix", "--", "python3", "-c", &ask]);
    assert!(told.stdout.contains("wrong_secret"), "{told:#?}");
}
