//! Agents as people and programs see them: the record with what is known beside it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::{Read as _, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weald_core::agent::{Agent, AgentId};
use weald_core::agent_view::{
    AgentState, Alert, Condition, Seen, alert_for, condition_of, is_abandoned, limit_in_words,
    state_of,
};
use weald_core::id::{LandingId, MessageId, Seq, TaskId};
use weald_core::landing::LandingStatus;
use weald_core::message::{Message, MessageType};
use weald_core::name::SessionName;
use weald_core::store::{AgentFilter, EventFilter, MessageFilter, Read};
use weald_core::task::Task;
use weald_core::tree::Tree;
use weald_core::{SignedDuration, TimeZone, Timestamp};
use weald_sandbox::Refusal;

use super::RecordError;
use super::activity::Activity;
use super::transcript::{Entry, TRANSCRIPT_FILE};
use crate::agent_folder::{LOG_FILE, agent_folder};
use crate::engine::Engine;
use crate::files::open_own;
use crate::place::Place;

/// How much of a log or a transcript is read for its last line: more than the longest entry.
const TAIL: u64 = 128 * 1024;

/// The longest last line.
const SHORT: usize = 200;

/// An agent with what is known of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AgentView {
    #[serde(flatten)]
    pub agent: Agent,
    pub state: AgentState,
    /// The same in the words of a foreman.
    pub condition: Condition,
    /// For how long it did nothing; absent once it is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_seconds: Option<i64>,
    /// When it last did anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_activity: Option<Timestamp>,
    /// The last tool it used, in one line.
    pub last_action: String,
    /// The last thing it said or wrote, in one line.
    pub last_output: String,
    /// How many tools it used.
    pub actions: u64,
    /// How much it wrote.
    pub output_bytes: u64,
    /// What it wanted to reach and may not, as `sandbox.network` and `sandbox.hosts` have it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<Refusal>,
    /// How often.
    #[serde(default)]
    pub refusals: u64,
    /// The outermost process of its command; before there is one, its starter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Where its tree is, or was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// Its oldest question that nobody answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<MessageId>,
    /// The words of that question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question_text: Option<String>,
}

/// In which order agents are listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentSort {
    /// As they were started.
    #[default]
    Id,
    /// Those that need somebody first.
    State,
    /// Those that did nothing for longest first.
    Idle,
    Task,
}

/// Which agents are asked for.
#[derive(Debug, Clone, Default)]
pub struct AgentQuery {
    /// Also those that are over.
    pub all: bool,
    /// In one of these states or conditions; empty is any.
    pub states: Vec<String>,
    pub sort: AgentSort,
    /// Only those whose record, or question, changed after this place of the log.
    pub since: Option<Seq>,
    /// At most so many.
    pub limit: Option<usize>,
    pub offset: usize,
}

/// Some agents, and what needs somebody in all of them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AgentList {
    /// Those that were asked for.
    pub agents: Vec<AgentView>,
    /// How many there are without the limit.
    pub total: usize,
    /// How far the log went; what changes later is found with it.
    pub seq: Seq,
    /// What somebody should look at.
    pub alerts: Vec<Alert>,
}

/// What is looked up once for all agents.
struct Surroundings {
    now: Timestamp,
    questions: Vec<Message>,
    paths: BTreeMap<u64, PathBuf>,
}

impl Engine {
    /// One agent with what is known of it.
    pub fn agent_view(&self, place: &Place, id: AgentId) -> Result<AgentView, RecordError> {
        self.look(|tx| {
            let agent = super::records::require_agent(tx, id)?;
            Ok(self.seen(place, agent, &Surroundings::of(tx)?))
        })
    }

    /// Agents by query, from one snapshot.
    pub fn agent_list(&self, place: &Place, query: &AgentQuery) -> Result<AgentList, RecordError> {
        self.look(|tx| {
            let around = Surroundings::of(tx)?;
            let all = tx.agents(&AgentFilter::default())?;
            let newest: BTreeMap<&TaskId, AgentId> =
                all.iter().map(|agent| (&agent.task, agent.id)).collect();
            let changed = match query.since {
                Some(since) => Some(changed_since(tx, since)?),
                None => None,
            };
            let is_asked = |agent: &Agent| match &changed {
                Some((ids, sessions)) => {
                    ids.contains(&agent.id)
                        || (!agent.status.is_over() && sessions.contains(&agent.session))
                }
                None => query.all || !query.states.is_empty() || !agent.status.is_over(),
            };
            let (mut agents, mut alerts) = (Vec::new(), Vec::new());
            for agent in &all {
                let is_newest = newest.get(&agent.task) == Some(&agent.id);
                if agent.status.is_over() && !is_newest && !is_asked(agent) {
                    continue;
                }
                let view = self.seen(place, agent.clone(), &around);
                let task = tx.task(&agent.task)?;
                alerts.extend(alert_for(&Seen {
                    agent,
                    limit: limit_in_words(agent, around.now, &TimeZone::system()),
                    state: view.state,
                    idle: SignedDuration::from_secs(view.idle_seconds.unwrap_or(0)),
                    question: around.question_of(agent),
                    task: task.as_ref(),
                    is_newest,
                }));
                if is_asked(agent) && view.is_in(&query.states) {
                    agents.push(view);
                }
            }
            sort(&mut agents, query.sort);
            let total = agents.len();
            let limit = query.limit.unwrap_or(usize::MAX);
            Ok(AgentList {
                agents: agents.into_iter().skip(query.offset).take(limit).collect(),
                total,
                seq: tx.last_seq()?,
                alerts,
            })
        })
    }

    /// The landing that brought an agent's work to its target, no matter who asked for it.
    pub fn landed_by(&self, agent: &Agent) -> Result<Option<LandingId>, RecordError> {
        let recorded = agent.end.as_ref().and_then(|end| end.landing);
        let Some(tree) = &agent.tree else {
            return Ok(recorded);
        };
        self.look(|tx| {
            let all = tx.landings_of(tree)?.into_iter();
            let landed = all.filter(|one| {
                Some(one.tree_id) == agent.tree_id
                    && one.status == LandingStatus::Landed
                    && one.reverts.is_none()
            });
            let landed: Vec<_> = landed.map(|one| one.id).collect();
            let own = recorded.filter(|own| landed.contains(own));
            Ok(own.or(landed.into_iter().max()).or(recorded))
        })
    }

    /// Trees of finished tasks that nobody decided on, with those tasks.
    pub fn abandoned_trees(&self) -> Result<Vec<(Tree, Task)>, RecordError> {
        self.look(|tx| {
            let mut found = Vec::new();
            for tree in tx.trees()? {
                let task = match &tree.task {
                    Some(id) => tx.task(id)?,
                    None => None,
                };
                if let Some(task) = task.filter(|task| is_abandoned(&tree, task)) {
                    found.push((tree, task));
                }
            }
            Ok(found)
        })
    }

    fn seen(&self, place: &Place, agent: Agent, around: &Surroundings) -> AgentView {
        let folder = agent_folder(place, agent.id);
        let activity = Activity::read(&folder);
        let question = around.question_of(&agent);
        let supervisor = agent.supervisor.as_ref();
        let process = supervisor.map(|process| self.processes.state(process));
        let state = state_of(&agent, process, question.is_some());
        let last = activity.last_activity.unwrap_or(agent.started_at);
        let idle = around.now.duration_since(last).as_secs().max(0);
        let is_over = agent.status.is_over();
        let last_output = match activity.last_said.is_empty() {
            true => last_output(&folder),
            false => activity.last_said,
        };
        AgentView {
            state,
            condition: condition_of(state, agent.end.as_ref().map(|end| end.outcome)),
            idle_seconds: (!is_over).then_some(idle),
            last_activity: activity.last_activity,
            last_action: activity.last_action,
            last_output,
            actions: activity.actions,
            output_bytes: activity.output_bytes,
            refused: activity.refused,
            refusals: activity.refusals,
            pid: agent
                .process
                .as_ref()
                .or(supervisor)
                .map(|process| process.pid),
            path: agent
                .tree_id
                .and_then(|id| around.paths.get(&id.0).cloned()),
            question: question.map(|question| question.id),
            question_text: question.map(|question| question.text.clone()),
            agent,
        }
    }
}

impl Surroundings {
    fn of(tx: &dyn Read) -> Result<Self, RecordError> {
        let pending = tx.messages(&MessageFilter {
            pending: true,
            ..MessageFilter::default()
        })?;
        let asks =
            |message: &Message| matches!(message.kind, MessageType::Question | MessageType::Plan);
        let trees = tx.trees()?.into_iter();
        Ok(Self {
            now: tx.now(),
            questions: pending.into_iter().filter(asks).collect(),
            paths: trees.map(|tree| (tree.id.0, tree.path)).collect(),
        })
    }

    /// The oldest question of an agent that nobody answered; a namesake's before it does not count.
    fn question_of(&self, agent: &Agent) -> Option<&Message> {
        let own = self.questions.iter().filter(|question| {
            question.from == agent.session && question.sent_at >= agent.started_at
        });
        own.filter(|_| !agent.status.is_over())
            .min_by_key(|question| question.id)
    }
}

impl AgentView {
    fn is_in(&self, states: &[String]) -> bool {
        let is =
            |wanted: &String| wanted == self.state.as_str() || wanted == self.condition.as_str();
        states.is_empty() || states.iter().any(is)
    }
}

fn sort(agents: &mut [AgentView], order: AgentSort) {
    match order {
        AgentSort::Id => {}
        AgentSort::State => agents.sort_by_key(|view| view.state),
        AgentSort::Idle => agents.sort_by_key(|view| -view.idle_seconds.unwrap_or(-1)),
        AgentSort::Task => agents.sort_by(|a, b| a.agent.task.cmp(&b.agent.task)),
    }
}

/// Whose record changed after a place of the log, and who asked or was answered.
fn changed_since(
    tx: &dyn Read,
    since: Seq,
) -> Result<(BTreeSet<AgentId>, BTreeSet<SessionName>), RecordError> {
    let events = tx.events(&EventFilter {
        since: Some(since),
        ..EventFilter::default()
    })?;
    let (mut agents, mut sessions) = (BTreeSet::new(), BTreeSet::new());
    for event in events {
        agents.extend(event.after.agent.map(|agent| agent.id));
        if let Some(message) = event.after.message
            && message.state.is_some()
        {
            sessions.extend([message.from, message.to]);
        }
    }
    Ok((agents, sessions))
}

/// The last thing that an agent wrote, in one line: by its transcript, or else by its log, if that is no stream for programs.
fn last_output(folder: &Path) -> String {
    let transcript = folder.join(TRANSCRIPT_FILE);
    let found = match transcript.exists() {
        true => {
            let bytes = tail_of(&transcript);
            let entries = bytes.split(|byte| *byte == b'\n').rev();
            let entries = entries.filter_map(Entry::read);
            let mut said = entries.filter_map(|entry| last_line(entry.output()?));
            said.next()
        }
        false => {
            let text = tail_of(&folder.join(LOG_FILE));
            last_line(&String::from_utf8_lossy(&text)).filter(|line| !line.starts_with('{'))
        }
    };
    found.unwrap_or_default()
}

/// The end of a file; nothing where there is none.
fn tail_of(path: &Path) -> Vec<u8> {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = open_own(OpenOptions::new().read(true), path)?;
        let size = file.metadata()?.len();
        file.seek(SeekFrom::Start(size.saturating_sub(TAIL)))?;
        let mut bytes = Vec::new();
        file.take(TAIL).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    read().unwrap_or_default()
}

/// The last line that says something. What a terminal would obey is replaced where it is shown.
fn last_line(text: &str) -> Option<String> {
    let mut lines = text.lines().rev().map(str::trim);
    let line = lines.find(|line| !line.is_empty())?;
    Some(line.chars().take(SHORT).collect())
}
