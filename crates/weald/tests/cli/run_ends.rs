//! The end of a run takes everything with it, at every level and without one.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use weald_testkit::TestEnv;

use crate::trees_remove::{grow, repository};
use crate::trees_work::is_running;

#[test]
fn x10_a_run_without_a_sandbox_leaves_no_survivor_either() {
    let env = repository();
    grow(&env, "a", "sealed");
    // Each ends in another way: by a timeout, and by itself.
    for (mark, rest, limit, code) in [
        ("73.0625", "sleep 73.0625", "2s", 124),
        ("74.0625", "exit 3", "60s", 3),
    ] {
        let script = format!(
            "trap '' TERM; setsid sleep {mark} & (sleep {mark} & exec sleep {mark}) & \
             (setsid sh -c 'trap \"\" TERM; sleep {mark} & wait' &) ; sleep 0.2; {rest}"
        );
        let run = ["run", "a", "--sandbox", "off", "--timeout", limit, "--"];
        let begun = Instant::now();
        let answer = env.weald(&[&run[..], &["sh", "-c", &script]].concat());
        assert_eq!(answer.code, code, "{answer:#?}");
        assert!(begun.elapsed() < Duration::from_secs(30));
        assert!(!is_running(mark), "a sleep is left");
    }
}

/// A script below /tmp is there for whoever gives it, and not inside: the error says so.
#[test]
fn p1_a_program_that_only_the_caller_sees_is_told() {
    let env = repository();
    env.ok(&["new", "a"]);
    let elsewhere = TestEnv::without_repository("unused");
    let script = elsewhere.root().join("agent.sh");
    fs::write(&script, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
    let told = env.weald(&["run", "a", "--", script.to_str().unwrap()]);
    assert_eq!(told.code, 127, "{told:#?}");
    assert!(told.stderr.contains("but not inside"), "{told:#?}");
    let told = env.weald(&["run", "a", "--", "/nowhere/agent.sh"]);
    assert!(!told.stderr.contains("but not inside"), "{told:#?}");
}
