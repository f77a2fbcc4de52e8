//! Which worktree belongs to a task, and what becomes of it at the task's end.

use serde::{Deserialize, Serialize};
use weald_core::binding::BindRefusal;
use weald_core::meant::Word;
use weald_core::name::SessionName;
use weald_core::task::Task;
use weald_core::task_rules::TaskInput;
use weald_core::tree::Tree;

use super::Operation;
use super::tasks::OneTask;
use crate::{Binding, Call, Failure, RemoveRequest, TreeError};

entries!(BindTask, UnbindTask, CloseTask);

/// Gives a task a worktree, and the worktree a task.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BindTask {
    /// The task that gets it.
    pub id: Word,
    /// Which one.
    pub tree: String,
    /// Start the task if it is pending.
    pub start: bool,
    /// Start the task for this session.
    pub owner: Option<SessionName>,
    /// Replace existing bindings of both.
    pub rebind: bool,
}

/// A task with its worktree.
#[derive(Debug, Serialize)]
pub struct BoundTask {
    /// As it is after that.
    pub task: Task,
    /// For people; programs read it from the task.
    #[serde(skip)]
    pub tree: Option<Box<Tree>>,
}

impl Operation for BindTask {
    const NAME: &'static str = "task_bind";
    type Output = BoundTask;

    fn run(self, call: &Call<'_>) -> Result<BoundTask, Failure> {
        let ground = call.ground()?;
        let trees = ground.trees(call)?;
        let how = Binding {
            start: self.start,
            owner: self.owner,
            rebind: self.rebind,
        };
        let id = ground.task(call, &self.id)?;
        let name = ground.tree(call, &self.tree)?.name;
        let bound = trees.bind(&id, name.as_str(), how);
        let task = bound.map_err(|error| {
            let is_bound = matches!(
                error,
                TreeError::Bind(BindRefusal::TaskBound { .. } | BindRefusal::TreeBound { .. })
            );
            let failure = Failure::from(error);
            match is_bound {
                true => failure.hint(format!(
                    "to replace the old binding: weald task bind {id} {name} --rebind"
                )),
                false => failure,
            }
        })?;
        call.tell(&ground.engine);
        let tree = trees.named(Some(name.as_str()))?;
        Ok(BoundTask {
            task,
            tree: Some(Box::new(tree)),
        })
    }
}

/// Takes a task and its worktree apart; both stay.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnbindTask {
    /// The task that loses it.
    pub id: Word,
}

/// A task without a worktree.
#[derive(Debug, Serialize)]
pub struct UnboundTask {
    /// As it is after that.
    pub task: Task,
    /// The worktree that it had, which is kept.
    #[serde(skip)]
    pub before: Option<String>,
}

impl Operation for UnbindTask {
    const NAME: &'static str = "task_unbind";
    type Output = UnboundTask;

    fn run(self, call: &Call<'_>) -> Result<UnboundTask, Failure> {
        let ground = call.ground()?;
        let id = ground.task(call, &self.id)?;
        let before = ground.engine.task(&id)?.task.worktree;
        let task = ground.trees(call)?.unbind(&id)?;
        call.tell(&ground.engine);
        Ok(UnboundTask {
            task,
            before: before.map(|tree| tree.to_string()),
        })
    }
}

/// What becomes of a worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Closing {
    /// It stays where it is.
    Keep,
    /// It goes to the trash.
    Remove,
}

/// Keeps or removes a task's worktree, and records why.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CloseTask {
    /// The task that is settled.
    pub id: Word,
    /// What becomes of its worktree.
    pub closing: Closing,
    /// Part of the record.
    pub reason: String,
    /// Also complete the task.
    pub complete: bool,
}

impl Operation for CloseTask {
    const NAME: &'static str = "task_closeout";
    type Output = OneTask;

    fn run(self, call: &Call<'_>) -> Result<OneTask, Failure> {
        let ground = call.ground()?;
        let trees = ground.trees(call)?;
        let id = ground.task(call, &self.id)?;
        let complete = TaskInput::Complete {
            token: call.token(&id),
            report: Some(self.reason.clone()),
        };
        if self.complete {
            // What would be refused at the end is refused before anything is touched.
            ground.engine.try_task(&id, complete.clone())?;
        }
        let tree = ground.engine.task(&id)?.task.worktree;
        let tree = tree.as_ref().map(|name| name.as_str());
        match (self.closing, tree) {
            (Closing::Keep, Some(tree)) => drop(trees.keep(Some(tree))?),
            (Closing::Remove, Some(tree)) => {
                trees.require_own(&trees.named(Some(tree))?)?;
                drop(trees.remove(Some(tree), &RemoveRequest::default())?)
            }
            (_, None) => {}
        }
        let action = match self.closing {
            Closing::Keep => "keep",
            Closing::Remove => "remove",
        };
        trees.closeout(&id, action, &self.reason)?;
        if self.complete {
            let actor = call.actor(&ground.engine)?;
            ground.engine.move_task(actor.as_ref(), &id, complete)?;
        }
        call.tell(&ground.engine);
        let task = ground.engine.task(&id)?.task;
        Ok(OneTask { task })
    }
}
