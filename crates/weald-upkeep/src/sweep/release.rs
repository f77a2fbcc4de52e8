//! The end of a session, and of a stay in a tree: whether its lock goes with it.

use serde::{Deserialize, Serialize};
use weald_core::name::{SessionName, TreeName};
use weald_core::objections::Contents;
use weald_core::store::Durability;
use weald_core::sweep::{EndFacts, LockStays, is_own_lock, why_lock_stays};
use weald_core::tree::{Tree, TreeLock};
use weald_core::tree_rules::{self, TreeInput};

use super::locks::tasks_in;
use crate::Upkeep;
use weald_trees::TreeError;

/// What became of a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockAtEnd {
    pub tree: TreeName,
    /// Whether it is unlocked now.
    pub unlocked: bool,
    /// Why it stays locked.
    pub why: Vec<LockStays>,
}

impl Upkeep<'_> {
    /// Opens the locks of a session that ends, where everything is over; without one, of a person who leaves a tree.
    /// Answers every lock that is the session's, or on its tree, or on the tree that the shell is in.
    pub fn release_on_end(
        &self,
        session: Option<&SessionName>,
    ) -> Result<Vec<LockAtEnd>, TreeError> {
        let place = match session {
            Some(name) => self.trees.engine.look(|tx| tx.session(name))?,
            None => None,
        };
        let place = place.and_then(|session| session.tree);
        let mut found = Vec::new();
        for tree in self.trees.records()?.into_iter().filter(Tree::is_live) {
            let Some(lock) = tree.locked.clone() else {
                continue;
            };
            let is_its = session.is_some_and(|name| lock.owner == name.as_str());
            if is_its || place.as_ref() == Some(&tree.name) || self.is_in(&tree) {
                found.push(self.release_lock(tree, &lock, session)?);
            }
        }
        Ok(found)
    }

    fn is_in(&self, tree: &Tree) -> bool {
        self.trees.host.directory.starts_with(&tree.path)
    }

    fn release_lock(
        &self,
        tree: Tree,
        lock: &TreeLock,
        session: Option<&SessionName>,
    ) -> Result<LockAtEnd, TreeError> {
        let tasks = self.trees.engine.look(|tx| tasks_in(tx, &tree))?;
        let nothing = Contents::Known {
            staged: 0,
            unstaged: 0,
            untracked: 0,
            commits: 0,
            elsewhere: false,
        };
        let mut facts = EndFacts {
            is_own: is_own_lock(lock, session.map(SessionName::as_str)),
            is_in_tree: self.is_in(&tree),
            tasks,
            contents: nothing,
        };
        // Looking into a tree costs something; what stays anyway is not looked into.
        if why_lock_stays(&facts).is_empty() {
            facts.contents = self.trees.contents_of(&tree)?;
        }
        let mut why = why_lock_stays(&facts);
        if why.is_empty() && !self.open_lock(&tree, lock)? {
            why.push(LockStays::NotOwn);
        }
        Ok(LockAtEnd {
            unlocked: why.is_empty(),
            tree: tree.name,
            why,
        })
    }

    /// Takes away exactly this lock; false if another one is there by now.
    fn open_lock(&self, tree: &Tree, lock: &TreeLock) -> Result<bool, TreeError> {
        let opened = self.trees.engine.change(None, Durability::Process, |tx| {
            let current = tx.tree_by_id(tree.id)?;
            let Some(current) = current.filter(|tree| tree.locked.as_ref() == Some(lock)) else {
                return Ok(None);
            };
            let (opened, change) = tree_rules::decide(&current, TreeInput::Unlock, tx.now())?;
            // It follows from the end, and is no operation that anybody takes back.
            let change = change.part_of(Some(tx.last_seq()?));
            tx.record(self.trees.actor(), change)?;
            Ok::<_, TreeError>(Some(opened))
        })?;
        match opened {
            Some(tree) => self.trees.show_lock(&tree).map(|()| true),
            None => Ok(false),
        }
    }
}
