//! What works without user namespaces, and what says so.

use std::path::Path;
use std::process::Command;

use weald_testkit::{TestEnv, full_scale, skipped};

use crate::env;
use crate::sandbox::{as_user, is_root, ordinary_home, own_home};
use crate::trees_remove::repository;

/// Runs a script in a namespace in which no further one can be made.
pub fn without_namespaces(env: &TestEnv, script: &str) {
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
        return skipped("a user namespace without further ones can't be made here");
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

/// A tree whose clean filter opens a file outside as soon as it runs with less than a read-only view: proven to do that free.
const TRAP: &str = r#"
set -e
git init -q -b main app; cd app
git config user.name T; git config user.email t@example.com
echo base > base; git add -A; git commit -qm one
W=$HOME/weald; T=$HOME/app.weald/a; CANARY=$HOME/canary
$W new a > /dev/null
echo x > $CANARY; chmod 600 $CANARY
shut() { [ "$(stat -c %a $CANARY)" = 600 ] || { echo "the filter ran at a weaker level: $1"; exit 1; }; }
git -C $T config filter.evil.clean "chmod 666 $CANARY; cat"
echo '* filter=evil' > $T/.gitattributes; echo bass > $T/base
git -C $T status > /dev/null
[ "$(stat -c %a $CANARY)" = 666 ] || { echo "the filter has no teeth"; exit 1; }
chmod 600 $CANARY
"#;

fn in_trap(home: &Path, script: &str) {
    let mut command = Command::new("sh");
    if home.file_name().unwrap().to_str().unwrap().contains("user") {
        as_user(&mut command);
    }
    command.args(["-c", &format!("{TRAP}{script}")]);
    command.current_dir(home).env_clear().env("HOME", home);
    command.env("PATH", "/usr/local/bin:/usr/bin:/bin");
    let output = command.env("WEALD_POOL_SIZE", "0").output().unwrap();
    let told = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{told}");
    let _ = std::fs::remove_dir_all(home);
}

/// The homes of root and of an ordinary user, as far as they can be had.
pub fn homes(name: &str) -> Vec<std::path::PathBuf> {
    let root = is_root().then(|| own_home(&format!("{name}-root")));
    let user = ordinary_home(&format!("{name}-user"));
    let homes: Vec<_> = root.into_iter().chain(user).collect();
    assert!(!homes.is_empty(), "neither root nor a user can try this");
    homes
}

#[test]
fn x13_a_worktree_that_can_not_be_read_is_an_error_and_not_a_weaker_sandbox() {
    let script = r#"
for mode in 300 100 000; do
    chmod $mode $T
    for command in "list --fresh" "status a" "show a" "diff a" "sync a" "snapshot create a" "land a" "rm a" "doctor"; do
        code=0; $W $command > out 2>&1 || code=$?
        case $code in 0|1) ;; *) echo "$mode: $command: $code"; cat out; exit 1;; esac
        shut "$mode: $command"
        if [ "$command" = "status a" ]; then grep -q 'chmod u+rwx' out || { cat out; exit 1; }; fi
        if [ "$command" = "rm a" ]; then [ "$code" = 1 ] || { cat out; exit 1; }; fi
    done
done
chmod 755 $T; [ "$(cat $T/base)" = bass ]
$W status a | grep -q 'base'; shut "afterwards"
"#;
    for home in homes("x13-mode") {
        in_trap(&home, script);
    }
}

#[test]
fn x13_a_run_that_closes_its_worktree_while_it_asks_gets_no_weaker_sandbox() {
    let seconds = if full_scale() { 120 } else { 4 };
    let script = format!(
        r#"
cat > $HOME/attack <<'END'
( while [ ! -e $TMPDIR/stop ]; do chmod 0300 .; chmod 0755 .; done ) &
end=$(($(date +%s) + {seconds}))
while [ $(date +%s) -lt $end ]; do "$HOME/weald" status > $TMPDIR/out 2>&1 && echo seen >> $TMPDIR/seen || :; done
touch $TMPDIR/stop; wait; chmod 755 .; [ -s $TMPDIR/seen ]
END
$W run a -- sh $HOME/attack; shut "the race"
"#
    );
    for home in homes("x13-race") {
        in_trap(&home, &script);
    }
}

/// What goes wrong with a run's own preparation is never taken for a missing layer.
#[test]
fn x13_a_run_that_can_not_be_prepared_is_no_missing_layer() {
    let script = r#"
ln -s loop $T/loop
code=0; $W --json sandbox exec --write $T --mask $T/loop/x -- true > out 2>&1 || code=$?
[ "$code" = 1 ] && grep -q sandbox_not_prepared out || { echo "$code"; cat out; exit 1; }
! grep -q -e sysctl -e landlock out || { cat out; exit 1; }
code=0; $W --set sandbox.read_deny=$T/loop/x run a -- true > out 2>&1 || code=$?
[ "$code" = 125 ] && grep -q 'could not be prepared' out || { echo "$code"; cat out; exit 1; }
"#;
    for home in homes("x13-prepare") {
        in_trap(&home, script);
    }
}
