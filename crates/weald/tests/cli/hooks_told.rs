//! What hooks tell a conversation while it goes on, and what they keep when it stops; also from inside a sandbox.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use weald_testkit::{Answer, TestEnv};

use crate::broker::{agent_field, begin_alice, field, weald};
use crate::hooks_claude::{hook, raw};
use crate::in_agent::{InAgent, ended};
use crate::trees_crash::settle;
use crate::trees_remove::{commit, git_in, grow, repository};

const SESSION: &str = "claude-7";

/// How long what goes on in the background may take.
const PATIENCE: Duration = Duration::from_secs(120);

fn told(answer: &Answer) -> String {
    assert_eq!(answer.code, 0, "{answer:#?}");
    if answer.stdout.is_empty() {
        return String::new();
    }
    let context = &answer.json()["hookSpecificOutput"]["additionalContext"];
    context.as_str().unwrap().to_owned()
}

fn used(env: &TestEnv, tree: &Path, file: &str) -> String {
    let input = json!({"session_id": "7", "cwd": tree, "hook_event_name": "PostToolUse",
        "tool_name": "Edit", "tool_input": {"file_path": tree.join(file)}, "tool_response": {}});
    told(&hook(env, "post-tool-use", &input))
}

fn stop(env: &TestEnv, tree: &Path, more: &Value) -> Answer {
    let mut input = json!({"session_id": "7", "cwd": tree, "hook_event_name": "Stop"});
    let more = more.as_object().unwrap().clone();
    input.as_object_mut().unwrap().extend(more);
    hook(env, "stop", &input)
}

#[test]
fn messages_arrive_once_and_a_question_holds_a_stop_once() {
    let env = repository();
    let tree = grow(&env, "fix", "sealed");
    assert_eq!(used(&env, &tree, "config.py"), "");
    env.ok(&["msg", "send", SESSION, "mind the gap", "--session", "bob"]);
    let first = used(&env, &tree, "config.py");
    assert!(
        first.contains("mind the gap") && first.contains("bob"),
        "{first}"
    );
    assert_eq!(used(&env, &tree, "config.py"), "");
    // Words alone hold nobody; a question does.
    env.ok(&["msg", "send", SESSION, "just words", "--session", "bob"]);
    assert_eq!(stop(&env, &tree, &json!({})).stdout, "");
    env.ok(&["msg", "ask", SESSION, "which one?", "--session", "bob"]);
    let again = stop(&env, &tree, &json!({"stop_hook_active": true}));
    assert_eq!((again.code, again.stdout.as_str()), (0, ""), "{again:#?}");
    let held = stop(&env, &tree, &json!({"last_assistant_message": "all done"}));
    assert_eq!(held.code, 0, "{held:#?}");
    assert_eq!(held.json()["decision"], "block");
    let reason = held.json()["reason"].as_str().unwrap().to_owned();
    assert!(
        reason.contains("which one?") && reason.contains("weald msg reply"),
        "{reason}"
    );
    assert_eq!(stop(&env, &tree, &json!({})).stdout, "");
}

#[test]
fn messages_are_told_whatever_else_a_tool_call_is() {
    let env = repository();
    let tree = grow(&env, "fix", "sealed");
    for (input, said) in [
        (json!({}), "`tool_name`"),
        (json!({"tool_name": "Edit", "tool_input": {}}), "file_path"),
        (
            json!({"tool_name": "mcp__x__y", "tool_input": {"file_path": ["a", "b"]}}),
            "",
        ),
        (json!({"tool_name": "mcp__x__y", "tool_input": "a"}), ""),
        (json!({"tool_name": "mcp__x__y", "tool_input": [1]}), ""),
    ] {
        let mut all = json!({"session_id": "7", "cwd": tree});
        let more = input.as_object().unwrap().clone();
        all.as_object_mut().unwrap().extend(more);
        env.ok(&["msg", "send", SESSION, "mind the gap", "--session", "bob"]);
        let answer = hook(&env, "post-tool-use", &all);
        assert!(told(&answer).contains("mind the gap"), "{input}");
        assert!(answer.stderr.contains(said), "{input}: {answer:#?}");
        assert_eq!(answer.stderr.is_empty(), said.is_empty(), "{answer:#?}");
    }
}

#[test]
fn a_claimed_tree_in_the_trash_is_told_and_holds_nobody_up() {
    let env = repository();
    env.ok(&["task", "add", "fix it"]);
    env.ok(&["new", "fix", "--task", "1"]);
    env.ok(&["session", "register", SESSION]);
    env.ok(&["task", "claim", "1", "--session", SESSION]);
    let removed = env.ok(&["rm", "fix", "--force"]);
    assert_eq!(removed["restore"], "weald trash restore 1", "{removed}");
    let restore = "weald restore 1".to_owned();
    let main = env.repo();
    let start = json!({"session_id": "7", "cwd": main, "source": "startup"});
    let context = told(&hook(&env, "session-start", &start));
    for part in [&restore, "Task 1", SESSION] {
        assert!(context.contains(part), "{part}: {context}");
    }
    env.ok(&["msg", "send", SESSION, "mind the gap", "--session", "bob"]);
    assert!(used(&env, &main, "config.py").contains("mind the gap"));
    let stopped = stop(&env, &main, &json!({"last_assistant_message": "half"}));
    assert_eq!((stopped.code, stopped.stdout.as_str()), (0, ""));
    assert!(stopped.stderr.contains(&restore), "{stopped:#?}");
    let shown = env.ok(&["session", "show", SESSION]);
    assert_eq!(shown["directory"], Value::Null, "{shown}");
    assert_eq!(shown["problem"]["hint"], restore.as_str(), "{shown}");
    assert_eq!(shown["session"]["note"]["text"], "last said: half");
    env.refused(&["path", "--session", SESSION], 4, "tree_not_found");
    env.ok(&restore.split(' ').skip(1).collect::<Vec<_>>());
    let context = told(&hook(&env, "session-start", &start));
    assert!(context.contains("weald path fix"), "{context}");
    assert!(!context.contains("trash"), "{context}");
}

#[test]
fn the_task_that_was_claimed_last_is_meant() {
    let env = repository();
    for (task, tree) in [("1", "one"), ("2", "two"), ("3", "three")] {
        env.ok(&["task", "add", "fix it"]);
        env.ok(&["new", tree, "--task", task]);
    }
    let start = json!({"session_id": "7", "cwd": env.repo(), "source": "startup"});
    for task in ["3", "1", "2"] {
        env.ok(&["task", "claim", task, "--session", SESSION]);
        let context = told(&hook(&env, "session-start", &start));
        assert!(context.contains(&format!("Task {task} (")), "{context}");
    }
}

#[test]
fn an_event_that_nobody_knows_names_its_client() {
    let env = repository();
    for client in ["claude", "codex"] {
        let answer = env.weald_with_input(&["hook", client, "nosuch"], b"{}");
        assert_eq!((answer.code, answer.stdout.as_str()), (1, ""));
        let hint = format!("weald install {client}");
        assert!(answer.stderr.contains(&hint), "{answer:#?}");
    }
}

#[test]
fn whoever_changes_the_same_file_is_named_once() {
    let env = repository();
    let tree = grow(&env, "fix", "sealed");
    let committed = grow(&env, "committed", "sealed");
    let dirty = grow(&env, "dirty", "sealed");
    grow(&env, "same", "sealed");
    commit(&env, &committed, "config.py", "theirs\n");
    env.ok(&["status", "committed"]);
    fs::write(dirty.join("config.py"), "unsaved\n").unwrap();
    // Nobody looked into it yet.
    let first = used(&env, &tree, "config.py");
    assert!(first.contains(": committed."), "{first}");
    assert_eq!(stop(&env, &dirty, &json!({})).code, 0);
    let second = used(&env, &tree, "config.py");
    assert!(second.contains(": dirty."), "{second}");
    assert_eq!(used(&env, &tree, "config.py"), "");
    assert_eq!(used(&env, &tree, ".gitignore"), "");
}

#[test]
fn a_stop_keeps_commits_and_files_and_what_was_said() {
    let env = repository();
    let tree = grow(&env, "fix", "sealed");
    let head = commit(&env, &tree, "work.txt", "done\n");
    fs::write(tree.join("half"), "half\n").unwrap();
    env.ok(&["session", "register", "claude-8"]);
    let input = json!({"session_id": "8", "cwd": tree, "hook_event_name": "Stop",
        "stop_hook_active": false, "last_assistant_message": "half of it works"});
    let answer = hook(&env, "stop", &input);
    assert_eq!(
        (answer.code, answer.stdout.as_str()),
        (0, ""),
        "{answer:#?}"
    );
    let vault = env.repo().join(".git/weald/vault");
    git_in(&env, &vault, &["cat-file", "-e", &head]);
    let snapshots = env.ok(&["snapshot", "list", "fix"]);
    assert_eq!(snapshots["snapshots"].as_array().unwrap().len(), 1);
    let note = &env.ok(&["session", "note", "--session", "claude-8"])["note"]["text"];
    assert_eq!(note, "last said: half of it works");
    // Nothing changed: nothing is kept twice.
    assert_eq!(hook(&env, "stop", &input).code, 0);
    let again = env.ok(&["snapshot", "list", "fix"]);
    assert_eq!(again["snapshots"].as_array().unwrap().len(), 1);
    // The turn that a stop hook asked for is work like any other.
    fs::write(tree.join("half"), "all\n").unwrap();
    let mut sent_back = input;
    sent_back["stop_hook_active"] = json!(true);
    assert_eq!(hook(&env, "stop", &sent_back).code, 0);
    let again = env.ok(&["snapshot", "list", "fix"]);
    assert_eq!(again["snapshots"].as_array().unwrap().len(), 2);
}

#[test]
fn a_stop_answers_first_and_the_work_is_kept_behind_it() {
    let env = repository();
    let tree = grow(&env, "fix", "sealed");
    let head = commit(&env, &tree, "work.txt", "done\n");
    fs::write(tree.join("half"), "half\n").unwrap();
    let input = json!({"session_id": "7", "cwd": tree, "hook_event_name": "Stop"});
    // Parts of a conversation stop at the same time.
    for _ in 0..4 {
        let mut command = env.weald_command(&["hook", "claude", "stop"]);
        command.env("WEALD_HOOK_BACKGROUND", "true");
        let answer = raw(&env, command, input.to_string().as_bytes());
        assert_eq!(
            (answer.code, answer.stdout.as_str(), answer.stderr.as_str()),
            (0, "", ""),
            "{answer:#?}"
        );
    }
    let begun = Instant::now();
    let snapshots = || env.ok(&["snapshot", "list", "fix"])["snapshots"].clone();
    while snapshots() == json!([]) {
        assert!(begun.elapsed() < PATIENCE, "nobody keeps the work");
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(snapshots()[0]["reason"], "an agent stopped");
    // Who waited for too long may have kept the same. Whoever comes after them finds nothing to keep.
    settle(&env);
    let kept = snapshots();
    assert_eq!(hook(&env, "stop", &input).code, 0);
    assert_eq!(snapshots(), kept);
    let vault = env.repo().join(".git/weald/vault");
    git_in(&env, &vault, &["cat-file", "-e", &head]);
}

/// Runs a hook in tree `fix`, under `weald run`.
fn inside(env: &TestEnv, event: &str, input: &Value) -> Answer {
    let mut command = env.weald_command(&["run", "fix", "--"]);
    let script = "printf '%s' \"$2\" | \"$0\" hook claude \"$1\"";
    command
        .args(["sh", "-c", script])
        .arg(weald(env))
        .arg(event);
    command.arg(input.to_string()).env("WEALD_SESSION", "alice");
    Answer::of(command.stdin(Stdio::null()).output().unwrap())
}

/// Runs a hook as alice, an agent in tree `fix`.
fn as_alice(alice: &mut InAgent, event: &str, input: &Value) -> Answer {
    alice.run(&["weald", "hook", "claude", event], &input.to_string())
}

#[test]
fn x12_hooks_inside_a_sandbox_speak_through_the_broker() {
    for level in ["full", "landlock"] {
        let env = agent_field();
        let tree = env.root().join("app.weald/fix");
        // Where Claude Code keeps its own files, by a link, and with a way out of it.
        let own = env.home().join("own");
        fs::create_dir_all(own.join("plans")).unwrap();
        symlink(env.repo(), own.join("plans/out")).unwrap();
        symlink(&own, env.home().join(".claude")).unwrap();
        symlink(env.repo(), tree.join("out")).unwrap();
        let (child, mut alice) = begin_alice(&env, level);
        env.ok(&["msg", "send", "alice", "hello there", "--session", "bob"]);
        let start = as_alice(
            &mut alice,
            "session-start",
            &json!({"cwd": tree, "source": "startup"}),
        );
        let context = told(&start);
        for part in ["tree fix", "Task 1", "fix it", "alice", "hello there"] {
            assert!(context.contains(part), "{level} {part}: {context}");
        }
        let mut edit = |file: &Path| {
            let input =
                json!({"cwd": tree, "tool_name": "Edit", "tool_input": {"file_path": file}});
            as_alice(&mut alice, "pre-tool-use", &input)
        };
        assert_eq!(edit(&tree.join("a.txt")).code, 0, "{level}");
        // One rule inside and outside: what counts is where a path leads.
        assert_eq!(edit(Path::new("../fix/a.txt")).code, 0, "{level}");
        assert_eq!(edit(&tree.join("out/a.txt")).code, 2, "{level}");
        assert_eq!(edit(&own.join("plans/new.md")).code, 0, "{level}");
        assert_eq!(edit(&own.join("plans/out/a.txt")).code, 2, "{level}");
        let refused = edit(&env.repo().join("a.txt"));
        assert_eq!(
            (refused.code, refused.stdout.as_str()),
            (2, ""),
            "{level}: {refused:#?}"
        );
        let meant = tree.join("a.txt");
        assert!(
            refused.stderr.contains(meant.to_str().unwrap()),
            "{level}: {refused:#?}"
        );
        assert_eq!(edit(Path::new("/etc/passwd")).code, 2, "{level}");
        let used = json!({"cwd": tree, "tool_name": "Edit", "tool_input": {"file_path": meant}});
        assert_eq!(
            told(&as_alice(&mut alice, "post-tool-use", &used)),
            "",
            "{level}"
        );
        fs::write(tree.join(level), "x").unwrap();
        let before = snapshots(&env);
        // The second one finds nothing new: copies would push out what is older.
        for _ in 0..2 {
            let stopped = as_alice(
                &mut alice,
                "stop",
                &json!({"cwd": tree, "stop_hook_active": false}),
            );
            assert_eq!(
                (stopped.code, stopped.stdout.as_str()),
                (0, ""),
                "{level}: {stopped:#?}"
            );
            assert_eq!(snapshots(&env), before + 1, "{level}");
        }
        trees_come_and_go_outside(&env, &mut alice, &tree);
        alice.exit(1);
        ended(child);
    }
}

fn trees_come_and_go_outside(env: &TestEnv, alice: &mut InAgent, tree: &Path) {
    let create = as_alice(
        alice,
        "worktree-create",
        &json!({"cwd": tree, "name": "sub"}),
    );
    assert_eq!(
        (create.code, create.stdout.as_str()),
        (1, ""),
        "{create:#?}"
    );
    assert!(
        create.stderr.contains("from inside a sandbox"),
        "{create:#?}"
    );
    let other = env.root().join("app.weald/other");
    let remove = as_alice(alice, "worktree-remove", &json!({"worktree_path": other}));
    assert_eq!(
        (remove.code, remove.stdout.as_str()),
        (0, ""),
        "{remove:#?}"
    );
    assert!(
        remove.stderr.contains("from inside a sandbox"),
        "{remove:#?}"
    );
    assert!(other.exists());
}

/// Whoever starts an agent by a script of their own gets hooks that tell where it is, and nobody's messages.
#[test]
fn x24_hooks_of_a_run_without_a_session_tell_its_place_and_no_messages() {
    let env = field();
    let tree = env.root().join("app.weald/fix");
    env.ok(&["msg", "send", "alice", "hello there", "--session", "bob"]);
    let start = inside(
        &env,
        "session-start",
        &json!({"cwd": tree, "source": "startup"}),
    );
    let context = told(&start);
    assert!(context.contains("tree fix"), "{context}");
    assert!(context.contains("until a person lands it"), "{context}");
    assert!(!context.contains("hello there"), "{context}");
    let stopped = inside(
        &env,
        "stop",
        &json!({"cwd": tree, "stop_hook_active": false}),
    );
    assert_eq!(
        (stopped.code, stopped.stdout.as_str()),
        (0, ""),
        "{stopped:#?}"
    );
    let inbox = env.ok(&["msg", "inbox", "--session", "alice"]);
    assert_eq!(inbox["messages"].as_array().unwrap().len(), 1);
}

fn snapshots(env: &TestEnv) -> usize {
    let listed = env.ok(&["snapshot", "list", "fix"]);
    listed["snapshots"].as_array().unwrap().len()
}

#[test]
fn who_else_changes_a_file_is_told_by_any_way_of_writing_its_path() {
    for (path, is_told) in [
        ("config.py", true),
        ("sub/../config.py", true),
        ("./sub/./../config.py", true),
        ("../fix/config.py", true),
        ("../other/config.py", false),
        ("../x", false),
        ("../../../../../../../../x", false),
        ("sub/../../fix", false),
    ] {
        // Both sides have to be told anew each time.
        let env = field();
        let folder = |name: &str| env.root().join("app.weald").join(name);
        commit(&env, &folder("other"), "config.py", "other's\n");
        env.ok(&["status", "other"]);
        let tree = folder("fix");
        let said = used(&env, &tree, path);
        assert_eq!(said.contains("other"), is_told, "{path}: {said}");
        // From inside the broker is asked.
        let input = json!({"cwd": tree, "tool_name": "Edit",
            "tool_input": {"file_path": tree.join(path)}});
        let said = told(&inside(&env, "post-tool-use", &input));
        assert_eq!(said.contains("other"), is_told, "{path}, inside: {said}");
    }
}

#[test]
fn a_stop_waits_neither_for_ever_nor_behind_another() {
    let env = repository();
    let tree = grow(&env, "fix", "sealed");
    fs::write(tree.join("draft"), "mine\n").unwrap();
    let workshop = env.private().join("workshop");
    fs::create_dir_all(&workshop).unwrap();
    // Somebody who has the turn and does not go on.
    let turn = fs::File::create(workshop.join("snapshot-1")).unwrap();
    turn.lock().unwrap();
    let keep = ["snapshot", "create", "fix", "--background"];
    let mut first = env.weald_command(&keep).spawn().unwrap();
    let next = workshop.join("snapshot-1.next");
    let began = Instant::now();
    let is_waited_for = || fs::read_to_string(&next).is_ok_and(|text| text == "waits\n");
    while !is_waited_for() {
        assert!(began.elapsed() < PATIENCE, "nobody waits");
        thread::sleep(Duration::from_millis(10));
    }
    let second = env.weald(&keep);
    assert_eq!(second.code, 0, "{second:#?}");
    assert!(first.try_wait().unwrap().is_none(), "both waited");
    let kept = || {
        let listed = env.ok(&["snapshot", "list", "fix"]);
        listed["snapshots"].as_array().unwrap().len()
    };
    assert_eq!(kept(), 0);
    // Overdue, it is done without the turn.
    assert!(first.wait().unwrap().success());
    assert_eq!(kept(), 1);
    assert!(!next.exists());
    drop(turn);
}
