//! What becomes of a removed tree's registration in main.

use weald_core::tree::{Trash, Tree, TreeKind};
use weald_git::{Commit, Expected, RefChange, Reference, update_refs};

use crate::{TreeError, Trees, at};
use weald_control::marker::{self, TreeNote};
use weald_control::steps::step;

/// What git shows as the reason of the lock of a linked tree in the trash.
pub const IN_TRASH: &str = "in weald's trash";

impl Trees<'_> {
    /// What a linked tree's HEAD says, word for word.
    pub(crate) fn registered_head(&self, tree: &Tree) -> Option<String> {
        let name = tree
            .registration
            .as_deref()
            .filter(|_| tree.kind == TreeKind::Linked)?;
        let head = self.registrations().read(name)?.head?;
        Some(head.to_text())
    }

    pub fn unregister(&self, tree: &Tree) -> Result<(), TreeError> {
        let registrations = self.registrations();
        let name = tree.registration_name();
        let is_ours = registrations
            .read(name)
            .and_then(|known| TreeNote::of(&known))
            .is_some_and(|note| note.tree == tree.id);
        if is_ours {
            registrations
                .remove(name)
                .map_err(at(&registrations.directory(name)))?;
        }
        if let Some(state) = &self.host.state {
            marker::unindex(state, &tree.path);
        }
        Ok(())
    }

    /// What becomes of the registration of a tree that lies in the trash.
    pub(crate) fn register_trash(&self, tree: &Tree, trash: &Trash) -> Result<(), TreeError> {
        match tree.kind {
            TreeKind::Sealed => self.unregister(tree),
            TreeKind::Linked => self.register_in_trash(tree, trash),
        }
    }

    /// A linked tree's index and HEAD are in its registration, so that stays, detached and locked.
    pub fn register_in_trash(&self, tree: &Tree, trash: &Trash) -> Result<(), TreeError> {
        let registrations = self.registrations();
        let name = tree.registration_name();
        let head = trash.tip.as_deref().and_then(Commit::parse);
        let (Some(head), Some(identity)) = (head, tree.identity) else {
            return Ok(());
        };
        self.vault().require(&self.main_refs()?, &[head.as_str()])?;
        let kept = RefChange::set(
            format!("refs/tree/{}/HEAD", tree.id),
            head.as_str().to_owned(),
            Expected::Any,
        );
        update_refs(self.vault().path(), &[kept], "weald: trash")?;
        step("remove.head_kept");
        let note = TreeNote {
            tree: tree.id,
            identity,
        };
        registrations
            .point(name, &trash.path, &Reference::Direct(head), &note.to_text())
            .and_then(|()| registrations.set_locked(name, Some(IN_TRASH)))
            .map_err(at(&registrations.directory(name)))
    }
}
