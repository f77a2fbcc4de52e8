//! What somebody does in a tree at the very moment of its removal.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use serde_json::json;
use weald_testkit::TestEnv;

use crate::agents_dying::{agents, signal, supervisor as supervisor_of, until};
use crate::landing_takeover::state_of;
use crate::trees_remove::{KINDS, commit, git_in, grow, has_event, repository};
use crate::trees_trash::manifest;

/// A removal that stands still at a step.
pub fn stopped(env: &TestEnv, args: &[&str], step: &str) -> Child {
    let mut command = env.weald_command(args);
    command.env("WEALD_STEP", format!("stop:{step}"));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    stands_still(&child);
    child
}

/// Waits until it stands still at its step.
pub fn stands_still(child: &Child) {
    let pid = Pid::from_child(child);
    let (_, status) = waitpid(Some(pid), WaitOptions::UNTRACED).unwrap().unwrap();
    assert!(status.stopped(), "the step was not reached");
}

/// Lets it go on; answers its exit code and what it said.
pub fn go_on(child: Child) -> (i32, String) {
    kill_process(Pid::from_child(&child), Signal::CONT).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.code().unwrap_or(-1), said)
}

#[test]
fn d3_what_is_committed_meanwhile_calls_the_removal_off() {
    for kind in KINDS {
        let env = repository();
        let path = grow(&env, "a", kind);
        let removal = stopped(&env, &["rm", "a", "--json"], "remove.announced");
        let tip = commit(&env, &path, "late", "late\n");
        let before = manifest(&path);
        let (code, said) = go_on(removal);
        assert_eq!(code, 1, "{kind}: {said}");
        assert!(said.contains("tree_unlanded"), "{kind}: {said}");
        assert_eq!(manifest(&path), before, "{kind}");
        assert_eq!(git_in(&env, &path, &["rev-parse", "HEAD"]).trim(), tip);
        assert_eq!(env.ok(&["trash", "list"])["trash"], json!([]));
        assert_eq!(env.ok(&["show", "a"])["tree"]["status"], "active");
        env.refused(&["rm", "a"], 1, "tree_unlanded");
        let found = env.weald(&["doctor", "--json"]).stdout;
        assert!(!found.contains("_unfinished"), "{kind}: {found}");
    }
}

#[test]
fn d3_a_tree_that_was_only_looked_at_meanwhile_is_judged_again_and_goes() {
    for kind in KINDS {
        let env = repository();
        let path = grow(&env, "a", kind);
        let removal = stopped(&env, &["rm", "a", "--json"], "remove.announced");
        // As a status beside it does: the index is written anew, and says the same.
        fs::write(path.join("README.md"), "hello\n").unwrap();
        git_in(&env, &path, &["add", "README.md"]);
        git_in(&env, &path, &["reset", "-q", "--hard"]);
        kill_process(Pid::from_child(&removal), Signal::CONT).unwrap();
        stands_still(&removal);
        let (code, said) = go_on(removal);
        assert_eq!(code, 0, "{kind}: {said}");
        assert!(!path.exists(), "{kind}: {said}");
    }
}

#[test]
fn d3_a_branch_that_moved_after_the_judgement_stays() {
    let env = repository();
    let path = grow(&env, "a", "linked");
    let removal = stopped(&env, &["rm", "a", "--json"], "remove.renamed");
    let place = fs::read_dir(path.with_file_name(".trash")).unwrap();
    let place = place.flatten().next().unwrap().path();
    // By somebody who stood in it, and with nothing to be seen in its own folder.
    let tip = git_in(
        &env,
        &place,
        &["commit-tree", "-m", "late", "-p", "HEAD", "HEAD^{tree}"],
    );
    env.git(&["update-ref", "refs/heads/wt/a", tip.trim()]);
    let (code, said) = go_on(removal);
    assert_eq!(env.git(&["rev-parse", "wt/a"]), tip, "{code} {said}");
}

/// Lets an agent work, and does something in its worktree once its end was looked at and nothing has landed.
fn work_with(env: &TestEnv, kind: &str, script: &str, meanwhile: impl FnOnce(&Path)) {
    env.ok(&["task", "add", "Task"]);
    env.ok(&["new", "task", "--task", "1", "--kind", kind]);
    let mut work = env.weald_command(&["work", "1", "--", "sh", "-c", script]);
    work.env("WEALD_STEP", "stop:import.followed");
    work.stdout(Stdio::null()).stderr(Stdio::null());
    let mut work = work.spawn().unwrap();
    let mut supervisor = 0;
    until("it was looked at", || {
        supervisor = agents(env).first().map_or(0, supervisor_of);
        let is_stopped = state_of(supervisor) == Some('T');
        let is_over = is_stopped && has_event(env, "task", "tree.run.after");
        if is_stopped && !is_over {
            // That was before the run.
            signal(supervisor, Signal::CONT);
        }
        is_over
    });
    meanwhile(&env.root().join("app.weald/task"));
    until("it ended", || {
        // A later look stops it, too.
        if state_of(supervisor) == Some('T') {
            signal(supervisor, Signal::CONT);
        }
        work.try_wait().unwrap().is_some()
    });
    assert!(work.wait().unwrap().success(), "{script}");
    assert_eq!(env.git(&["show", "main:x"]), "x\n", "{script}");
}

#[test]
fn d3_what_is_written_after_the_last_look_at_a_run_keeps_its_worktree() {
    for script in ["echo x > x", "echo x > x; git add x; git commit -q -m x"] {
        let env = repository();
        let path = env.root().join("app.weald/task");
        work_with(&env, "sealed", script, |path| {
            fs::write(path.join("late"), "late\n").unwrap();
        });
        let landed = env.git(&["ls-tree", "--name-only", "main"]);
        assert!(!landed.contains("late"), "{script}: {landed}");
        assert_eq!(fs::read(path.join("late")).unwrap(), b"late\n", "{script}");
    }
}

#[test]
fn d3_what_is_staged_or_committed_after_the_last_look_at_a_run_lands_too() {
    for kind in KINDS {
        for is_committed in [false, true] {
            let env = repository();
            let script = "echo x > x; git add x; git commit -q -m x";
            work_with(&env, kind, script, |path| {
                fs::write(path.join("late"), "late\n").unwrap();
                git_in(&env, path, &["add", "late"]);
                if is_committed {
                    git_in(&env, path, &["commit", "-q", "-m", "late"]);
                }
            });
            let landed = env.git(&["ls-tree", "--name-only", "main"]);
            assert!(landed.contains("late"), "{kind} {is_committed}: {landed}");
        }
    }
}
