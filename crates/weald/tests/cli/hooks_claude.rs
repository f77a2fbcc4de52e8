//! Hooks of Claude Code: JSON in the shape that it really sends, what comes back, and what is left alone.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use weald_testkit::{Answer, TestEnv};

use crate::trees_remove::{commit, git_in, grow, repository};

/// Every event, with what only it has.
fn events(tree: &Path) -> Vec<(&'static str, &'static str, Value)> {
    let file = tree.join("config.py");
    let tool = json!({"tool_name": "Edit", "tool_use_id": "toolu_1",
        "tool_input": {"file_path": file, "old_string": "a", "new_string": "b", "replace_all": false}});
    let mut used = tool.clone();
    used["tool_response"] = json!({"filePath": file, "structuredPatch": [{"lines": ["-a", "+b"]}]});
    used["duration_ms"] = json!(7);
    vec![
        (
            "worktree-create",
            "WorktreeCreate",
            json!({"name": "asked"}),
        ),
        (
            "worktree-remove",
            "WorktreeRemove",
            json!({"worktree_path": tree.join("not-there")}),
        ),
        (
            "session-start",
            "SessionStart",
            json!({"source": "startup", "model": "m"}),
        ),
        ("pre-tool-use", "PreToolUse", tool),
        ("post-tool-use", "PostToolUse", used),
        (
            "stop",
            "Stop",
            json!({"stop_hook_active": false, "last_assistant_message": "done",
                "background_tasks": [], "session_crons": []}),
        ),
    ]
}

/// The fields of an event as Claude Code 2.1 sends them, with some that nobody knows.
fn recorded(event: &str, cwd: &Path, own: &Value) -> Value {
    let mut input = json!({
        "session_id": "2f95bcfc-9bc2-422c-921f-29c50c50a140",
        "transcript_path": "/home/u/.claude/projects/x/2f95bcfc.jsonl",
        "cwd": cwd, "prompt_id": "8281feeb", "permission_mode": "acceptEdits",
        "effort": {"level": "medium"}, "hook_event_name": event,
        "agent_id": "ae03ce5c", "agent_type": "general-purpose",
        "tomorrow": {"deep": [1, {"x": null}]},
    });
    let own = own.as_object().unwrap().clone();
    input.as_object_mut().unwrap().extend(own);
    input
}

fn command(env: &TestEnv, event: &str) -> Command {
    env.weald_command(&["hook", "claude", event])
}

/// Runs a hook with bytes on its standard input, from a folder that is nobody's.
pub fn raw(env: &TestEnv, mut command: Command, input: &[u8]) -> Answer {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.current_dir(env.home()).spawn().unwrap();
    let _ = child.stdin.take().unwrap().write_all(input);
    Answer::of(child.wait_with_output().unwrap())
}

pub fn hook(env: &TestEnv, event: &str, input: &Value) -> Answer {
    raw(env, command(env, event), input.to_string().as_bytes())
}

/// An edit of a file from a directory.
pub fn edit(env: &TestEnv, cwd: &Path, file: &Path) -> Answer {
    let own = json!({"tool_name": "Write", "tool_input": {"file_path": file, "content": "x"}});
    hook(env, "pre-tool-use", &recorded("PreToolUse", cwd, &own))
}

/// What Claude Code is told beside.
fn told(answer: &Answer) -> String {
    let output = &answer.json()["hookSpecificOutput"];
    output["additionalContext"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

const SESSION: &str = "claude-2f95bcfc-9bc2-422c-921f-29c50c50a140";

#[test]
fn every_hook_answers_as_its_contract_says() {
    let env = repository();
    let tree = grow(&env, "fix", "sealed");
    for (event, name, own) in events(&tree) {
        let answer = hook(&env, event, &recorded(name, &tree, &own));
        assert_eq!(answer.code, 0, "{event}: {answer:#?}");
        match event {
            "worktree-create" => {
                let path = env.root().join("app.weald/asked");
                assert_eq!(answer.stdout, format!("{}\n", path.display()));
            }
            "session-start" => {
                assert_eq!(
                    answer.json()["hookSpecificOutput"]["hookEventName"],
                    "SessionStart"
                );
                assert!(told(&answer).contains("tree fix"), "{answer:#?}");
            }
            _ => assert_eq!(answer.stdout, "", "{event}: {answer:#?}"),
        }
    }
}

#[test]
fn what_is_not_understood_is_said_and_nothing_is_done() {
    let env = repository();
    let tree = grow(&env, "fix", "sealed");
    let before = env.ok(&["list"]);
    let huge = format!("{{\"name\": \"{}\"", "x".repeat(17 << 20));
    let texts: [&[u8]; 6] = [
        b"",
        b"garbage",
        b"[]",
        b"{\"cwd\": 7}",
        b"{\"name\"",
        huge.as_bytes(),
    ];
    for (event, ..) in events(&tree) {
        // Reading so much takes a moment, and is the same for all.
        let huge_too = usize::from(event == "pre-tool-use");
        for text in &texts[..5 + huge_too] {
            let answer = raw(&env, command(&env, event), text);
            // Nothing that Claude Code does is stopped by it.
            let expected = i32::from(event != "pre-tool-use");
            let shown = String::from_utf8_lossy(&text[..text.len().min(20)]);
            assert_eq!(answer.code, expected, "{event} {shown}: {answer:#?}");
            assert_eq!(answer.stdout, "", "{event} {shown}: {answer:#?}");
            assert!(
                answer.stderr.starts_with("error: "),
                "{event} {shown}: {answer:#?}"
            );
        }
    }
    for (event, missing) in [
        ("worktree-create", "name"),
        ("worktree-remove", "worktree_path"),
        ("pre-tool-use", "tool_name"),
        ("post-tool-use", "tool_name"),
    ] {
        let answer = hook(&env, event, &json!({"cwd": tree}));
        assert!(
            answer.stderr.contains(&format!("`{missing}`")),
            "{event}: {answer:#?}"
        );
    }
    let unknown = hook(&env, "pre-compact", &json!({}));
    assert_eq!(
        (unknown.code, unknown.stdout.as_str()),
        (1, ""),
        "{unknown:#?}"
    );
    assert_eq!(
        env.ok(&["list"])["trees"].as_array().unwrap().len(),
        before["trees"].as_array().unwrap().len()
    );
}

#[test]
fn one_object_is_enough_and_large_edits_are_read() {
    let env = repository();
    let tree = grow(&env, "fix", "sealed");
    let content = "line\n".repeat(1 << 20);
    let own = json!({"tool_name": "Write", "tool_input": {"file_path": tree.join("a"), "content": content}});
    let input = recorded("PreToolUse", &tree, &own).to_string();
    let mut command = command(&env, "pre-tool-use");
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    // Nobody closes this end before it has answered.
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(0));
    drop(stdin);
}

#[test]
fn where_weald_is_not_used_nothing_happens() {
    let env = repository();
    let elsewhere = env.root().join("plain");
    fs::create_dir(&elsewhere).unwrap();
    for folder in [env.repo(), elsewhere] {
        for (event, name, own) in events(&folder) {
            if event == "worktree-create" {
                continue;
            }
            let answer = hook(&env, event, &recorded(name, &folder, &own));
            let silent = event == "worktree-remove" || answer.stderr.is_empty();
            assert!(silent, "{event}: {answer:#?}");
            assert_eq!(
                (answer.code, answer.stdout.as_str()),
                (0, ""),
                "{event}: {answer:#?}"
            );
        }
    }
    assert!(!env.repo().join(".git/weald").exists());
    // A name that no tree can have leaves no trace either.
    for name in ["null/../x", "-x", "a b", "x\n", "..", "/a"] {
        let input = recorded("WorktreeCreate", &env.repo(), &json!({"name": name}));
        let answer = hook(&env, "worktree-create", &input);
        assert_eq!(
            (answer.code, answer.stdout.as_str()),
            (1, ""),
            "{name}: {answer:#?}"
        );
    }
    assert!(!env.repo().join(".git/weald").exists());
}

#[test]
fn w8_edits_stay_in_the_tree_of_the_session() {
    let env = repository();
    let tree = grow(&env, "fix", "sealed");
    let other = grow(&env, "other", "sealed");
    fs::create_dir(tree.join("src")).unwrap();
    symlink(env.repo(), tree.join("way-out")).unwrap();
    symlink(&tree, env.root().join("way-in")).unwrap();
    for (path, meant) in [
        (env.repo().join("config.py"), Some("config.py")),
        (env.repo().join("new/deep.py"), Some("new/deep.py")),
        (env.repo().join("new/../config.py"), Some("config.py")),
        (tree.join("../../app/config.py"), Some("config.py")),
        (other.join("config.py"), Some("config.py")),
        (PathBuf::from("../../app/config.py"), Some("config.py")),
        (tree.join("way-out/config.py"), None),
        (tree.join("way-out/../app/config.py"), None),
        (env.repo().join(".git/config"), None),
        (env.home().join("notes"), None),
        (PathBuf::from("/etc/passwd"), None),
    ] {
        let answer = edit(&env, &tree, &path);
        assert_eq!(
            (answer.code, answer.stdout.as_str()),
            (2, ""),
            "{path:?}: {answer:#?}"
        );
        match meant {
            Some(meant) => {
                let meant = format!("Use {} instead", tree.join(meant).display());
                assert!(answer.stderr.contains(&meant), "{path:?}: {answer:#?}");
            }
            None => assert!(!answer.stderr.contains("instead"), "{path:?}: {answer:#?}"),
        }
    }
    for path in [
        tree.join("config.py"),
        tree.join("src/new/deep.py"),
        tree.join("src/../config.py"),
        PathBuf::from("src/new.py"),
        env.root().join("way-in/config.py"),
        env.home().join(".claude/plans/plan.md"),
    ] {
        fs::create_dir_all(env.home().join(".claude/plans")).unwrap();
        let answer = edit(&env, &tree.join("src"), &path);
        assert_eq!(
            (answer.code, answer.stderr.as_str()),
            (0, ""),
            "{path:?}: {answer:#?}"
        );
    }
    // Every tool that edits, wherever it names its file.
    for (name, field) in [
        ("Edit", "file_path"),
        ("MultiEdit", "file_path"),
        ("NotebookEdit", "notebook_path"),
    ] {
        for (path, code) in [(env.repo().join("a"), 2), (tree.join("a"), 0)] {
            let own = json!({"tool_name": name, "tool_input": {field: path}});
            let answer = hook(&env, "pre-tool-use", &recorded("PreToolUse", &tree, &own));
            assert_eq!(answer.code, code, "{name}: {answer:#?}");
        }
    }
    // Tools that write no file, or of which nobody knows, pass.
    let shell = json!({"tool_name": "Bash", "tool_input": {"command": "rm /etc/passwd"}});
    assert_eq!(
        hook(&env, "pre-tool-use", &recorded("PreToolUse", &tree, &shell)).code,
        0
    );
}

#[test]
fn w8_a_claim_makes_its_tree_the_active_one_and_without_one_main_is_free() {
    let env = repository();
    env.ok(&["task", "add", "fix it"]);
    let file = env.repo().join("config.py");
    env.ok(&["new", "fix", "--task", "1"]);
    assert_eq!(edit(&env, &env.repo(), &file).code, 0);
    env.ok(&["task", "claim", "1", "--session", SESSION]);
    let answer = edit(&env, &env.repo(), &file);
    assert_eq!(answer.code, 2, "{answer:#?}");
    let meant = env.root().join("app.weald/fix/config.py");
    assert!(
        answer.stderr.contains(meant.to_str().unwrap()),
        "{answer:#?}"
    );
    assert_eq!(edit(&env, &env.repo(), &meant).code, 0);
    let started = recorded("SessionStart", &env.repo(), &json!({"source": "startup"}));
    let context = told(&hook(&env, "session-start", &started));
    for part in [
        "weald path fix",
        "Task 1 (in_progress): fix it",
        "weald land fix --report",
    ] {
        assert!(context.contains(part), "{part}: {context}");
    }
}

#[test]
fn w8_what_an_error_means_is_configured() {
    let env = repository();
    let tree = grow(&env, "fix", "sealed");
    for (value, code) in [("allow", 0), ("block", 2)] {
        let mut command = command(&env, "pre-tool-use");
        command.env("WEALD_HOOK_ON_ERROR", value);
        let answer = raw(&env, command, b"garbage");
        assert_eq!(
            (answer.code, answer.stdout.as_str()),
            (code, ""),
            "{answer:#?}"
        );
    }
    env.ok(&["config", "set", "hook.on_error", "block"]);
    let mut garbage = command(&env, "pre-tool-use");
    garbage.env("CLAUDE_PROJECT_DIR", env.repo());
    assert_eq!(raw(&env, garbage, b"garbage").code, 2);
    // A tree that was moved can't be judged.
    let moved = env.root().join("moved");
    fs::rename(&tree, &moved).unwrap();
    let own = json!({"tool_name": "Write", "tool_input": {"file_path": tree.join("a")}});
    let mut lost = command(&env, "pre-tool-use");
    lost.env("CLAUDE_PROJECT_DIR", env.repo());
    let input = recorded("PreToolUse", &moved, &own).to_string();
    assert_eq!(raw(&env, lost, input.as_bytes()).code, 2);
    // The user's own folders besides.
    env.ok(&["new", "second"]);
    env.ok(&["config", "set", "hook.allow", "~/shared"]);
    fs::create_dir(env.home().join("shared")).unwrap();
    let second = env.root().join("app.weald/second");
    assert_eq!(edit(&env, &second, &env.home().join("shared/x")).code, 0);
    assert_eq!(edit(&env, &second, &env.home().join("other")).code, 2);
}

#[test]
fn a_tree_is_made_once_and_from_wherever_the_process_is() {
    let env = repository();
    let ask = |name: &str, cwd: &Path| {
        let input = recorded("WorktreeCreate", cwd, &json!({"name": name}));
        let mut command = command(&env, "worktree-create");
        command.env("CLAUDE_PROJECT_DIR", env.repo());
        raw(&env, command, input.to_string().as_bytes())
    };
    let path = env.root().join("app.weald/first");
    // The conversation went to a folder that is no repository, or is gone.
    for cwd in [env.home(), env.repo(), PathBuf::from("/gone")] {
        let answer = ask("first", &cwd);
        assert_eq!(
            answer.stdout,
            format!("{}\n", path.display()),
            "{answer:#?}"
        );
    }
    fs::write(path.join("mine"), "x").unwrap();
    assert_eq!(ask("first", &env.repo()).code, 0);
    assert!(path.join("mine").exists());
    let slashed = ask("team/feature", &env.repo());
    assert!(slashed.stdout.ends_with("/team+feature\n"), "{slashed:#?}");
    assert_eq!(env.ok(&["list"])["trees"].as_array().unwrap().len(), 2);
    // From inside a tree: beside it, from its last commit, for its branch.
    let head = commit(&env, &path, "work.txt", "done\n");
    let nested = ask("nested", &path);
    assert_eq!(nested.code, 0, "{nested:#?}");
    let tree = &env.ok(&["show", "nested"])["tree"];
    assert_eq!(tree["scratch_for"], "first", "{tree}");
    assert_eq!(tree["target"], "wt/first", "{tree}");
    assert_eq!(tree["base"]["commit"], head.as_str(), "{tree}");
}

#[test]
fn settings_of_claude_code_about_worktrees_count() {
    let env = repository();
    fs::write(env.repo().join(".gitignore"), "*.log\nnode_modules\n").unwrap();
    for folder in ["src/a", "src/b", "docs", "node_modules", ".claude"] {
        fs::create_dir_all(env.repo().join(folder)).unwrap();
    }
    for file in ["src/a/x", "src/b/x", "docs/x", "node_modules/x"] {
        fs::write(env.repo().join(file), "x").unwrap();
    }
    env.git(&["add", "-A"]);
    env.git(&["commit", "-q", "-m", "folders"]);
    env.git(&["checkout", "-q", "-b", "ahead"]);
    env.git(&["commit", "-q", "--allow-empty", "-m", "ahead of main"]);
    let head = env.git(&["rev-parse", "HEAD"]).trim().to_owned();
    fs::create_dir(env.home().join(".claude")).unwrap();
    let user =
        json!({"worktree": {"baseRef": "fresh", "symlinkDirectories": ["node_modules", "../x"]}});
    fs::write(env.home().join(".claude/settings.json"), user.to_string()).unwrap();
    let local = json!({"worktree": {"baseRef": "head", "sparsePaths": ["src/a"]}});
    fs::write(
        env.repo().join(".claude/settings.local.json"),
        local.to_string(),
    )
    .unwrap();
    fs::write(env.repo().join(".claude/settings.json"), "{").unwrap();
    let input = recorded("WorktreeCreate", &env.repo(), &json!({"name": "sparse"}));
    let answer = hook(&env, "worktree-create", &input);
    assert_eq!(answer.code, 0, "{answer:#?}");
    assert!(answer.stderr.contains("settings.json: "), "{answer:#?}");
    let tree = env.root().join("app.weald/sparse");
    assert_eq!(git_in(&env, &tree, &["rev-parse", "HEAD"]).trim(), head);
    assert!(tree.join("src/a/x").exists() && tree.join("config.py").exists());
    assert!(!tree.join("src/b").exists() && !tree.join("docs").exists());
    assert_eq!(
        fs::read_link(tree.join("node_modules")).unwrap(),
        env.repo().join("node_modules")
    );
    assert_eq!(git_in(&env, &tree, &["status", "--porcelain"]), "");
    // What is not checked out is not deleted by whoever commits and lands.
    commit(&env, &tree, "src/a/y", "new\n");
    env.git(&["checkout", "-q", "main"]);
    env.ok(&["land", "sparse"]);
    assert!(env.repo().join("docs/x").exists() && env.repo().join("src/a/y").exists());
    // A path that leads out makes no tree.
    let odd = json!({"worktree": {"sparsePaths": ["../x"]}});
    fs::write(
        env.repo().join(".claude/settings.local.json"),
        odd.to_string(),
    )
    .unwrap();
    let refused = hook(
        &env,
        "worktree-create",
        &recorded("WorktreeCreate", &env.repo(), &json!({"name": "odd"})),
    );
    assert_eq!(
        (refused.code, refused.stdout.as_str()),
        (1, ""),
        "{refused:#?}"
    );
    assert!(!env.root().join("app.weald/odd").exists());
}

#[test]
fn a_tree_that_is_left_goes_only_if_nothing_is_lost() {
    let env = repository();
    let leave = |path: &Path| {
        let input = recorded("WorktreeRemove", path, &json!({"worktree_path": path}));
        let answer = hook(&env, "worktree-remove", &input);
        assert_eq!(
            (answer.code, answer.stdout.as_str()),
            (0, ""),
            "{answer:#?}"
        );
        answer.stderr
    };
    let clean = grow(&env, "clean", "sealed");
    assert!(leave(&clean).contains("weald restore"));
    assert!(!clean.exists());
    // Again, and again.
    assert!(leave(&clean).contains("already gone"));
    let dirty = grow(&env, "dirty", "sealed");
    fs::write(dirty.join("new"), "x").unwrap();
    assert!(leave(&dirty).contains("is kept at"));
    let ahead = grow(&env, "ahead", "sealed");
    commit(&env, &ahead, "new", "x");
    let told = leave(&ahead);
    for part in ["ahead is kept at", "weald land ahead", "weald keep ahead"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert_eq!(told.matches(ahead.to_str().unwrap()).count(), 1, "{told}");
    assert!(dirty.join("new").exists() && ahead.join("new").exists());
    // What is not a tree is nobody's to remove: main, a folder, a part of a tree.
    let trees = env.root().join("app.weald");
    for path in [env.repo(), env.home(), dirty.join(".git"), trees] {
        assert!(leave(&path).contains("left alone"), "{path:?}");
        assert!(path.exists());
    }
}
