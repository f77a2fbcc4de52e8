//! The trash: what is in it, bringing a tree back, and emptying it on explicit command.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use weald_core::SignedDuration;
use weald_core::Timestamp;
use weald_core::binding::BindStart;
use weald_core::id::{TaskId, TreeId};
use weald_core::landing::LandingStatus;
use weald_core::store::Durability;
use weald_core::tree::{DirectoryIdentity, Trash, Tree, TreeKind, TreeStatus};
use weald_core::tree_rules::TreeInput;
use weald_git::{Commit, Expected, RefChange, Reference, transfer};
use weald_sandbox::strip_set_id;

use super::privacy::close_to_others;
use super::purging::{going, is_the_tree};
use super::remove::{RemoveRequest, rename};
use super::site::identity_of;
use super::{TreeError, TreeView, Trees, at, decided, delete};
use weald_control::files;
use weald_control::marker::{self, TreeNote};
use weald_control::steps::step;

/// The largest marker that is kept aside; weald's own is a path.
const MARKER_LIMIT: u64 = 1 << 20;

const REPLACED: &str = "another directory took its place in the trash";

/// One thing in the trash.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TrashEntry {
    /// What `restore` wants to hear.
    pub id: TreeId,
    /// What it was called.
    pub name: String,
    pub path: std::path::PathBuf,
    pub branch: String,
    /// The last commit of its HEAD.
    pub tip: Option<String>,
    /// When it came here.
    pub trashed_at: Timestamp,
    /// How large it is, without what links lead to.
    pub bytes: u64,
    /// Whether it is still there.
    pub exists: bool,
}

/// What to delete from the trash for good.
#[derive(Debug, Clone, Copy)]
pub struct PurgeRequest {
    /// Only what has been there for longer.
    pub older_than: SignedDuration,
    /// Whether to do it.
    pub apply: bool,
    /// Also what can't be looked into once more: commits that nobody else has may go with it.
    pub discard: bool,
}

/// What a purge took, or would take.
#[derive(Debug)]
pub struct Purged {
    /// What is old enough, and went if it was to go.
    pub trash: Vec<TrashEntry>,
    /// What is old enough and could not go, each with why.
    pub failed: Vec<(TrashEntry, TreeError)>,
    /// Whether it was taken.
    pub applied: bool,
}

impl Trees<'_> {
    /// What is in the trash, oldest first.
    pub fn trash(&self) -> Result<Vec<TrashEntry>, TreeError> {
        Ok(self.trashed()?.iter().filter_map(entry).collect())
    }

    fn trashed(&self) -> Result<Vec<Tree>, TreeError> {
        let trees = self.records()?;
        let trashed = trees
            .into_iter()
            .filter(|tree| tree.status == TreeStatus::Trashed);
        Ok(trashed.collect())
    }

    /// Brings a tree back.
    pub fn restore(&self, id: TreeId) -> Result<TreeView, TreeError> {
        let unknown = || TreeError::NotInTrash { id: id.to_string() };
        let known = self.engine.look(|tx| tx.tree_by_id(id))?;
        let tree = known.filter(|tree| tree.status == TreeStatus::Trashed);
        let tree = tree.ok_or_else(unknown)?;
        let trash = tree.trash.clone().ok_or_else(unknown)?;
        self.refuse_name_taken(&tree)?;
        if tree.path.symlink_metadata().is_ok() {
            return Err(TreeError::occupied(tree.path));
        }
        if !is_the_tree(&tree, &trash.path) {
            return Err(match trash.path.symlink_metadata() {
                Err(_) => TreeError::Missing {
                    name: tree.name,
                    path: trash.path,
                },
                Ok(_) => TreeError::replaced(&tree, &trash.path, REPLACED),
            });
        }
        self.require_safe_place("tree.path", &tree.path)?;
        if let Some(root) = tree.path.parent() {
            fs::create_dir_all(root).map_err(at(root))?;
        }
        // What can't be closed comes back all the same: nobody could reach it in the trash either.
        let _ = close_to_others(&trash.path, tree.identity);
        strip_set_id(&trash.path).map_err(at(&trash.path))?;
        rename(&trash.path, &tree.path)?;
        step("restore.renamed");
        let restored = self.reinstate(&tree, &trash).inspect_err(|_| {
            let _ = rename(&tree.path, &trash.path);
        })?;
        step("restore.recorded");
        let (restored, _) = self.hold_ports(restored, trash.ports)?;
        self.look_at(restored)
    }

    pub fn refuse_name_taken(&self, tree: &Tree) -> Result<(), TreeError> {
        let trees = self.records()?;
        let taken = |other: &&Tree| {
            other.is_wanted() && (other.name == tree.name || other.branch == tree.branch)
        };
        match trees.iter().find(taken) {
            Some(other) => Err(TreeError::exists(other.clone())),
            None => Ok(()),
        }
    }

    /// A tree whose directory is back: branch, registration, record, binding.
    pub fn reinstate(&self, tree: &Tree, trash: &Trash) -> Result<Tree, TreeError> {
        let identity = identity_of(&tree.path)?;
        if let Some(tip) = trash.branch_tip.as_deref().or(trash.tip.as_deref()) {
            self.reinstate_branch(tree, tip)?;
        }
        step("restore.branched");
        let registration = self.reinstate_registration(tree, identity)?;
        step("restore.registered");
        self.find_again(tree);
        let wanted = trash.task.clone();
        self.engine.change(self.actor(), Durability::Power, |tx| {
            let task = match &wanted {
                Some(id) => tx.task(id)?.filter(|task| task.worktree.is_none()),
                None => None,
            };
            let landings = tx.landings_of(&tree.name)?;
            let last = landings.iter().rfind(|one| {
                one.tree_id == tree.id
                    && one.status == LandingStatus::Landed
                    && one.reverts.is_none()
            });
            let input = TreeInput::Restored {
                identity,
                registration,
                task: None,
                landed: last
                    .filter(|one| one.reverted_by.is_none())
                    .map(|one| one.id),
            };
            let (mut restored, change) = decided(tx, tree, input)?;
            tx.record(self.actor(), change)?;
            if let Some(task) = task {
                restored = self.bind_in(tx, &task, &restored, BindStart::Keep)?.1;
            }
            Ok(restored)
        })
    }

    /// Markers by which commands inside the tree find main.
    pub(crate) fn find_again(&self, tree: &Tree) {
        // A tree without them is there all the same; `doctor` tells.
        let _ = self.write_markers(tree);
    }

    /// The same, for whoever wants to know.
    pub fn write_markers(&self, tree: &Tree) -> Result<(), TreeError> {
        let common_dir = self.common_dir();
        if let Some(root) = tree.path.parent() {
            self.mark_again(root)?;
        }
        if let Some(state) = &self.host.state {
            let _ = marker::index(state, &tree.path, common_dir);
        }
        Ok(())
    }

    /// The marker in a folder that has one. What else it said, perhaps somebody's, is kept aside.
    fn mark_again(&self, root: &Path) -> Result<(), TreeError> {
        let common_dir = self.common_dir();
        let file = root.join(marker::MARKER);
        if !file.symlink_metadata().is_ok_and(|found| found.is_file()) {
            return Ok(());
        }
        let old = files::read_small_bytes(&file, MARKER_LIMIT).map_err(at(&file))?;
        let old = old.unwrap_or_default();
        if old.trim_ascii_end() != common_dir.as_os_str().as_bytes() {
            self.keep_aside("weald-marker", &old)?;
        }
        marker::mark(root, common_dir).map_err(at(root))
    }

    /// The branch, if its name is free.
    pub(crate) fn reinstate_branch(&self, tree: &Tree, tip: &str) -> Result<(), TreeError> {
        if self.branch_tip(&tree.branch)?.is_some() {
            return Ok(());
        }
        let main = self.repository();
        let haves: Vec<_> = self.target.iter().map(|(_, tip)| tip.as_str()).collect();
        let kept = match tree.kind == TreeKind::Sealed || !main.has_object(tip)? {
            true => Some(transfer(
                self.vault().path(),
                main.common_dir(),
                &[tip],
                &haves,
            )?),
            false => None,
        };
        step("restore.transferred");
        let change = RefChange::set(format!("refs/heads/{}", tree.branch), tip, Expected::Absent);
        self.update_main(&[change], &format!("weald: restore {}", tree.name))?;
        drop(kept);
        Ok(())
    }

    /// The registration: made again, or pointed at the tree again.
    pub fn reinstate_registration(
        &self,
        tree: &Tree,
        identity: DirectoryIdentity,
    ) -> Result<String, TreeError> {
        let registrations = self.registrations();
        let name = tree.registration_name();
        let ours = registrations
            .read(name)
            .filter(|known| TreeNote::of(known).is_some_and(|note| note.tree == tree.id));
        let Some(ours) = ours else {
            return self.register(tree, identity, None);
        };
        let note = TreeNote {
            tree: tree.id,
            identity,
        };
        // A linked tree's HEAD is the person's own: as it was before the trash, or as it is.
        let before = tree.trash.as_ref().and_then(|trash| trash.head.as_deref());
        let own = match (tree.kind, before) {
            (TreeKind::Linked, Some(text)) => self.head_again(tree, text)?,
            (TreeKind::Linked, None) => ours.head,
            (TreeKind::Sealed, _) => None,
        };
        let head =
            own.unwrap_or_else(|| Reference::Symbolic(format!("refs/heads/{}", tree.branch)));
        let directory = registrations.directory(name);
        // Outside of the trash the lock of a linked tree may be somebody else's.
        let locked = match (super::locking::locked_text(tree), tree.kind, &tree.trash) {
            (None, TreeKind::Linked, None) => ours.locked,
            (own, ..) => own,
        };
        registrations
            .point(name, &tree.path, &head, &note.to_text())
            .and_then(|()| registrations.set_locked(name, locked.as_deref()))
            .map_err(at(&directory))?;
        Ok(name.to_owned())
    }

    /// A linked tree's HEAD from before the trash; detached if its branch holds something else by now.
    fn head_again(&self, tree: &Tree, text: &str) -> Result<Option<Reference>, TreeError> {
        let head = Reference::parse(text.trim_end());
        let (Some(Reference::Symbolic(name)), Some(trash)) = (&head, &tree.trash) else {
            return Ok(head);
        };
        let held = self.repository().resolve(name)?;
        let tip = trash.tip.as_deref().and_then(Commit::parse);
        match (held, tip) {
            (Some(held), Some(tip)) if held != tip => Ok(Some(Reference::Direct(tip))),
            _ => Ok(head),
        }
    }

    /// Empties the trash of what is older; only with `apply`. One that can't go keeps no other from going.
    pub fn purge(&self, request: &PurgeRequest) -> Result<Purged, TreeError> {
        if request.apply {
            self.reserve().release();
        }
        let now = self.now()?;
        let (mut taken, mut failed) = (Vec::new(), Vec::new());
        for tree in self.trashed()? {
            let Some(found) = entry(&tree) else {
                continue;
            };
            if now.duration_since(found.trashed_at) < request.older_than {
                continue;
            }
            if request.apply
                && let Err(error) = self.purge_one(&tree, &found, request)
            {
                failed.push((found, error));
                continue;
            }
            taken.push(found);
        }
        if request.apply {
            self.reserve().regain();
        }
        Ok(Purged {
            trash: taken,
            failed,
            applied: request.apply,
        })
    }

    fn purge_one(
        &self,
        tree: &Tree,
        found: &TrashEntry,
        request: &PurgeRequest,
    ) -> Result<(), TreeError> {
        self.require_in_trash(tree, &found.path)?;
        let going = going(tree, &found.path);
        // What is there now must be what was put there.
        for place in [&found.path, &going] {
            if place.symlink_metadata().is_ok() && !is_the_tree(tree, place) {
                return Err(TreeError::replaced(tree, place, REPLACED));
            }
        }
        if found.exists && !request.discard {
            self.take_in_from_trash(tree, &found.path)?;
        }
        let begins = || TreeInput::RemoveBegins { worker: self.me() };
        // On a disk so full that nothing can be announced the files go first: that makes the room for the records.
        let announced = self.decide(tree, Durability::Process, begins());
        let tree = match &announced {
            Err(TreeError::Store(error)) if error.is_full() => tree,
            _ => &announced?,
        };
        step("purge.announced");
        if found.exists {
            if let Some(state) = &self.host.state {
                marker::forget(state, &found.path);
            }
            // From here on it is not the tree any more, also for whoever finds half of it.
            rename(&found.path, &going)?;
        }
        step("purge.renamed");
        if going.exists() {
            delete(&going).map_err(at(&going))?;
        }
        self.delete_home_layer(tree)?;
        step("purge.deleted");
        self.unregister(tree)?;
        step("purge.unregistered");
        let tree = match tree.removing {
            true => tree,
            false => &self.decide(tree, Durability::Process, begins())?,
        };
        self.engine.change(self.actor(), Durability::Power, |tx| {
            self.record_end(tx, tree, TreeInput::Removed, &RemoveRequest::default())
        })?;
        Ok(())
    }

    /// How a task's tree was dealt with at the end, on both records.
    pub fn closeout(&self, id: &TaskId, action: &str, reason: &str) -> Result<(), TreeError> {
        self.engine.change(self.actor(), Durability::Process, |tx| {
            let task = self.own_task(tx, id)?;
            let closeout = weald_core::task::Closeout {
                action: action.to_owned(),
                reason: reason.to_owned(),
                at: tx.now(),
            };
            let name = task.worktree.clone().or(task.last_worktree.clone());
            let input = weald_core::task_rules::TaskInput::Closeout(closeout.clone());
            let (_, change) = weald_core::task_rules::decide(&task, input, tx.now())
                .map_err(weald_control::tasks::TaskError::from)?;
            tx.record(self.actor(), change)?;
            let tree = match name {
                Some(name) => super::called(tx, &name)?,
                None => None,
            };
            if let Some(tree) = tree {
                let (_, change) = decided(tx, &tree, TreeInput::Closeout(closeout))?;
                tx.record(self.actor(), change)?;
            }
            Ok(())
        })
    }
}

fn entry(tree: &Tree) -> Option<TrashEntry> {
    let trash = tree.trash.as_ref()?;
    let exists = trash.path.symlink_metadata().is_ok();
    Some(TrashEntry {
        id: tree.id,
        name: tree.name.to_string(),
        path: trash.path.clone(),
        branch: tree.branch.clone(),
        tip: trash.tip.clone(),
        trashed_at: trash.at,
        bytes: size_of(&trash.path),
        exists,
    })
}

/// How long files are; links are not followed, and of folders deeper than a path nothing is counted.
fn size_of(path: &Path) -> u64 {
    let (mut open, mut bytes) = (vec![path.to_owned()], 0);
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(found) if found.is_dir() => open.push(entry.path()),
                Ok(found) => bytes += found.len(),
                Err(_) => {}
            }
        }
    }
    bytes
}
