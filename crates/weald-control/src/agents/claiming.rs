//! An agent begins: its claim and its record are one step, so that a kill leaves both or none.

use weald_core::SignedDuration;
use weald_core::agent::{Agent, AgentId, End, FinalReport, Goal, Post, Stage, Verification};
use weald_core::agent_rules::AgentInput;
use weald_core::event::{Change, EventKind};
use weald_core::id::{TaskId, Token};
use weald_core::name::SessionName;
use weald_core::resuming;
use weald_core::session::{Liveness, ProcessIdentity};
use weald_core::session_rules;
use weald_core::store::{AgentFilter, AgentReader, Counter, Durability, Write};
use weald_core::task::{Lease, Task, TaskStatus};
use weald_core::task_rules::{self, TaskInput};

use super::RecordError;
use super::records::{decide_agent, newest_on, require_agent};
use crate::engine::Engine;
use crate::sessions::{SessionError, held};
use crate::steps::step;
use crate::tasks::{Claimed, move_in, nothing_ready, require_task};

/// An agent to be started.
#[derive(Debug, Clone, Default)]
pub struct AgentRequest {
    /// Its name; without one, its id.
    pub session: Option<SessionName>,
    pub driver: String,
    /// The words after `--`.
    pub command: Vec<String>,
    pub model: Option<String>,
    /// The part it plays.
    pub role: Option<String>,
    /// The brief that it reads about itself.
    pub brief: Option<String>,
    /// Whether it works in the main checkout.
    pub in_main: bool,
    /// Whether it gets a terminal that people attach to, and opens its own interface there.
    pub interactive: bool,
    pub goal: Goal,
    /// Where its work begins.
    pub begin_at: Stage,
    /// The agent whose work it goes on with.
    pub resumes: Option<AgentId>,
    /// Its conversation to go on with.
    pub conversation: Option<String>,
    /// How many automatic retries led to it.
    pub retry: u32,
    /// How many it may lead to; otherwise as configured.
    pub retries: Option<u32>,
    /// What a person wants changed about the work so far.
    pub feedback: Option<String>,
    /// The claim that it works under; without one it makes its own.
    pub token: Option<Token>,
    /// A task that failed, was blocked or completed is opened again.
    pub reopen: bool,
    /// What it does not take where the next task is meant.
    pub except: Vec<TaskId>,
    /// What a person says was done, where the work itself is done.
    pub report: Option<String>,
}

impl AgentRequest {
    /// A driver's agent whose work follows the goal.
    pub fn new(driver: impl Into<String>, goal: Goal) -> Self {
        Self {
            driver: driver.into(),
            goal,
            ..Self::default()
        }
    }

    /// Errors when somebody chose a name for it that nobody may.
    pub fn require_name(&self) -> Result<(), RecordError> {
        let chosen = self.session.as_ref().map(SessionName::require_free);
        Ok(chosen.unwrap_or(Ok(())).map_err(SessionError::from)?)
    }
}

fn described(
    tx: &dyn Write,
    id: AgentId,
    session: SessionName,
    task: Task,
    request: &AgentRequest,
) -> Result<Agent, RecordError> {
    let before = tx.agents(&AgentFilter::on(&task.id))?;
    let post = Post {
        session,
        token: task.token,
        task: task.id,
    };
    Ok(Agent {
        command: request.command.clone(),
        model: request.model.clone(),
        role: request.role.clone(),
        brief: request.brief.clone(),
        in_main: request.in_main,
        interactive: request.interactive,
        goal: request.goal,
        begin_at: request.begin_at,
        resumes: request.resumes,
        conversation: request.conversation.clone(),
        retry: request.retry,
        retries: request.retries,
        feedback: request.feedback.clone(),
        attempt: before.len() as u32 + 1,
        report: request.report.clone().map(|report| FinalReport {
            success: true,
            report,
            files_changed: Vec::new(),
            verification: Verification::None,
            verified_by: String::new(),
            inferred: false,
            at: tx.now(),
        }),
        ..Agent::new(id, post, &request.driver, tx.now())
    })
}

/// Whoever takes what comes next takes what others began, too: behind what they completed, in their conversation.
fn going_on(
    tx: &dyn Write,
    task: &Task,
    request: &AgentRequest,
) -> Result<AgentRequest, RecordError> {
    let Some(last) = newest_on(tx, &task.id)? else {
        return Ok(request.clone());
    };
    let landing = match last.end.as_ref().and_then(|end| end.landing) {
        Some(id) => tx.landing(id)?,
        None => None,
    };
    let is_same = request.driver == last.driver;
    Ok(AgentRequest {
        begin_at: resuming::begin_at(Some(&last), landing.as_ref()),
        resumes: Some(last.id),
        retry: resuming::retries_before(&last),
        conversation: last.conversation.filter(|_| is_same),
        ..request.clone()
    })
}

/// A task whose claim is there already: an entry of a race, a phase.
fn under_claim(tx: &dyn Write, id: &TaskId, token: Token) -> Result<Task, RecordError> {
    let task = require_task(tx, id)?;
    let input = TaskInput::Renew {
        token: Some(token),
        ttl: SignedDuration::from_secs(1),
    };
    task_rules::decide(&task, input, tx.now())?;
    Ok(task)
}

/// Messages go to a name, so two agents at work never share one.
fn refuse_namesake(
    tx: &(impl AgentReader + ?Sized),
    session: &SessionName,
) -> Result<(), RecordError> {
    let open = tx.agents(&AgentFilter::OPEN)?;
    match open.into_iter().find(|agent| agent.session == *session) {
        None => Ok(()),
        Some(agent) => Err(RecordError::NameTaken {
            name: session.clone(),
            agent: agent.id,
        }),
    }
}

/// There is one main checkout, and nothing keeps two agents in it apart.
fn refuse_second_in_main(tx: &dyn Write) -> Result<(), RecordError> {
    let open = tx.agents(&AgentFilter::OPEN)?;
    match open.into_iter().find(|agent| agent.in_main) {
        None => Ok(()),
        Some(agent) => Err(RecordError::MainTaken {
            agent: agent.id,
            task: agent.task,
        }),
    }
}

/// The session of an agent is there from the beginning; one that somebody registered stays as it is.
fn join(tx: &mut dyn Write, name: &SessionName) -> Result<(), RecordError> {
    let known = tx.session(name)?.filter(|known| known.ended_at.is_none());
    if known.is_none() {
        let (_, change) = session_rules::register(None, name.clone(), None, tx.now())?;
        tx.record(Some(name), change)?;
    }
    Ok(())
}

/// Ends the session that weald started for an agent of this name, unless another agent of that name is still working. A
/// session that a user registered, or that holds another task, stays.
pub(super) fn leave(tx: &mut dyn Write, agent: &Agent) -> Result<(), RecordError> {
    let known = tx.session(&agent.session)?;
    let Some(session) = known.filter(|session| session.ended_at.is_none()) else {
        return Ok(());
    };
    let mut of_name = tx.agents(&AgentFilter::default())?;
    of_name.retain(|one| one.session == session.name);
    let began = |one: &Agent| {
        one.session.as_str() == one.id.to_string() || one.started_at == session.started_at
    };
    let is_at_work = |one: &Agent| one.id != agent.id && !one.status.is_over();
    let is_elsewhere = |task: &Task| task.id != agent.task && task.parked.is_none();
    let is_its_own = of_name.iter().any(began)
        && !of_name.iter().any(is_at_work)
        && !held(tx, &session.name)?.iter().any(is_elsewhere);
    if is_its_own {
        let (_, change) = session_rules::ended(&session, tx.now());
        tx.record(Some(&agent.session), change)?;
    }
    Ok(())
}

impl Engine {
    /// Errors when an agent at work has the name that is asked for.
    pub fn require_own_name(&self, request: &AgentRequest) -> Result<(), RecordError> {
        let look = |name| self.look(|tx| refuse_namesake(tx, name));
        request.session.as_ref().map_or(Ok(()), look)
    }

    /// Claims a task, or the next one that is ready, and records an agent for it, for somebody. `me` answers for the agent
    /// until a supervisor does.
    pub fn start_agent(
        &self,
        by: Option<&SessionName>,
        me: ProcessIdentity,
        task: Option<&TaskId>,
        request: &AgentRequest,
    ) -> Result<Agent, RecordError> {
        request.require_name()?;
        let agent = self.change(None, Durability::Process, |tx| {
            let id = AgentId(tx.next_number(Counter::Agent)?);
            let session = match &request.session {
                Some(session) => session.clone(),
                None => id.to_string().parse().expect("an id is a name"),
            };
            let is_next = task.is_none();
            let mine: Vec<_> = by.into_iter().chain([&session]).collect();
            let other = self.next_free(tx, task, &request.except, &mine)?;
            let task = task.or(other.as_ref());
            let task = match (request.token, task) {
                (Some(token), Some(task)) => under_claim(tx, task, token)?,
                _ => self.claim_for_agent(tx, &session, by, task, request.reopen)?,
            };
            refuse_namesake(tx, &session)?;
            if request.in_main {
                refuse_second_in_main(tx)?;
            }
            let request = &match is_next {
                true => going_on(tx, &task, request)?,
                false => request.clone(),
            };
            join(tx, &session)?;
            let agent = Agent {
                spawned_by: by.cloned(),
                supervisor: Some(me),
                ..described(tx, id, session, task, request)?
            };
            let change = Change::agent(EventKind::AGENT_SPAWNED, agent.clone());
            tx.record(by.or(Some(&agent.session)), change)?;
            Ok::<_, RecordError>(agent)
        })?;
        step("agent.recorded");
        Ok(agent)
    }

    /// Ends an agent, and records the one that continues its conversation under the same name and claim, in one step: nobody
    /// can take the task between, and a kill leaves both records or none. `me` answers for it until a supervisor does.
    pub fn retry_agent(
        &self,
        me: ProcessIdentity,
        id: AgentId,
        end: End,
    ) -> Result<Agent, RecordError> {
        self.change(None, Durability::Power, |tx| {
            let last = require_agent(tx, id)?;
            let task = require_task(tx, &last.task)?;
            let renew = TaskInput::Renew {
                token: Some(last.token),
                ttl: self.settings.lease_ttl,
            };
            let task = move_in(tx, Some(&last.session), &task, renew)?;
            decide_agent(tx, &last, AgentInput::End(end))?;
            let request = AgentRequest {
                command: last.command,
                model: last.model,
                brief: last.brief,
                resumes: Some(last.id),
                conversation: last.conversation,
                retry: last.retry + 1,
                retries: last.retries,
                ..AgentRequest::new(last.driver, last.goal)
            };
            let next = AgentId(tx.next_number(Counter::Agent)?);
            let next = Agent {
                tree: last.tree,
                tree_id: last.tree_id,
                branch: last.branch,
                spawned_by: last.spawned_by,
                supervisor: Some(me),
                ..described(tx, next, last.session, task, &request)?
            };
            let change = Change::agent(EventKind::AGENT_SPAWNED, next.clone());
            tx.record(Some(&next.session), change)?;
            Ok(next)
        })
    }

    /// The task of an agent needs a merge, unless somebody else holds it by now.
    pub fn need_merge(&self, agent: &Agent) -> Result<(), RecordError> {
        self.change(None, Durability::Power, |tx| {
            let task = under_claim(tx, &agent.task, agent.token)?;
            move_in(tx, Some(&agent.session), &task, TaskInput::NeedMerge)?;
            Ok(())
        })
    }

    /// The newest automatic retry after an agent; the agent itself if there is none.
    pub fn last_retry(&self, id: AgentId) -> Result<Agent, RecordError> {
        let mut newest = self.agent(id)?;
        while newest.status.is_over()
            && let Some(next) = self.retry_of(&newest)?
        {
            newest = next;
        }
        Ok(newest)
    }

    /// The automatic retry that continues where an agent ended.
    pub fn retry_of(&self, agent: &Agent) -> Result<Option<Agent>, RecordError> {
        let mut all = self.agents_on(&agent.task)?.into_iter();
        Ok(all.find(|next| next.resumes == Some(agent.id) && next.retry == agent.retry + 1))
    }

    /// The next task that is none of these and that nobody else says they work on; nothing where a task is named.
    fn next_free(
        &self,
        tx: &mut dyn Write,
        named: Option<&TaskId>,
        except: &[TaskId],
        mine: &[&SessionName],
    ) -> Result<Option<TaskId>, RecordError> {
        if named.is_some() {
            return Ok(None);
        }
        let mut except = except.to_vec();
        loop {
            let Some(next) = self.next_task(tx, &except)? else {
                return Err(nothing_ready(tx)?.into());
            };
            match self.declared_by_other(tx, &next.id, mine)? {
                None => return Ok(Some(next.id)),
                Some(_) => except.push(next.id),
            }
        }
    }

    /// Ends the session of an agent that never began.
    pub fn leave_session(&self, agent: &Agent) -> Result<(), RecordError> {
        self.change(None, Durability::Process, |tx| leave(tx, agent))
    }

    /// Claims a task that no other session says it works on, or the next such one.
    pub fn claim_undeclared(
        &self,
        session: &SessionName,
        id: Option<&TaskId>,
        ttl: Option<SignedDuration>,
    ) -> Result<Claimed, RecordError> {
        let ttl = ttl.unwrap_or(self.settings.lease_ttl);
        self.change(Some(session), Durability::Process, |tx| {
            let next = self.next_free(tx, id, &[], &[session])?;
            if let Some(id) = id {
                self.refuse_declared(tx, id, &[session])?;
                self.give_back_of_dead(tx, session, id)?;
            }
            Ok(self.claim_in(tx, session, id.or(next.as_ref()), ttl)?)
        })
    }

    fn refuse_declared(
        &self,
        tx: &dyn Write,
        id: &TaskId,
        mine: &[&SessionName],
    ) -> Result<(), RecordError> {
        match self.declared_by_other(tx, id, mine)? {
            None => Ok(()),
            Some(other) => Err(RecordError::Working {
                task: id.clone(),
                owner: other.name,
                since: other.last_seen,
                agent: None,
            }),
        }
    }

    /// Claims for an agent. A claim whose holder is proven dead is given back first.
    pub(super) fn claim_for_agent(
        &self,
        tx: &mut dyn Write,
        session: &SessionName,
        by: Option<&SessionName>,
        id: Option<&TaskId>,
        reopen: bool,
    ) -> Result<Task, RecordError> {
        if let Some(id) = id {
            let task = require_task(tx, id)?;
            let mine: Vec<_> = by.into_iter().chain([session]).collect();
            self.refuse_declared(tx, id, &mine)?;
            if self.is_left_behind(tx, &task, session, reopen)? {
                let token = task.lease.as_ref().map(|lease| lease.token);
                move_in(tx, Some(session), &task, TaskInput::Release { token })?;
            }
            let is_closed = matches!(
                task.status,
                TaskStatus::Failed
                    | TaskStatus::Blocked
                    | TaskStatus::Cancelled
                    | TaskStatus::Completed
            );
            if reopen && is_closed {
                move_in(tx, Some(session), &task, TaskInput::Reopen)?;
            }
        }
        Ok(self
            .claim_in(tx, session, id, self.settings.lease_ttl)?
            .task)
    }

    /// Whether nobody works on a task any more though its record says so.
    fn is_left_behind(
        &self,
        tx: &dyn Write,
        task: &Task,
        me: &SessionName,
        reopen: bool,
    ) -> Result<bool, RecordError> {
        let open = AgentFilter::open_on(&task.id);
        if let Some(agent) = tx.agents(&open)?.pop() {
            // Takeovers are for those whose lease ran out.
            let is_expired = |lease: &Lease| lease.is_expired(tx.now());
            if task.lease.as_ref().is_some_and(is_expired) {
                return Ok(false);
            }
            return Err(RecordError::Working {
                task: task.id.clone(),
                owner: agent.session,
                since: agent.started_at,
                agent: Some(agent.id),
            });
        }
        if task.status != TaskStatus::InProgress {
            return Ok(false);
        }
        match (&task.lease, &task.owner) {
            (Some(lease), _) if lease.is_expired(tx.now()) => Ok(false),
            (Some(lease), _) => match self.liveness_of(tx, &lease.session)? {
                Liveness::Dead => Ok(true),
                _ => Err(RecordError::Working {
                    task: task.id.clone(),
                    owner: lease.session.clone(),
                    since: lease.acquired_at,
                    agent: None,
                }),
            },
            // Parked, or started by hand: the agent that resumes it may have it.
            (None, Some(owner)) => Ok(reopen && owner != me),
            (None, None) => Ok(false),
        }
    }
}
