//! weald's commands inside a tree: what they say, whom they speak for, and what is not for them.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use weald_testkit::{Answer, TestEnv};

use crate::env;

/// How a run can be held.
pub const LEVELS: [&str; 3] = ["full", "landlock", "off"];

/// A repository with tree `fix` for task 1, which alice holds, and task 2 of bob's with tree `other`.
pub fn field() -> TestEnv {
    let env = env();
    prepare(&env);
    env
}

fn prepare(env: &TestEnv) {
    env.ok(&["task", "add", "fix it"]);
    env.ok(&["task", "add", "something else"]);
    env.ok(&["task", "claim", "1", "--session", "alice"]);
    env.ok(&["task", "claim", "2", "--session", "bob"]);
    env.ok(&["new", "fix", "--task", "1"]);
    env.ok(&["new", "other", "--task", "2"]);
    // The home is seen from inside wherever this test was built.
    fs::copy(env!("CARGO_BIN_EXE_weald"), weald(env)).unwrap();
}

/// The binary as it is seen from inside.
pub fn weald(env: &TestEnv) -> PathBuf {
    env.home().join("weald")
}

/// Runs a command of weald's in tree `fix`, as alice.
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
pub fn ok(env: &TestEnv, level: &str, args: &[&str]) -> Value {
    let answer = inside(env, level, &[args, &["--json"]].concat());
    assert_eq!(answer.code, 0, "{level} {args:?}: {answer:#?}");
    answer.json()
}

/// The same with this refusal.
#[track_caller]
pub fn refused(env: &TestEnv, level: &str, args: &[&str], code: &str) {
    let answer = inside(env, level, &[args, &["--json"]].concat());
    assert_ne!(answer.code, 0, "{level} {args:?}: {answer:#?}");
    assert_eq!(answer.error_code(), code, "{level} {args:?}: {answer:#?}");
    assert!(!answer.json()["error"]["hint"].is_null(), "{answer:#?}");
}

#[test]
fn x12_reading_says_the_same_inside_and_outside() {
    let env = field();
    fs::write(env.root().join("app.weald/fix/new"), "text\n").unwrap();
    env.ok(&["msg", "send", "alice", "hello", "--session", "bob"]);
    env.ok(&["snapshot", "create", "fix"]);
    env.ok(&["session", "note", "half way", "--session", "alice"]);
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
            (
                vec!["session", "note"],
                vec!["session", "note", "--session", "alice"],
            ),
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
            (
                vec!["msg", "inbox"],
                vec!["msg", "inbox", "--session", "alice"],
            ),
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
        assert!(
            alone.stdout.contains("alice works in tree fix"),
            "{alone:#?}"
        );
        assert!(alone.stdout.contains("1 unread"), "{alone:#?}");
        assert!(alone.stdout.contains("weald task done"), "{alone:#?}");
    }
}

#[test]
fn x12_acting_on_the_own_task_and_tree_works_at_every_level() {
    for level in LEVELS {
        let env = field();
        let claimed = ok(&env, level, &["task", "claim"]);
        assert_eq!(
            claimed["lease"]["token"],
            env.ok(&["task", "show", "1"])["task"]["lease"]["token"]
        );
        assert_eq!(
            ok(&env, level, &["task", "claim", "1"]),
            claimed,
            "as often as it asks"
        );
        let before = claimed["lease"]["expires_at"].as_str().unwrap().to_owned();
        let renewed = ok(&env, level, &["task", "renew"]);
        assert!(renewed["task"]["lease"]["expires_at"].as_str().unwrap() > before.as_str());
        ok(
            &env,
            level,
            &["msg", "send", "bob", "a\u{1b}[31mb", "--priority", "urgent"],
        );
        let got = env.ok(&["msg", "inbox", "--session", "bob", "--consume"]);
        assert_eq!(got["messages"][0]["from"], "alice");
        let question = ok(&env, level, &["msg", "ask", "bob", "which?"]);
        let id = question["messages"][0]["id"].to_string();
        env.ok(&["msg", "reply", &id, "this", "--session", "bob"]);
        let read = ok(&env, level, &["msg", "inbox", "--consume"]);
        assert_eq!(read["messages"][0]["text"], "this");
        assert_eq!(ok(&env, level, &["msg", "inbox"])["messages"], json!([]));
        let asked = env.ok(&["msg", "ask", "alice", "ready?", "--session", "bob"]);
        let id = asked["messages"][0]["id"].to_string();
        assert_eq!(
            ok(&env, level, &["msg", "reply", &id, "yes"])["outcome"],
            "sent"
        );
        assert_eq!(
            ok(&env, level, &["msg", "reply", &id, "yes"])["outcome"],
            "duplicate"
        );
        ok(&env, level, &["session", "note", "half way"]);
        assert_eq!(
            env.ok(&["session", "note", "--session", "alice"])["note"]["text"],
            "half way"
        );
        assert_eq!(
            ok(&env, level, &["snapshot", "create"])["snapshot"]["id"],
            1
        );
        let script = "echo x > landed; git add landed; git -c user.name=a -c user.email=a@example.com commit -qm work";
        let mut command = env.weald_command(&["run", "fix", "--", "sh", "-c", script]);
        assert!(command.status().unwrap().success());
        assert_eq!(
            ok(&env, level, &["land", "--dry-run"])["landings"][0]["outcome"],
            "would_land"
        );
        let landed = ok(&env, level, &["land"]);
        assert_eq!(landed["landings"][0]["outcome"], "landed", "{landed}");
        assert_eq!(
            landed["landings"][0]["cleanup"]["directory"], "kept",
            "{landed}"
        );
        assert!(env.repo().join("landed").exists());
    }
}

#[test]
fn x12_a_task_is_finished_once_and_with_its_report() {
    for level in LEVELS {
        let env = field();
        let args = [
            "task",
            "done",
            "--report",
            "did \u{1b}]0;it",
            "--changed",
            "a",
            "--verified",
            "passed",
            "--verified-by",
            "make test",
        ];
        let done = ok(&env, level, &args);
        assert_eq!(done["task"]["status"], "completed");
        let told = env.weald(&["task", "show", "1"]);
        assert!(
            told.stdout.contains("verification passed (make test)"),
            "{told:#?}"
        );
        assert!(!told.stdout.contains('\u{1b}'), "{told:#?}");
        let again = inside(&env, level, &["task", "done", "--json"]);
        assert_eq!(again.code, 1, "{again:#?}");
        let env = field();
        assert_eq!(
            ok(&env, level, &["task", "fail", "1", "--report", "no"])["task"]["status"],
            "failed"
        );
    }
}

#[test]
fn x12_what_is_somebody_elses_is_refused() {
    let env = field();
    for level in LEVELS {
        for args in [
            vec!["task", "done", "2"],
            vec!["task", "fail", "2"],
            vec!["task", "claim", "2"],
            vec!["task", "renew", "2", "--token", "1"],
            vec!["task", "done", "2", "--token", "2"],
            vec!["task", "done", "--token", "99"],
            vec!["msg", "inbox", "--session", "bob"],
            vec!["msg", "inbox", "--consume", "--session", "bob"],
            vec!["msg", "send", "alice", "x", "--session", "bob"],
            vec!["msg", "send", "bob", "stop", "--type", "shutdown"],
            vec!["session", "note", "x", "--session", "bob"],
            vec!["status", "other"],
            vec!["diff", "other"],
            vec!["diff", "2"],
            vec!["snapshot", "create", "other"],
            vec!["land", "other"],
            vec!["path", "other"],
        ] {
            refused(&env, level, &args, "not_allowed_inside");
        }
    }
    // Of a run whose session holds no task nothing can be finished, whatever it knows.
    let mut command = env.weald_command(&["run", "fix", "--"]);
    command
        .arg(weald(&env))
        .args(["task", "done", "1", "--token", "1", "--json"]);
    let answer = Answer::of(command.env("WEALD_SESSION", "mallory").output().unwrap());
    assert_eq!(answer.error_code(), "not_allowed_inside", "{answer:#?}");
    assert_eq!(
        env.ok(&["task", "show", "1"])["task"]["status"],
        "in_progress"
    );
    assert_eq!(
        env.ok(&["task", "show", "2"])["task"]["status"],
        "in_progress"
    );
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
            assert_eq!(
                answer.error_code(),
                "not_allowed_inside",
                "{level} {line}: {answer:#?}"
            );
        }
    }
    assert_eq!(
        env.ok(&["task", "list"])["tasks"].as_array().unwrap().len(),
        2
    );
    assert_eq!(env.ok(&["list"])["trees"].as_array().unwrap().len(), 2);
}

#[test]
fn x12_a_landing_from_inside_passes_no_gate_by() {
    let env = field();
    env.ok(&["config", "set", "policy.gate", "human"]);
    let script = "echo x > landed; git add landed; git -c user.name=a -c user.email=a@example.com commit -qm work";
    assert!(
        env.weald_command(&["run", "fix", "--", "sh", "-c", script])
            .status()
            .unwrap()
            .success()
    );
    let tip = env.git(&["rev-parse", "main"]);
    let mut command = env.weald_command(&["--set", "policy.gate=none", "run", "fix", "--"]);
    command
        .arg(weald(&env))
        .args(["land", "--json"])
        .env("WEALD_SESSION", "alice");
    let answer = Answer::of(command.output().unwrap());
    assert_eq!(answer.code, 1, "{answer:#?}");
    assert_eq!(
        answer.json()["landings"][0]["reason"]["code"],
        "needs_approval",
        "{answer:#?}"
    );
    let mut command = env.weald_command(&["run", "fix", "--"]);
    command.arg(weald(&env)).args(["land", "--json"]);
    command
        .env("WEALD_SESSION", "alice")
        .env("WEALD_POLICY_GATE", "none");
    let answer = Answer::of(command.output().unwrap());
    assert_eq!(
        answer.json()["landings"][0]["outcome"],
        "refused",
        "{answer:#?}"
    );
    assert_eq!(env.git(&["rev-parse", "main"]), tip);
    assert!(!env.repo().join("landed").exists());
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
    let runs = env.repo().join(".git/weald/runs");
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
        found.stdout.contains("left from a run that was killed"),
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
