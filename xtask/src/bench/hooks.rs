//! What Claude Code waits for at every tool: its hooks, fed with what it really sends, in a repository with ten trees,
//! from inside the tree of a task that the conversation claimed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{self, Command};

use serde_json::{Value, json};

use super::{measure, median, ms, say};

/// How often each hook is run.
const RUNS: usize = 41;

/// How long one may take, in milliseconds.
const GOAL: f64 = 30.0;

/// How many trees there are, and how many files are in each.
const TREES: usize = 10;
const FILES: usize = 1_000;

/// The conversation, as Claude Code names it.
const CONVERSATION: &str = "2f95bcfc-9bc2-422c-921f-29c50c50a140";

/// Measures every hook but the one that makes trees. `make` is a command of weald's in the repository.
pub fn run(
    folder: &Path,
    repository: &Path,
    weald: &Path,
    make: impl Fn(&[&str]) -> Command,
) -> io::Result<()> {
    let tree = claimed_tree(repository, &make)?;
    let moments = moments(&tree);
    let mut walls = vec![Vec::new(); moments.len()];
    let mut kept = Vec::new();
    for round in 0..RUNS {
        for ((what, event, input), walls) in moments.iter().zip(&mut walls) {
            let file = folder.join("hook.json");
            fs::write(&file, input.to_string())?;
            if what.contains("changed") {
                fs::write(tree.join("0/0"), format!("{round}\n"))?;
            }
            let mut hook = renamed(&make(&[]), "sh");
            hook.current_dir(&tree)
                .env("CLAUDE_PID", process::id().to_string())
                .env("CLAUDE_PROJECT_DIR", &tree)
                .args(["-c", "exec \"$0\" hook claude \"$1\" < \"$2\""]);
            walls.push(measure(hook.arg(weald).arg(event).arg(&file))?.wall);
            if *event == "stop" {
                // What goes on behind the answer would be measured with the next one.
                hook.env("WEALD_HOOK_BACKGROUND", "false");
                kept.push(measure(&mut hook)?.wall);
            }
        }
    }
    say(&format!(
        "hooks of Claude Code in a claimed tree of {FILES} files, beside {} trees:",
        TREES - 1
    ));
    for ((what, ..), mut walls) in moments.iter().zip(walls) {
        walls.sort_unstable();
        let (wall, worst) = (ms(median(walls.clone())), ms(walls[RUNS - 1]));
        let verdict = if wall < GOAL { "met" } else { "MISSED" };
        say(&format!(
            "  {what:<36} {wall:>6.1} ms, worst {worst:>6.1} (goal {GOAL}: {verdict})"
        ));
    }
    say(&format!(
        "  (to keep the work, behind a stop, takes {:.0} ms)",
        ms(median(kept))
    ));
    Ok(())
}

/// Makes the trees; answers the one of the task that the conversation holds.
fn claimed_tree(repository: &Path, make: &impl Fn(&[&str]) -> Command) -> io::Result<PathBuf> {
    for number in 0..FILES {
        let folder = repository.join((number / 100).to_string());
        fs::create_dir_all(&folder)?;
        fs::write(
            folder.join((number % 100).to_string()),
            "text\n".repeat(number),
        )?;
    }
    let author = ["-c", "user.name=x", "-c", "user.email=x@example.com"];
    for words in [vec!["add", "-A"], vec!["commit", "-q", "-m", "first"]] {
        measure(renamed(&make(&[]), "git").args(author).args(words))?;
    }
    measure(&mut make(&["task", "add", "fix it"]))?;
    measure(&mut make(&["new", "t0", "--task", "1"]))?;
    for number in 1..TREES {
        measure(&mut make(&["new", &format!("t{number}")]))?;
    }
    let session = format!("claude-{CONVERSATION}");
    measure(&mut make(&["task", "claim", "1", "--session", &session]))?;
    let name = repository.file_name().unwrap_or_default().display();
    Ok(repository.with_file_name(format!("{name}.weald/t0")))
}

/// What is measured: in words, the event, and what Claude Code sends with it.
fn moments(tree: &Path) -> Vec<(&'static str, &'static str, Value)> {
    let file = |path: &Path| json!({"file_path": path, "old_string": "a", "new_string": "b"});
    let edit = |path: &Path| {
        json!({"tool_name": "Edit", "tool_use_id": "toolu_1", "tool_input": file(path),
            "tool_response": {"filePath": path, "structuredPatch": [{"lines": ["-a", "+b"]}]}})
    };
    let inside = edit(&tree.join("0/0"));
    let stop = json!({"stop_hook_active": false, "last_assistant_message": "done"});
    let rows = [
        (
            "session-start",
            "session-start",
            json!({"source": "startup", "model": "m"}),
        ),
        ("pre-tool-use, an edit", "pre-tool-use", inside.clone()),
        ("post-tool-use, an edit", "post-tool-use", inside),
        ("stop, nothing changed", "stop", stop.clone()),
        ("stop, a file changed", "stop", stop),
        (
            "worktree-remove, gone already",
            "worktree-remove",
            json!({"worktree_path": tree.join("gone")}),
        ),
    ];
    rows.map(|(what, event, own)| (what, event, recorded(tree, &own)))
        .into()
}

/// The fields that every event has.
fn recorded(tree: &Path, own: &Value) -> Value {
    let mut input = json!({
        "session_id": CONVERSATION,
        "transcript_path": "/home/u/.claude/projects/x/2f95bcfc.jsonl",
        "cwd": tree, "prompt_id": "8281feeb", "permission_mode": "acceptEdits",
        "effort": {"level": "medium"},
    });
    let own = own.as_object().into_iter().flatten();
    for (key, value) in own {
        input[key] = value.clone();
    }
    input
}

/// Another program with the place and the variables of a command.
fn renamed(command: &Command, program: &str) -> Command {
    #[expect(
        clippy::disallowed_methods,
        reason = "a benchmark of processes starts processes"
    )]
    let mut other = Command::new(program);
    if let Some(directory) = command.get_current_dir() {
        other.current_dir(directory);
    }
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            other.env(name, value);
        }
    }
    other
}
