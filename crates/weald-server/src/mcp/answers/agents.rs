//! What tools about agents answer.

use schemars::JsonSchema;
use serde_json::Value;

use super::super::arguments::TaskRef;
use super::Task;

/// An agent as it stands.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "read by schemars alone")]
pub struct Agent {
    /// a1, a2, …
    pub id: String,
    /// What it works on.
    pub task: TaskRef,
    /// The name it works under: messages go to it.
    pub session: String,
    /// What kind of agent it is.
    pub driver: String,
    /// starting, running, waiting, stalled, paused, finishing, exited, crashed or unknown.
    pub state: String,
    /// The same in one of running, stuck, paused, done, failed.
    pub condition: String,
    /// The last tool it used, in one line.
    pub last_action: String,
    /// The last thing it said, in one line.
    pub last_output: String,
}

/// Several.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "read by schemars alone")]
pub struct Agents {
    /// In order.
    pub agents: Vec<Agent>,
}

/// Several, and what needs somebody.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "read by schemars alone")]
pub struct Board {
    /// In order.
    pub agents: Vec<Agent>,
    /// How many there are in all.
    pub total: u64,
    /// The place in the log to ask `since` the next time.
    pub seq: u64,
    /// What needs somebody.
    pub alerts: Vec<Alert>,
}

/// Something that somebody should look at.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "read by schemars alone")]
pub struct Alert {
    /// Which agent.
    pub agent: String,
    /// On which task.
    pub task: TaskRef,
    /// waiting, stalled, paused, failed or unknown.
    pub kind: String,
    /// What is the matter.
    pub text: String,
    /// The command that helps.
    pub command: String,
}

/// Agents after a wait.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "read by schemars alone")]
pub struct Waited {
    /// Those that were waited for.
    pub agents: Vec<Agent>,
    /// Whether the time was over first.
    pub timed_out: bool,
}

/// A teammate: the worker that claims tasks, or an agent on one task.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "read by schemars alone")]
pub struct Teammate {
    /// Its agent, if it works on a task already.
    pub agents: Vec<Agent>,
    /// The worker that claims tasks; absent for a teammate of one task.
    pub worker: Option<Worker>,
    /// What the lead should know, such as that no task is ready.
    pub notices: Option<Vec<String>>,
}

/// Somebody who does one task after the other.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "read by schemars alone")]
pub struct Worker {
    /// The name it works under: messages go to it.
    pub name: String,
    /// Its process.
    pub pid: u32,
    /// The file that it writes what it does to.
    pub log: String,
}

/// A race as it stands.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "read by schemars alone")]
pub struct Race {
    /// Its task and its entries.
    pub race: Entries,
}

/// Who takes part.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "read by schemars alone")]
pub struct Entries {
    /// What they work on.
    pub task: TaskRef,
    /// Side by side.
    pub entries: Vec<Entry>,
}

/// One of them.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "read by schemars alone")]
pub struct Entry {
    /// Its letter.
    pub entry: String,
    /// Its agent.
    pub agent: String,
    /// Its worktree.
    pub tree: Option<String>,
    /// How its agent ended, or stands.
    pub state: String,
    /// Whether it was picked.
    pub picked: bool,
}

/// A race that was ended without a winner.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "read by schemars alone")]
pub struct Dropped {
    /// Its task, and the worktrees that went to the trash.
    pub race: Value,
}

/// What came of an agent's work.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "read by schemars alone")]
pub struct Worked {
    /// The task as it is now.
    pub task: Task,
    /// What it landed as.
    pub landing: Option<Value>,
}

/// What an agent left, and what was done about it.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "read by schemars alone")]
pub struct Rescued {
    /// What was found: the diagnosis, the agent, its last lines, its worktree, and choices.
    pub rescue: Option<Value>,
    /// The task, if an agent was started on it.
    pub task: Option<Task>,
    /// That agent.
    pub agent: Option<Value>,
}
