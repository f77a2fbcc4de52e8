//! Where a session works: it follows its claims.

use std::fs;

use serde_json::json;

use crate::trees_remove::{grow, repository};

#[test]
fn w4_a_session_works_where_its_claim_is() {
    let env = repository();
    for subject in ["bound", "unbound"] {
        env.ok(&["task", "add", subject]);
    }
    let tree = grow(&env, "a", "sealed");
    env.ok(&["task", "bind", "1", "a"]);
    env.ok(&["session", "register", "alice"]);
    // A scripted worker: its tools run where weald says that its session works.
    let script = r#"
        here() { (cd "$(weald path --session)" && pwd); }
        claim() { weald task claim "$1" --json | sed 's/.*"token":\([0-9]*\),"session.*/\1/'; }
        here
        token=$(claim 1); here
        weald task done 1 --token "$token" >/dev/null; here
        weald task reopen 1 >/dev/null; token=$(claim 1); here
        other=$(claim 2); here
        weald task release 2 --token "$other" >/dev/null; here"#;
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_weald"));
    let output = env
        .command("bash")
        .env("WEALD_SESSION", "alice")
        .args(["--norc", "-ec", r#"PATH="$1:$PATH"; eval "$2""#, "bash"])
        .arg(binary.parent().unwrap())
        .arg(script)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    let (main, tree) = (env.repo().display().to_string(), tree.display().to_string());
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(
        lines,
        [&main, &tree, &main, &tree, &main, &main],
        "{errors}"
    );
}

#[test]
fn w4_a_session_whose_tree_is_gone_is_led_nowhere() {
    let env = repository();
    env.ok(&["task", "add", "bound"]);
    let tree = grow(&env, "a", "sealed");
    env.ok(&["task", "bind", "1", "a"]);
    env.ok(&["session", "register", "alice"]);
    env.ok(&["task", "claim", "1", "--session", "alice"]);
    let shown = env.ok(&["session", "show", "alice"]);
    assert_eq!(shown["directory"], json!(tree));
    fs::remove_dir_all(&tree).unwrap();
    env.refused(&["path", "--session", "alice"], 4, "tree_missing");
}

fn shell(
    env: &weald_testkit::TestEnv,
    directory: &std::path::Path,
    args: &[&str],
    session: Option<&str>,
) -> serde_json::Value {
    let mut command = env.weald_command(args);
    if let Some(session) = session {
        command.env("WEALD_SESSION", session);
    }
    let output = command.current_dir(directory).output().unwrap();
    assert!(output.status.success(), "{args:?} {output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn y23_enter_is_remembered_and_exit_from_a_new_shell_goes_back() {
    let env = repository();
    let tree = grow(&env, "a", "sealed");
    let (docs, other) = (env.repo().join("docs"), env.repo().join("other"));
    fs::create_dir(&docs).unwrap();
    fs::create_dir(&other).unwrap();
    for session in [None, Some("alice")] {
        shell(&env, &docs, &["enter", "a", "--json"], session);
        if let Some(name) = session {
            let shown = env.ok(&["session", "show", name]);
            assert_eq!(shown["session"]["tree"], "a", "{shown}");
            assert_eq!(shown["session"]["back"], json!(docs), "{shown}");
            assert_eq!(env.ok(&["path", "--session", name])["path"], json!(tree));
        }
        // Another one goes in from elsewhere; everybody with a name has their own way back.
        if session.is_some() {
            shell(&env, &other, &["enter", "a", "--json"], Some("bob"));
        }
        let left = shell(&env, &tree, &["exit", "--json"], session);
        assert_eq!(left["back"], json!(docs), "{session:?} {left}");
    }
    let shown = env.ok(&["session", "show", "alice"]);
    assert_eq!(shown["session"]["tree"], json!(null), "{shown}");
    assert_eq!(shown["directory"], json!(env.repo()));
    let left = shell(&env, &tree, &["exit", "--json"], Some("bob"));
    assert_eq!(left["back"], json!(other));
}

#[test]
fn y23_a_name_that_holds_a_task_works_in_its_worktree() {
    let env = repository();
    env.ok(&["task", "add", "Fix it"]);
    let claimed = env.ok(&["task", "claim", "1", "--session", "xeno", "--with-tree"]);
    let path = env.ok(&["path", "--session", "xeno"])["path"].clone();
    assert_eq!(path, claimed["tree"]["path"]);
    env.ok(&["session", "register", "xeno"]);
    let path = env.ok(&["path", "--session", "xeno"])["path"].clone();
    assert_eq!(path, claimed["tree"]["path"], "who registers later");
    let nobody = env.ok(&["path", "--session", "nobody"])["path"].clone();
    assert_eq!(nobody, json!(env.repo()));
}
