//! Whether a tree could be made, found out before anything is recorded; and who is in its way.

use std::fs;
use std::path::{Path, PathBuf};

use weald_core::binding::BindRefusal;
use weald_core::id::{TaskId, TreeId};
use weald_core::name::TreeName;
use weald_core::task::Task;
use weald_core::tree::Tree;

use super::error::Holder;
use super::new_tree::NewTree;
use super::{TreeError, Trees, at};

impl Trees<'_> {
    /// What is at `path`, in the way of a tree for `task`.
    pub(super) fn holder(
        &self,
        path: PathBuf,
        task: Option<&TaskId>,
    ) -> Result<Box<Holder>, TreeError> {
        let is_there = |tree: &Tree| tree.is_live() && tree.path == path;
        let tree = self.records()?.into_iter().find(is_there);
        Ok(Box::new(Holder {
            path,
            bound: tree.as_ref().and_then(|tree| tree.task.clone()),
            tree: tree.map(|tree| tree.name),
            task: task.cloned(),
        }))
    }

    /// Errors when no tree could be made for a new task of these words. Nothing is recorded.
    pub fn require_plan(&self, subject: &str, new: &NewTree) -> Result<(), TreeError> {
        let task = Task::new(TaskId::Number(0), subject, self.now()?);
        let name = match &new.name {
            Some(name) => self.name(name)?,
            None => self.free_name_for(&task)?,
        };
        // One that is there, or in the making, is taken as it is.
        if self.record(&name)?.is_some_and(|known| known.is_wanted()) {
            return Ok(());
        }
        let plan = self.plan(new, name, Some(&task))?;
        require_room(&plan.tree.path)
    }

    /// Errors when the place or the branch of a tree that has to be made is in its way.
    pub fn require_branch(&self, new: &NewTree) -> Result<(), TreeError> {
        let (name, task) = self.wanted(new)?;
        // What is left of a creation that was cut short goes when the tree is made.
        let is_in_the_way = |tree: &Tree| !tree.is_live() && !self.is_cut_short(tree);
        if self
            .record(&name)?
            .is_some_and(|tree| !is_in_the_way(&tree))
        {
            return Ok(());
        }
        let raced = self.raced_task(new)?;
        let layout = self.layout(TreeId(0), &name, task.or(raced).as_ref())?;
        self.existing_branch(new, &name, &layout)?;
        require_room(&layout.path)
    }

    /// Errors when a task has another tree than the one it should get.
    pub fn require_unbound(&self, task: &Task, name: &TreeName) -> Result<(), TreeError> {
        match task.worktree.as_ref().filter(|bound| *bound != name) {
            None => Ok(()),
            Some(bound) => Err(BindRefusal::TaskBound {
                task: task.id.clone(),
                tree: bound.clone(),
            }
            .into()),
        }
    }
}

/// Errors when the directory that a tree would lie in can't be made. Only making it tells: permissions say nothing of
/// special file systems.
fn require_room(path: &Path) -> Result<(), TreeError> {
    let parent = path.parent().unwrap_or(path);
    fs::create_dir_all(parent).map_err(at(parent))
}
