//! Whether a tree is the caller's to work in, where its role asks for that.

use weald_core::event::EventKind;
use weald_core::name::SessionName;
use weald_core::role::{Role, Ties};
use weald_core::store::{EventFilter, Read, StoreError};
use weald_core::tree::Tree;

use super::{TreeError, Trees};

impl Trees<'_> {
    /// Refuses a teammate a tree that is not its own: not of a task that it works on, not where it was led or started,
    /// and not made by it.
    pub fn require_own(&self, tree: &Tree) -> Result<(), TreeError> {
        let role = self.engine.role;
        if role == Role::Lead {
            return Ok(());
        }
        let is_inside = self.place.inside() == Some(tree.path.as_path());
        self.engine.look(|tx| {
            let task = match &tree.task {
                Some(id) => tx.task(id)?,
                None => None,
            };
            let ties = Ties {
                task: task.as_ref(),
                is_home: is_inside || is_home(tx, tree, self.actor())?,
            };
            Ok(role.may_work_in(self.actor(), &tree.name, ties, tx.now())?)
        })
    }
}

/// Whether a session works in a tree, or made it.
fn is_home(
    tx: &(impl Read + ?Sized),
    tree: &Tree,
    session: Option<&SessionName>,
) -> Result<bool, StoreError> {
    let Some(name) = session else {
        return Ok(false);
    };
    let known = tx.session(name)?;
    if known.is_some_and(|known| known.tree.as_ref() == Some(&tree.name)) {
        return Ok(true);
    }
    let log = tx.events(&EventFilter {
        tree: Some(tree.name.clone()),
        ..EventFilter::default()
    })?;
    Ok(log.iter().any(|event| {
        let made = event.after.tree.as_ref().map(|made| made.id);
        event.kind == EventKind::TREE_CREATE_AFTER
            && made == Some(tree.id)
            && event.actor.as_ref() == Some(name)
    }))
}
