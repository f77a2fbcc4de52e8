//! Taking back what weald did last.
//!
//! The state decides who was first: a directory leaves the trash by one rename, a landing is reverted once, a binding
//! changes in one transaction. The mark in the log comes last; a kill before it leaves an operation that does not stand
//! any more, or the rest of it, for the next undo.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weald_core::Timestamp;
use weald_core::agent::Agent;
use weald_core::binding::{self, BindStart};
use weald_core::event::{Change, Event, EventKind};
use weald_core::id::{LandingId, Seq, TaskId, TreeId};
use weald_core::landing::Landing;
use weald_core::name::{SessionName, TreeName};
use weald_core::store::{AgentFilter, Durability, EventFilter, Read, StoreError, Write};
use weald_core::task::{Task, TaskStatus};
use weald_core::task_rules::TaskInput;
use weald_core::tree::{Trash, Tree, TreeLock};
use weald_core::tree_rules::TreeInput;
use weald_core::undo::{
    NotByItself, Operation, TrashedTree, Unasked, UndoRefusal, Way, last_operation, operation_at,
    operations,
};
use weald_git::GitError;

use crate::Upkeep;
use weald_control::steps::step;
use weald_control::tasks::require_task;
use weald_landing::LandError;
use weald_trees::{TreeError, TreeView, decided, identity_of};

/// How many events are looked at first; more if nothing is found in them.
const WINDOW: u64 = 2_000;

/// How far before a named event the look begins: what it changed was recorded not long before.
const BEFORE: u64 = 1_000;

/// Why something is not taken back.
#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    #[error(transparent)]
    Land(#[from] LandError),
    #[error(transparent)]
    Tree(#[from] TreeError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Refused(#[from] UndoRefusal),
    #[error("there is nothing here that weald can undo")]
    Nothing,
    /// A person may not have meant it: it is taken back only by its name.
    #[error("the last operation not yet undone is {}, and {}; nothing was changed", .0.last, why(.0))]
    Unnamed(Box<NotByItself>),
    #[error("landing {0} is undone by the queue")]
    OfQueue(LandingId),
    #[error("{}", in_vault(.0))]
    Gone(Vec<TrashedTree>),
    #[error("worktree {} is no longer in the trash: {}", .0, .1.display())]
    NotInTrash(TreeName, PathBuf),
    #[error("branch {2} of worktree {1} has moved since")]
    BranchMoved(TreeId, TreeName, String),
    #[error("task {2} of worktree {1} now has worktree {3}")]
    TaskTaken(TreeId, TreeName, TaskId, TreeName),
    #[error("there is now another worktree {}: {}", .1, .2.display())]
    NameTaken(Seq, TreeName, PathBuf),
    /// A restore that was killed has it there already.
    #[error("worktree {} is only partly restored: {}", .1, .2.display())]
    HalfRestored(Seq, TreeName, PathBuf),
    #[error("the path of worktree {} is taken: {}", .1, .2.display())]
    PathTaken(Seq, TreeName, PathBuf),
    #[error("worktree {0} is gone")]
    TreeGone(TreeName),
    #[error("the lock is now a different one, or its worktree is gone")]
    OtherLock,
}

/// The landing that took another one back.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RevertedBy {
    pub landing: LandingId,
    pub target: String,
    /// The commit on it.
    pub commit: Option<String>,
}

/// What was taken back.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Undone {
    pub undone: EventKind,
    /// The event that began it.
    pub event: Seq,
    pub by: Option<SessionName>,
    /// When it was done.
    pub at: Timestamp,
    /// Trees that are back, or locked as before.
    pub trees: Vec<TreeView>,
    /// The task that has its tree again, or is open again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<Task>,
    /// The landing that was reverted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub landing: Option<LandingId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revert: Option<RevertedBy>,
    /// What did not come back, and why.
    pub notes: Vec<String>,
}

impl Undone {
    fn of(operation: &Operation) -> Self {
        Self {
            undone: operation.kind.clone(),
            event: operation.event,
            by: operation.actor.clone(),
            at: operation.time,
            trees: Vec::new(),
            task: None,
            landing: None,
            revert: None,
            notes: Vec::new(),
        }
    }
}

impl Upkeep<'_> {
    /// What can be taken back, newest first.
    pub fn undoable(&self, most: usize) -> Result<Vec<Operation>, UndoError> {
        let mut found = self.in_window(|events, is_whole| {
            let mut found = operations(events);
            found.retain(|operation| !operation.is_gone());
            (is_whole || found.len() >= most).then_some(found)
        })?;
        found.reverse();
        found.truncate(most);
        Ok(found)
    }

    /// The last operation that stands, if the caller or an agent that the caller started did it.
    pub fn last_operation(&self) -> Result<Operation, UndoError> {
        let agents = self
            .trees
            .engine
            .look(|tx| tx.agents(&AgentFilter::default()))?;
        let is_mine = |actor: Option<&SessionName>| is_of(actor, self.trees.actor(), &agents);
        let found = self.in_window(|events, is_whole| {
            let found = last_operation(events, is_mine);
            (is_whole || !matches!(found, Ok(None))).then_some(found)
        })?;
        match found {
            Ok(Some(operation)) => Ok(operation),
            Ok(None) => Err(UndoError::Nothing),
            Err(refused) => Err(UndoError::Unnamed(refused)),
        }
    }

    /// The operation of an event.
    pub fn operation(&self, event: Seq) -> Result<Operation, UndoError> {
        let found = self.in_window(|events, is_whole| {
            let first = events.first().map_or(0, |event| event.seq.0);
            let reaches = first + BEFORE <= event.0;
            (is_whole || reaches).then(|| operation_at(events, event))
        })?;
        Ok(found?)
    }

    /// Looks at ever more of the end of the log until `look` has an answer.
    fn in_window<T>(&self, look: impl Fn(&[Event], bool) -> Option<T>) -> Result<T, UndoError> {
        let mut limit = WINDOW;
        loop {
            let filter = EventFilter {
                limit: Some(limit),
                ..EventFilter::default()
            };
            let events = self.trees.engine.events(&filter)?;
            let is_whole = (events.len() as u64) < limit || events[0].seq == Seq(1);
            match look(&events, is_whole) {
                Some(found) => return Ok(found),
                None if is_whole => return Err(UndoError::Nothing),
                None => limit *= 8,
            }
        }
    }

    /// Takes an operation back that is not a landing.
    pub fn undo(&self, operation: &Operation) -> Result<Undone, UndoError> {
        let done = match &operation.way {
            Way::Restore(trees) => self.undo_removals(operation, trees),
            Way::Bind { task, tree, name } => self.undo_unbinding(operation, task, *tree, name),
            Way::Lock {
                tree, before, now, ..
            } => self.undo_lock(operation, *tree, before, now),
            Way::Revert { landing, .. } => Err(UndoError::OfQueue(*landing)),
        };
        // Another undo may have been faster, which says more than what it left.
        match done {
            Err(error) => match self.operation(operation.event) {
                Err(faster @ UndoError::Refused(UndoRefusal::IsUndone(_))) => Err(faster),
                _ => Err(error),
            },
            done => done,
        }
    }

    /// What undoing a landing will do to its target, in words: the caller hears of it before.
    pub fn what_undoing_lands(
        &self,
        operation: &Operation,
        id: LandingId,
    ) -> Result<String, UndoError> {
        let landing = self.landings.landing(id)?;
        let commit = landing.new_tip.as_deref().unwrap_or_default();
        let commit = &commit[..commit.len().min(8)];
        let (target, name) = (&landing.target, &landing.tree);
        let mut told = format!(
            "{operation} put {commit} on {target} for {name}; a commit that reverts it will land on {target}, through the queue and the gate"
        );
        if let Way::Revert {
            tree: Some(part), ..
        } = &operation.way
        {
            told.push_str(&format!("; worktree {} will be restored", part.name));
        }
        if let Way::Revert {
            reverts: Some(other),
            ..
        } = &operation.way
        {
            told.push_str(&format!(
                "; the changes of landing {other} will be restored"
            ));
        }
        Ok(told)
    }

    /// What follows once a landing is reverted: its tree comes back, if its name is free.
    pub fn undo_landed(
        &self,
        operation: &Operation,
        revert: &Landing,
    ) -> Result<Undone, UndoError> {
        let mut told = Undone::of(operation);
        let Way::Revert { landing, tree, .. } = &operation.way else {
            return Ok(told);
        };
        told.landing = Some(*landing);
        told.revert = Some(RevertedBy {
            landing: revert.id,
            target: revert.target.clone(),
            commit: revert.new_tip.clone(),
        });
        match tree.as_ref().map(|part| (part, self.restore_part(part))) {
            None => {}
            Some((_, Ok(view))) => told.trees.push(view),
            Some((part, Err(TreeError::NotInTrash { .. }))) => told.notes.push(format!(
                "{}: weald restore {} --purged",
                in_vault(std::slice::from_ref(part)),
                part.id
            )),
            Some((part, Err(error))) => told.notes.push(format!(
                "worktree {} stays in the trash: {error} (weald restore {})",
                part.name, part.id
            )),
        }
        let reverted = self.landings.landing(*landing)?;
        if let Some(id) = &reverted.task {
            told.task = self.trees.engine.look(|tx| tx.task(id))?;
        }
        step("undo.done");
        self.mark_undone(operation)?;
        Ok(told)
    }

    fn undo_removals(
        &self,
        operation: &Operation,
        parts: &[TrashedTree],
    ) -> Result<Undone, UndoError> {
        let mut told = Undone::of(operation);
        told.notes = self.require_removals(operation, parts)?;
        for part in parts.iter().filter(|part| !part.gone) {
            let view = self.restore_part(part)?;
            step("undo.restored");
            told.trees.push(view);
            if let Some(id) = &part.completed {
                told.task = self.open_again(id)?;
            }
        }
        step("undo.done");
        self.mark_undone(operation)?;
        Ok(told)
    }

    fn restore_part(&self, part: &TrashedTree) -> Result<TreeView, TreeError> {
        self.trees.restore(part.id)
    }

    /// A task that a removal completed is open again.
    fn open_again(&self, id: &TaskId) -> Result<Option<Task>, UndoError> {
        let task = self.trees.engine.look(|tx| tx.task(id))?;
        if task.as_ref().map(|task| task.status) != Some(TaskStatus::Completed) {
            return Ok(task);
        }
        let moved = self
            .trees
            .engine
            .move_task(self.trees.actor(), id, TaskInput::Reopen);
        Ok(Some(moved.map_err(TreeError::from)?.task))
    }

    fn undo_unbinding(
        &self,
        operation: &Operation,
        task: &TaskId,
        tree: TreeId,
        name: &TreeName,
    ) -> Result<Undone, UndoError> {
        let mut told = Undone::of(operation);
        let bound = self
            .trees
            .engine
            .change(self.trees.actor(), Durability::Process, |tx| {
                let (bound, change) = bound_again(tx, task, tree, name)?;
                tx.record(self.trees.actor(), change.part_of(Some(operation.event)))?;
                self.mark(tx, operation)?;
                Ok::<_, UndoError>(bound)
            })?;
        told.task = Some(bound);
        Ok(told)
    }

    fn undo_lock(
        &self,
        operation: &Operation,
        id: TreeId,
        before: &Option<TreeLock>,
        now: &Option<TreeLock>,
    ) -> Result<Undone, UndoError> {
        let mut told = Undone::of(operation);
        let tree = self
            .trees
            .engine
            .change(self.trees.actor(), Durability::Process, |tx| {
                let current = require_lock(tx, id, now)?;
                let input = match before {
                    Some(lock) => TreeInput::Lock(lock.clone()),
                    None => TreeInput::Unlock,
                };
                let (tree, change) = decided(tx, &current, input)?;
                tx.record(self.trees.actor(), change.part_of(Some(operation.event)))?;
                self.mark(tx, operation)?;
                Ok::<_, UndoError>(tree)
            })?;
        self.trees.show_lock(&tree)?;
        told.trees.push(self.trees.view(tree));
        Ok(told)
    }

    fn mark_undone(&self, operation: &Operation) -> Result<(), UndoError> {
        let mark = Change::fact(EventKind::OPERATION_UNDONE).part_of(Some(operation.event));
        Ok(self.record(Durability::Power, mark).map(drop)?)
    }

    fn mark(&self, tx: &mut dyn Write, operation: &Operation) -> Result<(), UndoError> {
        let mark = Change::fact(EventKind::OPERATION_UNDONE).part_of(Some(operation.event));
        tx.record(self.trees.actor(), mark)?;
        Ok(())
    }

    // Whether something would come back as it was: nothing is changed from here on.

    /// Refuses an operation that `undo` would refuse; answers what would not come back. Whether a landing can be merged
    /// back, and what the gate says to that, shows only when it is done.
    pub fn require_undoable(&self, operation: &Operation) -> Result<Vec<String>, UndoError> {
        match &operation.way {
            Way::Restore(parts) => return self.require_removals(operation, parts),
            Way::Revert { landing, .. } => {
                self.landings.require_revertible(*landing)?;
            }
            Way::Bind { task, tree, name } => {
                let again = |tx: &dyn Read| bound_again(tx, task, *tree, name);
                self.trees.engine.look(again)?;
            }
            Way::Lock { tree, now, .. } => {
                self.trees.engine.look(|tx| require_lock(tx, *tree, now))?;
            }
        }
        Ok(Vec::new())
    }

    /// Refuses trees that would not come back as they were; answers those of which nothing is left, if others are.
    fn require_removals(
        &self,
        operation: &Operation,
        parts: &[TrashedTree],
    ) -> Result<Vec<String>, UndoError> {
        let gone = parts.iter().filter(|part| part.gone);
        let gone = gone.map(|part| in_vault(std::slice::from_ref(part)));
        let gone: Vec<_> = gone.collect();
        if operation.is_gone() {
            return Err(UndoError::Gone(parts.to_vec()));
        }
        for part in parts.iter().filter(|part| !part.gone) {
            self.require_exact(part, operation.event)?;
        }
        Ok(gone)
    }

    fn require_exact(&self, part: &TrashedTree, event: Seq) -> Result<(), UndoError> {
        let tree = self.trees.engine.look(|tx| tx.tree_by_id(part.id))?;
        let trash = tree.as_ref().and_then(|tree| tree.trash.as_ref());
        let (Some(tree), Some(trash)) = (&tree, trash) else {
            let id = format!("#{}", part.id);
            return Err(TreeError::NotInTrash { id }.into());
        };
        self.require_place(tree, trash, event)?;
        let full = format!("refs/heads/{}", tree.branch);
        let held = self.trees.place.repository().resolve(&full)?;
        let held = held.map(|tip| tip.as_str().to_owned());
        if held.is_some() && held != trash.branch_tip {
            let branch = tree.branch.clone();
            return Err(UndoError::BranchMoved(part.id, tree.name.clone(), branch));
        }
        let task = match &trash.task {
            Some(id) => self.trees.engine.look(|tx| tx.task(id))?,
            None => None,
        };
        match task.and_then(|task| Some((task.id, task.worktree?))) {
            Some((task, other)) => Err(UndoError::TaskTaken(
                part.id,
                tree.name.clone(),
                task,
                other,
            )),
            None => Ok(()),
        }
    }

    /// The name and the path must be free, and the directory in the trash.
    fn require_place(&self, tree: &Tree, trash: &Trash, event: Seq) -> Result<(), UndoError> {
        match self.trees.refuse_name_taken(tree) {
            Err(TreeError::Exists { name, path }) => {
                return Err(UndoError::NameTaken(event, name, path));
            }
            other => other?,
        }
        let is_it = |path: &Path| identity_of(path).ok() == tree.identity;
        let name = tree.name.clone();
        if tree.path.symlink_metadata().is_ok() {
            let path = tree.path.clone();
            return Err(match is_it(&path) {
                true => UndoError::HalfRestored(event, name, path),
                false => UndoError::PathTaken(event, name, path),
            });
        }
        if !is_it(&trash.path) {
            return Err(UndoError::NotInTrash(name, trash.path.clone()));
        }
        Ok(())
    }
}

/// A task with its tree again.
fn bound_again(
    tx: &(impl Read + ?Sized),
    task: &TaskId,
    tree: TreeId,
    name: &TreeName,
) -> Result<(Task, Change), UndoError> {
    let current = require_task(tx, task).map_err(TreeError::from)?;
    let Some(free) = tx.tree_by_id(tree)?.filter(Tree::is_live) else {
        return Err(UndoError::TreeGone(name.clone()));
    };
    let (bound, _, change) =
        binding::bind(&current, &free, BindStart::Keep, tx.now()).map_err(TreeError::from)?;
    Ok((bound, change))
}

/// The tree, if its lock is still this one.
fn require_lock(
    tx: &(impl Read + ?Sized),
    tree: TreeId,
    now: &Option<TreeLock>,
) -> Result<Tree, UndoError> {
    let current = tx.tree_by_id(tree)?.filter(Tree::is_live);
    current
        .filter(|tree| tree.locked == *now)
        .ok_or(UndoError::OtherLock)
}

/// Whether `actor` is `me`, or an agent that I started, or that one of mine started.
fn is_of(actor: Option<&SessionName>, me: Option<&SessionName>, agents: &[Agent]) -> bool {
    let mut above = actor;
    // Each step is one agent further up, and no chain is longer than there are agents.
    for _ in 0..=agents.len() {
        if above == me {
            return true;
        }
        let agent = agents.iter().rfind(|agent| Some(&agent.session) == above);
        match agent {
            Some(agent) => above = agent.spawned_by.as_ref(),
            None => return false,
        }
    }
    false
}

fn why(refused: &NotByItself) -> String {
    match refused.why {
        Unasked::Gone => in_vault(parts_of(&refused.last)),
        Unasked::Others => "another session did it".to_owned(),
        Unasked::Older => "the operations after it were already undone".to_owned(),
    }
}

fn parts_of(operation: &Operation) -> &[TrashedTree] {
    match &operation.way {
        Way::Restore(trees) => trees,
        _ => &[],
    }
}

/// That trees are not in the trash any more.
fn in_vault(gone: &[TrashedTree]) -> String {
    let names: Vec<_> = gone.iter().map(|tree| tree.name.as_str()).collect();
    let (noun, verb, whose) = match names.len() {
        1 => ("worktree", "is", "its"),
        _ => ("worktrees", "are", "their"),
    };
    format!(
        "{noun} {} {verb} no longer in the trash; the vault has {whose} imported commits",
        names.join(", ")
    )
}
