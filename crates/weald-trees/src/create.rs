//! Making a tree: intent, vault, build beside its place, rename, register, done.

use std::time::Duration;

use weald_core::binding;
use weald_core::config::LockWhen;
use weald_core::name::TreeName;
use weald_core::store::Durability;
use weald_core::task::Task;
use weald_core::tree::{DirectoryIdentity, Tree, TreeKind, TreeLock, TreeStatus};
use weald_core::tree_rules::{self, TreeInput};

use weald_git::Reference;

use super::half_made::Mended;
use super::locking::task_lock;
use super::new_tree::{CreateOutcome, Created, NewTree};
use super::planning::Plan;
use super::{TreeError, Trees, called, decided, require_task_record};
use weald_control::steps::step;

/// Whether a creation that was cut short is the one that is asked for now.
fn is_as_asked(new: &NewTree, tree: &Tree) -> bool {
    let is_base = |base: &String| *base == tree.base.reference;
    new.task == tree.task && new.kind == tree.kind && new.base.as_ref().is_none_or(is_base)
}

impl Trees<'_> {
    pub fn create(&self, new: &NewTree) -> Result<Created, TreeError> {
        let (name, task) = self.wanted(new)?;
        match self.create_as(new, name.clone(), task) {
            // A tree of another task was faster, so this one is called otherwise.
            Err(TreeError::Exists { .. }) if self.wanted(new)?.0 != name => self.create(new),
            made => made,
        }
    }

    fn create_as(
        &self,
        new: &NewTree,
        name: TreeName,
        task: Option<Task>,
    ) -> Result<Created, TreeError> {
        if let Some(Mended::Recorded(tree)) = self.mend_creation(&name)?
            && is_as_asked(new, &tree)
        {
            return self.finished(*tree);
        }
        self.refuse_taken(&name)?;
        let plan = self.with_ports(self.plan(new, name, task.as_ref())?);
        let released = |_: &TreeError| self.release_ports(&plan.tree);
        step("create.planned");
        let tree = self.announce(&plan).inspect_err(released)?;
        step("create.announced");
        let free = self.require_free_building(&tree);
        let is_free = free.is_ok();
        match free.and_then(|()| self.build(&plan, &tree)) {
            Ok(built) => {
                self.reserve().hold();
                let made = Created {
                    tree: built.tree,
                    outcome: CreateOutcome::Created,
                    population: Some(built.population),
                    branch_reused: plan.reused,
                    notes: built.notes,
                    setup: None,
                };
                self.with_setup(made, Some(built.setup))
            }
            Err(error) => {
                if is_free {
                    self.take_back(&plan, &tree);
                }
                self.release_ports(&tree);
                let input = TreeInput::CreateFailed {
                    error: error.to_string(),
                };
                self.decide(&tree, Durability::Process, input)?;
                // A git that the same signal ended says something else.
                Err(self.go_on().err().unwrap_or(error))
            }
        }
    }

    /// A creation that was cut short at its very end, and is on record now.
    fn finished(&self, tree: Tree) -> Result<Created, TreeError> {
        let note = format!("{}: its interrupted creation was finished", tree.name);
        let made = Created {
            notes: vec![note],
            ..Created::of(tree, CreateOutcome::Created)
        };
        self.with_setup(made, None)
    }

    /// The tree of this name or task: as it is, made, or made again where its directory is gone.
    pub fn ensure(&self, new: &NewTree) -> Result<Created, TreeError> {
        let (name, _) = self.wanted(new)?;
        let known = self.settled(&name)?;
        if let Some(Mended::Recorded(tree)) = self.mend_creation(&name)?
            && is_as_asked(new, &tree)
        {
            return self.finished(*tree);
        }
        let Some(tree) = known.filter(Tree::is_live) else {
            return match self.create(new) {
                // Another process was faster: its tree is the answer, once it is there.
                Err(error @ TreeError::Exists { .. }) => {
                    match self.settled(&name)?.filter(Tree::is_live) {
                        Some(_) => self.ensure(new),
                        None => Err(error),
                    }
                }
                created => created,
            };
        };
        if let (Some(wanted), Some(bound)) = (&new.task, &tree.task)
            && wanted != bound
        {
            if self.wanted(new)?.0 != name {
                return self.ensure(new);
            }
            return Err(binding::BindRefusal::TreeBound {
                tree: tree.name,
                task: bound.clone(),
            }
            .into());
        }
        match self.site(&tree) {
            Ok(_) => Ok(Created::of(
                self.on_its_branch(tree)?,
                CreateOutcome::Reused,
            )),
            Err(TreeError::Missing { .. }) => self.with_setup(self.recreate(&tree)?, None),
            Err(other) => Err(other),
        }
    }

    /// The record of a name, once nobody is making it any more.
    fn settled(&self, name: &TreeName) -> Result<Option<Tree>, TreeError> {
        loop {
            let seen = self.engine.look(|tx| tx.last_seq())?;
            let known = self.record(name)?;
            let in_the_making = known.as_ref().is_some_and(|tree| {
                let worker = tree.worker.as_ref();
                tree.status == TreeStatus::Creating
                    && worker.is_some_and(|worker| self.may_live(worker))
            });
            if !in_the_making {
                return Ok(known);
            }
            self.go_on()?;
            self.engine.store().wait(seen, Duration::from_secs(1))?;
        }
    }

    /// A linked tree that somebody switched to another branch is not the one that was asked for. What a sealed tree calls
    /// its branches inside does not matter.
    fn on_its_branch(&self, tree: Tree) -> Result<Tree, TreeError> {
        let name = tree.registration_name();
        let head = self.registrations().read(name).and_then(|known| known.head);
        let wanted = Reference::Symbolic(format!("refs/heads/{}", tree.branch));
        match head {
            Some(head) if tree.kind == TreeKind::Linked && head != wanted => {
                let on = head.to_text();
                let on = on.trim_end().trim_start_matches("ref: refs/heads/");
                let why = format!("it is on {on}, not on branch {}", tree.branch);
                Err(TreeError::replaced(&tree, &tree.path, why))
            }
            _ => Ok(tree),
        }
    }

    /// The name and the task, both checked.
    pub(super) fn wanted(&self, new: &NewTree) -> Result<(TreeName, Option<Task>), TreeError> {
        let task = match &new.task {
            Some(id) => Some(self.engine.look(|tx| require_task_record(tx, id))?),
            None => None,
        };
        let name = match (&new.name, &new.branch, &task) {
            (Some(name), ..) => self.name(name)?,
            (None, Some(branch), _) => self.name_of_branch(&self.chosen_branch(branch)?.branch)?,
            (None, None, Some(task)) => match &task.worktree {
                Some(bound) => bound.clone(),
                None => self.free_name_for(task)?,
            },
            (None, None, None) => match &new.scratch_for {
                Some(parent) => self.scratch_name(parent)?,
                None => return Err(TreeError::NoTree),
            },
        };
        Ok((name, task))
    }

    /// The first free name for a short-lived tree of `parent`.
    fn scratch_name(&self, parent: &str) -> Result<TreeName, TreeError> {
        let parent = self.named(Some(parent))?.name;
        for number in 1..10_000_u32 {
            let name: TreeName = format!("{parent}-s{number}").parse()?;
            let taken = self
                .record(&name)?
                .is_some_and(|tree| tree.is_wanted() || tree.status == TreeStatus::Trashed);
            if !taken {
                return Ok(name);
            }
        }
        Err(TreeError::NoTree)
    }

    pub(super) fn refuse_taken(&self, name: &TreeName) -> Result<(), TreeError> {
        let known = self.record(name)?;
        match known.filter(Tree::is_wanted) {
            Some(tree) => Err(TreeError::exists(tree)),
            None => Ok(()),
        }
    }

    /// Writes the intent; the name, the path and the task are taken from here on.
    fn announce(&self, plan: &Plan) -> Result<Tree, TreeError> {
        self.engine.change(self.actor(), Durability::Process, |tx| {
            let mut known: Vec<_> = called(tx, &plan.tree.name)?.into_iter().collect();
            // Trees of other names are elsewhere, unless the template leaves the name out.
            if !self.config.tree_path.contains("{name}") {
                let there = |tree: &Tree| tree.path == plan.tree.path;
                known.extend(tx.trees()?.into_iter().filter(there));
            }
            if let Some(known) = known.into_iter().find(Tree::is_wanted) {
                return Err(TreeError::exists(known));
            }
            let bare = Tree {
                worker: self.me(),
                ..plan.tree.clone()
            };
            let (tree, change) = tree_rules::announce(bare);
            tx.record(self.actor(), change)?;
            if let Some(id) = &plan.tree.task {
                let task = require_task_record(tx, id)?;
                if let Some(bound) = &task.worktree
                    && *bound != tree.name
                {
                    return Err(binding::BindRefusal::TaskBound {
                        task: id.clone(),
                        tree: bound.clone(),
                    }
                    .into());
                }
            }
            Ok(tree)
        })
    }

    /// The tree is there: record it, bound to its task, locked if the profile wants that.
    pub(super) fn activate(
        &self,
        tree: &Tree,
        identity: DirectoryIdentity,
        registration: String,
    ) -> Result<Tree, TreeError> {
        let start = self.bind_start();
        // What is nobody's issue goes when its agent is done: scratch worktrees, entries of races, those of subagents.
        let locked_for = match self.config.tree_lock {
            LockWhen::Create if tree.scratch_for.is_none() => tree.task.as_ref(),
            _ => None,
        };
        let made = self
            .engine
            .change(self.actor(), Durability::Process, |tx| {
                let input = TreeInput::Created {
                    identity,
                    registration,
                };
                let (mut made, change) = decided(tx, tree, input)?;
                let created = tx.record(self.actor(), change)?;
                if let Some(id) = &tree.task {
                    let task = require_task_record(tx, id)?;
                    made = self.bind_in(tx, &task, &made, start)?.1;
                }
                if let Some(task) = locked_for {
                    let lock = TreeLock {
                        owner: self.actor().map_or("weald".to_owned(), ToString::to_string),
                        reason: task_lock(task),
                    };
                    let (locked, change) = decided(tx, &made, TreeInput::Lock(lock))?;
                    tx.record(self.actor(), change.part_of(Some(created)))?;
                    made = locked;
                }
                Ok::<_, TreeError>(made)
            })?;
        if locked_for.is_some() {
            self.show_lock(&made)?;
        }
        Ok(made)
    }
}
