//! Agents and workers in the background: starting them, and starting an agent again.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use weald_core::SignedDuration;
use weald_core::agent::{Agent, AgentStatus, Goal, Outcome, Stage};
use weald_core::name::SessionName;
use weald_core::task::{Task, TaskStatus};

use super::agent_views::OneAgent;
use super::orders::{require_ended, stop, wait_for};
use super::{Operation, within_reason};
use crate::agents::drivers::driver_for;
use crate::progress::FinishedTask;
use crate::supervision::{
    AgentWish, BehindWorker, Worker, await_begin, can_start, continued, find_or_add, is_resumed,
    launch, place_of, put_back, refuse_undecided, require_begun, start_behind, start_in_main,
    tell_again, tell_placed, withdraw,
};
use crate::{
    AgentRequest, AgentView, Agents, Call, Created, Failure, Ground, Landings, NewTree, exit,
};

entries!(SpawnAgent, RestartAgent, TakeAgent, StartWorker, RunWorker);

/// How long a new agent has to begin.
const BEGINNING: Duration = Duration::from_secs(60);

/// Starts an agent in the background.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpawnAgent {
    /// The id of a task, or the subject of a new one.
    pub task: String,
    /// Which agent, and what it is given.
    pub how: AgentWish,
    /// Also while finished tasks have worktrees that nobody decided on.
    pub force: bool,
}

impl Operation for SpawnAgent {
    const NAME: &'static str = "agent_spawn";
    type Output = OneAgent;

    fn run(self, call: &Call<'_>) -> Result<OneAgent, Failure> {
        let ground = call.ground()?;
        ground.warn_of_settings(call);
        if !self.force {
            refuse_abandoned(&ground)?;
        }
        let new = place_of(call, &ground)?;
        let request = self.how.request(call, &ground)?;
        Agents::new(&ground.trees(call)?).require_driver(&request)?;
        let can_start = |subject: &str| can_start(call, &ground, subject, &request, &new);
        let (task, is_new) = find_or_add(call, &ground, &self.task, false, can_start)?;
        let found = Agents::new(&ground.trees(call)?).diagnose(&task)?;
        let is_plain = ground.engine.stages(&task)?.is_empty();
        let request = match is_plain && is_resumed(&found) {
            true => {
                refuse_undecided(&ground, &found)?;
                tell_again(call, &found);
                let continued = continued(call, &ground, &found, &self.how)?;
                match self.how.command.is_empty() {
                    true => continued,
                    false => AgentRequest {
                        begin_at: Stage::Run,
                        ..continued
                    },
                }
            }
            false => request,
        };
        let is_own_tree = is_new && new.name.is_none();
        let told = |agent: &Agent, created: &Created| tell_placed(call, agent, created);
        let launched = launch(call, &ground, Some(&task), &request, new, told);
        let begun = launched.and_then(|launched| {
            let agent = await_begin(&ground, launched.id)?;
            require_begun(call, &ground, &agent, is_own_tree)?;
            Ok(agent)
        });
        let begun = begun.inspect_err(|failure| {
            if is_new {
                withdraw(call, &ground, &task, failure);
            }
        })?;
        OneAgent::of(call, &ground, begun.id)
    }
}

/// Trees of finished tasks pile up unless somebody decides on them.
fn refuse_abandoned(ground: &Ground) -> Result<(), Failure> {
    let abandoned = ground.engine.abandoned_trees()?;
    let Some((tree, _)) = abandoned.first() else {
        return Ok(());
    };
    let lines: Vec<_> = abandoned
        .iter()
        .map(|(tree, task)| format!("\n  {} (task {}, {})", tree.name, task.id, task.status))
        .collect();
    let names: Vec<_> = abandoned.iter().map(|(tree, _)| &tree.name).collect();
    Err(Failure::new(
        "abandoned_trees",
        exit::REFUSED,
        format!(
            "finished tasks still have worktrees:{}",
            lines.concat()
        ),
    )
    .hint(format!(
        "decide on each: weald land {0}, weald keep {0}, or weald rm {0}; or run this again with --force",
        tree.name
    ))
    .details(json!({"trees": names})))
}

/// Runs the command of an agent again, in the same worktree.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RestartAgent {
    /// Its id or name, or its task or worktree if that has one at work, or had one.
    pub agent: String,
    /// Whether it remembers what was said.
    pub conversation: Conversation,
    /// Stop it first if it runs; open its task again if that is finished.
    pub force: bool,
}

/// What becomes of an agent's conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Conversation {
    /// It is continued if there is one.
    Any,
    /// It is continued; without one nothing is started.
    Continued,
    /// It begins with the task alone.
    New,
}

impl Operation for RestartAgent {
    const NAME: &'static str = "agent_restart";
    type Output = OneAgent;

    fn run(self, call: &Call<'_>) -> Result<OneAgent, Failure> {
        let ground = call.ground()?;
        ground.warn_of_settings(call);
        let agent = ground.agent(call, &self.agent)?;
        let request = self.request(call, &ground, &agent)?;
        let launched = again(call, &ground, &agent, &request)?;
        OneAgent::of(call, &ground, launched.id)
    }
}

/// Stops an agent that runs, and starts the one that is asked for in its place.
fn again(
    call: &Call<'_>,
    ground: &Ground,
    agent: &Agent,
    request: &AgentRequest,
) -> Result<Agent, Failure> {
    if !agent.status.is_over() {
        call.note(&format!("stopping {}", agent.id));
        let why = match request.interactive {
            true => "a person takes it over",
            false => "it is being restarted",
        };
        stop(ground, agent.id, why.to_owned(), false)?;
        require_ended(ground, agent.id)?;
    }
    let before = ground.engine.task(&agent.task)?.task;
    let launched = match agent.in_main {
        true => start_in_main(call, ground, &agent.task, request)?,
        false => {
            let new = NewTree {
                name: agent.tree.as_ref().map(ToString::to_string),
                ..NewTree::default()
            };
            let told = |agent: &Agent, created: &Created| tell_placed(call, agent, created);
            launch(call, ground, Some(&agent.task), request, new, told)?
        }
    };
    require_restarted(ground, &launched, &before)?;
    Ok(launched)
}

/// Opens the conversation of a headless agent in its own interface, in the same worktree and under the same rules of
/// claiming. One that runs is stopped first.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TakeAgent {
    /// Its id or name, or its task or worktree if that has one at work, or had one.
    pub agent: String,
}

impl Operation for TakeAgent {
    const NAME: &'static str = "agent_take";
    type Output = OneAgent;

    fn run(self, call: &Call<'_>) -> Result<OneAgent, Failure> {
        let ground = call.ground()?;
        ground.warn_of_settings(call);
        let agent = ground.agent(call, &self.agent)?;
        if agent.interactive && !agent.status.is_over() {
            return Err(Failure::already_interactive(agent.id));
        }
        let driver = driver_for(ground.config(), Some(&agent.driver), &[]);
        if !driver.is_ok_and(|driver| driver.is_interactive()) || agent.in_main {
            return Err(Failure::no_interface(&agent));
        }
        let restart = RestartAgent {
            agent: agent.id.to_string(),
            conversation: Conversation::Any,
            force: !agent.status.is_over(),
        };
        let request = AgentRequest {
            interactive: true,
            goal: Goal::Finish,
            ..restart.request(call, &ground, &agent)?
        };
        let launched = again(call, &ground, &agent, &request)?;
        OneAgent::of(call, &ground, launched.id)
    }
}

impl RestartAgent {
    /// What is started; whatever can be refused is refused before anything is stopped.
    fn request(
        &self,
        call: &Call<'_>,
        ground: &Ground,
        agent: &Agent,
    ) -> Result<AgentRequest, Failure> {
        let id = agent.id;
        let refused = |code: &'static str, message: String| {
            let failure = Failure::new(code, exit::REFUSED, message);
            Err(failure.hint(match code {
                "task_finished" => format!("to open it again: weald agent restart {id} --force"),
                "no_conversation" => format!("to begin one: weald agent restart {id} --fresh"),
                "agent_running" => format!("to stop it first: weald agent restart {id} --force"),
                _ => format!("weald agent pulse {id}"),
            }))
        };
        let found = Agents::new(&ground.trees(call)?).diagnose(&agent.task)?;
        if let Some(newest) = found.newest.filter(|newest| newest.id != id) {
            return refused(
                "agent_superseded",
                format!("{} worked on task {} after {id}", newest.id, agent.task),
            );
        }
        if agent.in_main {
            call.refuse_agent("an agent in the main checkout")?;
        }
        if agent.goal == Goal::Stay {
            return refused(
                "agent_has_a_part",
                format!("{id} belongs to a race or a phase, which restarts it itself"),
            );
        }
        let status = found.task.status;
        if matches!(status, TaskStatus::Completed | TaskStatus::Cancelled) && !self.force {
            return refused("task_finished", format!("task {} is {status}", agent.task));
        }
        if self.conversation == Conversation::Continued && agent.conversation.is_none() {
            return refused(
                "no_conversation",
                format!("{id} has no conversation to continue"),
            );
        }
        if !agent.status.is_over() && !self.force {
            return refused("agent_running", format!("{id} is {}", agent.status));
        }
        let own_name = agent.session.as_str() == id.to_string();
        let conversation = agent.conversation.clone();
        let request = AgentRequest {
            session: (!own_name).then(|| agent.session.clone()),
            command: agent.command.clone(),
            model: agent.model.clone(),
            role: agent.role.clone(),
            brief: agent.brief.clone(),
            retries: agent.retries,
            resumes: Some(id),
            conversation: conversation.filter(|_| self.conversation != Conversation::New),
            reopen: true,
            in_main: agent.in_main,
            ..AgentRequest::new(agent.driver.clone(), agent.goal)
        };
        Agents::new(&ground.trees(call)?).require_driver(&request)?;
        Ok(request)
    }
}

/// Waits until the new agent works. One that can't be started leaves the task as it was.
fn require_restarted(ground: &Ground, agent: &Agent, before: &Task) -> Result<(), Failure> {
    let begun = wait_for(ground, agent.id, BEGINNING, |agent| {
        agent.status != AgentStatus::Starting
    })?;
    let end = begun.and_then(|agent| agent.end);
    match end.filter(|end| end.outcome == Outcome::NotStarted) {
        None => Ok(()),
        Some(end) => {
            put_back(ground, agent, before);
            Err(Failure::new(
                "agent_not_started",
                exit::REFUSED,
                format!("{} can't be started: {}", agent.id, end.why),
            )
            .hint(format!(
                "its task is {} as before; weald task show {}",
                before.status, before.id
            )))
        }
    }
}

/// Starts a worker in the background, which runs agents on ready tasks.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartWorker {
    /// After how many tasks it ends.
    pub max: Option<u64>,
    /// After how long without work.
    pub idle_timeout: Option<SignedDuration>,
    /// Which agents it starts, and what they are given.
    pub how: AgentWish,
}

/// A worker in the background.
#[derive(Debug, Serialize)]
pub struct StartedWorker {
    /// Where to find it.
    pub worker: WorkerView,
    /// Its agent, if a task was ready.
    pub agents: Vec<AgentView>,
    /// What the caller may not expect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notices: Option<Vec<String>>,
}

/// Where to find a worker.
#[derive(Debug, Serialize)]
pub struct WorkerView {
    /// Its session: messages and shutdown requests go there.
    pub name: SessionName,
    /// Its process.
    pub pid: u32,
    /// The file that has its output.
    pub log: PathBuf,
}

impl Operation for StartWorker {
    const NAME: &'static str = "worker_start";
    type Output = StartedWorker;

    fn validate(&self) -> Result<(), Failure> {
        within_reason("idle_timeout", self.idle_timeout)
    }

    fn run(self, call: &Call<'_>) -> Result<StartedWorker, Failure> {
        call.cancel.catch();
        let ground = call.ground()?;
        let worker = Worker::new(call, &ground, &self.how, self.max, self.idle_timeout)?;
        let BehindWorker { pid, log, agent } = start_behind(call, &ground, &worker, &self.how)?;
        let agents = match &agent {
            Some(agent) => vec![ground.engine.agent_view(&ground.place, agent.id)?],
            None => Vec::new(),
        };
        call.tell(&ground.engine);
        let name = worker.name;
        let idle = ground.config().get("worker.idle_timeout").0;
        let waits =
            format!("no task is ready; {name} waits for one, and ends after {idle} without work");
        Ok(StartedWorker {
            worker: WorkerView { name, pid, log },
            agents,
            notices: agent.is_none().then(|| vec![waits]),
        })
    }
}

/// Runs agents on ready tasks, one after the other, and reports each task that is finished.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunWorker {
    /// After how many tasks it ends.
    pub max: Option<u64>,
    /// After how long without work.
    pub idle_timeout: Option<SignedDuration>,
    /// Which agents it starts, and what they are given.
    pub how: AgentWish,
}

/// A worker that has ended.
#[derive(Debug, Serialize)]
pub struct EndedWorker {
    /// 0, or 128 and the signal that asked it to end. What keeps it from working is a failure.
    pub exit: u8,
}

impl Operation for RunWorker {
    const NAME: &'static str = "worker_run";
    const TAKES_STREAMS: bool = true;
    type Output = EndedWorker;

    fn run(self, call: &Call<'_>) -> Result<EndedWorker, Failure> {
        call.cancel.catch();
        let ground = call.ground()?;
        let worker = Worker::new(call, &ground, &self.how, self.max, self.idle_timeout)?;
        let name = worker.name.clone();
        let report = &mut |ground: &Ground, agent: &Agent| {
            let finished = finished(call, ground, agent)?;
            call.progress.finished(&name, &finished)
        };
        let exit = worker.work(call, ground, report)?;
        Ok(EndedWorker { exit })
    }

    fn exit(ended: &EndedWorker) -> u8 {
        ended.exit
    }
}

fn finished(call: &Call<'_>, ground: &Ground, agent: &Agent) -> Result<FinishedTask, Failure> {
    let end = agent.end.as_ref();
    Ok(FinishedTask {
        task: ground.engine.task(&agent.task)?.task,
        outcome: end.map_or("unknown", |end| end.outcome.as_str()),
        agent: agent.clone(),
        landing: match end.and_then(|end| end.landing) {
            Some(id) => Some(Landings::new(&ground.trees(call)?).landing(id)?),
            None => None,
        },
    })
}
