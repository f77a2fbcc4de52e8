//! What people see of a landing: its stages, its tests while they run, and why they failed.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use weald_testkit::{Answer, TestEnv};

use crate::repository;

/// A repository whose tests wait until they are let through, and how that is done.
struct Gated {
    env: TestEnv,
    go: PathBuf,
}

impl Gated {
    fn new() -> Self {
        let env = repository();
        let go = env.repo().join("go");
        let wait = format!("until [ -e {} ]; do sleep 0.02; done", go.display());
        let tests = format!("echo first step; {wait}; echo second step");
        env.ok(&["config", "set", "gate.command", &tests]);
        Self { env, go }
    }

    fn lets_through(&self) {
        fs::write(&self.go, "").unwrap();
    }

    fn start(&self, args: &[&str]) -> Child {
        let mut command = self.env.weald_command(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }
}

fn ended(child: Child) -> Answer {
    Answer::of(child.wait_with_output().unwrap())
}

/// Makes a worktree with one commit.
fn worktree(env: &TestEnv, name: &str) {
    env.ok(&["new", name]);
    let script = format!("echo {name} > {name}; git add -A; git commit -qm 'Add {name}'");
    assert_eq!(env.weald(&["run", name, "--", "sh", "-c", &script]).code, 0);
}

#[test]
fn u3_failed_tests_show_command_exit_code_and_the_end_of_the_output() {
    let env = repository();
    let tests = "seq 30; echo 'no such user' >&2; exit 3";
    env.ok(&["config", "set", "gate.command", tests]);
    worktree(&env, "fix");
    let landed = env.weald(&["land", "fix"]);
    let worked = env.weald(&["work", "Add it", "--retries", "0", "--", "touch", "it"]);
    for (answer, id) in [(landed, 1), (worked, 2)] {
        assert_eq!(answer.code, 1, "{answer:#?}");
        let told = answer.stdout;
        let (line, rest) = told.split_once("✗ ").unwrap().1.split_once('\n').unwrap();
        let cause = "Tests failed: `seq 30; echo 'no such user' >&2; exit 3` exited 3 after ";
        assert!(line.starts_with(cause), "{line}");
        assert!(line.ends_with(" (ran twice). main is unchanged."), "{line}");
        assert!(rest.contains(&format!("weald queue log {id}")), "{rest}");
        let shown: Vec<_> = rest
            .lines()
            .filter_map(|line| line.strip_prefix("    "))
            .collect();
        assert_eq!(shown.len(), 20, "{rest}");
        assert_eq!(
            (shown[0], shown[18], shown[19]),
            ("12", "30", "no such user")
        );
    }
    let again = env.weald(&["land", "fix", "--json"]).json();
    let output = again["landings"][0]["test_output"].as_str().unwrap();
    assert!(output.starts_with("12\n") && output.ends_with("30\nno such user"));
}

#[test]
fn u3_the_log_of_tests_that_run_is_shown_and_followed() {
    let gated = Gated::new();
    let env = &gated.env;
    worktree(env, "fix");
    assert_eq!(env.weald(&["queue", "log"]).code, 4);
    let landing = gated.start(&["land", "fix"]);
    let log = |args: &[&str]| env.weald(&[&["queue", "log"], args].concat());
    while !log(&["1"]).stdout.contains("\nfirst step\n") {}
    assert!(
        log(&[]).stdout.contains("\nfirst step\n"),
        "the one that runs"
    );
    let queue = env.weald(&["queue"]).stdout;
    assert!(
        queue.contains("LANDING") && queue.contains("testing"),
        "{queue}"
    );
    let followers = [
        gated.start(&["queue", "log", "-f"]),
        gated.start(&["queue", "log", "1", "-f"]),
    ];
    gated.lets_through();
    assert_eq!(ended(landing).code, 0);
    for follower in followers {
        let followed = ended(follower);
        assert_eq!(followed.code, 0, "{followed:#?}");
        let said = followed.stdout;
        assert!(said.contains("\nfirst step\nsecond step\n"), "{said}");
        assert!(
            said.trim_end()
                .lines()
                .last()
                .unwrap()
                .starts_with("ended:"),
            "{said}"
        );
    }
    assert_eq!(env.weald(&["revert", "1"]).code, 0);
    let all = env.weald(&["queue", "status", "--all"]).stdout;
    assert!(
        all.contains("reverts 1") && all.contains("reverted by 2"),
        "{all}"
    );
}
