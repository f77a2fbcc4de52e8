//! Going into a tree with a shell, and leaving it.

use std::path::PathBuf;

use serde::Serialize;
use weald_core::name::{SessionName, TreeName};
use weald_core::session::Session;
use weald_core::session_rules;
use weald_core::store::Durability;
use weald_core::task::Task;
use weald_core::tree::{Tree, TreeStatus};
use weald_core::tree_rules::TreeInput;

use super::remove::{RemoveRequest, Removed};
use super::view::Dirty;
use super::{TreeError, TreeView, Trees};
use weald_control::sessions::held;

/// How a tree was left.
#[derive(Debug, Clone, Serialize)]
pub struct Exited {
    pub tree: Tree,
    /// `kept`, `removed` or `left`.
    pub outcome: &'static str,
    /// What a removal did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed: Option<Removed>,
}

impl Trees<'_> {
    /// Goes in from `from`: the target inside is refreshed; the tree and the session remember the way back.
    pub fn enter(&self, name: Option<&str>, from: PathBuf) -> Result<TreeView, TreeError> {
        let tree = self.named(name)?;
        self.site(&tree)?;
        let view = self.look_at(tree)?;
        let input = TreeInput::Entered { from: from.clone() };
        let tree = self.decide(&view.tree, Durability::Process, input)?;
        self.note_place(Some((tree.name.clone(), from)))?;
        Ok(TreeView { tree, ..view })
    }

    /// Remembers that somebody goes in, for [`Self::entered_last`]. Their session stays where it is.
    pub fn note_entered(&self, tree: &Tree, from: PathBuf) -> Result<Tree, TreeError> {
        self.decide(tree, Durability::Process, TreeInput::Entered { from })
    }

    /// The worktree that was entered last, but for the one that the caller is in.
    pub fn entered_last(&self) -> Result<Option<Tree>, TreeError> {
        let here = self.place.inside();
        let mut trees = self.records()?;
        trees.retain(|tree| {
            tree.is_live() && tree.last_entered_at.is_some() && Some(tree.path.as_path()) != here
        });
        Ok(trees.into_iter().max_by_key(|tree| tree.last_entered_at))
    }

    /// Where a caller who leaves a tree goes: where its session came from, else where the tree was entered from last.
    pub fn way_back(&self, tree: &Tree) -> Result<PathBuf, TreeError> {
        let own = match self.actor() {
            Some(name) => self.engine.look(|tx| tx.session(name))?,
            None => None,
        };
        let own = own.filter(|session| session.tree.as_ref() == Some(&tree.name));
        let own = own.and_then(|session| session.back);
        let known = own.into_iter().chain(tree.entered_from.clone());
        let mut usable = known.filter(|back| back.is_dir() && !back.starts_with(&tree.path));
        Ok(usable.next().unwrap_or_else(|| self.place.root()))
    }

    /// The session is in main again, if it was in this tree.
    pub fn note_left(&self, tree: &Tree) -> Result<(), TreeError> {
        let Some(name) = self.actor() else {
            return Ok(());
        };
        let session = self.engine.look(|tx| tx.session(name))?;
        match session.is_some_and(|session| session.tree.as_ref() == Some(&tree.name)) {
            true => self.note_place(None),
            false => Ok(()),
        }
    }

    /// Notes where the caller's session is. Whoever has none is remembered by the tree alone.
    fn note_place(&self, place: Option<(TreeName, PathBuf)>) -> Result<(), TreeError> {
        let Some(name) = self.actor() else {
            return Ok(());
        };
        self.engine.change(Some(name), Durability::Process, |tx| {
            let known = tx.session(name)?.filter(|known| known.ended_at.is_none());
            let session = match known {
                Some(session) => session,
                None => {
                    // Nobody lives under that name, so nobody has it.
                    let Ok((session, change)) =
                        session_rules::register(None, name.clone(), None, tx.now())
                    else {
                        return Ok(());
                    };
                    tx.record(Some(name), change)?;
                    session
                }
            };
            if let Some((_, change)) = session_rules::entered(&session, place, tx.now()) {
                tx.record(Some(name), change)?;
            }
            Ok(())
        })
    }

    /// Where whoever is called so works: a session where its claims led it; one that had not registered when it claimed a
    /// task, in the tree of that.
    pub fn directory_of_name(&self, name: &SessionName) -> Result<PathBuf, TreeError> {
        let session = self.engine.look(|tx| tx.session(name))?;
        if let Some(session) = session.as_ref().filter(|session| session.tree.is_some()) {
            return self.directory_of(session);
        }
        let claimed = |task: &Task| task.lease.as_ref().map(|lease| lease.acquired_at);
        let was_unknown = |task: &Task| {
            let registered = session.as_ref().map(|session| session.started_at);
            registered.is_none_or(|at| claimed(task).is_some_and(|claimed| claimed < at))
        };
        let held = self.engine.look(|tx| held(tx, name))?.into_iter();
        let held = held.filter(|task| task.worktree.is_some() && was_unknown(task));
        let newest = held.max_by_key(claimed);
        match newest.and_then(|task| task.worktree) {
            Some(tree) => Ok(self.site(&self.named(Some(tree.as_str()))?)?.path),
            None => Ok(self.place.root()),
        }
    }

    /// Where a session works: in its tree, or in the main checkout. A tree that is gone is refused, never replaced.
    pub fn directory_of(&self, session: &Session) -> Result<PathBuf, TreeError> {
        match &session.tree {
            Some(name) => {
                let tree = self.named(Some(name.as_str()))?;
                Ok(self.site(&tree)?.path)
            }
            None => Ok(self.place.root()),
        }
    }

    /// Leaves a tree and keeps it; a short-lived one without changes goes.
    pub fn leave(&self, name: Option<&str>) -> Result<Exited, TreeError> {
        let view = self.look(name)?;
        let has_landed = view.tree.status == TreeStatus::Landed || view.landed.is_some();
        let unchanged = view.dirty == Dirty::Known(false) && (view.ahead == Some(0) || has_landed);
        if view.tree.scratch_for.is_some() && unchanged {
            return self.leave_and_remove(Some(view.tree.name.as_str()), RemoveRequest::default());
        }
        Ok(Exited {
            tree: view.tree,
            outcome: "left",
            removed: None,
        })
    }

    /// Leaves a tree and sets it aside.
    pub fn leave_and_keep(&self, name: Option<&str>) -> Result<Exited, TreeError> {
        Ok(Exited {
            tree: self.keep(name)?.tree,
            outcome: "kept",
            removed: None,
        })
    }

    /// Leaves a tree and removes it.
    pub fn leave_and_remove(
        &self,
        name: Option<&str>,
        request: RemoveRequest,
    ) -> Result<Exited, TreeError> {
        self.require_own(&self.named(name)?)?;
        let request = RemoveRequest {
            leaving: true,
            ..request
        };
        let removed = self.remove(name, &request)?;
        Ok(Exited {
            tree: removed.tree.clone(),
            outcome: "removed",
            removed: Some(removed),
        })
    }
}
