//! Work on a task up to its end: by one agent, in phases, or from where an earlier agent ended.

use serde::{Deserialize, Serialize};
use weald_core::agent::{Agent, Outcome, Stage};
use weald_core::error_code::ErrorCode;
use weald_core::id::TaskId;
use weald_core::landing::{Landing, LandingStatus};
use weald_core::meant::Word;
use weald_core::resuming::Diagnosis;
use weald_core::retrying::unchanged_red;
use weald_core::task::Task;
use weald_core::tree::TreeStatus;

use super::Operation;
use crate::supervision::{
    AgentWish, Beginning, Phases, PhasesEnd, begin, begin_in_main, can_start, continued, find,
    find_or_add, is_resumed, place_of, refuse_undecided, tell_again, tell_last, withdraw,
};
use crate::{
    AgentRequest, Agents, Call, Failure, Ground, Landings, NewTree, Resumption, StageView,
    TreeView, exit,
};

entries!(WorkOnTask, ResumeTask, RunPhases);

/// What came of an agent's work.
#[derive(Debug, Serialize)]
pub struct Worked {
    /// As it is after that.
    pub task: Task,
    /// Where it worked, if that is still there.
    pub tree: Option<TreeView>,
    /// With how it ended.
    pub agent: Agent,
    /// Of the agent's command.
    pub exit: Option<i32>,
    /// What became of its work.
    #[serde(serialize_with = "crate::landing::serialize")]
    pub landing: Option<Landing>,
    /// What asked it to end early, if anything did.
    #[serde(skip)]
    signal: Option<u8>,
}

impl Worked {
    /// From the records, after an agent has ended or was left alone.
    pub fn of(call: &Call<'_>, ground: &Ground, agent: Agent) -> Result<Self, Failure> {
        let task = ground.engine.task(&agent.task)?.task;
        let trees = ground.trees(call)?;
        let landing = match agent.end.as_ref().and_then(|end| end.landing) {
            Some(id) => Some(Landings::new(&trees).landing(id)?),
            None => None,
        };
        let name = agent.tree.as_ref();
        let tree = name.and_then(|name| trees.named(Some(name.as_str())).ok());
        let tree = tree.map(|tree| trees.view(tree));
        call.tell(&ground.engine);
        Ok(Self {
            task,
            tree,
            exit: agent.code,
            agent,
            landing,
            signal: call.cancel.asked(),
        })
    }

    /// How the command ends: with the agent's outcome.
    pub fn exit_code(&self) -> u8 {
        match self.agent.end.as_ref().map(|end| end.outcome) {
            None | Some(Outcome::Done) => exit::DONE,
            Some(Outcome::Stopped) => self.signal.map_or(exit::REFUSED, |signal| 128 + signal),
            Some(Outcome::NotLanded) if is_conflict(self.landing.as_ref()) => exit::CONFLICT,
            Some(_) => exit::REFUSED,
        }
    }
}

fn is_conflict(landing: Option<&Landing>) -> bool {
    landing.is_some_and(|landing| landing.status == LandingStatus::Conflict)
}

/// What came of a task's phases.
#[derive(Debug, Serialize)]
pub struct Phased {
    /// How far they came.
    pub phase: PhaseView,
    /// As it is after that.
    pub task: Task,
    /// Where they worked, if that is still there.
    pub tree: Option<TreeView>,
    /// The last one.
    pub agent: Agent,
    /// What became of the work.
    #[serde(serialize_with = "crate::landing::serialize")]
    pub landing: Option<Landing>,
    #[serde(skip)]
    signal: Option<u8>,
}

/// How far the phases of a task came.
#[derive(Debug, Serialize)]
pub struct PhaseView {
    /// Why they ended.
    pub outcome: PhasesEnd,
    /// Each with its agents.
    pub stages: Vec<StageView>,
    /// What the last verdict wants changed.
    pub must_fix: Option<Vec<String>>,
}

impl Phased {
    fn of(
        call: &Call<'_>,
        ground: &Ground,
        agent: Agent,
        outcome: PhasesEnd,
    ) -> Result<Self, Failure> {
        let engine = &ground.engine;
        let stages = match outcome {
            // What has landed is settled, and told here all the same.
            PhasesEnd::Passed => engine.stages_before(&agent)?,
            _ => engine.stages(&agent.task)?,
        };
        let verdict = agent.verdict.as_ref();
        let phase = PhaseView {
            outcome,
            stages,
            must_fix: verdict.map(|verdict| verdict.must_fix.clone()),
        };
        let worked = Worked::of(call, ground, agent)?;
        Ok(Self {
            phase,
            task: worked.task,
            tree: worked.tree,
            agent: worked.agent,
            landing: worked.landing,
            signal: worked.signal,
        })
    }

    fn exit_code(&self) -> u8 {
        let agent = &self.agent;
        match self.phase.outcome {
            PhasesEnd::Stopped => self.signal.map_or(exit::REFUSED, |signal| 128 + signal),
            PhasesEnd::Only if agent.verdict.as_ref().is_some_and(|said| said.passes()) => {
                exit::DONE
            }
            PhasesEnd::Passed if agent.is_done() => exit::DONE,
            PhasesEnd::Passed if is_conflict(self.landing.as_ref()) => exit::CONFLICT,
            _ => exit::REFUSED,
        }
    }
}

/// A task that was completed before, so that nothing was started.
#[derive(Debug, Serialize)]
pub struct CompletedBefore {
    /// As it is on the board.
    pub task: Task,
    /// Why nothing had to be started.
    pub diagnosis: Diagnosis,
    /// Its worktree, if that holds commits that did not land.
    pub unlanded: Option<TreeView>,
}

/// What came of work on a task.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Ended {
    /// Of a task that has some.
    Phases(Box<Phased>),
    /// There was nothing to do.
    Completed(Box<CompletedBefore>),
    /// One agent did it, or not.
    Worked(Box<Worked>),
}

impl Ended {
    /// How the command ends: with what came of it.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Phases(phased) => phased.exit_code(),
            Self::Completed(_) => exit::DONE,
            Self::Worked(worked) => worked.exit_code(),
        }
    }

    pub(super) fn worked(call: &Call<'_>, ground: &Ground, agent: Agent) -> Result<Self, Failure> {
        let worked = Worked::of(call, ground, agent)?;
        let landing = worked.landing.as_ref();
        if let Some(why) = landing.and_then(|landing| unchanged_red(&worked.agent, landing)) {
            call.note(&why);
        }
        Ok(Self::Worked(Box::new(worked)))
    }
}

/// Runs an agent on a task, and lands its work. One that an agent worked on before is resumed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkOnTask {
    /// The id of a task, or the subject of a new one.
    pub task: String,
    /// Whether it is a subject, whatever it looks like.
    pub is_subject: bool,
    /// Work in the main checkout, where nothing lands.
    pub in_main: bool,
    /// Answer when the agent has begun.
    pub detach: bool,
    /// Which agent, and what it is given.
    pub how: AgentWish,
}

impl Operation for WorkOnTask {
    const NAME: &'static str = "work";
    type Output = Ended;

    fn run(self, call: &Call<'_>) -> Result<Ended, Failure> {
        let ground = call.ground()?;
        ground.warn_of_settings(call);
        let request = self.how.request(call, &ground)?;
        Agents::new(&ground.trees(call)?).require_driver(&request)?;
        let place = match self.in_main {
            true => None,
            false => Some(place_of(call, &ground)?),
        };
        let can_start = |subject: &str| match &place {
            Some(new) => can_start(call, &ground, subject, &request, new),
            None => Ok(()),
        };
        let found = find_or_add(call, &ground, &self.task, self.is_subject, can_start);
        let (task, is_new) = found.map_err(|failure| match failure.code {
            ErrorCode::TaskNotFound => {
                let list = failure.hint.clone().unwrap_or_default();
                failure.hint(format!(
                    "{list}; for a new task: weald work --new {:?}",
                    self.task
                ))
            }
            _ => failure,
        })?;
        let found = Agents::new(&ground.trees(call)?).diagnose(&task)?;
        if place.is_some() && is_resumed(&found) {
            tell_again(call, &found);
            let runs = !self.how.command.is_empty();
            let again = ResumeTask {
                task: Word::from(&task).into(),
                fresh: false,
                detach: self.detach,
                how: self.how,
            };
            return again.resume(call, &ground, &found, runs);
        }
        let begun = run_agent(call, &ground, &task, &request, place, self.detach, is_new);
        let agent = begun.inspect_err(|failure| {
            if is_new {
                withdraw(call, &ground, &task, failure);
            }
        })?;
        Ended::worked(call, &ground, agent)
    }

    fn exit(ended: &Ended) -> u8 {
        ended.exit_code()
    }
}

/// Starts an agent in a worktree, or in the main checkout without one, and follows it until it has ended.
fn run_agent(
    call: &Call<'_>,
    ground: &Ground,
    task: &TaskId,
    request: &AgentRequest,
    place: Option<NewTree>,
    detach: bool,
    is_new: bool,
) -> Result<Agent, Failure> {
    let Some(new) = place else {
        return begin_in_main(call, ground, task, request, detach);
    };
    let beginning = Beginning {
        new,
        detach,
        is_new,
    };
    begin(call, ground, task, request, beginning)
}

/// Continues a task where its last agent ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResumeTask {
    /// Its id, or that of an issue of the tracker.
    pub task: String,
    /// In a new conversation.
    pub fresh: bool,
    /// Answer when the agent has begun.
    pub detach: bool,
    /// For an agent that has to be started.
    pub how: AgentWish,
}

impl Operation for ResumeTask {
    const NAME: &'static str = "resume";
    type Output = Ended;

    fn validate(&self) -> Result<(), Failure> {
        match self.how.feedback.as_deref().map(str::trim) {
            Some("") => Err(Failure::no_feedback()),
            _ => Ok(()),
        }
    }

    fn run(self, call: &Call<'_>) -> Result<Ended, Failure> {
        let ground = call.ground()?;
        ground.warn_of_settings(call);
        let task = find(call, &ground, &self.task)?;
        let found = Agents::new(&ground.trees(call)?).diagnose(&task)?;
        match found.diagnosis {
            Diagnosis::Completed if self.how.feedback.is_some() => {
                Err(Failure::completed_before(&found.task.id))
            }
            Diagnosis::Completed => completed(call, &ground, found),
            Diagnosis::Running => self.running(call, &ground, found),
            _ => {
                refuse_undecided(&ground, &found)?;
                tell_last(call, &found);
                self.resume(call, &ground, &found, false)
            }
        }
    }

    fn exit(ended: &Ended) -> u8 {
        ended.exit_code()
    }
}

impl ResumeTask {
    /// Continues with what was found. If it `runs`, the command does so also where the work only has to land.
    fn resume(
        self,
        call: &Call<'_>,
        ground: &Ground,
        found: &Resumption,
        runs: bool,
    ) -> Result<Ended, Failure> {
        let task = &found.task.id;
        refuse_undecided(ground, found)?;
        if !ground.engine.stages(task)?.is_empty() {
            if self.how.interactive {
                return Err(Failure::phases_alone(task));
            }
            let phased = conduct(call, ground, task.clone(), &self.how, None, false)?;
            return Ok(Ended::Phases(Box::new(phased)));
        }
        let mut request = continued(call, ground, found, &self.how)?;
        if self.fresh {
            request.conversation = None;
        }
        // An interface is there to be seen.
        if runs || request.feedback.is_some() || request.interactive {
            request.begin_at = Stage::Run;
        }
        let in_main = found.newest.as_ref().is_some_and(|agent| agent.in_main);
        let place = match in_main {
            true => None,
            false => Some(place_of(call, ground)?),
        };
        let agent = run_agent(call, ground, task, &request, place, self.detach, false)?;
        Ended::worked(call, ground, agent)
    }

    /// An agent works on it: there is nothing to resume, but something to see.
    fn running(
        self,
        call: &Call<'_>,
        ground: &Ground,
        found: Resumption,
    ) -> Result<Ended, Failure> {
        let agent = found.newest.ok_or_else(Failure::bug)?;
        if self.detach {
            return Ended::worked(call, ground, agent);
        }
        let since = agent.started_at.strftime("%H:%M:%SZ");
        let message = format!(
            "agent {} works on task {} since {since}",
            agent.id, found.task.id
        );
        Err(Failure::new("task_held", exit::BUSY, message).hint(format!(
            "weald attach {id}, or weald agent stop {id}",
            id = agent.id
        )))
    }
}

fn completed(call: &Call<'_>, ground: &Ground, found: Resumption) -> Result<Ended, Failure> {
    let trees = ground.trees(call)?;
    let of_agent = found.newest.as_ref().and_then(|agent| agent.tree.clone());
    let name = found.task.worktree.clone().or(of_agent);
    let tree = name.and_then(|name| trees.named(Some(name.as_str())).ok());
    let view = tree.map(|tree| trees.view(tree));
    let holds = |view: &TreeView| {
        view.ahead.is_some_and(|ahead| ahead > 0)
            && view.landed.is_none()
            && view.tree.status != TreeStatus::Landed
    };
    Ok(Ended::Completed(Box::new(CompletedBefore {
        diagnosis: found.diagnosis,
        unlanded: view.filter(holds),
        task: found.task,
    })))
}

/// Runs a task in phases, an agent for each, and lands the work.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunPhases {
    /// Its id, or that of an issue of the tracker.
    pub task: String,
    /// The phase to begin with, even if it was completed before.
    pub first: Option<String>,
    /// Run that one only, and land nothing.
    pub only: bool,
    /// For the agents of all phases.
    pub how: AgentWish,
}

impl Operation for RunPhases {
    const NAME: &'static str = "phase";
    type Output = Phased;

    fn run(self, call: &Call<'_>) -> Result<Phased, Failure> {
        let ground = call.ground()?;
        ground.warn_of_settings(call);
        let task = find(call, &ground, &self.task)?;
        conduct(call, &ground, task, &self.how, self.first, self.only)
    }

    fn exit(phased: &Phased) -> u8 {
        phased.exit_code()
    }
}

/// Continues with the phases of a task: with `first`, or after the last one that was completed.
fn conduct(
    call: &Call<'_>,
    ground: &Ground,
    task: TaskId,
    how: &AgentWish,
    first: Option<String>,
    only: bool,
) -> Result<Phased, Failure> {
    let phases = Phases {
        task,
        request: how.request(call, ground)?,
        is_open: how.command.is_empty() && how.driver.is_none(),
        first,
        only,
    };
    let (agent, outcome) = phases.conduct(call, ground)?;
    Phased::of(call, ground, agent, outcome)
}
