//! Agents: one supervised run of a driver's command on a task, in a tree.
//!
//! The record says what was asked for, who supervises it and how it ended. What changes every second (output, activity)
//! is not here but beside its log. What may happen to a record is decided in [`crate::agent_rules`].

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::choice::words;
use crate::cost::Spent;
use crate::id::{LandingId, TaskId, Token, TreeId};
use crate::name::{SessionName, TreeName};
use crate::session::ProcessIdentity;
use crate::verdict::Verdict;

/// How the role of an entry of a race begins; its letter follows.
pub const RACE: &str = "race:";

/// What an agent is called: `a12`. Written so that it can't be taken for a task's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AgentId(pub u64);

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("a{}", self.0))
    }
}

impl FromStr for AgentId {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.strip_prefix('a').filter(|digits| {
            !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit())
        });
        digits
            .and_then(|digits| digits.parse().ok())
            .map(Self)
            .ok_or_else(|| "an agent is called a1, a2, …".to_owned())
    }
}

impl TryFrom<String> for AgentId {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<AgentId> for String {
    fn from(id: AgentId) -> Self {
        id.to_string()
    }
}

words! {
    /// Where an agent stands.
    #[derive(Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum AgentStatus {
        /// Recorded; its supervisor is not there yet.
        Starting = "starting",
        Running = "running",
        /// Its command is stopped until somebody lets it go on.
        Paused = "paused",
        /// Its provider lets it do nothing for now; it continues by itself.
        Limited = "limited",
        /// It was silent for so long that its owner was reminded twice.
        Stalled = "stalled",
        /// Its command ended; what it left is committed, taken in and landed.
        Finishing = "finishing",
        /// All of it is over; [`Agent::end`] says how.
        Exited = "exited",
        /// Its supervisor is gone, and it said nothing.
        Crashed = "crashed",
    }
}

impl AgentStatus {
    /// True once nothing more comes from it.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Exited | Self::Crashed)
    }
}

/// What follows when an agent's command succeeded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    /// Its work lands, which completes the task.
    #[default]
    Land,
    /// The task is completed; its tree stays.
    Finish,
    /// Nothing: its starter decides (a phase, an entry of a race).
    Stay,
}

/// The stages of an agent. One that goes on after a crash begins behind the last that was completed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    #[default]
    Run,
    /// The command was successful; what it left is committed and landed.
    Finish,
}

/// What somebody wants of an agent's supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "what")]
pub enum Wanted {
    /// End it; its tree stays.
    Stop {
        why: String,
        /// The task is given back instead of failed.
        release: bool,
    },
    Pause,
    /// Let them go on.
    Run,
}

/// What an agent has used so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Money, where its stream reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

/// What keeps an agent from its model, though nothing is wrong with its task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Barrier {
    /// A usage limit, and when it is reset, if the agent's stream says so.
    Limit { until: Option<Timestamp> },
    /// Nobody is logged in, or the login has expired.
    Login,
}

/// A usage limit that an agent waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    /// When it is tried again.
    pub until: Timestamp,
    /// Whether its stream named that time; otherwise weald waits longer each time.
    pub is_known: bool,
}

words! {
    /// Whether an agent checked its own work.
    #[derive(Default, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Verification {
        /// It did, and all was well.
        Passed = "passed",
        /// It did, and something was not.
        Failed = "failed",
        /// It did not say.
        #[default]
        None = "none",
    }
}

/// What an agent says at its end, once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FinalReport {
    /// Whether it did what was asked.
    pub success: bool,
    pub report: String,
    /// Which files it changed: as it says, or as git says after its end.
    #[serde(default)]
    pub files_changed: Vec<String>,
    #[serde(default)]
    pub verification: Verification,
    /// How it checked, in its words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub verified_by: String,
    /// True when the agent reported nothing itself: this is what its output and its exit code say.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inferred: bool,
    pub at: Timestamp,
}

words! {
    /// How an agent ended.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Outcome {
        /// Its command said 0, and what had to follow did.
        Done = "done",
        /// Its command said something else, or it reported a failure.
        Failed = "failed",
        /// Its command said 0, but it changed nothing and did not report its task done.
        #[serde(rename = "changed_nothing")]
        Empty = "changed_nothing",
        /// Its work did not land: a conflict, red tests, an approval that is missing.
        NotLanded = "not_landed",
        Stopped = "stopped",
        /// It ran out of time.
        TimedOut = "timed_out",
        /// Something killed its processes, or its supervisor.
        Crashed = "crashed",
        /// Somebody else holds its task now; what it wrote is kept.
        Superseded = "superseded",
        /// It could not be started.
        NotStarted = "not_started",
        /// It used what agent.budget or agent.budget_day allows.
        OverBudget = "over_budget",
        /// Nobody is logged in for its driver, or the login has expired.
        LoggedOut = "logged_out",
    }
}

/// The end of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    pub outcome: Outcome,
    /// The command's exit code, if it had one (128 and the signal that ended it).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// What to know, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// What it landed as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landing: Option<LandingId>,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Agent {
    /// What it is called.
    pub id: AgentId,
    /// Under which name it works; messages for it go there.
    pub session: SessionName,
    pub task: TaskId,
    pub token: Token,
    /// Where; absent until its tree is there.
    pub tree: Option<TreeName>,
    /// The number of that tree.
    pub tree_id: Option<TreeId>,
    pub branch: Option<String>,
    pub driver: String,
    /// The words after `--`.
    #[serde(default)]
    pub command: Vec<String>,
    /// Which model, if somebody said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The part it plays: a phase, an entry of a race.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The role and standing instructions it gets in addition to its task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brief: Option<String>,
    /// True for one that works in the main checkout, without a tree.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_main: bool,
    /// True for one in its own full-screen interface, on a terminal that people attach to.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interactive: bool,
    pub goal: Goal,
    /// Where its work begins.
    #[serde(default)]
    pub begin_at: Stage,
    pub status: AgentStatus,
    /// What its command said at its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// How often this task was tried, with this one.
    pub attempt: u32,
    /// Who started it, and gets its messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spawned_by: Option<SessionName>,
    /// The process that watches over it; at first, the one that starts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supervisor: Option<ProcessIdentity>,
    /// Whether that process is a supervisor by now.
    #[serde(default)]
    pub supervised: bool,
    /// The process whose end is the end of everything that its command started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessIdentity>,
    /// The conversation of its own that it can go on with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// The agent before, whose work it goes on with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumes: Option<AgentId>,
    /// How many automatic retries led to it, with this one; 0 for an agent that somebody started.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retry: u32,
    /// How many automatic retries it may lead to, if its command said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// What a person wants changed about the work of the agent before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
    /// What somebody wants of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<Wanted>,
    /// How often its owner was reminded that it is silent.
    #[serde(default)]
    pub told: u32,
    /// The usage limit that it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    /// What was found when it stalled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalled: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// What it used itself, by hour and model; `usage` is of its whole conversation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spent: Vec<Spent>,
    /// Whether that lacks what is only known at the end of a turn: all money, and some output.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub spent_is_partial: bool,
    /// What it said at its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<FinalReport>,
    /// What it said as a phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<End>,
    /// When it was recorded.
    pub started_at: Timestamp,
    /// When anything here changed.
    pub updated_at: Timestamp,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Under which claim an agent works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Post {
    pub session: SessionName,
    pub task: TaskId,
    pub token: Token,
}

impl Agent {
    /// An agent that is about to start.
    pub fn new(id: AgentId, post: Post, driver: impl Into<String>, now: Timestamp) -> Self {
        Self {
            id,
            session: post.session,
            task: post.task,
            token: post.token,
            tree: None,
            tree_id: None,
            branch: None,
            driver: driver.into(),
            command: Vec::new(),
            model: None,
            role: None,
            brief: None,
            in_main: false,
            interactive: false,
            goal: Goal::Land,
            begin_at: Stage::Run,
            status: AgentStatus::Starting,
            code: None,
            attempt: 1,
            spawned_by: None,
            supervisor: None,
            supervised: false,
            process: None,
            conversation: None,
            resumes: None,
            retry: 0,
            retries: None,
            feedback: None,
            wanted: None,
            told: 0,
            limit: None,
            stalled: None,
            usage: None,
            spent: Vec::new(),
            spent_is_partial: false,
            report: None,
            verdict: None,
            end: None,
            started_at: now,
            updated_at: now,
        }
    }

    /// The phase it is, if it is one.
    pub fn phase(&self) -> Option<&str> {
        self.role.as_deref().filter(|role| !role.starts_with(RACE))
    }

    /// Its letter, if it is an entry of a race.
    pub fn entry(&self) -> Option<&str> {
        self.role.as_deref()?.strip_prefix(RACE)
    }

    /// Whether its command was successful, and it is over.
    pub fn is_done(&self) -> bool {
        let outcome = self.end.as_ref().map(|end| end.outcome);
        outcome == Some(Outcome::Done)
    }
}
