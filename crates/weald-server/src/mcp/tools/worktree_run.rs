//! `worktree_run`

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::super::child::{Ended, Limits};
use super::super::weald::{answer_of, exit_of};
use super::super::words::plain;
use super::{Audience, Call, Effect, Fault, JsonObject, Lasts, Tool, answers};

/// How long a command has, in seconds.
const TIMEOUT: u64 = 600;
/// How much of its output is told.
const KEPT: usize = 128 << 10;
/// Runs its argument in the shell that people write for, with one stream for both. Before it goes an empty line: where
/// that is, everything after it is the command's, and where it is not, nothing was started.
const MERGED: &str = r#"echo; exec "$(command -v bash || echo sh)" -c "$1" 2>&1"#;

pub struct WorktreeRun;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The command, for a shell.
    command: String,
    /// Which worktree; your own unless given.
    name: Option<String>,
    /// End it after so many seconds; 600 unless given.
    #[schemars(range(min = 1, max = 86400))]
    timeout_seconds: Option<u64>,
}

impl Tool for WorktreeRun {
    const NAME: &'static str = "worktree_run";
    const TITLE: &'static str = "Run a command in a worktree";
    const DESCRIPTION: &'static str = "Runs a shell command in a worktree, confined by the sandbox. Returns its exit code and its output (both streams, the middle left out if it is long). A command that fails is an answer, not an error.";
    const EFFECT: Effect = Effect::Runs;
    const AUDIENCE: Audience = Audience::Teammate;
    type Input = Input;
    type Output = answers::RunOutcome;

    fn lasts(_: &Input) -> Lasts {
        Lasts::Long
    }

    async fn call(input: Input, call: &Call<'_>) -> Result<JsonObject, Fault> {
        let tree = call.tree(input.name).await?.unwrap_or_default();
        let timeout = input.timeout_seconds.unwrap_or(TIMEOUT);
        let words = [
            "run",
            &plain(tree.clone())?,
            &format!("--timeout={timeout}s"),
            "--",
            "sh",
            "-c",
            MERGED,
            "sh",
            &input.command,
        ];
        let limits = Limits {
            head: KEPT / 4,
            tail: KEPT - KEPT / 4,
            is_told: true,
        };
        let ended = call.start(&words, limits).await?;
        told(tree, &ended)
    }
}

fn told(tree: String, ended: &Ended) -> Result<JsonObject, Fault> {
    let exit = exit_of(ended);
    let said = ended.stderr.text();
    let is_late = exit == 124 && said.contains("time limit reached");
    let output = ended.stdout.text();
    let output = match output.strip_prefix('\n') {
        Some(output) => output,
        None if is_late => "",
        None => return Err(not_run(ended)),
    };
    let notes: Vec<&str> = said.lines().collect();
    let mut answer = JsonObject::new();
    for (name, value) in [
        ("schema_version", json!(1)),
        ("tree", json!(tree)),
        ("exit", json!(exit)),
        ("output", json!(output)),
        ("truncated", json!(ended.stdout.left_out() > 0)),
        ("timed_out", json!(is_late)),
        ("notes", json!(notes)),
    ] {
        answer.insert(name.to_owned(), value);
    }
    Ok(answer)
}

/// Why weald did not start it.
fn not_run(ended: &Ended) -> Fault {
    let fault = || Fault::new("not_started", exit_of(ended), "the command was not started");
    answer_of(ended).err().unwrap_or_else(fault)
}
