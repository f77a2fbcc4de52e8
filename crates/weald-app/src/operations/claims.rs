//! A task's way from its claim to its end.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use weald_core::SignedDuration;
use weald_core::id::TaskId;
use weald_core::meant::Word;
use weald_core::name::SessionName;
use weald_core::task::{Lease, Task, TaskStatus};
use weald_core::task_rules::TaskInput;

use super::looking::ShowTree;
use super::{Broker, Caller, Inside, Operation, asked, parsed, within_reason};
use crate::asking::Report;
use crate::{
    Ask, Call, Claimed, CreateOutcome, Engine, Failure, Ground, NewTree, TaskError, TreeView,
};

entries!(ClaimTask, MoveTask);

/// Claims a task, or the next ready one.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimTask {
    /// The next one that is ready, unless given.
    pub id: Option<Word>,
    /// How long others wait before they may take over.
    pub ttl: Option<SignedDuration>,
    /// Also create its worktree, and make it the session's place of work. Without a worktree there is no claim, either.
    pub with_tree: bool,
}

/// A claim, and where to work.
#[derive(Debug, Serialize, Deserialize)]
pub struct ClaimedTask {
    /// As it is under the claim.
    pub task: Task,
    /// Its token goes with everything that is done under the claim.
    pub lease: Lease,
    /// Where its worktree is, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// The worktree, if it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<Box<TreeView>>,
    /// Whether that was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<CreateOutcome>,
    /// Whether the claimer may leave the token out.
    #[serde(skip)]
    pub is_known: bool,
}

impl Operation for ClaimTask {
    const NAME: &'static str = "task_claim";
    type Output = ClaimedTask;

    fn needs_only_the_store(&self) -> bool {
        !self.with_tree
    }

    fn validate(&self) -> Result<(), Failure> {
        within_reason("ttl", self.ttl)
    }

    fn run(self, call: &Call<'_>) -> Result<ClaimedTask, Failure> {
        if self.with_tree {
            return self.run_with_tree(call);
        }
        let ground = call.ground()?;
        let engine = &ground.engine;
        let session = call.session(engine)?;
        let id = self.id(call, &ground)?;
        let Claimed { task, lease } = engine
            .claim(&session, id.as_ref(), self.ttl)
            .map_err(|error| Failure::held_already(error, &session))?;
        call.tell(engine);
        Ok(ClaimedTask {
            path: engine.place_of_task(&task)?,
            is_known: call.own_token(engine, &task.id)?.is_some(),
            task,
            lease,
            tree: None,
            outcome: None,
        })
    }

    fn run_inside(&self, broker: &dyn Broker, call: &Call<'_>) -> Inside<ClaimedTask> {
        Some(self.claimed_inside(broker, call))
    }
}

impl ClaimTask {
    /// The task that is meant, if one is given.
    fn id(&self, call: &Call<'_>, ground: &Ground) -> Result<Option<TaskId>, Failure> {
        let id = self.id.as_ref();
        id.map(|word| ground.task(call, word)).transpose()
    }

    /// A run has its claim and its worktree already.
    fn claimed_inside(&self, broker: &dyn Broker, call: &Call<'_>) -> Result<ClaimedTask, Failure> {
        let id = self.id.as_ref();
        let id = id.map(|word| word.anywhere(call.directory()));
        let mut answer = broker.ask(call.caller, Ask::TaskClaim { id })?;
        if self.with_tree {
            let looked = broker.ask(&Caller::default(), Ask::Status(ShowTree::default()))?;
            let tree = looked.get("tree").cloned().unwrap_or_default();
            answer.insert("tree".to_owned(), tree);
            answer.insert("outcome".to_owned(), Value::from("reused"));
        }
        parsed(answer)
    }

    fn run_with_tree(self, call: &Call<'_>) -> Result<ClaimedTask, Failure> {
        let ground = call.ground()?;
        let engine = &ground.engine;
        let session = call.session(engine)?;
        let given = self.id(call, &ground)?;
        let own = given.as_ref();
        let own = own.and_then(|id| own_claim(engine, &session, id));
        let is_own = own.is_some();
        let Claimed { task, lease } = match own {
            Some(own) => renewed(engine, &session, own, self.ttl)?,
            None => engine.claim_undeclared(&session, given.as_ref(), self.ttl)?,
        };
        let id = task.id;
        let trees = ground.trees(call)?;
        let progress = call.stage("creating the worktree");
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
                    call.warn(&format!("task {id} stays claimed: {error}"));
                }
                return Err(error.into());
            }
        };
        drop(progress);
        engine.lead_to(&session, &id)?;
        call.tell(engine);
        for note in &created.notes {
            call.warn(note);
        }
        let claimed = ClaimedTask {
            task: engine.task(&id)?.task,
            lease,
            path: None,
            tree: Some(Box::new(trees.view(created.tree))),
            outcome: Some(created.outcome),
            is_known: call.own_token(engine, &id)?.is_some(),
        };
        call.refill_pool(&trees, &ground.place.root());
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

/// Whether a person completes a task that nobody began. An agent claims it before, so that no two work on it.
fn is_done_by_hand(call: &Call<'_>, engine: &Engine, id: &TaskId) -> Result<bool, Failure> {
    let is_pending = engine.task(id)?.task.status == TaskStatus::Pending;
    Ok(is_pending && call.agent_above(engine)?.is_none())
}

/// Moves a task: the one given, or the one that the variables of a worker name.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MoveTask {
    /// The caller's own unless given.
    pub id: Option<Word>,
    /// Where it goes.
    pub to: Move,
}

/// Where a task goes from where it stands.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Move {
    /// Held from now on for this long; inside a sandbox as long as configured.
    Renew {
        /// As configured unless given.
        ttl: Option<SignedDuration>,
    },
    /// Given back.
    Release,
    /// Started without a claim, for the caller unless an owner is given: people need no lease.
    Start {
        /// Who works on it.
        owner: Option<SessionName>,
    },
    /// For a run it is a report: its supervisor commits and lands the work, and completes the task.
    Complete {
        /// What was done.
        report: Report,
    },
    /// It can't be done.
    Fail {
        /// What is in the way.
        report: Report,
    },
    /// From then on its holder can no longer update it.
    Cancel {
        /// Part of the record.
        reason: Option<String>,
    },
    /// Pending again, from an end.
    Reopen,
}

impl Move {
    /// Whether only the holder of a claim may ask for it.
    fn needs_token(&self) -> bool {
        matches!(
            self,
            Self::Renew { .. } | Self::Release | Self::Complete { .. } | Self::Fail { .. }
        )
    }
}

/// A task that moved.
#[derive(Debug, Serialize, Deserialize)]
pub struct MovedTask {
    /// As it is after that.
    pub task: Task,
    /// What became ready by it, for a move that a claim stands behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unblocked: Option<Vec<TaskId>>,
}

impl Operation for MoveTask {
    const NAME: &'static str = "task_move";
    type Output = MovedTask;

    fn needs_only_the_store(&self) -> bool {
        true
    }

    fn validate(&self) -> Result<(), Failure> {
        match &self.to {
            Move::Renew { ttl } => within_reason("ttl", *ttl),
            _ => Ok(()),
        }
    }

    fn run(self, call: &Call<'_>) -> Result<MovedTask, Failure> {
        let ground = call.ground()?;
        let id = ground.own_or_task(call, self.id.as_ref())?;
        let engine = &ground.engine;
        let actor = call.actor(engine)?;
        let token = match call.token(&id) {
            None if self.to.needs_token() => call.own_token(engine, &id)?,
            token => token,
        };
        let (input, has_claim) = match self.to {
            Move::Renew { ttl } => {
                let ttl = ttl.unwrap_or(ground.config().lease_ttl);
                (TaskInput::Renew { token, ttl }, true)
            }
            Move::Release => (TaskInput::Release { token }, true),
            Move::Start { owner } => {
                let owner = owner.or_else(|| actor.clone());
                (TaskInput::Start { owner }, false)
            }
            Move::Complete { report } => {
                let report = report.as_text();
                let input = match token.is_none() && is_done_by_hand(call, engine, &id)? {
                    true => TaskInput::CompleteUnclaimed {
                        owner: actor.clone(),
                        report,
                    },
                    false => TaskInput::Complete { token, report },
                };
                (input, true)
            }
            Move::Fail { report } => {
                let report = report.as_text();
                (TaskInput::Fail { token, report }, true)
            }
            Move::Cancel { reason } => (TaskInput::Cancel { reason }, false),
            Move::Reopen => (TaskInput::Reopen, false),
        };
        let moved = engine.move_task(actor.as_ref(), &id, input)?;
        call.tell(engine);
        Ok(MovedTask {
            task: moved.task,
            unblocked: has_claim.then_some(moved.unblocked),
        })
    }

    fn run_inside(&self, broker: &dyn Broker, call: &Call<'_>) -> Inside<MovedTask> {
        let id = self.id.as_ref();
        let id = id.map(|word| word.anywhere(call.directory()));
        let ask = match self.to.clone() {
            Move::Renew { .. } => Ask::TaskRenew { id },
            Move::Complete { report } => Ask::TaskDone { id, report },
            Move::Fail { report } => Ask::TaskFail { id, report },
            Move::Release | Move::Start { .. } | Move::Cancel { .. } | Move::Reopen => return None,
        };
        Some(asked(broker, call, ask))
    }
}
