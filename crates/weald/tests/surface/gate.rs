//! What people see of a landing: its stages, its tests while they run, and why they failed.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use weald_terminal::Size;
use weald_testkit::{Answer, TestEnv, Watcher};

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
        let tests = format!(
            "echo first step {}; {wait}; echo second step",
            "x".repeat(150)
        );
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
    while !log(&["1"]).stdout.contains("\nfirst step x") {}
    assert!(
        log(&[]).stdout.contains("\nfirst step x"),
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
        assert!(said.contains("x\nsecond step\n"), "{said}");
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

/// The lines on a terminal that show that something goes on.
fn live(person: &Watcher) -> Vec<String> {
    let is_live = |line: &String| line.starts_with(|c| ('\u{2800}'..='\u{28ff}').contains(&c));
    person.terminal.text().into_iter().filter(is_live).collect()
}

#[test]
fn u3_a_landing_shows_its_stages_and_the_last_line_of_its_tests() {
    let gated = Gated::new();
    worktree(&gated.env, "fix");
    let (_terminal, mut person) = gated.env.shell(
        None,
        Size {
            columns: 60,
            rows: 20,
        },
    );
    person.types("weald land fix\r");
    person.sees("Testing fix: ");
    person.sees("  first step x");
    // One line, however long the line of the tests is, and the time goes on in it.
    person.takes_until("a second passes", |person| {
        live(person)
            .iter()
            .any(|line| line.contains("  1 s  first step x"))
    });
    let shown = live(&person);
    assert_eq!(shown.len(), 1, "{shown:?}");
    assert!(
        shown[0].ends_with('…') && shown[0].chars().count() < 60,
        "{shown:?}"
    );
    gated.lets_through();
    person.sees("fix landed on main as ");
    person.sees("directory trashed, branch deleted");
    assert_eq!(live(&person), [""; 0]);
    let all = person.terminal.text().join("\n");
    assert!(
        !all.contains("Testing fix") && !all.contains("Merging"),
        "{all}"
    );
}

#[test]
fn u3_work_shows_the_agent_then_its_tests_below_what_it_said() {
    let gated = Gated::new();
    let env = &gated.env;
    let ready = env.repo().join("ready");
    let wait = format!("until [ -e {} ]; do sleep 0.02; done", ready.display());
    let (_terminal, mut person) = env.shell(
        None,
        Size {
            columns: 120,
            rows: 30,
        },
    );
    let agent = format!("echo looking; {wait}; touch it; printf 'all done'");
    person.types(&format!("weald work 'Add it' -- sh -c \"{agent}\"\r"));
    person.sees("\nlooking");
    person.sees("The agent is working");
    fs::write(&ready, "").unwrap();
    person.sees("all done");
    person.sees("Testing add-it: ");
    person.sees("  first step x");
    fs::write(&gated.go, "").unwrap();
    person.sees("✓ Merged into main as ");
    let all = person.terminal.text().join("\n");
    assert!(
        all.contains("\nlooking\n") && !all.contains("Testing"),
        "{all}"
    );
    assert_eq!(live(&person), [""; 0]);
}

#[test]
fn u3_a_landing_that_waits_names_the_process_and_the_landing_before_it() {
    let gated = Gated::new();
    let env = &gated.env;
    worktree(env, "fix");
    worktree(env, "other");
    let first = gated.start(&["land", "fix"]);
    while !env.weald(&["queue", "log"]).stdout.contains("\nfirst step") {}
    let (_terminal, mut person) = env.shell(
        None,
        Size {
            columns: 100,
            rows: 20,
        },
    );
    person.types("weald land other\r");
    person.sees(&format!(
        "Waiting: process {} is testing landing 1 (fix)",
        first.id()
    ));
    person.sees("  first step x");
    gated.lets_through();
    person.sees("other landed on main as ");
    assert_eq!(ended(first).code, 0);
}

#[test]
fn u3_without_a_terminal_each_stage_is_a_line() {
    let env = repository();
    env.ok(&["config", "set", "gate.command", "echo fine"]);
    worktree(&env, "fix");
    let landed = env.weald(&["land", "fix"]);
    let stages: Vec<_> = landed.stderr.lines().collect();
    let expected = [
        "Merging fix with main",
        "Testing fix: echo fine",
        "Moving main to fix",
        "Landed fix on main as ",
        "Cleaned up fix",
    ];
    assert_eq!(stages.len(), expected.len(), "{landed:#?}");
    for (stage, expected) in stages.iter().zip(expected) {
        assert!(stage.starts_with(expected), "{landed:#?}");
    }
    let worked = env.weald(&["work", "Add it", "--", "touch", "it"]);
    let told = worked
        .stderr
        .split_once("Committing the work of a1\n")
        .unwrap()
        .1;
    assert!(
        told.starts_with("Merging add-it with main\nTesting add-it: echo fine\n"),
        "{told}"
    );
    assert!(told.ends_with("\nCleaned up add-it\n"), "{told}");
    for (name, flag) in [("quietly", "--quiet"), ("as-json", "--json")] {
        worktree(&env, name);
        assert_eq!(env.weald(&["land", name, flag]).stderr, "", "{flag}");
    }
}
