//! Hints in words for tools: some by hand, and every one that the sources have.

use std::fs;
use std::path::{Path, PathBuf};

use super::*;
use crate::mcp::tool::Audience;
use crate::mcp::tools;

fn all() -> Vec<Entry> {
    tools::all(Audience::Lead, "classroom")
}

fn called<'t>(tools: &'t [Entry], name: &str) -> Option<&'t Entry> {
    tools.iter().find(|tool| tool.described.name == name)
}

/// Hints of commands, and the same for tools.
const TOLD: &[(&str, &str)] = &[
    ("weald keep a", r#"worktree_keep {"name":"a"}"#),
    (
        "weald land a; weald rm a --discard",
        r#"land {"name":"a"}; worktree_remove {"name":"a","force":true}"#,
    ),
    (
        "if bob is gone: weald task release 1",
        r#"if bob is gone: task_update {"task_id":1,"action":"release"}"#,
    ),
    ("weald list --all", "worktree_list"),
    (
        "weald rm a --force",
        r#"worktree_remove {"name":"a","referenced":true}"#,
    ),
    (
        "weald unlock a, or weald rm a --force --force",
        "in a terminal: weald unlock a, or in a terminal: weald rm a --force --force",
    ),
    (
        "if you are bob: --session bob",
        "if you are bob: a server started with --session bob",
    ),
    (
        "weald queue status --all tells what landed",
        r#"land_status {"all":true} tells what landed"#,
    ),
    ("weald newer", "weald newer"),
    ("run weald in /x", "run weald in /x"),
    ("weald doctor --fix", "in a terminal: weald doctor --fix"),
    ("look at `weald events`", "look at `worktree_events`"),
    (
        "weald msg send LEAD \"the plan\" --type plan --task 3",
        r#"message_send {"to":"LEAD","text":"the plan","type":"plan","task_id":3}"#,
    ),
    (
        "weald race pick 1 a --report TEXT",
        r#"race_pick {"task_id":1,"entry":"a","report":"TEXT"}"#,
    ),
    (
        "weald resume 2, or weald land a --report \"it works\"",
        r#"rescue {"task_id":2,"choice":"continue"}, or land {"name":"a","report":"it works"}"#,
    ),
    (
        "weald task unbind 2",
        r#"task_bind_worktree {"task_id":2,"unbind":true}"#,
    ),
    (
        "weald task bind 1 a --rebind, which takes it from task 2",
        r#"task_bind_worktree {"task_id":1,"name":"a","rebind":true}, which takes it from task 2"#,
    ),
    (
        "weald keep a --undo",
        r#"worktree_keep {"name":"a","undo":true}"#,
    ),
    (
        "weald restore; for purged worktrees: weald restore --purged",
        "trash_list; for purged worktrees: in a terminal: weald restore --purged",
    ),
    (
        "to restore it: weald restore 3; to give up its commits: weald clean --trash --apply --discard",
        r#"to restore it: worktree_restore {"name":"3"}; to give up its commits: in a terminal: weald clean --trash --apply --discard"#,
    ),
    ("weald msg inbox --all", r#"message_inbox {"all":true}"#),
    ("weald task ready", r#"task_list {"status":["ready"]}"#),
    (
        "finish it: weald run a -- git commit --no-edit",
        r#"finish it: worktree_run {"name":"a","command":"git commit --no-edit"}"#,
    ),
    (
        "finish it: weald run a -- git status",
        r#"finish it: worktree_run {"name":"a","command":"git status"}"#,
    ),
    (
        "weald land a --commit -m MESSAGE",
        r#"worktree_run {"name":"a","command":"git add -A && git commit -m MESSAGE"}; then land {"name":"a"}"#,
    ),
    (
        "let them end, or stop them (weald agent stop), then run it again",
        "let them end, or stop them (agent_stop), then run it again",
    ),
    (
        "weald rescue 3 --restart",
        r#"rescue {"task_id":3,"choice":"restart"}"#,
    ),
    (
        "leave one of them: git -C DIR switch --detach (main stays)",
        "leave one of them: git -C DIR switch --detach (main stays)",
    ),
    (
        "commit them, or --set tree.dirty_main=warn",
        "commit them, or (in a terminal) --set tree.dirty_main=warn",
    ),
];

#[test]
fn y17_a_hint_over_mcp_is_a_whole_call_or_a_command_for_a_terminal() {
    let tools = all();
    for (hint, told) in TOLD {
        assert_eq!(in_tools(hint, &tools, None), *told);
    }
    let spawn = called(&tools, "agent_spawn");
    for (hint, told) in [
        (
            "take another --name, or end that one",
            "take another name, or end that one",
        ),
        (
            "decide on each: weald land a, weald keep a, or weald rm a; or call it again with --force",
            r#"decide on each: land {"name":"a"}, worktree_keep {"name":"a"}, or worktree_remove {"name":"a"}; or call it again with "force":true"#,
        ),
    ] {
        assert_eq!(in_tools(hint, &tools, spawn), told);
    }
    // There `force` is another flag's.
    let remove = called(&tools, "worktree_remove");
    assert_eq!(
        in_tools("ask them, or --force", &tools, remove),
        "ask them, or (in a terminal) --force"
    );
    // Whoever does not have a tool is not sent to it.
    let few = tools::all(Audience::Confined, "");
    assert_eq!(
        in_tools("weald list", &few, None),
        "in a terminal: weald list"
    );
}

#[test]
fn nobody_is_sent_after_the_token_of_another_claim() {
    let fault = Fault::new("token_required", 1, "held").hint("add --token with yours");
    assert!(
        !for_tools(fault, &all(), None)
            .hint
            .unwrap()
            .contains("--token")
    );
}

/// Every Rust file of the workspace that is no test.
fn sources() -> Vec<PathBuf> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let crates = fs::read_dir(crates).unwrap();
    let mut folders: Vec<_> = crates
        .map(|one| one.unwrap().path().join("src"))
        .filter(|folder| folder.is_dir())
        .collect();
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false if path.ends_with("tests.rs") => {}
                false => files.push(path),
            }
        }
    }
    files
}

/// The texts that stand in a piece of Rust, with something in every place that is filled in.
fn texts(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut parts = source.split('"');
    parts.next();
    while let Some(text) = parts.next() {
        let mut text = text.to_owned();
        while text.ends_with('\\') {
            text.pop();
            text.push('"');
            text.push_str(parts.next().unwrap_or_default());
        }
        let mut filled = String::new();
        let mut rest = text.as_str();
        while let Some((before, after)) = rest.split_once('{') {
            filled.push_str(before);
            filled.push('7');
            rest = after.split_once('}').map_or("", |(_, rest)| rest);
        }
        found.push(filled + rest);
        parts.next();
    }
    found
}

/// Every hint that the sources have.
fn catalogue() -> Vec<String> {
    let mut hints = Vec::new();
    for file in sources() {
        let text = fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap();
        for piece in code.split("hint").skip(1) {
            let piece = piece.split(";\n").next().unwrap();
            hints.extend(texts(piece));
        }
    }
    hints.sort();
    hints.dedup();
    hints
}

/// The calls that a text has, each with its arguments.
fn calls<'t>(text: &str, tools: &'t [Entry]) -> Vec<(&'t Entry, Value)> {
    let mut found = Vec::new();
    for tool in tools {
        let begin = format!("{} {{", tool.described.name);
        for (at, _) in text.match_indices(&begin) {
            let arguments = &text[at + begin.len() - 1..];
            let mut values = serde_json::Deserializer::from_str(arguments).into_iter::<Value>();
            found.push((tool, values.next().unwrap().unwrap()));
        }
    }
    found
}

/// The commands that the reference of the command line has.
fn commands() -> Vec<String> {
    let page = include_str!("../../../../../docs/commands.md");
    let heads = page
        .lines()
        .filter_map(|line| line.strip_prefix("### weald "));
    heads
        .map(|head| {
            head.trim_end_matches('`')
                .split(' ')
                .next()
                .unwrap()
                .to_owned()
        })
        .collect()
}

#[test]
fn y17_every_hint_of_the_catalogue_names_tools_and_arguments_that_exist() {
    let tools = all();
    let (hints, commands) = (catalogue(), commands());
    assert!(hints.len() > 150, "{}", hints.len());
    assert!(commands.len() > 30, "{commands:?}");
    for command in &commands {
        assert!(
            COMMANDS.split(' ').any(|known| known == command),
            "{command} is not in COMMANDS"
        );
    }
    let (mut with_calls, mut for_terminals) = (0, 0);
    for hint in hints {
        let told = in_tools(&hint, &tools, None);
        for (tool, arguments) in calls(&told, &tools) {
            with_calls += 1;
            for name in arguments.as_object().unwrap().keys() {
                assert!(tool.has(name), "{hint:?} -> {told:?}: {name}");
            }
        }
        // What is still a command says where it is typed.
        let mut rest = told.as_str();
        while let Some(at) = next_command(rest) {
            for_terminals += 1;
            assert!(rest[..at].ends_with(TERMINAL), "{hint:?} -> {told:?}");
            rest = &rest[at + 1..];
        }
    }
    assert!(
        with_calls > 50 && for_terminals > 20,
        "{with_calls} {for_terminals}"
    );
}
