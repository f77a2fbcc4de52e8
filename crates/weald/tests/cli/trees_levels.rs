//! What works without user namespaces, and what says so.

use std::process::Command;

use weald_testkit::TestEnv;

use crate::env;
use crate::sandbox::say;
use crate::trees_remove::repository;

/// Runs a script in a namespace in which no further one can be made.
fn without_namespaces(env: &TestEnv, script: &str) {
    let script =
        format!("echo 0 > /proc/sys/user/max_user_namespaces || exit 77\nset -e\n{script}");
    let output = Command::new("unshare")
        .args(["-Ur", "sh", "-c", &script])
        .current_dir(env.repo())
        .env("HOME", env.home())
        .env("WEALD", env!("CARGO_BIN_EXE_weald"))
        .output()
        .unwrap();
    if output.status.code() == Some(77)
        || String::from_utf8_lossy(&output.stderr).contains("unshare failed")
    {
        return say("SKIPPED: a user namespace without further ones can't be made here");
    }
    assert!(
        output.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// In a namespace in which no further one can be made: looking still works, running is refused, nothing was started.
#[test]
fn x7_without_user_namespaces_trees_can_be_looked_into_and_nothing_runs() {
    let env = env();
    let script = r#"
"$WEALD" new a; echo mine > ../app.weald/a/mine
"$WEALD" list | grep -q '^a '
"$WEALD" status a | grep -q '1 untracked'
[ "$("$WEALD" diff a --name-only)" = mine ]
code=0; "$WEALD" run a -- touch started 2> err || code=$?
[ "$code" = 126 ]; grep -q -- '--sandbox landlock' err; [ ! -e ../app.weald/a/started ]
code=0; "$WEALD" sandbox exec --write ../app.weald/a -- true || code=$?; [ "$code" = 6 ]
"$WEALD" run a --sandbox landlock -- touch started; [ -e ../app.weald/a/started ]
"$WEALD" list | grep -q 'sandbox landlock'
! "$WEALD" rm a
"$WEALD" rm a --discard; "$WEALD" trash restore a; [ "$(cat ../app.weald/a/mine)" = mine ]
code=0; "$WEALD" doctor || code=$?; [ "$code" = 1 ]
"#;
    without_namespaces(&env, script);
}

/// Agents are refused before anything is claimed, made or told: not one event.
#[test]
fn x7_without_user_namespaces_no_agent_is_started_and_no_task_is_touched() {
    let env = repository();
    for subject in ["Failed one", "Ready one", "Phased one"] {
        env.ok(&["task", "add", subject]);
    }
    for task in ["1", "3"] {
        let failed = env.weald(&["work", task, "--", "false"]);
        assert_eq!(failed.code, 1, "{failed:#?}");
    }
    let script = r#"
events() { "$WEALD" events | wc -l; }
before=$(events)
refused() {
    code=0; "$WEALD" "$@" > out 2>&1 || code=$?
    [ "$code" = 6 ] || { echo "$*: $code"; cat out; exit 1; }
    grep -q 'sysctl -w' out && grep -q -- '--set sandbox.level=landlock' out || { echo "$*"; cat out; exit 1; }
    [ "$(events)" = "$before" ] || { echo "$*"; "$WEALD" events; exit 1; }
}
refused work 2 -- touch started
refused work 'A new task' -- touch started
refused work 2 --no-worktree -- touch started
refused worker --idle-timeout 100ms -- touch started
refused agent spawn 2 --force -- touch started
refused agent spawn 'A new task' --force -- touch started
refused race 2 -n 2 -- touch started
refused phase 3 -- touch started
refused resume 1
refused agent restart 1
[ ! -e started ]
[ "$("$WEALD" list | grep -c one)" = 2 ]
"#;
    without_namespaces(&env, script);
}
