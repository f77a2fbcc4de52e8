//! Hooks of Claude Code where plain cases end: another tree than the claimed one, folders that are gone, parts of a
//! conversation, branches that are there, and trees that others need.

use std::path::Path;
use std::process;
use std::time::Instant;

use serde_json::{Value, json};
use weald_testkit::{Answer, TestEnv};

use crate::hooks_claude::{hook, raw};
use crate::trees_remove::{commit, git_in, grow, repository};

fn write(env: &TestEnv, cwd: &Path, file: &Path, project: Option<&Path>) -> Answer {
    let input = json!({"session_id": "7", "cwd": cwd, "tool_name": "Write",
        "tool_input": {"file_path": file}});
    with(env, "pre-tool-use", &input, "CLAUDE_PROJECT_DIR", project)
}

/// A hook with one variable more.
fn with(env: &TestEnv, event: &str, input: &Value, name: &str, value: Option<&Path>) -> Answer {
    let mut command = env.weald_command(&["hook", "claude", event]);
    command.envs(value.map(|value| (name, value)));
    raw(env, command, input.to_string().as_bytes())
}

#[test]
fn w8_the_tree_a_conversation_is_in_counts_more_than_its_claim() {
    let env = repository();
    env.ok(&["task", "add", "fix it"]);
    env.ok(&["new", "claimed", "--task", "1"]);
    let claimed = env.root().join("app.weald/claimed");
    let other = grow(&env, "other", "sealed");
    env.ok(&["task", "claim", "1", "--session", "claude-7"]);
    assert_eq!(write(&env, &other, &other.join("a"), None).code, 0);
    assert_eq!(write(&env, &other, &claimed.join("a"), None).code, 2);
    // A folder that is gone says nothing; then it is where the conversation began.
    let gone = Path::new("/gone");
    let refused = write(&env, gone, &claimed.join("a"), Some(&other));
    assert_eq!(refused.code, 2, "{refused:#?}");
    assert_eq!(write(&env, gone, &other.join("a"), Some(&other)).code, 0);
}

#[test]
fn w8_the_repository_of_the_conversation_says_what_an_error_means() {
    let env = repository();
    let tree = grow(&env, "fix", "sealed");
    let nameless = json!({"cwd": tree, "tool_input": {"file_path": tree.join("a")}});
    assert_eq!(hook(&env, "pre-tool-use", &nameless).code, 0);
    env.ok(&["config", "set", "hook.on_error", "block"]);
    let answer = hook(&env, "pre-tool-use", &nameless);
    assert_eq!(
        (answer.code, answer.stdout.as_str()),
        (2, ""),
        "{answer:#?}"
    );
}

#[test]
fn a_conversation_is_a_session_for_as_long_as_its_process_lives() {
    let env = repository();
    grow(&env, "fix", "sealed");
    let input = json!({"session_id": "7", "cwd": env.repo(), "source": "startup"});
    let pid = process::id().to_string();
    let answer = with(
        &env,
        "session-start",
        &input,
        "CLAUDE_PID",
        Some(Path::new(&pid)),
    );
    assert_eq!(answer.code, 0, "{answer:#?}");
    let sessions = env.ok(&["session", "list"])["sessions"].clone();
    assert_eq!(sessions[0]["name"], "claude-7", "{sessions}");
    assert_eq!(sessions[0]["process"]["pid"].to_string(), pid, "{sessions}");
}

#[test]
fn a_subagent_that_stops_takes_nothing_from_its_conversation() {
    let env = repository();
    let tree = grow(&env, "fix", "sealed");
    env.ok(&["session", "register", "claude-7"]);
    env.ok(&["msg", "ask", "claude-7", "which one?", "--session", "bob"]);
    let mut input = json!({"session_id": "7", "cwd": tree, "hook_event_name": "SubagentStop",
        "last_assistant_message": "only a part"});
    let part = hook(&env, "stop", &input);
    assert_eq!((part.code, part.stdout.as_str()), (0, ""), "{part:#?}");
    let note = env.weald(&["session", "note", "--session", "claude-7", "--json"]);
    assert_eq!(note.json()["error"]["code"], "no_note", "{note:#?}");
    input["hook_event_name"] = json!("Stop");
    let whole = hook(&env, "stop", &input);
    assert_eq!(whole.json()["decision"], "block", "{whole:#?}");
}

#[test]
fn a_branch_that_was_kept_is_gone_on_with_and_fresh_is_the_remotes() {
    let env = repository();
    let make = |name: &str| {
        let answer = hook(
            &env,
            "worktree-create",
            &json!({"cwd": env.repo(), "name": name}),
        );
        assert_eq!(answer.code, 0, "{answer:#?}");
        let tree = env.root().join("app.weald").join(name);
        git_in(&env, &tree, &["rev-parse", "HEAD"])
    };
    env.git(&["checkout", "-q", "-b", "wt/kept"]);
    let kept = commit(&env, &env.repo(), "kept.txt", "kept\n");
    env.git(&["checkout", "-q", "main"]);
    assert_eq!(make("kept").trim(), kept);
    // The remote has what it had; main went on.
    let remote = env.root().join("origin.git");
    let remote = remote.to_str().unwrap();
    env.git(&["clone", "-q", "--bare", ".", remote]);
    env.git(&["remote", "add", "origin", remote]);
    env.git(&["fetch", "-q", "origin"]);
    env.git(&["remote", "set-head", "origin", "main"]);
    let theirs = env.git(&["rev-parse", "main"]);
    let ours = commit(&env, &env.repo(), "ours.txt", "ours\n");
    assert_eq!(make("plain").trim(), ours);
    let folder = env.home().join(".claude");
    std::fs::create_dir(&folder).unwrap();
    let settings = json!({"worktree": {"baseRef": "fresh"}});
    std::fs::write(folder.join("settings.json"), settings.to_string()).unwrap();
    assert_eq!(make("fresh"), theirs);
}

#[test]
fn a_tree_that_another_lands_on_is_kept() {
    let env = repository();
    let around = grow(&env, "around", "sealed");
    let nested = json!({"cwd": around, "name": "nested"});
    assert_eq!(hook(&env, "worktree-create", &nested).code, 0);
    let left = hook(&env, "worktree-remove", &json!({"worktree_path": around}));
    assert_eq!((left.code, left.stdout.as_str()), (0, ""), "{left:#?}");
    assert!(left.stderr.contains("around is kept at"), "{left:#?}");
    assert!(around.exists());
}

#[test]
fn a_tree_whose_task_another_session_holds_stays() {
    let env = repository();
    env.ok(&["task", "add", "fix it"]);
    env.ok(&["task", "claim", "1", "--session", "bob", "--ttl", "1h"]);
    let path = grow(&env, "a", "sealed");
    env.ok(&["task", "bind", "1", "a"]);
    // Bob never registered, so nothing but his lease speaks for him.
    let input = json!({"session_id": "7", "cwd": env.repo(), "worktree_path": path});
    let left = hook(&env, "worktree-remove", &input);
    assert_eq!(left.code, 0, "{left:#?}");
    assert!(left.stderr.contains("bob"), "{left:#?}");
    assert!(path.exists(), "{left:#?}");
    let refused = env.refused(&["rm", "a"], 1, "tree_referenced");
    let told = refused["error"]["details"].to_string();
    assert!(told.contains("session bob, which holds its task"), "{told}");
    let mut own = env.weald_command(&["rm", "a"]);
    let own = Answer::of(own.env("WEALD_SESSION", "bob").output().unwrap());
    assert_eq!(own.code, 0, "{own:#?}");
    assert!(!path.exists());
}

#[test]
fn a_lease_that_ran_out_keeps_no_tree() {
    let env = repository();
    env.ok(&["task", "add", "fix it"]);
    env.ok(&["task", "claim", "1", "--session", "bob", "--ttl", "1s"]);
    grow(&env, "a", "sealed");
    env.ok(&["task", "bind", "1", "a"]);
    let has_run_out = || {
        let answer = env.weald(&["rm", "a"]);
        assert!([0, 1].contains(&answer.code), "{answer:#?}");
        answer.code == 0
    };
    let began = Instant::now();
    while !has_run_out() {
        assert!(began.elapsed().as_secs() < 60, "it is still referred to");
    }
}
