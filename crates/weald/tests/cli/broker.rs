//! weald's commands inside a tree: what they say, whom they speak for, and what is not for them.

use std::fs;
use std::path::PathBuf;
use std::process::Child;

use serde_json::{Value, json};
use weald_testkit::{Answer, TestEnv};

use crate::env;
use crate::in_agent::{InAgent, begin, begin_with, ended};

/// How a run can be held.
pub const LEVELS: [&str; 3] = ["full", "landlock", "off"];

/// A repository with tree `fix` for task 1, which alice holds, and task 2 of bob's with tree `other`.
pub fn field() -> TestEnv {
    let env = agent_field();
    env.ok(&["task", "claim", "1", "--session", "alice"]);
    env
}

/// The same with task 1 free, for an agent to take.
pub fn agent_field() -> TestEnv {
    let env = env();
    env.ok(&["task", "add", "fix it"]);
    env.ok(&["task", "add", "something else"]);
    env.ok(&["task", "claim", "2", "--session", "bob"]);
    env.ok(&["new", "fix", "--task", "1"]);
    env.ok(&["new", "other", "--task", "2"]);
    // The home is seen from inside wherever this test was built.
    fs::copy(env!("CARGO_BIN_EXE_weald"), weald(&env)).unwrap();
    env
}

/// An agent called alice that works on task 1, held at this level.
pub fn begin_alice(env: &TestEnv, level: &str) -> (Child, InAgent) {
    let level = format!("sandbox.level={level}");
    let child = begin(env, &["--set", &level, "work", "1", "--name", "alice"]);
    (child, InAgent::at(env, "fix"))
}

/// The binary as it is seen from inside.
pub fn weald(env: &TestEnv) -> PathBuf {
    env.home().join("weald")
}

/// Runs a command of weald's in tree `fix`; alice started it.
fn inside(env: &TestEnv, level: &str, args: &[&str]) -> Answer {
    let mut command = env.weald_command(&["run", "fix", "--sandbox", level, "--"]);
    command
        .arg(weald(env))
        .args(args)
        .env("WEALD_SESSION", "alice");
    Answer::of(command.output().unwrap())
}

/// The same, with `--json` and a good end.
#[track_caller]
fn ok(env: &TestEnv, level: &str, args: &[&str]) -> Value {
    let answer = inside(env, level, &[args, &["--json"]].concat());
    assert_eq!(answer.code, 0, "{level} {args:?}: {answer:#?}");
    answer.json()
}

#[test]
fn x12_reading_says_the_same_inside_and_outside() {
    let env = field();
    fs::write(env.root().join("app.weald/fix/new"), "text\n").unwrap();
    env.ok(&["snapshot", "create", "fix"]);
    for level in LEVELS {
        for (within, outside) in [
            (vec!["task", "list"], vec!["task", "list"]),
            (
                vec!["task", "list", "--status", "done"],
                vec!["task", "list", "--status", "done"],
            ),
            (vec!["task", "ready"], vec!["task", "ready"]),
            (vec!["path"], vec!["path", "fix"]),
            (
                vec!["path", "--check", "new"],
                vec!["path", "fix", "--check", "new"],
            ),
            (vec!["diff"], vec!["diff", "fix"]),
            (vec!["diff", "--stat"], vec!["diff", "fix", "--stat"]),
        ] {
            let told = inside(&env, level, &within);
            assert_eq!(told.code, 0, "{level} {within:?}: {told:#?}");
            assert_eq!(
                told.stdout,
                env.weald(&outside).stdout,
                "{level} {within:?}"
            );
        }
        for (within, outside) in [
            (vec!["task", "list"], vec!["task", "list"]),
            (vec!["task", "show"], vec!["task", "show", "1"]),
            (vec!["task", "show", "2"], vec!["task", "show", "2"]),
            (vec!["diff"], vec!["diff", "fix"]),
            (vec!["snapshot", "list"], vec!["snapshot", "list", "fix"]),
        ] {
            assert_eq!(
                ok(&env, level, &within),
                env.ok(&outside),
                "{level} {within:?}"
            );
        }
        let (own, outer) = (ok(&env, level, &["status"]), env.ok(&["status", "fix"]));
        let keys = |value: &Value| {
            let mut keys: Vec<_> = value["tree"].as_object().unwrap().keys().cloned().collect();
            // Inside something runs, by the nature of it.
            keys.retain(|key| key != "runs");
            keys
        };
        assert_eq!(keys(&own), keys(&outer), "{level}");
        let events = inside(&env, level, &["events", "--json", "--limit", "3"]);
        let kinds: Vec<Value> = events
            .stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(kinds.len(), 3, "{events:#?}");
        assert_eq!(kinds[2]["type"], "dev.weald.tree.run.before");
        let alone = inside(&env, level, &[]);
        let who = "a command without a session works in worktree fix";
        assert!(alone.stdout.contains(who), "{alone:#?}");
        assert!(alone.stdout.contains("weald task show"), "{alone:#?}");
        assert!(!alone.stdout.contains("weald task done"), "{alone:#?}");
        assert!(!alone.stdout.contains("weald land"), "{alone:#?}");
    }
}

#[test]
fn x12_acting_on_the_own_task_and_tree_works_at_every_level() {
    for level in ["full", "landlock"] {
        let env = agent_field();
        let (child, mut alice) = begin_alice(&env, level);
        let claimed = alice.ok(&["task", "claim"]);
        let shown = env.ok(&["task", "show", "1"]);
        assert_eq!(claimed["lease"]["token"], shown["task"]["lease"]["token"]);
        assert_eq!(
            alice.ok(&["task", "claim", "1"]),
            claimed,
            "as often as it asks"
        );
        let before = claimed["lease"]["expires_at"].as_str().unwrap().to_owned();
        let renewed = alice.ok(&["task", "renew"]);
        assert!(renewed["task"]["lease"]["expires_at"].as_str().unwrap() > before.as_str());
        alice.ok(&["msg", "send", "bob", "a\u{1b}[31mb", "--priority", "urgent"]);
        let got = env.ok(&["msg", "inbox", "--session", "bob", "--consume"]);
        assert_eq!(got["messages"][0]["from"], "alice");
        let question = alice.ok(&["msg", "ask", "bob", "which?"]);
        let id = question["messages"][0]["id"].to_string();
        env.ok(&["msg", "reply", &id, "this", "--session", "bob"]);
        let alone = alice.weald(&[]).stdout;
        assert!(alone.contains("alice works in worktree fix"), "{alone}");
        assert!(alone.contains("1 unread"), "{alone}");
        assert!(alone.contains("weald task done"), "{alone}");
        let read = alice.ok(&["msg", "inbox", "--consume"]);
        assert_eq!(read["messages"][0]["text"], "this");
        assert_eq!(alice.ok(&["msg", "inbox"])["messages"], json!([]));
        let asked = env.ok(&["msg", "ask", "alice", "ready?", "--session", "bob"]);
        let id = asked["messages"][0]["id"].to_string();
        for outcome in ["sent", "duplicate"] {
            let replied = alice.ok(&["msg", "reply", &id, "yes"]);
            assert_eq!(replied["outcome"], outcome);
        }
        alice.ok(&["session", "note", "half way"]);
        let note = env.ok(&["session", "note", "--session", "alice"]);
        assert_eq!(note["note"]["text"], "half way");
        let kept = alice.ok(&["snapshot", "create"]);
        assert!(kept["snapshot"]["id"].is_u64(), "{kept}");
        alice.sh("echo x > landed; git add landed; git -c user.name=a -c user.email=a@example.com commit -qm work");
        let would = alice.ok(&["land", "--dry-run"]);
        assert_eq!(would["landings"][0]["outcome"], "would_land");
        let landed = alice.ok(&["land"]);
        assert_eq!(landed["landings"][0]["outcome"], "landed", "{landed}");
        assert_eq!(landed["landings"][0]["cleanup"]["directory"], "kept");
        assert!(env.repo().join("landed").exists());
        alice.exit(0);
        assert_eq!(ended(child).code, 0);
    }
}

#[test]
fn x12_a_task_is_finished_once_and_with_its_report() {
    for (level, word, status) in [
        ("full", "done", "completed"),
        ("landlock", "fail", "failed"),
    ] {
        let env = agent_field();
        let (child, mut alice) = begin_alice(&env, level);
        alice.sh("echo x > made");
        let report = ["--report", "did \u{1b}]0;it"];
        alice.ok(&[&["task", word], &report[..]].concat());
        for again in ["done", "fail"] {
            let answer = alice.weald(&["task", again, "--json"]);
            assert_eq!(answer.error_code(), "already_reported", "{answer:#?}");
        }
        alice.exit(0);
        ended(child);
        let told = env.weald(&["task", "show", "1"]);
        assert!(told.stdout.contains("did"), "{told:#?}");
        assert!(!told.stdout.contains('\u{1b}'), "{told:#?}");
        assert_eq!(env.ok(&["task", "show", "1"])["task"]["status"], status);
    }
}

/// What is not an agent's own, nor anybody's who runs something.
const OTHERS: [&str; 18] = [
    "task done 2",
    "task fail 2",
    "task claim 2",
    "task renew 2 --token 1",
    "task done 2 --token 2",
    "task done --token 99",
    "msg inbox --session bob",
    "msg inbox --consume --session bob",
    "msg send alice x --session bob",
    "msg send bob stop --type shutdown",
    "session note x --session bob",
    "status other",
    "diff other",
    "diff 2",
    "snapshot create other",
    "land other",
    "sync other",
    "path other",
];

#[test]
fn x12_what_is_somebody_elses_is_refused() {
    for level in ["full", "landlock"] {
        let env = agent_field();
        let (child, mut alice) = begin_alice(&env, level);
        for line in OTHERS {
            let args: Vec<_> = line.split(' ').collect();
            alice.refused(&args, "not_allowed_inside");
        }
        alice.exit(1);
        ended(child);
        let other = env.ok(&["task", "show", "2"]);
        assert_eq!(other["task"]["status"], "in_progress");
    }
    let env = field();
    for level in LEVELS {
        for line in OTHERS {
            let args: Vec<_> = line.split(' ').chain(["--json"]).collect();
            let answer = inside(&env, level, &args);
            assert_eq!(answer.error_code(), "not_allowed_inside", "{level} {line}");
        }
    }
    for task in ["1", "2"] {
        let task = env.ok(&["task", "show", task]);
        assert_eq!(task["task"]["status"], "in_progress");
    }
}

#[test]
fn x12_everything_else_is_refused() {
    let env = field();
    for level in ["full", "landlock"] {
        for line in [
            "rm fix --discard",
            "rm other --discard",
            "trash list",
            "trash purge --apply",
            "restore",
            "restore fix",
            "restore fix --snapshot 1",
            "clean --trash --apply",
            "clean --leftovers --apply",
            "approve fix",
            "trust",
            "config show",
            "config set policy.gate none",
            "new mine",
            "ensure mine",
            "adopt .",
            "queue",
            "queue pause",
            "revert 1",
            "keep fix",
            "lock fix",
            "unlock fix",
            "sync fix",
            "doctor --fix",
            "init",
            "list",
            "status --all",
            "snapshot restore fix",
            "snapshot diff fix",
            "pool drain",
            "vault maintain",
            "run other -- true",
            "work 2 -- true",
            "resume 2",
            "setup fix",
            "verify",
            "ports",
            "task add mine",
            "task edit 1 --subject x",
            "task cancel 1",
            "task release 1",
            "task reopen 1",
            "task start 1",
            "task dep 1 --add 2",
            "task bind 1 other",
            "task unbind 1",
            "task export",
            "msg broadcast x",
            "session register x",
            "session end alice",
            "session heartbeat",
            "land fix other",
            "land --commit",
            "land --force",
        ] {
            let args: Vec<_> = line.split(' ').collect();
            // Flags of weald's go before the words of a command.
            let answer = inside(&env, level, &[&["--json"], &args[..]].concat());
            assert_eq!(answer.code, 1, "{level} {line}: {answer:#?}");
            // Only the shell of a person may wish for that.
            let code = match line {
                "land --commit" => "no_mandate",
                _ => "not_allowed_inside",
            };
            assert_eq!(answer.error_code(), code, "{level} {line}: {answer:#?}");
        }
    }
    assert_eq!(
        env.ok(&["task", "list"])["tasks"].as_array().unwrap().len(),
        2
    );
    assert_eq!(env.ok(&["list"])["trees"].as_array().unwrap().len(), 2);
}

/// Whatever its owner loosened for the agent counts for the owner's own landing, and not for what the agent asks.
#[test]
fn x12_a_landing_from_inside_passes_no_gate_by() {
    for loose in ["flag", "variable"] {
        let env = agent_field();
        env.ok(&["config", "set", "policy.gate", "human"]);
        let tip = env.git(&["rev-parse", "main"]);
        let mut command = env.weald_command(&[]);
        match loose {
            "flag" => command.args(["--set", "policy.gate=none"]),
            _ => command.env("WEALD_POLICY_GATE", "none"),
        };
        let child = begin_with(command.args(["work", "1"]));
        let mut agent = InAgent::at(&env, "fix");
        agent.sh("echo x > landed; git add landed; git -c user.name=a -c user.email=a@example.com commit -qm work");
        let answer = agent.weald(&["land", "--json"]);
        assert_eq!(answer.code, 1, "{loose}: {answer:#?}");
        let landing = &answer.json()["landings"][0];
        assert_eq!(landing["outcome"], "refused", "{loose}: {answer:#?}");
        assert_eq!(
            landing["reason"]["code"], "needs_approval",
            "{loose}: {answer:#?}"
        );
        agent.exit(1);
        ended(child);
        assert_eq!(env.git(&["rev-parse", "main"]), tip, "{loose}");
        assert!(!env.repo().join("landed").exists());
    }
}

#[test]
fn x12_a_path_longer_than_an_address_is_no_obstacle() {
    let env = env();
    let deep = env.root().join("d".repeat(90)).join("e".repeat(60));
    fs::create_dir_all(&deep).unwrap();
    env.git(&["clone", "-q", ".", deep.join("app").to_str().unwrap()]);
    let at = |args: &[&str]| {
        let mut command = env.weald_command(args);
        command
            .current_dir(deep.join("app"))
            .env("WEALD_SESSION", "alice");
        let answer = Answer::of(command.output().unwrap());
        assert_eq!(answer.code, 0, "{args:?}: {answer:#?}");
        answer
    };
    at(&["task", "add", "deep"]);
    at(&["task", "claim", "1"]);
    at(&["new", "fix", "--task", "1"]);
    fs::copy(env!("CARGO_BIN_EXE_weald"), weald(&env)).unwrap();
    for level in LEVELS {
        let own = weald(&env);
        let told = at(&[
            "run",
            "fix",
            "--sandbox",
            level,
            "--",
            own.to_str().unwrap(),
            "task",
            "show",
        ]);
        assert!(told.stdout.contains("deep"), "{level}: {told:#?}");
    }
}

#[test]
fn x12_folders_of_killed_runs_are_found_and_deleted() {
    let env = field();
    let runs = env.own_folder().join("runs");
    let left = || fs::read_dir(&runs).unwrap().count();
    let killed = || {
        let mut command =
            env.weald_command(&["run", "fix", "--", "sh", "-c", "echo on; exec sleep 60"]);
        let mut child = command
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut byte = [0; 1];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut byte).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    };
    inside(&env, "full", &["path"]);
    assert_eq!(left(), 0, "nothing is left of a run that ended");
    killed();
    assert_eq!(left(), 2, "the folder, and whose it is");
    inside(&env, "full", &["path"]);
    assert_eq!(left(), 0, "the next run deletes it");
    killed();
    let found = env.weald(&["doctor", "--fix", "--json"]);
    assert!(
        found
            .stdout
            .contains("left over from a run that was killed"),
        "{found:#?}"
    );
    assert_eq!(left(), 0);
}

#[test]
fn x12_an_agent_reports_once_and_its_supervisor_does_the_rest() {
    let env = env();
    env.ok(&["task", "add", "fix it"]);
    fs::copy(env!("CARGO_BIN_EXE_weald"), weald(&env)).unwrap();
    let own = weald(&env);
    let script = format!(
        "echo x > made; {0} task done --report 'did it' --verified passed --verified-by make >&2; \
         {0} --json task done; {0} --json land --dry-run >/dev/null; {0} --json rm fix; cat $WEALD_PROMPT_FILE | head -c 1 >/dev/null",
        own.display()
    );
    let answer = env.weald(&["work", "1", "--json", "--", "sh", "-c", &script]);
    assert_eq!(answer.code, 0, "{answer:#?}");
    assert!(env.repo().join("made").exists(), "{answer:#?}");
    let events = env.weald(&["events", "--json", "--limit", "100"]).stdout;
    assert!(events.contains("did it"), "{events}");
    let task = env.ok(&["task", "show", "1"]);
    assert_eq!(task["task"]["status"], "completed", "{task}");
    let log = fs::read_to_string(env.private().join("agents/a1/output.log")).unwrap();
    assert!(log.contains("already_reported"), "{log}");
    assert!(log.contains("not_allowed_inside"), "{log}");
}

#[test]
fn x12_an_agent_that_reports_a_failure_lands_nothing() {
    let env = env();
    env.ok(&["task", "add", "fix it"]);
    fs::copy(env!("CARGO_BIN_EXE_weald"), weald(&env)).unwrap();
    let script = format!(
        "echo x > made; {} task fail --report 'can not'",
        weald(&env).display()
    );
    let answer = env.weald(&["work", "1", "--json", "--", "sh", "-c", &script]);
    assert_eq!(answer.code, 1, "{answer:#?}");
    assert!(!env.repo().join("made").exists(), "{answer:#?}");
    assert_eq!(env.ok(&["task", "show", "1"])["task"]["status"], "failed");
}
