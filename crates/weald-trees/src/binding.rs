//! Binding tasks and trees.

use weald_core::binding::{self, BindStart};
use weald_core::id::{TaskId, TreeId};
use weald_core::name::SessionName;
use weald_core::store::{Durability, Read, Write};
use weald_core::task::Task;
use weald_core::tree::Tree;
use weald_core::tree_rules::{self, TreeInput};

use super::{TreeError, Trees, called, require_task_record};

#[derive(Debug, Clone, Default)]
pub struct Binding {
    /// Whether the task starts.
    pub start: bool,
    /// Who works on it then.
    pub owner: Option<SessionName>,
    /// Whether older bindings of both are let go.
    pub rebind: bool,
}

impl Trees<'_> {
    /// Binds a task and a tree.
    pub fn bind(&self, id: &TaskId, tree: &str, how: Binding) -> Result<Task, TreeError> {
        let tree = self.named(Some(tree))?;
        self.require_own(&tree)?;
        let advances = how.start || how.owner.is_some() || self.config.bind_advances;
        let start = match advances {
            true => BindStart::Start(how.owner.clone()),
            false => BindStart::Keep,
        };
        let mut robbed = None;
        let bound = self
            .engine
            .change(self.actor(), Durability::Process, |tx| {
                let mut task = self.own_task(tx, id)?;
                if how.rebind {
                    if let Some(bound) = task.worktree.clone().filter(|bound| *bound != tree.name) {
                        let old = called(tx, &bound)?;
                        let (free, change) = binding::unbind(&task, old.as_ref(), tx.now())?;
                        tx.record(self.actor(), change)?;
                        task = free;
                    }
                    let current = tx.tree_by_id(tree.id)?.unwrap_or_else(|| tree.clone());
                    if let Some(other) = current.task.clone().filter(|other| other != id) {
                        let other = self.own_task(tx, &other)?;
                        let (_, change) = binding::unbind(&other, Some(&current), tx.now())?;
                        tx.record(self.actor(), change)?;
                        robbed = Some(other.id);
                    }
                }
                let current = tx.tree_by_id(tree.id)?.unwrap_or_else(|| tree.clone());
                Ok::<_, TreeError>(self.bind_in(tx, &task, &current, start)?.0)
            })?;
        if let Some(other) = robbed {
            self.engine.notice(format!(
                "worktree {} belonged to task {other}, which has no worktree now",
                tree.name
            ));
        }
        Ok(bound)
    }

    /// How a task goes on when it gets a tree, by the configuration.
    pub(super) fn bind_start(&self) -> BindStart {
        match self.config.bind_advances {
            true => BindStart::Start(None),
            false => BindStart::Keep,
        }
    }

    /// Records that a task and a tree belong together.
    pub(super) fn bind_in(
        &self,
        tx: &mut dyn Write,
        task: &Task,
        tree: &Tree,
        start: BindStart,
    ) -> Result<(Task, Tree), TreeError> {
        let (task, tree, change) = binding::bind(task, tree, start, tx.now())?;
        tx.record(self.actor(), change)?;
        Ok((task, tree))
    }

    /// Lets a task's tree go.
    pub fn unbind(&self, id: &TaskId) -> Result<Task, TreeError> {
        self.engine.change(self.actor(), Durability::Process, |tx| {
            let task = self.own_task(tx, id)?;
            self.unbind_in(tx, &task)
        })
    }

    fn unbind_in(&self, tx: &mut dyn Write, task: &Task) -> Result<Task, TreeError> {
        let tree = match &task.worktree {
            Some(name) => called(tx, name)?,
            None => None,
        };
        let (task, change) = binding::unbind(task, tree.as_ref(), tx.now())?;
        tx.record(self.actor(), change)?;
        Ok(task)
    }

    /// Unbinds a task whose worktree is not bound to it. One that was bound properly in the meantime stays so.
    pub fn unbind_dangling(&self, id: &TaskId) -> Result<(), TreeError> {
        self.engine.change(self.actor(), Durability::Process, |tx| {
            let task = self.own_task(tx, id)?;
            let dangles = task.worktree.is_some()
                && !tx.trees()?.iter().any(|tree| binding::agree(&task, tree));
            if dangles {
                self.unbind_in(tx, &task)?;
            }
            Ok(())
        })
    }

    /// Unbinds a worktree whose task is not bound to it. One that was bound properly in the meantime stays so.
    pub fn unbind_dangling_tree(&self, id: TreeId) -> Result<(), TreeError> {
        self.engine.change(self.actor(), Durability::Process, |tx| {
            let Some(tree) = tx.tree_by_id(id)?.filter(Tree::is_live) else {
                return Ok(());
            };
            let Some(named) = &tree.task else {
                return Ok(());
            };
            let task = tx.task(named)?;
            if !task.is_some_and(|task| binding::agree(&task, &tree)) {
                let (_, change) = tree_rules::decide(&tree, TreeInput::Unbind, tx.now())?;
                tx.record(self.actor(), change)?;
            }
            Ok(())
        })
    }

    /// A task that the caller may change.
    pub(super) fn own_task(
        &self,
        tx: &(impl Read + ?Sized),
        id: &TaskId,
    ) -> Result<Task, TreeError> {
        let task = require_task_record(tx, id)?;
        let may = self.engine.role.may_change(self.actor(), &task, tx.now());
        may.map_err(weald_control::tasks::TaskError::from)?;
        Ok(task)
    }
}
