//! What works without user namespaces, and what says so.

use std::process::Command;

use crate::env;
use crate::sandbox::say;

/// In a namespace in which no further one can be made: looking still works, running is refused, nothing was started.
#[test]
fn x7_without_user_namespaces_trees_can_be_looked_into_and_nothing_runs() {
    let env = env();
    let script = r#"
echo 0 > /proc/sys/user/max_user_namespaces || exit 77
set -e
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
    let output = Command::new("unshare")
        .args(["-Ur", "sh", "-c", script])
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
