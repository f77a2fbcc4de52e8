//! Commits in a worktree, as main sees them.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use weald_testkit::{Answer, TestEnv};

use crate::repository;

/// The subject of the newest commit on a worktree's branch in main.
fn newest(env: &TestEnv) -> String {
    env.git(&["log", "-1", "--format=%s", "wt/fix"])
        .trim()
        .to_owned()
}

#[test]
fn u4_a_commit_is_on_its_branch_in_main_while_the_run_lives() {
    let env = repository();
    env.ok(&["new", "fix"]);
    let go = |step: usize| env.repo().join(format!("go-{step}"));
    let wait = |step| format!("until [ -e {} ]; do sleep 0.02; done", go(step).display());
    let commit = "git commit -q --allow-empty";
    let script = format!(
        "echo 1 > one; git add -A; {commit} -m one; {}; {commit} --amend -m other; {}; {commit} -m three; {}",
        wait(1),
        wait(2),
        wait(3)
    );
    let mut run = env.weald_command(&["run", "fix", "--", "sh", "-c", &script]);
    let run = run
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    for (step, subject) in [(1, "one"), (2, "other"), (3, "three")] {
        let until = Instant::now() + Duration::from_secs(30);
        while newest(&env) != subject {
            assert!(Instant::now() < until, "waited for {subject}");
        }
        assert_eq!(
            env.ok(&["list"])["trees"][0]["unimported"],
            false,
            "{subject}"
        );
        fs::write(go(step), "").unwrap();
    }
    assert_eq!(Answer::of(run.wait_with_output().unwrap()).code, 0);
    env.git(&["merge", "-q", "--no-edit", "wt/fix"]);
    assert!(env.repo().join("one").exists());
    // With nothing of weald at work, the next command that looks at it does it, and a list says what is owed.
    let path = env.root().join("app.weald/fix");
    let path = path.to_str().unwrap();
    env.git(&["-C", path, "commit", "-q", "--allow-empty", "-m", "by hand"]);
    assert_eq!(env.ok(&["list"])["trees"][0]["unimported"], true);
    assert!(env.weald(&["list"]).stdout.contains("unimported"));
    assert!(env.weald(&[]).stdout.contains("unimported"));
    env.ok(&["status", "fix"]);
    assert_eq!(newest(&env), "by hand");
}
