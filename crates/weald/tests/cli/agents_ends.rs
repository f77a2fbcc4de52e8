//! How commands end: by a code of their own, whatever it is, or by a signal. What they leave
//! behind, and that `weald` is there inside.

use std::fs;
use std::path::Path;

use serde_json::json;
use weald_testkit::TestEnv;

use crate::landing_gate::set;
use crate::trees_remove::repository;
use crate::work::work;

/// A code above 128 is a command's own affair; only a real signal is a crash.
#[test]
fn p1_only_a_signal_is_a_crash() {
    let env = repository();
    for (number, (script, code, outcome)) in [
        ("exit 255", 255, "failed"),
        ("exit 137", 137, "failed"),
        ("kill -9 $$", 137, "crashed"),
    ]
    .into_iter()
    .enumerate()
    {
        env.ok(&["task", "add", script]);
        let answer = work(&env, &(number + 1).to_string(), script);
        assert_eq!(answer.code, 1, "{answer:#?}");
        let agent = &answer.json()["agent"];
        assert_eq!(agent["code"], code, "{script}");
        assert_eq!(agent["end"]["outcome"], outcome, "{script}: {answer:#?}");
    }
}

#[test]
fn p1_a_runs_exit_code_is_the_commands_at_every_level() {
    let env = repository();
    env.ok(&["new", "a"]);
    for level in ["full", "landlock", "off"] {
        for (script, code) in [("exit 255", 255), ("exit 137", 137), ("kill -9 $$", 137)] {
            let args = ["run", "a", "--sandbox", level, "--", "sh", "-c", script];
            assert_eq!(env.weald(&args).code, code, "{level}: {script}");
        }
    }
}

/// The prompt tells agents to use `weald`, so it is there, also if the binary lies where a run sees nothing.
#[test]
fn x12_weald_is_found_inside_wherever_it_lies() {
    let env = repository();
    let elsewhere = TestEnv::without_repository("unused");
    let binary = elsewhere.root().join("built");
    fs::copy(env!("CARGO_BIN_EXE_weald"), &binary).unwrap();
    env.ok(&["task", "add", "Look at me"]);
    env.ok(&["new", "a", "--task", "1"]);
    for level in ["full", "landlock", "off"] {
        let script = "weald task show 1 && ! echo x >> \"$(command -v weald)\"";
        let script = if level == "off" {
            "weald task show 1"
        } else {
            script
        };
        let mut run = env.command(&binary);
        run.args(["run", "a", "--sandbox", level, "--", "sh", "-c", script]);
        run.env("PATH", env.plain_path());
        let output = run.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{level}: {output:?}");
        assert!(said.contains("Look at me"), "{level}: {said}");
    }
    let script = "weald task show 1 > told && test -s told";
    let mut agent = env.command(&binary);
    agent.args(["work", "1", "--json", "--", "sh", "-c", script]);
    agent.env("PATH", env.plain_path());
    let output = agent.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let told = fs::read_to_string(env.repo().join("told")).unwrap();
    assert!(told.contains("Look at me"), "{told}");
    let runs = env.own_folder().join("runs");
    assert_eq!(fs::read_dir(runs).unwrap().count(), 0);
}

#[test]
fn t14_a_report_is_what_the_agent_said_and_nothing_else() {
    let env = repository();
    env.ok(&["task", "add", "First"]);
    env.ok(&["task", "add", "Second", "--after", "1"]);
    assert_eq!(work(&env, "1", "echo 1 > one").code, 0);
    assert_eq!(
        env.ok(&["task", "show", "1"])["task"]["report"],
        json!(null)
    );
    let answer = work(&env, "2", "cp \"$WEALD_PROMPT_FILE\" prompt");
    assert_eq!(answer.code, 0, "{answer:#?}");
    let prompt = fs::read_to_string(env.repo().join("prompt")).unwrap();
    assert!(
        prompt.contains("First") && !prompt.contains("landing 1"),
        "{prompt}"
    );
}

/// An agent that lands by itself says there what it did: that is its report, and its task ends with the agent.
#[test]
fn t14_what_an_agent_says_with_its_landing_is_its_report() {
    let env = repository();
    env.ok(&["task", "add", "First"]);
    let script = "echo 1 > one; git add one; git commit -qm one; weald land --report words && weald land --report others";
    let answer = work(&env, "1", script);
    assert_eq!(answer.code, 0, "{answer:#?}");
    let task = &env.ok(&["task", "show", "1"])["task"];
    assert_eq!(
        (&task["status"], &task["report"]),
        (&json!("completed"), &json!("words"))
    );
}

#[test]
fn l15_a_run_that_took_snapshots_leaves_nothing_for_doctor() {
    let env = repository();
    set(&env, "snapshot.every", "1s");
    let answer = work(&env, "Take time", "echo 1 > one; sleep 2.5");
    assert_eq!(answer.code, 0, "{answer:#?}");
    let kept = env.weald(&["events", "--json", "--limit", "100"]).stdout;
    assert!(kept.contains("snapshot"), "none was taken: {kept}");
    let found = env.ok(&["doctor"])["findings"].to_string();
    assert!(!found.contains("leftover"), "{found}");
}

/// Set-up commands and gates are held at level full, whatever is configured.
#[test]
fn x4_an_agent_has_a_place_for_temporary_files_that_goes_with_it() {
    let env = repository();
    let script = "mktemp > made && mktemp -d \"$CLAUDE_CODE_TMPDIR/XXXXXX\" >> made";
    for (number, level) in ["full", "landlock"].into_iter().enumerate() {
        set(&env, "sandbox.level", level);
        env.ok(&["task", "add", level]);
        let answer = work(&env, &(number + 1).to_string(), script);
        assert_eq!(answer.code, 0, "{level}: {answer:#?}");
        let made = fs::read_to_string(env.repo().join("made")).unwrap();
        assert_eq!(made.lines().count(), 2, "{level}: {made}");
        for path in made.lines().map(Path::new) {
            assert!(!path.exists(), "{level}: {made}");
            let is_own = path.parent() != Some(Path::new("/tmp"));
            assert_eq!(is_own, level == "landlock", "{made}");
        }
    }
}
