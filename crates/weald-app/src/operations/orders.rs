//! What is asked of agents that were started: to do something else, to stop, to show what they did.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use weald_control::agents::Entry;
use weald_core::SignedDuration;
use weald_core::agent::{Agent, AgentId, AgentStatus, Wanted};
use weald_core::agent_rules::{AgentInput, AgentRefusal};
use weald_core::git_diff::DiffOptions;
use weald_core::message::{Draft, Message, MessageType, Urgency};
use weald_core::name::SessionName;
use weald_sandbox::Refusal;

use super::agent_views::OneAgent;
use super::messages::Messages;
use super::works::Worked;
use super::{Operation, within_reason};
use crate::agents::drivers::driver_for;
use crate::git_view::GitView;
use crate::progress::{LogView, Shown};
use crate::supervision::{Look, Tail, attach, told_retry};
use crate::{
    Activity, Against, AgentError, AgentQuery, AgentView, Call, DiffStyle, Failure, Ground,
    Landings, Reader, ShownDiff, agent_folder, exit, refusals_with_hint,
};

entries!(
    DiffAgent,
    ReadLog,
    FollowLog,
    AttachAgent,
    SteerAgent,
    PauseAgent,
    ResumeAgent,
    StopAgent,
    WaitForAgents
);

/// How often a record is looked at while somebody waits for it.
const POLL: Duration = Duration::from_millis(50);

/// The same while several are waited for.
const SLOW_POLL: Duration = Duration::from_millis(200);

/// How long a supervisor has to obey.
const OBEDIENCE: Duration = Duration::from_secs(10);

/// How long an agent that is stopped has to end: also what it left has to be taken in.
const END: Duration = Duration::from_secs(120);

/// What an agent changed in its worktree, or what it landed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiffAgent {
    /// Its id or name, or its task or worktree if that has one at work, or had one.
    pub agent: String,
    /// As files, a patch, or numbers.
    pub style: DiffStyle,
    /// What git shall do otherwise than usual.
    #[serde(default)]
    pub options: DiffOptions,
    /// A person, whose configuration counts.
    #[serde(skip)]
    pub reader: Option<Reader>,
}

impl Operation for DiffAgent {
    const NAME: &'static str = "agent_diff";
    type Output = ShownDiff;

    fn run(self, call: &Call<'_>) -> Result<ShownDiff, Failure> {
        let ground = call.ground()?;
        let agent = ground.agent(call, &self.agent)?;
        let trees = ground.trees(call)?;
        let view = GitView::new(call, &ground.place, self.style, &self.options, self.reader)?;
        let form = view.form.clone();
        let progress = call.stage("looking");
        let own = agent.tree.as_ref().and_then(|name| {
            let tree = trees.named(Some(name.as_str())).ok()?;
            (Some(tree.id) == agent.tree_id && tree.is_live()).then_some(tree)
        });
        let landing = ground.engine.landed_by(&agent)?;
        let diff = match (own, landing) {
            (Some(tree), _) => trees.diff(Some(tree.name.as_str()), Against::Base, form)?,
            (None, Some(landing)) => Landings::new(&trees).landing_diff(landing, form)?,
            (None, None) => {
                return Err(Failure::new(
                    "no_tree",
                    exit::NOT_FOUND,
                    format!(
                        "the worktree of {} is gone, and it landed nothing",
                        agent.id
                    ),
                )
                .hint("to see worktrees that can be restored: weald restore"));
            }
        };
        drop(progress);
        Ok(view.show(diff))
    }
}

/// What an agent wrote so far.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadLog {
    /// Its id or name, or its task or worktree if that has one at work, or had one.
    pub agent: String,
    /// Only so many lines from its end.
    pub tail: Option<usize>,
    /// As it came, instead of without colours and as its driver understands it.
    pub raw: bool,
    /// With all lines of results and prompts.
    #[serde(default)]
    pub full: bool,
}

/// Output of an agent.
#[derive(Debug, Serialize)]
pub struct AgentLog {
    /// Whose it is.
    pub agent: AgentId,
    /// All of it, or its end.
    pub text: String,
    /// What its stream means; empty for a command without one.
    pub events: Vec<Entry>,
    /// What it wanted to reach and may not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<Refusal>,
}

impl Operation for ReadLog {
    const NAME: &'static str = "agent_logs";
    const READS: bool = true;
    type Output = AgentLog;

    fn run(self, call: &Call<'_>) -> Result<AgentLog, Failure> {
        let ground = call.ground()?;
        let agent = ground.agent(call, &self.agent)?.id;
        let look = Look {
            full: self.full,
            ..Look::default()
        };
        let mut tail = Tail::new(&ground, agent)?.whole(self.raw).shown(look);
        let all = tail.all_of(self.tail)?;
        let text = String::from_utf8_lossy(&all).into_owned();
        let mut events = tail.entries();
        let count = self.tail.unwrap_or(events.len()).min(events.len());
        let events = events.split_off(events.len() - count);
        let refused = Activity::read(&agent_folder(&ground.place, agent)).refused;
        Ok(AgentLog {
            agent,
            text,
            events,
            refused,
        })
    }
}

/// Shows an agent's output, also while it comes.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FollowLog {
    /// Its id or name, or its task or worktree if that has one at work, or had one.
    pub agent: String,
    /// Only so many lines from its end.
    pub tail: Option<usize>,
    /// As it came.
    pub raw: bool,
    /// With all lines of results and prompts.
    #[serde(default)]
    pub full: bool,
    /// Until the agent ends.
    pub follow: bool,
}

/// Nothing: the log was shown while the operation ran.
#[derive(Debug, Serialize)]
pub struct ShownLog {}

impl Operation for FollowLog {
    const NAME: &'static str = "agent_logs_follow";
    const READS: bool = true;
    const TAKES_STREAMS: bool = true;
    type Output = ShownLog;

    fn run(self, call: &Call<'_>) -> Result<ShownLog, Failure> {
        let ground = call.ground()?;
        let id = ground.agent(call, &self.agent)?.id;
        let view = LogView::Kept {
            lines: self.tail,
            raw: self.raw,
            full: self.full,
        };
        let mut reader = call.progress.log_of(&ground, id, view)?;
        while self.follow && !reader.has_left() {
            ground.engine.reap_agents()?;
            let is_over = ground.engine.agent(id)?.status.is_over();
            reader.show()?;
            if is_over {
                break;
            }
            std::thread::sleep(POLL);
        }
        let activity = Activity::read(&agent_folder(&ground.place, id));
        if let Some(told) = refusals_with_hint(&activity.refused, activity.refusals) {
            call.warn(&told);
        }
        Ok(ShownLog {})
    }
}

/// Shows an agent's output until it ends or the reader leaves, and passes on what is typed meanwhile.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttachAgent {
    /// Its id or name, or its task or worktree if that has one at work, or had one.
    pub agent: String,
    /// With how many lines of its output to begin; all unless given.
    pub tail: Option<usize>,
}

/// How the caller and the agent parted.
#[derive(Debug, Serialize)]
pub struct Attached {
    /// What came of its work, if it has ended.
    pub ended: Option<Box<Worked>>,
}

impl Operation for AttachAgent {
    const NAME: &'static str = "agent_attach";
    const TAKES_STREAMS: bool = true;
    type Output = Attached;

    fn run(self, call: &Call<'_>) -> Result<Attached, Failure> {
        call.cancel.catch();
        let ground = call.ground()?;
        let agent = ground.agent(call, &self.agent)?;
        let mut id = agent.id;
        if agent.interactive {
            if agent.status.is_over() {
                return Err(Failure::interface_ended(&agent));
            }
            let ended = attach(call, &ground, id)?;
            let ended = ended.map(|agent| Worked::of(call, &ground, agent).map(Box::new));
            return Ok(Attached {
                ended: ended.transpose()?,
            });
        }
        let view = LogView::Growing(self.tail);
        let mut reader = call.progress.log_of(&ground, id, view)?;
        let mut of_retry: Option<Shown> = None;
        loop {
            ground.engine.reap_agents()?;
            let agent = ground.engine.agent(id)?;
            match &mut of_retry {
                None => reader.show()?,
                Some(shown) => shown()?,
            }
            if agent.status.is_over() {
                if let Some(next) = ground.engine.retry_of(&agent)? {
                    call.note(&told_retry(&agent, &next));
                    id = next.id;
                    of_retry = Some(call.progress.output_of(&ground, id)?);
                    continue;
                }
                let ended = Some(Box::new(Worked::of(call, &ground, agent)?));
                return Ok(Attached { ended });
            }
            if call.cancel.asked().is_some() {
                call.note(&format!(
                    "{id} keeps running; reattach with: weald attach {id}, stop it with: weald agent stop {id}"
                ));
                return Ok(Attached { ended: None });
            }
            for line in reader.typed() {
                let from = call.session(&ground.engine)?;
                let sent = send(&ground, &agent, from, Urgency::Steer, line)?;
                call.note(&format!("message {} for {id}", sent.id));
            }
            std::thread::sleep(POLL);
        }
    }

    fn exit(attached: &Attached) -> u8 {
        let ended = attached.ended.as_ref();
        ended.map_or(exit::DONE, |worked| worked.exit_code())
    }
}

/// Puts words into an agent's inbox.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SteerAgent {
    /// Its id or name, or its task or worktree if that has one at work, or had one.
    pub agent: String,
    /// What it is to know.
    pub text: String,
    /// Before all other messages.
    pub urgent: bool,
}

impl Operation for SteerAgent {
    const NAME: &'static str = "agent_steer";
    type Output = Messages;

    fn needs_only_the_store(&self) -> bool {
        true
    }

    fn run(self, call: &Call<'_>) -> Result<Messages, Failure> {
        let ground = call.ground()?;
        let agent = ground.agent(call, &self.agent)?;
        let from = call.session(&ground.engine)?;
        let priority = match self.urgent {
            true => Urgency::Urgent,
            false => Urgency::Steer,
        };
        let message = send(&ground, &agent, from, priority, self.text)?;
        call.tell(&ground.engine);
        if !is_listening(&ground, &agent) {
            call.note(&format!(
                "{} ({}) does not read input while it works: it sees this only with `weald msg inbox`",
                agent.id, agent.driver
            ));
        }
        Ok(Messages {
            messages: vec![message],
            notices: Vec::new(),
        })
    }
}

/// Whether an agent's input stays open, so that words reach it while it works.
fn is_listening(ground: &Ground, agent: &Agent) -> bool {
    if agent.interactive {
        return false;
    }
    let driver = driver_for(ground.config(), Some(&agent.driver), &[]);
    driver.is_ok_and(|driver| driver.say("").is_some())
}

/// Puts words into an agent's inbox; one that is over reads nothing.
fn send(
    ground: &Ground,
    agent: &Agent,
    from: SessionName,
    priority: Urgency,
    text: String,
) -> Result<Message, Failure> {
    if agent.status.is_over() {
        return Err(AgentError::from(AgentRefusal::Over {
            agent: agent.id,
            status: agent.status,
        })
        .into());
    }
    Ok(ground.engine.send(Draft {
        from,
        to: agent.session.clone(),
        kind: MessageType::Message,
        priority,
        text,
        task: Some(agent.task.clone()),
    })?)
}

/// Stops all processes of an agent until it is resumed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PauseAgent {
    /// Its id or name, or its task or worktree if that has one at work, or had one.
    pub agent: String,
}

impl Operation for PauseAgent {
    const NAME: &'static str = "agent_pause";
    type Output = OneAgent;

    fn run(self, call: &Call<'_>) -> Result<OneAgent, Failure> {
        obeyed(call, &self.agent, Wanted::Pause, AgentStatus::Paused)
    }
}

/// Continues an agent that was paused.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResumeAgent {
    /// Its id or name, or its task or worktree if that has one at work, or had one.
    pub agent: String,
}

impl Operation for ResumeAgent {
    const NAME: &'static str = "agent_resume";
    type Output = OneAgent;

    fn run(self, call: &Call<'_>) -> Result<OneAgent, Failure> {
        obeyed(call, &self.agent, Wanted::Run, AgentStatus::Running)
    }
}

/// Has a supervisor obey, and waits until it did.
fn obeyed(
    call: &Call<'_>,
    agent: &str,
    wanted: Wanted,
    status: AgentStatus,
) -> Result<OneAgent, Failure> {
    let ground = call.ground()?;
    let id = ground.agent(call, agent)?.id;
    // One that is being started has nothing to stop yet.
    wait_for(&ground, id, OBEDIENCE, |agent| {
        agent.status != AgentStatus::Starting
    })?;
    ground.engine.decide_agent(id, AgentInput::Want(wanted))?;
    let obeyed = wait_for(&ground, id, OBEDIENCE, |agent| {
        agent.status == status || agent.status.is_over() || agent.status == AgentStatus::Finishing
    })?;
    match obeyed {
        Some(agent) if agent.status == status => OneAgent::of(call, &ground, id),
        Some(agent) => Err(Failure::new(
            "agent_over",
            exit::REFUSED,
            format!("{id} ended first ({})", agent.status),
        )),
        None => Err(Failure::new(
            "agent_busy",
            exit::BUSY,
            format!("the supervisor of {id} did not answer; the request is still pending"),
        )
        .hint(format!("weald agent pulse {id}"))),
    }
}

/// Stops an agent and all its processes; its worktree is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StopAgent {
    /// Its id or name, or its task or worktree if that has one at work, or had one.
    pub agent: String,
    /// Release its task instead of marking it as failed.
    pub release: bool,
    /// Part of the record; who stopped it unless given.
    pub reason: Option<String>,
    /// Answer when it has ended.
    pub wait: bool,
}

impl Operation for StopAgent {
    const NAME: &'static str = "agent_stop";
    type Output = OneAgent;

    fn needs_only_the_store(&self) -> bool {
        !self.wait
    }

    fn run(self, call: &Call<'_>) -> Result<OneAgent, Failure> {
        let ground = call.ground()?;
        let id = ground.agent(call, &self.agent)?.id;
        let who = call.actor(&ground.engine)?;
        let stopped = || {
            who.map_or("it was stopped".to_owned(), |who| {
                format!("{who} stopped it")
            })
        };
        let why = self.reason.unwrap_or_else(stopped);
        stop(&ground, id, why, self.release)?;
        if self.wait {
            require_ended(&ground, id)?;
        }
        OneAgent::of(call, &ground, id)
    }
}

/// Asks an agent to stop.
pub(super) fn stop(
    ground: &Ground,
    id: AgentId,
    why: String,
    release: bool,
) -> Result<(), Failure> {
    let stop = Wanted::Stop { why, release };
    ground.engine.decide_agent(id, AgentInput::Want(stop))?;
    Ok(())
}

/// Waits until an agent that was asked to stop is over.
pub(super) fn require_ended(ground: &Ground, id: AgentId) -> Result<(), Failure> {
    match wait_for(ground, id, END, |agent| agent.status.is_over())? {
        Some(_) => Ok(()),
        None => Err(Failure::new(
            "agent_busy",
            exit::BUSY,
            format!("{id} was asked to stop but has not ended yet"),
        )
        .hint(format!("weald agent wait {id}"))),
    }
}

/// Waits until a record is as wanted; `None` if that takes too long. A supervisor that is gone is noticed.
pub(super) fn wait_for(
    ground: &Ground,
    id: AgentId,
    limit: Duration,
    is_there: impl Fn(&Agent) -> bool,
) -> Result<Option<Agent>, Failure> {
    let deadline = Instant::now() + limit;
    loop {
        ground.engine.reap_agents()?;
        let agent = ground.engine.agent(id)?;
        if is_there(&agent) {
            return Ok(Some(agent));
        }
        if Instant::now() >= deadline {
            return Ok(None);
        }
        std::thread::sleep(POLL);
    }
}

/// Waits until agents have ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WaitForAgents {
    /// All that are at work unless given.
    pub agents: Vec<String>,
    /// Answer when the first one has ended.
    pub any: bool,
    /// After this it answers as they are, and they keep running.
    pub timeout: SignedDuration,
}

/// Agents after a wait.
#[derive(Debug, Serialize)]
pub struct WaitedAgents {
    /// As they are now.
    pub agents: Vec<AgentView>,
    /// Whether the wait ended before they did.
    pub timed_out: bool,
}

impl Operation for WaitForAgents {
    const NAME: &'static str = "agent_wait";
    type Output = WaitedAgents;

    fn needs_only_the_store(&self) -> bool {
        true
    }

    fn validate(&self) -> Result<(), Failure> {
        within_reason("timeout", Some(self.timeout))
    }

    fn run(self, call: &Call<'_>) -> Result<WaitedAgents, Failure> {
        let ground = call.ground()?;
        let ids = self.meant(call, &ground)?;
        let deadline = Instant::now() + self.timeout.unsigned_abs();
        let stage = call.stage("waiting for agents");
        let mut shown = None;
        let timed_out = loop {
            ground.engine.reap_agents()?;
            let mut over = 0;
            for id in &ids {
                over += usize::from(ground.engine.last_retry(*id)?.status.is_over());
            }
            if over == ids.len() || (self.any && over > 0) {
                break false;
            }
            if shown != Some(over) {
                shown = Some(over);
                stage.line(&format!("{over} of {} ended", ids.len()));
            }
            if Instant::now() >= deadline || call.cancel.asked().is_some() {
                break true;
            }
            std::thread::sleep(SLOW_POLL);
        };
        let views = ids.iter().map(|id| {
            let newest = ground.engine.last_retry(*id)?;
            Ok(ground.engine.agent_view(&ground.place, newest.id)?)
        });
        Ok(WaitedAgents {
            agents: views.collect::<Result<_, Failure>>()?,
            timed_out,
        })
    }

    fn exit(waited: &WaitedAgents) -> u8 {
        match waited.timed_out {
            true => exit::BUSY,
            false => exit::DONE,
        }
    }
}

impl WaitForAgents {
    /// Those that are named, or all that are at work now.
    fn meant(&self, call: &Call<'_>, ground: &Ground) -> Result<Vec<AgentId>, Failure> {
        if self.agents.is_empty() {
            let list = ground
                .engine
                .agent_list(&ground.place, &AgentQuery::default())?;
            return Ok(list.agents.iter().map(|view| view.agent.id).collect());
        }
        let find = |name: &String| Ok(ground.agent(call, name)?.id);
        self.agents.iter().map(find).collect()
    }
}
