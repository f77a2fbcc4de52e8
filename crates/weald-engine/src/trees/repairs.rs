//! What `doctor` does about its findings.

use std::fs;
use std::path::{Path, PathBuf};

use weald_core::store::Durability;
use weald_core::tree::{Trash, Tree, TreeKind};
use weald_core::tree_rules::TreeInput;
use weald_git::{Door, Expected, RefChange, transfer, update_refs};

use super::building::{building, identity_of};
use super::inside::Job;
use super::remove::RemoveRequest;
use super::visit::{Access, Site, pointer_text};
use super::{TreeError, Trees, at};
use crate::marker::{self, TreeNote};

impl Trees<'_> {
    /// Takes back what a creation left: the building, the registration, and the branch that came with it.
    pub(super) fn clear_creation(&self, tree: &Tree) -> Result<(), TreeError> {
        let building = building(tree);
        if building.symlink_metadata().is_ok() {
            fs::remove_dir_all(&building).map_err(at(&building))?;
        }
        let registrations = self.registrations();
        for known in registrations.list().unwrap_or_default() {
            if TreeNote::of(&known).is_none_or(|note| note.tree != tree.id) {
                continue;
            }
            let full = format!("refs/heads/{}", tree.branch);
            let held = self.place.repository().resolve(&full)?;
            // At its base it holds nothing of anybody's.
            if held.is_some_and(|held| held.as_str() == tree.base.commit) {
                let gone = RefChange {
                    name: full,
                    new: None,
                    expected: Expected::Holds(tree.base.commit.clone()),
                };
                update_refs(
                    self.place.repository().common_dir(),
                    &[gone],
                    "weald: not made",
                )?;
            }
            registrations
                .remove(&known.name)
                .map_err(at(&registrations.directory(&known.name)))?;
        }
        Ok(())
    }

    /// The directory of a tree in the trash, by what it is.
    pub(super) fn in_trash(&self, tree: &Tree) -> Option<PathBuf> {
        let identity = tree.identity?;
        let directory = self.trash_directory(&tree.path).ok()?;
        let entries = fs::read_dir(directory).ok()?;
        entries
            .flatten()
            .map(|entry| entry.path())
            .find(|path| identity_of(path).ok() == Some(identity))
    }

    pub(super) fn finish_removal(&self, tree: &Tree, path: PathBuf) -> Result<(), TreeError> {
        let full = format!("refs/heads/{}", tree.branch);
        let branch_tip = self.place.repository().resolve(&full)?;
        let trash = Trash {
            path,
            at: self.now()?,
            tip: tree.head.clone().or_else(|| Some(tree.base.commit.clone())),
            branch_tip: branch_tip.map(|tip| tip.as_str().to_owned()),
            snapshot: None,
            task: tree.task.clone(),
            head: self.registered_head(tree),
            ports: tree.ports,
        };
        match tree.kind {
            TreeKind::Sealed => self.unregister(tree)?,
            TreeKind::Linked => self.register_in_trash(tree, &trash)?,
        }
        self.engine.change(self.actor(), Durability::Power, |tx| {
            let input = TreeInput::Trashed(Box::new(trash));
            self.record_end(tx, tree, input, &RemoveRequest::default())
        })?;
        Ok(())
    }

    /// Main's branch of a live tree, where it was.
    pub(crate) fn reinstate_missing_branch(&self, tree: &Tree) -> Result<(), TreeError> {
        let full = format!("refs/heads/{}", tree.branch);
        if self.place.repository().resolve(&full)?.is_some() {
            return Ok(());
        }
        let tip = tree
            .head
            .clone()
            .unwrap_or_else(|| tree.base.commit.clone());
        let main = self.place.repository().common_dir();
        let kept = match self.place.repository().has_object(&tip)? {
            true => None,
            false => Some(transfer(self.vault().path(), main, &[&tip], &[])?),
        };
        let back = RefChange {
            name: full,
            new: Some(tip),
            expected: Expected::Absent,
        };
        update_refs(main, &[back], &format!("weald: restore {}", tree.name))?;
        drop(kept);
        Ok(())
    }

    /// Where a tree's directory is now, by what it is.
    pub(super) fn moved_to(&self, tree: &Tree, places: &[PathBuf]) -> Option<PathBuf> {
        let identity = tree.identity?;
        let is_it = |path: &Path| identity_of(path).ok() == Some(identity);
        let name = tree.path.file_name()?;
        let root_name = tree.path.parent()?.file_name()?;
        let main = self.place.root();
        let beside = main
            .parent()
            .map(|parent| parent.join(root_name).join(name));
        let inside = Some(main.join(root_name).join(name));
        let mut candidates: Vec<PathBuf> = beside.into_iter().chain(inside).collect();
        for place in places {
            candidates.push(place.clone());
            candidates.push(place.join(name));
        }
        let mut folders: Vec<PathBuf> = tree
            .path
            .ancestors()
            .skip(1)
            .take(2)
            .map(Path::to_owned)
            .collect();
        folders.extend(main.parent().map(Path::to_owned));
        folders.extend(main.parent().map(|parent| parent.join(root_name)));
        for folder in folders {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            candidates.extend(entries.map(|entry| entry.path()).take(10_000));
        }
        candidates
            .into_iter()
            .find(|path| is_it(path))?
            .canonicalize()
            .ok()
    }

    pub(super) fn accept_move(&self, tree: &Tree, path: &Path) -> Result<(), TreeError> {
        let moved = Tree {
            path: path.to_owned(),
            ..tree.clone()
        };
        let identity = identity_of(path)?;
        let registration = self.reinstate_registration(&moved, identity)?;
        let input = TreeInput::Repaired {
            identity,
            path: path.to_owned(),
            registration: registration.clone(),
        };
        let moved = self.decide(tree, Durability::Process, input)?;
        if let Some(state) = &self.host.state {
            marker::unindex(state, &tree.path);
        }
        let root = path.parent().unwrap_or(path);
        if root.join(marker::MARKER).exists() {
            marker::mark(root, self.place.repository().common_dir()).map_err(at(root))?;
        }
        self.find_again(&moved);
        match moved.kind {
            TreeKind::Sealed => {
                let site = Site {
                    path: path.to_owned(),
                    git_dir: path.join(".git"),
                    kind: moved.kind,
                };
                let text = String::from_utf8_lossy(&self.alternates(path)).into_owned();
                let job = Job::WriteAlternates { text };
                self.do_inside(moved.name.as_str(), &site, Access::Write, job)?;
            }
            TreeKind::Linked => self.write_linked_pointer(&moved)?,
        }
        Ok(())
    }

    /// The `.git` of a linked tree, as it should be.
    pub(super) fn write_linked_pointer(&self, tree: &Tree) -> Result<(), TreeError> {
        let name = tree.registration.as_deref().unwrap_or(tree.name.as_str());
        let text = pointer_text(&self.registrations().directory(name));
        crate::files::replace(&tree.path.join(".git"), &text).map_err(at(&tree.path))
    }

    /// Whether a sealed tree's alternates lead to this vault.
    pub(super) fn borrows_from_here(&self, tree: &Tree) -> bool {
        let Ok(door) = Door::open(&tree.path) else {
            return true;
        };
        let Ok(text) = door.read(".git/objects/info/alternates", 16 * 1024) else {
            return false;
        };
        let text = String::from_utf8_lossy(&text).into_owned();
        let objects = tree.path.join(".git/objects");
        let vault = self.vault().objects().canonicalize().ok();
        text.lines()
            .any(|line| vault.is_some() && objects.join(line).canonicalize().ok() == vault)
    }

    /// Whether a command inside the tree would find this repository.
    pub(super) fn is_findable(&self, tree: &Tree) -> bool {
        match marker::find(&tree.path, self.host.state.as_deref()) {
            Ok(marker::Found::Tree { main, tree: found }) => {
                found == tree.path
                    && self
                        .place
                        .repository()
                        .common_dir()
                        .starts_with(main.canonicalize().unwrap_or(main))
            }
            _ => false,
        }
    }
}
