//! Setting a tree aside, and locking it.

use weald_core::landing::LandingStatus;
use weald_core::name::TreeName;
use weald_core::store::{Durability, EventFilter};
use weald_core::tree::{Tree, TreeLock};
use weald_core::tree_rules::TreeInput;

use super::building::locked_text;
use super::{TreeError, TreeView, Trees, at};

/// What git shows as the reason of the lock that every sealed tree has.
pub const SEALED: &str = "sealed by weald";

impl Trees<'_> {
    /// Sets a tree aside: no clean-up takes it.
    pub fn keep(&self, name: Option<&str>) -> Result<TreeView, TreeError> {
        self.require_own(&self.named(name)?)?;
        let view = self.look(name)?;
        let tree = self.decide(&view.tree, Durability::Process, TreeInput::Keep)?;
        Ok(TreeView { tree, ..view })
    }

    /// Takes that back: clean-up may take it again.
    pub fn unkeep(&self, name: Option<&str>) -> Result<TreeView, TreeError> {
        let tree = self.named(name)?;
        self.require_own(&tree)?;
        let all = self.engine.look(|tx| tx.landings_of(&tree.name))?;
        let landed = all.iter().any(|one| {
            one.tree_id == tree.id
                && one.status == LandingStatus::Landed
                && one.reverts.is_none()
                && one.reverted_by.is_none()
        });
        let tree = self.decide(&tree, Durability::Process, TreeInput::Unkeep { landed })?;
        Ok(self.view(tree))
    }

    /// Locks a tree: nobody removes it.
    pub fn lock(&self, name: Option<&str>, reason: &str, force: bool) -> Result<Tree, TreeError> {
        let tree = self.named(name)?;
        self.require_own(&tree)?;
        self.refuse_replaced(&tree)?;
        self.require_own_lock(&tree, force)?;
        let lock = TreeLock {
            owner: self.who(),
            reason: reason.to_owned(),
        };
        let tree = self.decide(&tree, Durability::Process, TreeInput::Lock(lock))?;
        self.show_lock(&tree)?;
        Ok(tree)
    }

    /// Takes the lock away; answers which one that was.
    pub fn unlock(
        &self,
        name: Option<&str>,
        force: bool,
    ) -> Result<(Tree, Option<TreeLock>), TreeError> {
        let tree = self.named(name)?;
        self.require_own(&tree)?;
        self.require_own_lock(&tree, force)?;
        let was = tree.locked.clone();
        let tree = self.decide(&tree, Durability::Process, TreeInput::Unlock)?;
        self.show_lock(&tree)?;
        Ok((tree, was))
    }

    /// What took a tree's place is nothing to be kept, locked or shown as the tree.
    pub(crate) fn refuse_replaced(&self, tree: &Tree) -> Result<(), TreeError> {
        match self.opened(tree) {
            Err(error @ TreeError::Replaced { .. }) => Err(error),
            _ => Ok(()),
        }
    }

    /// Who locks: the session, else the user.
    fn who(&self) -> String {
        let user = || {
            let variable = self
                .host
                .environment
                .iter()
                .find(|(name, _)| name == "USER");
            let user = variable.map(|(_, value)| value.to_string_lossy().into_owned());
            user.filter(|user| !user.is_empty())
                .unwrap_or_else(|| "somebody".to_owned())
        };
        self.actor().map_or_else(user, ToString::to_string)
    }

    /// No session takes another one's lock away by accident. Who has no session is a person, and may.
    fn require_own_lock(&self, tree: &Tree, force: bool) -> Result<(), TreeError> {
        match (&tree.locked, self.actor()) {
            (Some(lock), Some(actor)) if lock.owner != actor.as_str() && !force => {
                Err(TreeError::Locked {
                    name: tree.name.clone(),
                    lock: lock.clone(),
                })
            }
            _ => Ok(()),
        }
    }

    /// Lets git show that a tree is not locked any more; one that was locked again since is shown as that.
    pub fn show_no_lock(&self, name: &TreeName) -> Result<(), TreeError> {
        match self.record(name)?.filter(Tree::is_live) {
            Some(tree) => self.show_lock(&tree),
            None => Ok(()),
        }
    }

    /// Lets git show the lock.
    pub fn show_lock(&self, tree: &Tree) -> Result<(), TreeError> {
        let name = tree.registration.as_deref().unwrap_or(tree.name.as_str());
        let registrations = self.registrations();
        let text = locked_text(tree);
        registrations
            .set_locked(name, text.as_deref())
            .map_err(at(&registrations.directory(name)))
    }

    /// Whether what git shows is the last lock of a tree that is open by now: whoever opened it was cut short.
    pub fn was_lock(&self, tree: &Tree, shown: &str) -> bool {
        if tree.locked.is_some() || shown == SEALED {
            return false;
        }
        let filter = EventFilter {
            tree: Some(tree.name.clone()),
            ..EventFilter::default()
        };
        let log = self.engine.look(|tx| tx.events(&filter));
        let before = log.unwrap_or_default().into_iter().rev();
        let mut before = before.filter_map(|event| event.after.tree);
        let locked = before.find(|before| before.id == tree.id && before.locked.is_some());
        locked.is_some_and(|before| locked_text(&before).as_deref() == Some(shown))
    }
}
