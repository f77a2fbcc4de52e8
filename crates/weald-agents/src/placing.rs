//! Where an agent works: the tree of its task, with nobody else in it.
//!
//! A takeover never puts a second agent into a tree where a process of the first may live: that process tree is ended
//! first, and where it can't be (another machine, another namespace) the work goes on in a new tree.

use std::fs::Metadata;
use std::time::SystemTime;

use weald_core::Timestamp;
use weald_core::agent::{Agent, Goal};
use weald_core::agent_rules::AgentInput;
use weald_core::binding::{self, BindRefusal};
use weald_core::id::TaskId;
use weald_core::store::{AgentFilter, Durability};
use weald_core::task::{Task, TaskStatus};
use weald_core::tree::{Run, Tree, TreeKind, TreeStatus};
use weald_core::tree_rules::TreeInput;
use weald_git::{Door, RefName};

use super::AgentError;
use super::Agents;
use super::starting::AgentRequest;
use weald_control::steps::step;
use weald_trees::{Binding, BranchExists, CreateOutcome, Created, NewTree, TreeError};

impl Agents<'_> {
    /// Finds or makes the tree of an agent's task, and clears it of whoever was there before.
    pub fn place_agent(&self, agent: &Agent, new: NewTree) -> Result<(Agent, Created), AgentError> {
        let task = self.trees.engine.task(&agent.task)?.task;
        let new = self.tree_for(&task, new)?;
        self.hand_over(&new)?;
        let goes_on = new.branch_exists == BranchExists::Reuse;
        let mut created = self.trees.ensure(&new)?;
        if goes_on && created.outcome == CreateOutcome::Created {
            self.trees.engine.notice(format!(
                "{} continues on branch {} of the previous worktree, whose uncommitted files are in the trash: weald restore",
                created.tree.name, created.tree.branch
            ));
        }
        step("agent.tree_made");
        if !self.clear_for(agent, &created.tree)? {
            created = self.beside(agent, &created.tree)?;
        }
        if created.tree.task.is_none() && agent.goal != Goal::Stay {
            let name = created.tree.name.to_string();
            self.trees.bind(&agent.task, &name, Binding::default())?;
            created.tree = self.trees.named(Some(&name))?;
        }
        let placed = AgentInput::Placed {
            tree: created.tree.name.clone(),
            tree_id: created.tree.id,
            branch: created.tree.branch.clone(),
        };
        let agent = self.trees.engine.decide_agent(agent.id, placed)?;
        step("agent.placed");
        Ok((agent, created))
    }

    /// Errors when the tree of a task can't be made because of its branch, before anything is claimed.
    pub fn require_tree_for(&self, task: &TaskId, new: &NewTree) -> Result<(), AgentError> {
        let task = self.trees.engine.task(task)?.task;
        if let Some(name) = &new.name {
            self.trees.require_unbound(&task, &self.trees.name(name)?)?;
        }
        let new = self.tree_for(&task, new.clone())?;
        self.done_with(&new)?;
        Ok(self.trees.require_branch(&new)?)
    }

    /// Errors when an agent could not begin on a new task of these words, before there is one.
    pub fn require_start(
        &self,
        subject: &str,
        request: &AgentRequest,
        new: &NewTree,
    ) -> Result<(), AgentError> {
        self.trees.engine.require_own_name(request)?;
        self.done_with(new)?;
        Ok(self.trees.require_plan(subject, new)?)
    }

    /// The task that is done with the tree where another one should be worked on; `None` if it is nobody's. Errors while
    /// its task is open, or left commits there that have not landed.
    fn done_with(&self, new: &NewTree) -> Result<Option<(Tree, Task)>, AgentError> {
        let name = match &new.name {
            Some(name) => self.trees.name(name)?,
            None => return Ok(None),
        };
        let Some(tree) = self.trees.record(&name)?.filter(Tree::is_live) else {
            return Ok(None);
        };
        let Some(bound) = tree.task.clone().filter(|id| Some(id) != new.task.as_ref()) else {
            return Ok(None);
        };
        let task = self.trees.engine.task(&bound)?.task;
        let is_over = matches!(task.status, TaskStatus::Completed | TaskStatus::Cancelled);
        let has_left = || -> Result<bool, AgentError> {
            let is_landed = self.has_landed(&tree.name, tree.id)?;
            Ok(!is_landed && self.trees.look(Some(tree.name.as_str()))?.ahead != Some(0))
        };
        if !is_over || has_left()? {
            let refusal = BindRefusal::TreeBound {
                tree: tree.name,
                task: bound,
            };
            return Err(TreeError::from(refusal).into());
        }
        Ok(Some((tree, task)))
    }

    /// Takes a tree from a task that is done with it.
    fn hand_over(&self, new: &NewTree) -> Result<(), AgentError> {
        let Some((tree, task)) = self.done_with(new)? else {
            return Ok(());
        };
        self.trees
            .engine
            .change(self.trees.actor(), Durability::Process, |tx| {
                let unbound = binding::unbind(&task, Some(&tree), tx.now());
                let (_, change) = unbound.map_err(TreeError::from)?;
                tx.record(self.trees.actor(), change)?;
                Ok::<_, AgentError>(())
            })
    }

    /// The tree that a task has or gets. A branch that a removal of its own tree left is gone on with.
    fn tree_for(&self, task: &Task, new: NewTree) -> Result<NewTree, AgentError> {
        let new = NewTree {
            task: new.task.or(Some(task.id.clone())),
            ..new
        };
        let is_free = new.name.is_none() && new.branch_exists == BranchExists::Error;
        if let Some(left) = self.left_branch(task)?.filter(|_| is_free) {
            return Ok(NewTree {
                name: Some(left.name.to_string()),
                target: new.target.or(Some(left.target)),
                branch_exists: BranchExists::Reuse,
                ..new
            });
        }
        let own = task.worktree.as_ref().map(ToString::to_string);
        Ok(NewTree {
            name: new.name.or(own),
            ..new
        })
    }

    /// The tree that a task had last, if it is gone and its branch is as it left it.
    fn left_branch(&self, task: &Task) -> Result<Option<Tree>, AgentError> {
        let Some(last) = task.last_worktree.as_ref() else {
            return Ok(None);
        };
        let Some(tree) = self.trees.record(last)?.filter(|_| task.worktree.is_none()) else {
            return Ok(None);
        };
        let full = format!("refs/heads/{}", tree.branch);
        let held = self
            .trees
            .place
            .repository()
            .resolve(&full)
            .map_err(TreeError::from)?;
        let held = held.as_ref().map(|tip| tip.as_str());
        let trash = tree
            .trash
            .as_ref()
            .and_then(|trash| trash.branch_tip.as_deref());
        let is_gone = matches!(tree.status, TreeStatus::Trashed | TreeStatus::Removed);
        let is_its = held.is_some() && (held == tree.head.as_deref() || held == trash);
        Ok(Some(tree).filter(|_| is_gone && is_its))
    }

    /// Ends what earlier agents of the task left running in a tree; false where that can't be proven. Whatever else
    /// runs there is somebody's, and is left alone.
    fn clear_for(&self, agent: &Agent, tree: &Tree) -> Result<bool, AgentError> {
        let mut earlier = self.trees.engine.agents(&AgentFilter {
            open: false,
            task: Some(agent.task.clone()),
        })?;
        earlier.retain(|known| known.token < agent.token && known.tree_id == Some(tree.id));
        for known in &earlier {
            if !self.end_agent_of(known, agent)? {
                return Ok(false);
            }
        }
        let Some(tree) = self.trees.engine.look(|tx| tx.tree_by_id(tree.id))? else {
            return Ok(true);
        };
        let is_earlier = |run: &Run| {
            let mut supervisors = earlier.iter().filter_map(|known| known.supervisor.as_ref());
            supervisors.any(|process| *process == run.process)
        };
        let ended = earlier.iter().filter_map(|known| known.end.as_ref());
        if let Some(last) = ended.map(|end| end.at).max() {
            self.drop_dead_locks(&tree, last);
        }
        for run in &tree.runs {
            if is_earlier(run) {
                let ended = TreeInput::RunEnds {
                    process: run.process.clone(),
                    timed_out: false,
                    code: None,
                };
                self.trees.decide(&tree, Durability::Process, ended)?;
            } else if self.trees.may_live(&run.process) {
                return Err(busy(&tree, run));
            }
        }
        Ok(true)
    }

    /// Takes locks away that a git left in a sealed tree when it was ended with its run: nobody holds them, and every git
    /// that comes next would stop at them. Younger ones are somebody's.
    pub(super) fn drop_dead_locks(&self, tree: &Tree, ended: Timestamp) {
        let ended = SystemTime::from(ended);
        if tree.kind != TreeKind::Sealed {
            return;
        }
        for lock in ["index.lock".to_owned(), "HEAD.lock".to_owned()]
            .into_iter()
            .chain(RefName::branch(&tree.branch).map(|branch| format!("{branch}.lock")))
        {
            let path = format!(".git/{lock}");
            let found = tree.path.join(&path).symlink_metadata();
            let is_dead = |found: &Metadata| found.modified().is_ok_and(|time| time <= ended);
            if found.as_ref().is_ok_and(is_dead) {
                // What can't be taken away is told by the git that meets it.
                let _ = Door::open(&tree.path).and_then(|door| door.remove(&path));
            }
        }
    }

    /// A new tree for the task, from what was taken in of the old one. The old one stays as it is.
    fn beside(&self, agent: &Agent, old: &Tree) -> Result<Created, AgentError> {
        let base = old.head.clone().unwrap_or_else(|| old.branch.clone());
        let created = self.trees.ensure(&NewTree {
            name: Some(format!("{}-{}", old.name, agent.token)),
            base: Some(base),
            target: Some(old.target.clone()).filter(|target| !target.is_empty()),
            ..NewTree::default()
        })?;
        let binding = Binding {
            rebind: true,
            ..Binding::default()
        };
        self.trees
            .bind(&agent.task, created.tree.name.as_str(), binding)?;
        self.trees.engine.notice(format!(
            "{} may still be used by the agent before, so this one works in {}",
            old.name, created.tree.name
        ));
        Ok(created)
    }
}

fn busy(tree: &Tree, run: &Run) -> AgentError {
    AgentError::TreeBusy {
        tree: tree.name.clone(),
        program: run.program.clone(),
        pid: run.process.pid,
    }
}
