//! Locks of trees: weald's own on record, those of tasks and runs, and what git shows of them.

use weald_core::id::TaskId;
use weald_core::name::TreeName;
use weald_core::store::{Durability, EventFilter};
use weald_core::tree::{Tree, TreeKind, TreeLock};
use weald_core::tree_rules::TreeInput;

use super::{TreeError, Trees, at};

/// What git shows as the reason of the lock that every sealed tree has.
pub const SEALED: &str = "sealed by weald";

/// How the reason of a lock ends that only a run holds.
pub(super) const RUNS: &str = " runs in it";

impl Trees<'_> {
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

    /// Who locks: the session, else the user.
    fn who(&self) -> String {
        let user = || {
            let user = self.host.variable("USER");
            let user = user.map(|user| user.to_string_lossy().into_owned());
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
        let name = tree.registration_name();
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

    /// A lock that somebody set with git.
    pub fn foreign_lock(&self, tree: &Tree) -> Option<String> {
        let name = tree.registration.as_deref()?;
        let reason = self.registrations().read(name)?.locked?;
        (!is_own_lock(tree, &reason)).then_some(reason)
    }
}

/// What `git worktree list` shows as the reason.
pub fn locked_text(tree: &Tree) -> Option<String> {
    match (&tree.locked, tree.kind) {
        (Some(lock), _) => Some(format!("{}: {}", lock.owner, lock.reason)),
        (None, TreeKind::Sealed) => Some(SEALED.to_owned()),
        (None, TreeKind::Linked) => None,
    }
}

/// Why a profile locks the worktree of a task.
pub(crate) fn task_lock(task: &TaskId) -> String {
    format!("task {task}")
}

/// Whether a tree is locked for its task, and by nobody else.
pub fn has_task_lock(tree: &Tree) -> bool {
    let own = tree.task.as_ref().map(task_lock);
    let lock = tree.locked.as_ref().map(|lock| &lock.reason);
    own.is_some() && lock == own.as_ref()
}

/// Whether what git shows as the reason of a tree's lock is weald's: the lock on record, the one that every sealed tree
/// has, or that of a run.
pub fn is_own_lock(tree: &Tree, reason: &str) -> bool {
    reason == SEALED || reason.ends_with(RUNS) || locked_text(tree).is_some_and(|own| own == reason)
}
