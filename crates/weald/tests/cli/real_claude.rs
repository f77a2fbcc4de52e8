//! Claude Code as it is, with the plugin: its worktrees come from weald, its edits stay in them, nothing unmerged goes.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use weald_testkit::{Answer, Scenario, ScriptedModel, TestEnv, Turn};

use crate::real_agents::{add_task, weald, with_agents};

/// What Claude Code may do without asking; somebody who is root can't allow it everything.
const ALLOWED: &str =
    "Bash,Write,EnterWorktree,ExitWorktree,Agent,mcp__plugin_weald_weald__task_list";

fn tool(name: &str, input: Value) -> Turn {
    Turn::Tool {
        name: name.to_owned(),
        input,
    }
}

/// A repository, and Claude Code with weald installed in it.
fn with_plugin(model: &ScriptedModel) -> Option<TestEnv> {
    let env = with_agents(model)?;
    let installed = env.weald_alone(&["install", "claude"]);
    assert_eq!(installed.code, 0, "{installed:#?}");
    Some(env)
}

/// One conversation without a terminal.
fn claude(env: &TestEnv, model: &ScriptedModel, args: &[&str], prompt: &str) -> Answer {
    let bin = env.home().join("bin");
    let mut command = env.command(bin.join("claude"));
    let own = command.get_envs().find(|(name, _)| *name == "PATH");
    let path = own.and_then(|(_, path)| path).unwrap().to_str().unwrap();
    let path = format!("{}:{path}", bin.display());
    command
        .env("PATH", path)
        .env("ANTHROPIC_BASE_URL", model.url())
        .env("ANTHROPIC_API_KEY", "scripted")
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        .args(args)
        .args(["-p", prompt, "--output-format", "json"])
        .args([
            "--permission-mode",
            "acceptEdits",
            "--allowedTools",
            ALLOWED,
        ]);
    let answer = Answer::of(command.output().unwrap());
    assert_eq!(answer.code, 0, "{answer:#?}");
    answer
}

/// Where trees of the names are, as weald lists them.
fn listed(env: &TestEnv) -> Vec<PathBuf> {
    let trees = env.ok(&["list"])["trees"].clone();
    let trees = trees.as_array().unwrap().iter();
    trees
        .map(|tree| PathBuf::from(tree["path"].as_str().unwrap()))
        .collect()
}

fn is_at(result: &str, path: &Path) -> bool {
    result.trim() == path.display().to_string()
}

#[test]
fn w8_real_claude_starts_in_a_tree_and_uses_the_tools() {
    let about = "start in a tree";
    let turns = [
        Turn::shell("pwd"),
        tool("mcp__plugin_weald_weald__task_list", json!({})),
        Turn::shell("echo done > made.txt && git add -A && git commit -q -m made"),
    ];
    let model = ScriptedModel::start([Scenario::new(about, turns)]);
    let Some(env) = with_plugin(&model) else {
        return;
    };
    env.ok(&["task", "add", "a task to be seen"]);
    claude(&env, &model, &["-w", "team/named"], about);
    let tree = env.root().join("app.weald/team+named");
    assert_eq!(listed(&env), std::slice::from_ref(&tree));
    let results = model.results(about);
    assert!(is_at(&results[0], &tree), "{results:#?}");
    assert!(results[1].contains("a task to be seen"), "{results:#?}");
    // The model is told where it is, and which tools there are.
    let first = model.requests(about)[0].body.to_string();
    for part in [
        "You are in weald worktree team+named",
        "mcp__plugin_weald_weald__task_list",
    ] {
        assert!(first.contains(part), "{part}: {first}");
    }
    // Nobody removed what is not merged, and the commit is imported.
    assert!(tree.join("made.txt").exists());
    let head = env.ok(&["show", "team+named"])["tree"]["unimported"].clone();
    assert_eq!(head, false);
    // The same name again is the same tree.
    claude(&env, &model, &["-w", "team/named"], "start there again");
    assert_eq!(listed(&env), [tree]);
}

#[test]
fn w8_real_claude_enters_and_leaves_trees_in_a_conversation() {
    let about = "enter and leave";
    let remove = json!({"action": "remove", "discard_changes": true});
    let turns = |env: &TestEnv| {
        let work = env.root().join("app.weald/work/notes.txt");
        [
            tool("EnterWorktree", json!({"name": "idle"})),
            Turn::shell("pwd"),
            tool("ExitWorktree", remove.clone()),
            tool("EnterWorktree", json!({"name": "work"})),
            tool(
                "Write",
                json!({"file_path": work.with_file_name("new.txt"), "content": "x"}),
            ),
            tool("ExitWorktree", remove.clone()),
            Turn::shell("pwd"),
        ]
    };
    // Where the trees will be is known with the environment.
    let none = ScriptedModel::start([]);
    let Some(env) = with_plugin(&none) else {
        return;
    };
    let model = ScriptedModel::start([Scenario::new(about, turns(&env))]);
    claude(&env, &model, &[], about);
    let results = model.results(about);
    let trees = env.root().join("app.weald");
    assert!(is_at(&results[1], &trees.join("idle")), "{results:#?}");
    assert!(is_at(&results[6], &env.repo()), "{results:#?}");
    // What was idle is in the trash; what holds work is where it was.
    assert_eq!(listed(&env), [trees.join("work")], "{results:#?}");
    assert!(!trees.join("idle").exists());
    assert_eq!(fs::read_to_string(trees.join("work/new.txt")).unwrap(), "x");
    let trash = env.ok(&["trash", "list"]);
    assert_eq!(trash["trash"][0]["name"], "idle", "{trash}");
}

#[test]
fn w8_a_subagent_of_real_claude_works_in_a_tree_of_its_own() {
    let about = "have it done by another";
    let child = "the part of the child";
    let task = json!({"description": "child", "prompt": child,
        "subagent_type": "general-purpose", "isolation": "worktree"});
    let model = ScriptedModel::start([
        Scenario::new(about, [tool("Agent", task)]),
        Scenario::new(child, [Turn::shell("pwd; echo x > of-the-child.txt")]),
    ]);
    let Some(env) = with_plugin(&model) else {
        return;
    };
    claude(&env, &model, &[], about);
    let trees = listed(&env);
    assert_eq!(trees.len(), 1, "{trees:?}");
    assert!(
        trees[0].starts_with(env.root().join("app.weald")),
        "{trees:?}"
    );
    let results = model.results(child);
    assert!(is_at(&results[0], &trees[0]), "{results:#?}");
    assert!(trees[0].join("of-the-child.txt").exists());
    assert!(!env.repo().join("of-the-child.txt").exists());
    // Its end was noticed: what it did is in a snapshot.
    let name = trees[0].file_name().unwrap().to_str().unwrap();
    let snapshots = env.ok(&["snapshot", "list", name]);
    assert_eq!(snapshots["snapshots"].as_array().unwrap().len(), 1);
}

#[test]
fn w8_real_claude_is_sent_to_the_tree_of_its_task() {
    let about = "edit main though the task has a tree";
    let none = ScriptedModel::start([]);
    let Some(env) = with_plugin(&none) else {
        return;
    };
    let write = |path: PathBuf| tool("Write", json!({"file_path": path, "content": "x"}));
    let tree = env.root().join("app.weald/fix");
    let turns = [
        write(env.repo().join("new.txt")),
        write(tree.join("new.txt")),
    ];
    let model = ScriptedModel::start([Scenario::new(about, turns)]);
    let id = "2f95bcfc-9bc2-422c-921f-29c50c50a140";
    let session = format!("claude-{id}");
    env.ok(&["task", "add", "fix it"]);
    env.ok(&["new", "fix", "--task", "1"]);
    env.ok(&["task", "claim", "1", "--session", &session]);
    env.ok(&["msg", "send", &session, "greetings", "--session", "bob"]);
    claude(
        &env,
        &model,
        &["--session-id", id, "--add-dir", tree.to_str().unwrap()],
        about,
    );
    let results = model.results(about);
    let meant = format!("Use {} instead", tree.join("new.txt").display());
    assert!(results[0].contains(&meant), "{results:#?}");
    assert!(!env.repo().join("new.txt").exists());
    assert!(tree.join("new.txt").exists(), "{results:#?}");
    let first = model.requests(about)[0].body.to_string();
    for part in [
        "Task 1 (in_progress): fix it",
        "greetings",
        "completes task 1",
    ] {
        assert!(first.contains(part), "{part}: {first}");
    }
}

#[test]
fn x12_the_plugin_works_inside_where_weald_started_real_claude() {
    let about = "work inside with the plugin";
    let none = ScriptedModel::start([]);
    let Some(env) = with_agents(&none) else {
        return;
    };
    symlink(env!("CARGO_BIN_EXE_weald"), env.home().join("bin/weald")).unwrap();
    let installed = Answer::of(weald(&env, &none, &["install", "claude"]).output().unwrap());
    assert_eq!(installed.code, 0, "{installed:#?}");
    let write = |path: PathBuf| tool("Write", json!({"file_path": path, "content": "x"}));
    let tree = env.root().join("app.weald/inside");
    let turns = [
        write(env.repo().join("new.txt")),
        write(tree.join("new.txt")),
        tool("EnterWorktree", json!({"name": "nested"})),
        Turn::shell("git add -A && git commit -q -m new"),
    ];
    let model = ScriptedModel::start([Scenario::new(about, turns)]);
    let task = add_task(&env, about);
    env.ok(&["new", "inside", "--task", &task]);
    let args = ["work", &task, "--driver", "claude", "--json"];
    let answer = Answer::of(weald(&env, &model, &args).output().unwrap());
    assert_eq!(answer.code, 0, "{answer:#?}");
    assert_eq!(answer.json()["landing"]["status"], "landed", "{answer:#?}");
    let results = model.results(about);
    let meant = format!("Use {} instead", tree.join("new.txt").display());
    assert!(results[0].contains(&meant), "{results:#?}");
    assert!(results[2].contains("from inside a sandbox"), "{results:#?}");
    assert!(env.repo().join("new.txt").exists(), "{results:#?}");
    // It is told where it is, and has weald's tools once.
    let first = model.requests(about)[0].body.to_string();
    assert!(
        first.contains("You are in weald worktree inside"),
        "{first}"
    );
    assert!(first.contains("mcp__weald__task_get"), "{first}");
    assert!(!first.contains("mcp__plugin_weald"), "{first}");
}

#[test]
fn x12_tools_are_there_once_though_the_plugin_names_weald_by_its_path() {
    let about = "count the tools";
    let model = ScriptedModel::start([Scenario::new(about, [Turn::say("counted")])]);
    let Some(env) = with_plugin(&model) else {
        return;
    };
    env.ok(&["config", "set", "work.on_empty", "complete"]);
    let task = add_task(&env, about);
    let args = ["work", &task, "--driver", "claude", "--no-land", "--json"];
    let answer = Answer::of(weald(&env, &model, &args).output().unwrap());
    assert_eq!(answer.code, 0, "{answer:#?}");
    let first = model.requests(about)[0].body.to_string();
    // The plugin is there.
    assert!(first.contains("You are in weald worktree"), "{first}");
    assert!(first.contains("mcp__weald__task_get"), "{first}");
    assert!(!first.contains("mcp__plugin_weald"), "{first}");
}
