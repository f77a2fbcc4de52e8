//! What `doctor` does about its findings.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use weald_core::store::Durability;
use weald_core::tree::{Tree, TreeKind};
use weald_core::tree_rules::TreeInput;
use weald_git::{Door, DoorError, RefChange};

use super::building::building;
use super::inside::WriteAlternates;
use super::remove::RemoveRequest;
use super::site::{Site, identity_of, pointer_text};
use super::view::peek_head;
use super::{TreeError, Trees, at, delete};
use weald_control::marker::{self, TreeNote};
use weald_control::steps::step;

/// Where a sealed tree borrows objects from.
pub enum Borrowing {
    Here,
    /// Places that are gone, and the vault has what it needs; with what it says.
    Nowhere(Option<Vec<u8>>),
    /// Something that is not weald's to change, in words.
    Odd(String),
}

impl Trees<'_> {
    /// Takes back what a creation left: the building, the registration, and the branch that came with it.
    pub fn clear_creation(&self, tree: &Tree) -> Result<(), TreeError> {
        let building = building(tree);
        if building.symlink_metadata().is_ok() {
            delete(&building).map_err(at(&building))?;
        }
        let index = self.new_index(tree);
        if index.symlink_metadata().is_ok() {
            fs::remove_file(&index).map_err(at(&index))?;
        }
        let registrations = self.registrations();
        for known in registrations.list().unwrap_or_default() {
            if TreeNote::of(&known).is_none_or(|note| note.tree != tree.id) {
                continue;
            }
            let (name, base) = (format!("refs/heads/{}", tree.branch), &tree.base.commit);
            // At its base it holds nothing of anybody's.
            if self.branch_tip(&tree.branch)?.as_ref() == Some(base) {
                let gone = RefChange::delete(name, base);
                self.update_main(&[gone], "weald: not made")?;
            }
            step("repair.branch_gone");
            registrations
                .remove(&known.name)
                .map_err(at(&registrations.directory(&known.name)))?;
        }
        Ok(())
    }

    /// The directory of a tree in the trash, by what it is.
    pub fn in_trash(&self, tree: &Tree) -> Option<PathBuf> {
        let identity = tree.identity?;
        let directory = self.trash_directory(&tree.path).ok()?;
        let entries = fs::read_dir(directory).ok()?;
        entries
            .flatten()
            .map(|entry| entry.path())
            .find(|path| identity_of(path).ok() == Some(identity))
    }

    pub fn finish_removal(&self, tree: &Tree, path: PathBuf) -> Result<(), TreeError> {
        let trash = self.trash_at(tree, path, self.now()?, None)?;
        self.register_trash(tree, &trash)?;
        step("repair.unregistered");
        self.engine.change(self.actor(), Durability::Power, |tx| {
            let input = TreeInput::Trashed(Box::new(trash));
            self.record_end(tx, tree, input, &RemoveRequest::default())
        })?;
        Ok(())
    }

    /// Main's branch of a live tree, where it was.
    pub fn reinstate_missing_branch(&self, tree: &Tree) -> Result<(), TreeError> {
        self.reinstate_branch(tree, tree.tip())
    }

    /// Where `doctor` puts what is in the way of a repair: nothing is thrown away for being broken.
    pub fn aside(&self) -> PathBuf {
        self.place.private().join("aside")
    }

    /// Keeps a copy of what a repair writes over; without one nothing is written.
    pub(crate) fn keep_aside(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, TreeError> {
        let folder = self.aside();
        fs::create_dir_all(&folder).map_err(at(&folder))?;
        for number in 1..10_000 {
            let free = folder.join(format!("{name}.{number}"));
            let mut options = fs::OpenOptions::new();
            match options.write(true).create_new(true).open(&free) {
                Ok(mut file) => {
                    file.write_all(bytes).map_err(at(&free))?;
                    return Ok(free);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(at(&free)(error)),
            }
        }
        Err(at(&folder)(io::Error::other("no name is free there")))
    }

    pub fn accept_move(&self, tree: &Tree, path: &Path) -> Result<(), TreeError> {
        let moved = Tree {
            path: path.to_owned(),
            ..tree.clone()
        };
        let identity = identity_of(path)?;
        let registration = self.reinstate_registration(&moved, identity)?;
        step("repair.registered");
        let input = TreeInput::Repaired {
            identity,
            path: path.to_owned(),
            registration: registration.clone(),
        };
        let moved = self.decide(tree, Durability::Process, input)?;
        step("repair.recorded");
        let here = self.common_dir();
        let state = self.host.state.as_deref();
        // The place of a tree that was copied is still the original's.
        if let Some(state) = state
            && marker::other_owner(&tree.path, Some(state), here).is_none()
        {
            marker::unindex(state, &tree.path);
        }
        self.write_markers(&moved)?;
        match moved.kind {
            TreeKind::Sealed => {
                let site = Site::sealed(path);
                let text = String::from_utf8_lossy(&self.alternates(path)).into_owned();
                self.visit(moved.name.as_str(), &site, WriteAlternates { text })?;
            }
            TreeKind::Linked => self.write_linked_pointer(&moved)?,
        }
        Ok(())
    }

    /// The `.git` of a linked tree, as it should be. What it said is kept aside.
    pub fn write_linked_pointer(&self, tree: &Tree) -> Result<(), TreeError> {
        let name = tree.registration_name();
        let text = pointer_text(&self.registrations().directory(name));
        let door = Door::open(&tree.path).map_err(at(&tree.path))?;
        match door.read(".git", 64 * 1024) {
            Ok(old) if old == text.as_bytes() => return Ok(()),
            Ok(old) => drop(self.keep_aside("git-pointer", &old)?),
            Err(DoorError::Absent { .. }) => {}
            Err(error) => return Err(at(&tree.path)(io::Error::other(error.to_string()))),
        }
        weald_control::files::replace(&tree.path.join(".git"), &text).map_err(at(&tree.path))
    }

    /// What the `.git` of a linked tree is instead of a way here: a repository of its own, or the way to another one.
    pub fn other_repository(&self, tree: &Tree) -> Option<String> {
        let door = Door::open(&tree.path).ok()?;
        let pointer = match door.read(".git", 64 * 1024) {
            Ok(pointer) => pointer,
            Err(DoorError::Absent { .. }) => return None,
            Err(error) => return Some(error.to_string()),
        };
        let text = String::from_utf8_lossy(&pointer);
        let named = tree.path.join(text.trim_end().strip_prefix("gitdir: ")?);
        let place = named.canonicalize().ok()?;
        let is_ours = place.starts_with(self.common_dir());
        let lives = place.join("HEAD").symlink_metadata().is_ok();
        (lives && !is_ours).then(|| format!("its .git leads to {}", place.display()))
    }

    /// What is wrong with where a sealed tree borrows from.
    pub fn borrowing(&self, tree: &Tree) -> Borrowing {
        if self.is_borrower(&tree.path, &tree.path) {
            return Borrowing::Here;
        }
        let Ok(door) = Door::open(&tree.path) else {
            return Borrowing::Here;
        };
        let old = match door.read(".git/objects/info/alternates", 16 * 1024) {
            Ok(old) => Some(old),
            Err(DoorError::Absent { .. }) => None,
            Err(error) => return Borrowing::Odd(error.to_string()),
        };
        let text = String::from_utf8_lossy(old.as_deref().unwrap_or_default()).into_owned();
        let objects = tree.path.join(".git/objects");
        let places = text.lines().filter(|line| !line.is_empty());
        let mut places = places.map(|line| objects.join(line));
        if let Some(other) = places.find(|place| place.is_dir()) {
            let other = other.display();
            return Borrowing::Odd(format!("it borrows from {other}, which is there"));
        }
        let head = peek_head(&door).unwrap_or_default();
        let has = |id: &str| self.vault().has_object(id).unwrap_or(false);
        match has(&head) || has(&tree.base.commit) {
            true => Borrowing::Nowhere(old),
            false => Borrowing::Odd("the vault does not have what it was made from".to_owned()),
        }
    }

    /// Points a sealed tree at the vault. What it said is kept aside.
    pub fn borrow_here(
        &self,
        tree: &Tree,
        site: &Site,
        old: Option<&[u8]>,
    ) -> Result<(), TreeError> {
        if let Some(old) = old {
            self.keep_aside("alternates", old)?;
        }
        let text = String::from_utf8_lossy(&self.alternates(&tree.path)).into_owned();
        self.visit(tree.name.as_str(), site, WriteAlternates { text })
    }

    /// Whether a command inside the tree would find this repository.
    pub fn is_findable(&self, tree: &Tree) -> bool {
        match marker::find(&tree.path, self.host.state.as_deref()) {
            Ok(marker::Found::Tree { main, tree: found }) => {
                found == tree.path
                    && self
                        .common_dir()
                        .starts_with(main.canonicalize().unwrap_or(main))
            }
            _ => false,
        }
    }
}
