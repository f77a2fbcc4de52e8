//! What tools about agents answer.

use schemars::JsonSchema;

use super::super::arguments::TaskRef;

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
