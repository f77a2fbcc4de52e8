//! Which driver works on a task, how a command gets its prompt, and what a supervisor inherits.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use weald_testkit::{Answer, TestEnv};

use crate::trees_remove::repository;

/// weald on a search path without agents.
fn without_agents(env: &TestEnv, args: &[&str]) -> Command {
    let mut command = env.weald_command(args);
    let own = command.get_envs().find(|(name, _)| *name == "PATH");
    let path = own.and_then(|(_, path)| path).unwrap().to_str().unwrap();
    let has_agent = |folder: &&str| {
        let has = |name| Path::new(folder).join(name).exists();
        has("claude") || has("codex")
    };
    let folders: Vec<_> = path
        .split(':')
        .filter(|folder| !has_agent(folder))
        .collect();
    command.env("PATH", folders.join(":"));
    command
}

fn answered(command: &mut Command) -> Answer {
    Answer::of(command.output().unwrap())
}

#[test]
fn s5_what_can_not_be_started_is_refused_before_anything_is_made() {
    let env = repository();
    for (driver, code, exit) in [
        ("nobody", "driver_not_found", 4),
        ("claude", "driver_not_installed", 4),
        ("codex", "driver_not_installed", 4),
        ("command", "no_command", 2),
    ] {
        let args = ["work", "fix it all", "--driver", driver, "--json"];
        let refused = answered(&mut without_agents(&env, &args));
        assert_eq!(
            (refused.code, refused.error_code().as_str()),
            (exit, code),
            "{refused:#?}"
        );
    }
    let refused = answered(&mut without_agents(&env, &["work", "fix it all", "--json"]));
    assert_eq!(
        refused.error_code(),
        "driver_not_installed",
        "claude is the default"
    );
    assert_eq!(env.ok(&["task", "list"])["tasks"], json!([]));
    assert_eq!(env.ok(&["list"])["trees"], json!([]));
}

#[test]
fn p1_a_configured_command_gets_its_prompt_and_its_output_is_seen() {
    let env = repository();
    let line = "own: sh -c 'echo \"got $# $1\"; head -c 6; echo $WEALD_TASK > x' own";
    for (prompt, told) in [
        ("argument", "got 1 # Task"),
        ("file", "/prompt.md\n"),
        ("stdin", "got 0 \n# Task"),
    ] {
        let mut command = env.weald_command(&["work", "fix it all", "--driver", "own"]);
        command.env("WEALD_AGENT_DRIVERS", line);
        let answer = answered(command.env("WEALD_AGENT_PROMPT", prompt));
        assert_eq!(answer.code, 0, "{prompt}: {answer:#?}");
        assert!(answer.stdout.contains(told), "{prompt}: {answer:#?}");
    }
    // Words after `--` are its arguments.
    let mut command = env.weald_command(&["work", "fix it", "--driver", "own", "--", "more"]);
    let answer = answered(command.env("WEALD_AGENT_DRIVERS", line));
    assert!(answer.stdout.contains("got 2 more"), "{answer:#?}");
}

#[test]
fn p1_placeholders_are_filled_and_no_shell_looks_at_them() {
    let env = repository();
    let subject = "say $(touch oops) {tree}";
    let task = &env.ok(&["task", "add", subject])["task"]["id"].to_string();
    let script = "printf '%s|' \"$@\"; test -e oops && echo ran";
    let words = ["sh", "-c", script, "sh", "{tree}", "{model}", "{prompt}"];
    let args = [&["work", task, "--model", "m 1", "--"], &words[..]].concat();
    let answer = answered(&mut env.weald_command(&args));
    assert_eq!(answer.code, 1, "{answer:#?}");
    let tree = env.root().join("app.weald");
    let begins = format!("{}/", tree.display());
    assert!(answer.stdout.starts_with(&begins), "{answer:#?}");
    assert!(answer.stdout.contains("|m 1|# Task"), "{answer:#?}");
    assert!(answer.stdout.contains(subject), "{answer:#?}");
    assert!(!answer.stdout.contains("ran\n"), "{answer:#?}");
}

/// Which processes have a file open.
fn holders(path: &Path) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let holds = |entry: &fs::DirEntry| {
        let open = fs::read_dir(entry.path().join("fd")).into_iter().flatten();
        let mut open = open.flatten().map(|fd| fs::read_link(fd.path()));
        open.any(|found| found.is_ok_and(|found| found == path))
    };
    let holding = processes.filter(holds);
    holding
        .map(|entry| fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default())
        .collect()
}

#[test]
fn s5_an_agent_in_the_background_holds_nothing_of_its_callers() {
    let env = repository();
    let held = env.root().join("held");
    // As `flock held weald work …` does.
    let script = "exec 9>\"$1\"; shift; exec \"$@\"";
    let agent = "until test -e go; do sleep 0.02; done";
    let weald = env!("CARGO_BIN_EXE_weald");
    let mut command = env.command("sh");
    command.args(["-c", script, "sh"]).arg(&held).arg(weald);
    command.args([
        "work",
        "wait for it",
        "--detach",
        "--json",
        "--",
        "sh",
        "-c",
        agent,
    ]);
    let answer = answered(&mut command);
    assert_eq!(answer.code, 0, "{answer:#?}");
    let holding = holders(&held);
    fs::write(env.root().join("app.weald/wait-for-it/go"), "").unwrap();
    let begun = Instant::now();
    while env.ok(&["task", "show", "1"])["task"]["status"] != "completed" {
        assert!(begun.elapsed() < Duration::from_secs(60), "it does not end");
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(holding, Vec::<String>::new());
}
