//! A task's way from its claim to its end.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use weald_core::SignedDuration;
use weald_core::id::{TaskId, Token};
use weald_core::name::SessionName;
use weald_core::task::{Lease, Task};
use weald_core::task_rules::TaskInput;

use super::looking::ShowTree;
use super::tasks::OneTask;
use super::{Broker, Caller, Entry, Operation, parsed};
use crate::asking::Report;
use crate::{App, Ask, Claimed, Engine, Failure, Finished, NewTree, Outcome, TaskError, TreeView};

pub(super) fn entries() -> Vec<Entry> {
    vec![
        Entry::of::<ClaimTask>(),
        Entry::of::<RenewTask>(),
        Entry::of::<ReleaseTask>(),
        Entry::of::<StartTask>(),
        Entry::of::<CompleteTask>(),
        Entry::of::<FailTask>(),
        Entry::of::<CancelTask>(),
        Entry::of::<ReopenTask>(),
    ]
}

/// Claims a task, or the next ready one.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimTask {
    pub id: Option<TaskId>,
    /// How long others wait before they may take over.
    pub ttl: Option<SignedDuration>,
    /// Also create its worktree, and make it the session's place of work. Without a worktree there is no claim, either.
    pub with_tree: bool,
}

/// A claim, and where to work.
#[derive(Debug, Serialize, Deserialize)]
pub struct ClaimedTask {
    pub task: Task,
    pub lease: Lease,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<Box<TreeView>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
}

impl Operation for ClaimTask {
    const NAME: &'static str = "task_claim";
    type Output = ClaimedTask;

    fn needs_only_the_store(&self) -> bool {
        !self.with_tree
    }

    fn run(self, app: &App<'_>, caller: &Caller) -> Result<ClaimedTask, Failure> {
        if self.with_tree {
            return self.run_with_tree(app, caller);
        }
        let engine = app.engine()?;
        let session = app.session(&engine, caller.session.as_ref())?;
        let Claimed { task, lease } = engine.claim(&session, self.id.as_ref(), self.ttl)?;
        app.tell(&engine);
        Ok(ClaimedTask {
            path: engine.place_of_task(&task)?,
            task,
            lease,
            tree: None,
            outcome: None,
        })
    }

    fn ask(&self) -> Option<Ask> {
        let id = self.id.clone();
        Some(Ask::TaskClaim { id })
    }

    /// A run has its claim and its worktree already.
    fn run_inside(self, broker: &dyn Broker, caller: &Caller) -> Result<ClaimedTask, Failure> {
        let mut answer = broker.ask(caller, Ask::TaskClaim { id: self.id })?;
        if self.with_tree {
            let looked = broker.ask(&Caller::default(), Ask::Status(ShowTree::default()))?;
            let tree = looked.get("tree").cloned().unwrap_or_default();
            answer.insert("tree".to_owned(), tree);
            answer.insert("outcome".to_owned(), Value::from("reused"));
        }
        parsed(answer)
    }
}

impl ClaimTask {
    fn run_with_tree(self, app: &App<'_>, caller: &Caller) -> Result<ClaimedTask, Failure> {
        let ground = app.ground()?;
        let engine = &ground.engine;
        let session = app.session(engine, caller.session.as_ref())?;
        let own = self.id.as_ref();
        let own = own.and_then(|id| own_claim(engine, &session, id));
        let is_own = own.is_some();
        let Claimed { task, lease } = match own {
            Some(own) => renewed(engine, &session, own, self.ttl)?,
            None => engine.claim_undeclared(&session, self.id.as_ref(), self.ttl)?,
        };
        let id = task.id;
        let trees = ground.trees(app)?;
        let progress = app.stage("creating the worktree");
        let wanted = NewTree {
            task: Some(id.clone()),
            ..NewTree::default()
        };
        let created = match trees.ensure(&wanted) {
            Ok(created) => created,
            Err(error) if is_own => return Err(error.into()),
            Err(error) => {
                let token = Some(lease.token);
                let released = engine.move_task(Some(&session), &id, TaskInput::Release { token });
                if let Err(error) = released {
                    app.warn(&format!("task {id} stays claimed: {error}"));
                }
                return Err(error.into());
            }
        };
        drop(progress);
        engine.lead_to(&session, &id)?;
        app.tell(engine);
        for note in &created.notes {
            app.warn(note);
        }
        let claimed = ClaimedTask {
            task: engine.task(&id)?.task,
            lease,
            path: None,
            tree: Some(Box::new(trees.view(created.tree))),
            outcome: Some(created.outcome),
        };
        app.refill_pool(&trees, &ground.place.root());
        Ok(claimed)
    }
}

/// The claim that a session has on a task already.
fn own_claim(engine: &Engine, session: &SessionName, id: &TaskId) -> Option<Claimed> {
    let task = engine.task(id).ok()?.task;
    let lease = task
        .lease
        .clone()
        .filter(|lease| lease.session == *session)?;
    Some(Claimed { task, lease })
}

/// The same claim, held from now on.
fn renewed(
    engine: &Engine,
    session: &SessionName,
    own: Claimed,
    ttl: Option<SignedDuration>,
) -> Result<Claimed, TaskError> {
    let held = engine.renew(Some(session), &own.task.id, Some(own.lease.token), ttl)?;
    Ok(Claimed {
        lease: held.task.lease.clone().unwrap_or(own.lease),
        task: held.task,
    })
}

/// Moves a task for the caller: the one given, or the one that the variables of a worker name.
fn moved(
    app: &App<'_>,
    caller: &Caller,
    id: Option<TaskId>,
    input: impl FnOnce(Option<Token>) -> TaskInput,
) -> Result<Finished, Failure> {
    let id = app.task(id)?;
    let engine = app.engine()?;
    let actor = app.actor(&engine, caller.session.as_ref())?;
    let input = input(app.token(&id, caller.token));
    let finished = engine.move_task(actor.as_ref(), &id, input)?;
    app.tell(&engine);
    Ok(finished)
}

/// Holds a task for longer.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RenewTask {
    pub id: Option<TaskId>,
    /// From now on; inside a sandbox it is as long as configured.
    pub ttl: Option<SignedDuration>,
}

impl Operation for RenewTask {
    const NAME: &'static str = "task_renew";
    type Output = Finished;

    fn run(self, app: &App<'_>, caller: &Caller) -> Result<Finished, Failure> {
        let default = || Ok::<_, Failure>(app.config(&app.place()?)?.config.lease_ttl);
        let ttl = self.ttl.map_or_else(default, Ok)?;
        moved(app, caller, self.id, |token| TaskInput::Renew {
            token,
            ttl,
        })
    }

    fn ask(&self) -> Option<Ask> {
        let id = self.id.clone();
        Some(Ask::TaskRenew { id })
    }
}

/// Gives a claimed task back.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReleaseTask {
    pub id: Option<TaskId>,
}

impl Operation for ReleaseTask {
    const NAME: &'static str = "task_release";
    type Output = Finished;

    fn run(self, app: &App<'_>, caller: &Caller) -> Result<Finished, Failure> {
        moved(app, caller, self.id, |token| TaskInput::Release { token })
    }
}

/// Completes a task. For a run it is a report: its supervisor commits and lands the work, and completes the task.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompleteTask {
    #[serde(default)]
    pub id: Option<TaskId>,
    #[serde(default)]
    pub report: Report,
}

impl Operation for CompleteTask {
    const NAME: &'static str = "task_done";
    type Output = Finished;

    fn run(self, app: &App<'_>, caller: &Caller) -> Result<Finished, Failure> {
        let report = self.report.as_text();
        moved(app, caller, self.id, |token| TaskInput::Complete {
            token,
            report,
        })
    }

    fn ask(&self) -> Option<Ask> {
        Some(Ask::TaskDone(self.clone()))
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailTask {
    #[serde(default)]
    pub id: Option<TaskId>,
    #[serde(default)]
    pub report: Report,
}

impl Operation for FailTask {
    const NAME: &'static str = "task_fail";
    type Output = Finished;

    fn run(self, app: &App<'_>, caller: &Caller) -> Result<Finished, Failure> {
        let report = self.report.as_text();
        moved(app, caller, self.id, |token| TaskInput::Fail {
            token,
            report,
        })
    }

    fn ask(&self) -> Option<Ask> {
        Some(Ask::TaskFail(self.clone()))
    }
}

/// Starts a task without a claim: people need no lease.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartTask {
    pub id: Option<TaskId>,
    /// Who works on it; the caller unless given.
    pub owner: Option<SessionName>,
}

impl Operation for StartTask {
    const NAME: &'static str = "task_start";
    type Output = OneTask;

    fn run(self, app: &App<'_>, caller: &Caller) -> Result<OneTask, Failure> {
        let owner = match self.owner {
            Some(owner) => Some(owner),
            None => app.actor(&app.engine()?, caller.session.as_ref())?,
        };
        settled(app, caller, self.id, TaskInput::Start { owner })
    }
}

/// Cancels a task. From then on its holder can no longer update it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CancelTask {
    pub id: Option<TaskId>,
    pub reason: Option<String>,
}

impl Operation for CancelTask {
    const NAME: &'static str = "task_cancel";
    type Output = OneTask;

    fn run(self, app: &App<'_>, caller: &Caller) -> Result<OneTask, Failure> {
        let reason = self.reason;
        settled(app, caller, self.id, TaskInput::Cancel { reason })
    }
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReopenTask {
    pub id: Option<TaskId>,
}

impl Operation for ReopenTask {
    const NAME: &'static str = "task_reopen";
    type Output = OneTask;

    fn run(self, app: &App<'_>, caller: &Caller) -> Result<OneTask, Failure> {
        settled(app, caller, self.id, TaskInput::Reopen)
    }
}

/// Moves a task by an input that needs no token.
fn settled(
    app: &App<'_>,
    caller: &Caller,
    id: Option<TaskId>,
    input: TaskInput,
) -> Result<OneTask, Failure> {
    let Finished { task, .. } = moved(app, caller, id, |_| input)?;
    Ok(OneTask { task })
}
