//! Agents as they stand.

use serde::{Deserialize, Serialize};
use weald_core::agent::AgentId;
use weald_core::id::Seq;

use super::Operation;
use crate::supervision::Tail;
use crate::{AgentList, AgentQuery, AgentSort, AgentView, Call, Failure, Ground};

entries!(ListAgents, PulseAgent, ShowAgent);

/// Agents, and what needs attention.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListAgents {
    /// Those that have ended, too.
    pub all: bool,
    /// Only those in one of [`ListAgents::STATES`].
    pub states: Vec<String>,
    /// What comes first.
    pub sort: AgentSort,
    /// 0 for all.
    pub limit: usize,
    /// How many to leave out at the beginning.
    pub offset: usize,
    /// Only those that changed after this event.
    pub since: Option<Seq>,
}

impl ListAgents {
    /// How many are listed unless a number is given.
    pub const LIMIT: usize = 20;

    /// What agents can be asked for by.
    pub const STATES: [&'static str; 13] = [
        "running",
        "waiting",
        "stalled",
        "paused",
        "limited",
        "starting",
        "finishing",
        "exited",
        "crashed",
        "unknown",
        "stuck",
        "failed",
        "done",
    ];
}

impl Operation for ListAgents {
    const NAME: &'static str = "agent_list";
    const READS: bool = true;
    type Output = AgentList;

    fn needs_only_the_store(&self) -> bool {
        true
    }

    fn run(self, call: &Call<'_>) -> Result<AgentList, Failure> {
        let mut words = self.states.iter();
        if let Some(word) = words.find(|word| !Self::STATES.contains(&word.as_str())) {
            return Err(Failure::no_word("state", word, &Self::STATES));
        }
        let ground = call.ground()?;
        let query = AgentQuery {
            all: self.all,
            states: self.states,
            sort: self.sort,
            since: self.since,
            limit: Some(self.limit).filter(|limit| *limit > 0),
            offset: self.offset,
        };
        Ok(ground.engine.agent_list(&ground.place, &query)?)
    }
}

/// One agent in full.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PulseAgent {
    /// Its id or name, or its task or worktree if that has one at work, or had one.
    pub agent: String,
}

/// One agent as it is now, in a list like others.
#[derive(Debug, Serialize)]
pub struct OneAgent {
    agents: [AgentView; 1],
}

impl OneAgent {
    pub(super) fn of(call: &Call<'_>, ground: &Ground, id: AgentId) -> Result<Self, Failure> {
        let view = ground.engine.agent_view(&ground.place, id)?;
        call.tell(&ground.engine);
        Ok(Self { agents: [view] })
    }

    /// The agent with what was found out about it.
    pub fn view(&self) -> &AgentView {
        let [view] = &self.agents;
        view
    }
}

impl Operation for PulseAgent {
    const NAME: &'static str = "agent_pulse";
    type Output = OneAgent;

    fn needs_only_the_store(&self) -> bool {
        true
    }

    fn run(self, call: &Call<'_>) -> Result<OneAgent, Failure> {
        let ground = call.ground()?;
        let agent = ground.agent(call, &self.agent)?;
        OneAgent::of(call, &ground, agent.id)
    }
}

/// Everything about one agent, with the end of its output.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShowAgent {
    /// Its id or name, or its task or worktree if that has one at work, or had one.
    pub agent: String,
}

/// One agent, and what it did last.
#[derive(Debug, Serialize)]
pub struct ShownAgent {
    agents: [AgentView; 1],
    /// The subject of its task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The last lines of its output, as `weald agent logs` prints them.
    pub last_lines: Vec<String>,
}

impl ShownAgent {
    /// How many lines of its output it has.
    const LINES: usize = 10;

    /// The agent with what was found out about it.
    pub fn view(&self) -> &AgentView {
        let [view] = &self.agents;
        view
    }
}

impl Operation for ShowAgent {
    const NAME: &'static str = "agent_show";
    const READS: bool = true;
    type Output = ShownAgent;

    fn run(self, call: &Call<'_>) -> Result<ShownAgent, Failure> {
        let ground = call.ground()?;
        let agent = ground.agent(call, &self.agent)?;
        let mut tail = Tail::new(&ground, agent.id)?.whole(false);
        let text = tail.all_of(Some(ShownAgent::LINES))?;
        let text = String::from_utf8_lossy(&text);
        let task = ground.engine.task(&agent.task).ok();
        call.tell(&ground.engine);
        Ok(ShownAgent {
            agents: [ground.engine.agent_view(&ground.place, agent.id)?],
            subject: task.map(|view| view.task.subject),
            last_lines: text.lines().map(str::to_owned).collect(),
        })
    }
}
