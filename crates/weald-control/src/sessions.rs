//! Sessions: who is there, who lives, who owns what.

use serde::{Deserialize, Serialize};
use weald_core::Timestamp;
use weald_core::event::{Change, EventKind};
use weald_core::id::TaskId;
use weald_core::name::{NameError, SessionName, TreeName};
use weald_core::session::{
    self, Evidence, LeaseEvidence, Liveness, ProcessState, Session, SessionTaken,
};
use weald_core::session_rules;
use weald_core::store::{
    AgentFilter, Durability, Read, SessionSet, StoreError, TaskClass, TaskFilter,
};
use weald_core::task::{Task, TaskStatus};
use weald_core::task_rules::TaskInput;

use crate::engine::Engine;
use crate::tasks::{TaskError, decide_task, require_task};
use crate::tree_records::called;

/// Why something did not happen to a session.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A task in it did not move.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// Nobody registered under that name.
    #[error("there is no session {name}")]
    NotFound { name: SessionName },
    #[error("session {name} has ended")]
    Ended { name: SessionName },
    /// Another process lives under that name.
    #[error(transparent)]
    Taken(#[from] SessionTaken),
    /// Nobody may choose that name.
    #[error(transparent)]
    Name(#[from] NameError),
    #[error("there is no process {pid}")]
    NoProcess { pid: u32 },
}

/// A session with whether it lives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionView {
    #[serde(flatten)]
    pub session: Session,
    pub liveness: Liveness,
    /// Whether its heartbeat is old.
    pub stale: bool,
    /// The tasks it holds.
    pub holds: Vec<TaskId>,
}

/// Who owns a task, as seen by somebody who would like to work on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Contest {
    pub task: TaskId,
    pub owner: Option<SessionName>,
    /// Whether the owner lives; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub liveness: Option<Liveness>,
    /// Since when it is held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// True when somebody else holds it and is not proven dead.
    pub contested: bool,
}

impl Engine {
    /// Registers a session under a name that somebody chose; with `pid` that process is the session.
    pub fn register(
        &self,
        name: &SessionName,
        pid: Option<u32>,
    ) -> Result<SessionView, SessionError> {
        name.require_free()?;
        self.register_given(name, pid)
    }

    /// The same under a name that weald gave.
    pub fn register_given(
        &self,
        name: &SessionName,
        pid: Option<u32>,
    ) -> Result<SessionView, SessionError> {
        let process = match pid {
            Some(pid) => Some(
                self.processes
                    .identify(pid)
                    .ok_or(SessionError::NoProcess { pid })?,
            ),
            None => None,
        };
        self.change(None, Durability::Process, |tx| {
            let before = match tx.session(name)? {
                Some(session) => Some(self.view(tx, session)?),
                None => None,
            };
            // An agent of that name may continue without its starter: the name is free for the next one.
            let is_gone = |process| self.processes.state(process) == ProcessState::Gone;
            let before = before.as_ref().map(|view| {
                let life = match view.session.process.as_ref().is_some_and(is_gone) {
                    true => Liveness::Dead,
                    false => view.liveness,
                };
                (&view.session, life)
            });
            let (session, change) =
                session_rules::register(before, name.clone(), process, tx.now())?;
            tx.record(Some(name), change)?;
            self.view(tx, session).map_err(SessionError::from)
        })
    }

    /// Registers a session for an agent that a person runs in a tree, under a name that nobody had before: nobody's
    /// messages and notes wait under it.
    pub fn register_guest(
        &self,
        agent: &str,
        tree: &TreeName,
        pid: u32,
    ) -> Result<SessionName, SessionError> {
        let process = self.processes.identify(pid);
        let process = process.ok_or(SessionError::NoProcess { pid })?;
        let place: String = tree.as_str().replace('/', "-").chars().take(32).collect();
        self.change(None, Durability::Process, |tx| {
            let mut number = 1_u64;
            let name = loop {
                let name: SessionName = format!("{agent}-{place}-{number}").parse()?;
                if tx.session(&name)?.is_none() {
                    break name;
                }
                number += 1;
            };
            let (mut session, _) = session_rules::register(None, name, Some(process), tx.now())?;
            session.tree = Some(tree.clone());
            let change = Change::session(EventKind::SESSION_STARTED, session.clone());
            tx.record(Some(&session.name), change)?;
            Ok(session.name)
        })
    }

    /// A sign of life, with what the session works on.
    pub fn heartbeat(
        &self,
        name: &SessionName,
        task: Option<TaskId>,
        tree: Option<TreeName>,
    ) -> Result<SessionView, SessionError> {
        self.change(Some(name), Durability::Process, |tx| {
            let session = require_session(tx, name)?;
            if session.ended_at.is_some() {
                return Err(SessionError::Ended { name: name.clone() });
            }
            if let Some(task) = &task {
                require_task(tx, task)?;
            }
            if let Some((_, change)) = session_rules::moved(&session, task, tree, tx.now()) {
                tx.record(Some(name), change)?;
            }
            tx.touch_session(name)?;
            let session = require_session(tx, name)?;
            self.view(tx, session).map_err(SessionError::from)
        })
    }

    /// Holds for longer what a session holds; answers which tasks. What ran out and was not taken over counts.
    pub fn renew_held(&self, name: &SessionName) -> Result<Vec<TaskId>, SessionError> {
        self.change(Some(name), Durability::Process, |tx| {
            let mut renewed = Vec::new();
            for task in held(tx, name)? {
                let Some(lease) = task.lease.as_ref().filter(|lease| lease.session == *name) else {
                    continue;
                };
                let input = TaskInput::Renew {
                    token: Some(lease.token),
                    ttl: self.settings.lease_ttl,
                };
                renewed.push(decide_task(tx, Some(name), &task, input)?.id);
            }
            Ok(renewed)
        })
    }

    pub fn session(&self, name: &SessionName) -> Result<SessionView, SessionError> {
        self.look(|tx| {
            let session = require_session(tx, name)?;
            self.view(tx, session).map_err(SessionError::from)
        })
    }

    pub fn sessions(&self) -> Result<Vec<SessionView>, SessionError> {
        self.look(|tx| {
            let views = tx
                .sessions(SessionSet::All)?
                .into_iter()
                .map(|session| self.view(tx, session));
            views.collect::<Result<_, _>>().map_err(SessionError::from)
        })
    }

    /// The session whose process is the nearest of `ancestors`, if one lives.
    pub(crate) fn session_of(
        &self,
        ancestors: &[u32],
    ) -> Result<Option<SessionName>, SessionError> {
        let distance = |session: &Session| {
            let pid = session.process.as_ref()?.pid;
            ancestors.iter().position(|ancestor| *ancestor == pid)
        };
        self.look(|tx| {
            let open = tx.sessions(SessionSet::Open)?;
            let mut near: Vec<_> = open
                .into_iter()
                .filter_map(|session| Some((distance(&session)?, session)))
                .collect();
            near.sort_by_key(|(distance, _)| *distance);
            for (_, session) in near {
                let view = self.view(tx, session)?;
                if view.liveness == Liveness::Alive {
                    return Ok(Some(view.session.name));
                }
            }
            Ok(None)
        })
    }

    /// Whether somebody other than `me` owns a task: by a claim, or by the word of a session that lives.
    pub fn contest(&self, me: &SessionName, id: &TaskId) -> Result<Contest, SessionError> {
        let held = self.look(|tx| {
            let task = require_task(tx, id)?;
            let lease = task.lease.as_ref();
            let working = task
                .owner
                .clone()
                .filter(|_| task.status == TaskStatus::InProgress);
            let Some(owner) = working else {
                return Ok::<_, SessionError>(Contest {
                    task: id.clone(),
                    owner: None,
                    liveness: None,
                    since: None,
                    contested: false,
                });
            };
            // A holder who never registered is known by the lease alone.
            let liveness = match tx.session(&owner)? {
                Some(session) => self.view(tx, session)?.liveness,
                None if lease.is_some_and(|lease| lease.is_expired(tx.now())) => Liveness::Dead,
                None => Liveness::Unknown,
            };
            let contested = owner != *me && liveness != Liveness::Dead;
            Ok(Contest {
                task: id.clone(),
                owner: Some(owner),
                liveness: Some(liveness),
                since: lease.map(|lease| lease.acquired_at),
                contested,
            })
        })?;
        if held.contested {
            return Ok(held);
        }
        let declared = self.look(|tx| self.declared_by_other(tx, id, &[me]))?;
        Ok(declared.map_or(held, |session| Contest {
            task: id.clone(),
            owner: Some(session.name),
            liveness: Some(Liveness::Alive),
            since: Some(session.last_seen),
            contested: true,
        }))
    }

    /// Who else says by a heartbeat that it works on a task, and lives. What an agent's session said is known by the agent's
    /// own record.
    pub(crate) fn declared_by_other(
        &self,
        tx: &(impl Read + ?Sized),
        id: &TaskId,
        mine: &[&SessionName],
    ) -> Result<Option<Session>, StoreError> {
        let Some(task) = tx.task(id)?.filter(|task| !task.status.is_closed()) else {
            return Ok(None);
        };
        let holder = task.lease.as_ref().map(|lease| &lease.session);
        let agents = tx.agents(&AgentFilter::on(id))?;
        let is_agent = |name: &SessionName| agents.iter().any(|agent| agent.session == *name);
        for session in tx.sessions(SessionSet::Open)? {
            // Of who claimed it, the claim speaks.
            let is_known = Some(&session.name) == holder || is_agent(&session.name);
            if session.task.as_ref() != Some(id) || is_known || mine.contains(&&session.name) {
                continue;
            }
            let view = self.view(tx, session)?;
            if view.liveness == Liveness::Alive {
                return Ok(Some(view.session));
            }
        }
        Ok(None)
    }

    /// Leaves a note for the next session.
    pub fn note(&self, name: &SessionName, text: String) -> Result<SessionView, SessionError> {
        self.change(Some(name), Durability::Process, |tx| {
            let session = match tx.session(name)? {
                Some(session) => session,
                None => session_rules::register(None, name.clone(), None, tx.now())?.0,
            };
            let (session, change) = session_rules::noted(&session, text, tx.now());
            tx.record(Some(name), change)?;
            self.view(tx, session).map_err(SessionError::from)
        })
    }

    /// Ends a session and gives back what it holds, but for what an agent of its name still works on.
    pub fn end(&self, name: &SessionName) -> Result<(SessionView, Vec<TaskId>), SessionError> {
        self.change(None, Durability::Process, |tx| {
            let session = require_session(tx, name)?;
            let mut released = Vec::new();
            let open = tx.agents(&AgentFilter::OPEN)?;
            let is_worked_on = |task: &Task| {
                open.iter()
                    .any(|agent| agent.task == task.id && agent.token == task.token)
            };
            let held = held(tx, name)?.into_iter();
            for task in held.filter(|task| task.parked.is_none() && !is_worked_on(task)) {
                let input = TaskInput::Release {
                    token: task.lease.as_ref().map(|lease| lease.token),
                };
                released.push(decide_task(tx, Some(name), &task, input)?.id);
            }
            let (session, change) = session_rules::ended(&session, tx.now());
            tx.record(Some(name), change)?;
            Ok((self.view(tx, session)?, released))
        })
    }

    /// Whether an agent has a task, or something runs in its tree, or may.
    pub fn is_worked_on(&self, tx: &(impl Read + ?Sized), task: &Task) -> Result<bool, StoreError> {
        let open = tx.agents(&AgentFilter::open_on(&task.id))?;
        let tree = match &task.worktree {
            Some(name) => called(tx, name)?,
            None => None,
        };
        let runs = tree.is_some_and(|tree| {
            let mut runs = tree.runs.iter();
            runs.any(|run| self.processes.state(&run.process) != ProcessState::Gone)
        });
        Ok(runs || !open.is_empty())
    }

    fn view(&self, tx: &(impl Read + ?Sized), session: Session) -> Result<SessionView, StoreError> {
        let now = tx.now();
        let tasks = held(tx, &session.name)?;
        let leases: Vec<_> = tasks
            .iter()
            .filter_map(|task| task.lease.as_ref())
            .collect();
        let leases = match (
            leases.is_empty(),
            leases.iter().all(|lease| lease.is_expired(now)),
        ) {
            (true, _) => LeaseEvidence::None,
            (false, true) => LeaseEvidence::Expired,
            (false, false) => LeaseEvidence::Current,
        };
        let process = self.process_state(tx, &session)?;
        let liveness = session::liveness(
            &session,
            Evidence { process, leases },
            self.settings.stale_after,
            now,
        );
        let stale = session::is_stale(&session, self.settings.stale_after, now);
        Ok(SessionView {
            session,
            liveness,
            stale,
            holds: tasks.into_iter().map(|task| task.id).collect(),
        })
    }
}

impl Engine {
    /// Whether a session lives; one that never registered is known by its leases alone.
    pub fn liveness_of(
        &self,
        tx: &(impl Read + ?Sized),
        name: &SessionName,
    ) -> Result<Liveness, StoreError> {
        match tx.session(name)? {
            Some(session) => Ok(self.view(tx, session)?.liveness),
            None => Ok(Liveness::Unknown),
        }
    }

    /// What the process table says of a session: of its own process, and of the supervisor of an agent of that name.
    fn process_state(
        &self,
        tx: &(impl Read + ?Sized),
        session: &Session,
    ) -> Result<Option<ProcessState>, StoreError> {
        let open = tx.agents(&AgentFilter::OPEN)?;
        let supervisors = open
            .iter()
            .filter(|agent| agent.session == session.name)
            .filter_map(|agent| agent.supervisor.as_ref());
        let mut states: Vec<_> = supervisors
            .chain(&session.process)
            .map(|process| self.processes.state(process))
            .collect();
        let certainty = |state: &ProcessState| match state {
            ProcessState::Running => 0,
            ProcessState::Unknown => 1,
            ProcessState::Gone => 2,
        };
        states.sort_by_key(certainty);
        Ok(states.first().copied())
    }
}

fn require_session(tx: &(impl Read + ?Sized), name: &SessionName) -> Result<Session, SessionError> {
    tx.session(name)?
        .ok_or_else(|| SessionError::NotFound { name: name.clone() })
}

/// The tasks a session works on.
pub fn held(tx: &(impl Read + ?Sized), name: &SessionName) -> Result<Vec<Task>, StoreError> {
    let classes = vec![TaskClass::Status(TaskStatus::InProgress)];
    tx.tasks(&TaskFilter {
        classes,
        owner: Some(name.clone()),
        ..TaskFilter::default()
    })
}
