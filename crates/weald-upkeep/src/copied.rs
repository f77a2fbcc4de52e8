//! Repositories and trees that were copied or restored: what belongs to whom, and what a person takes over.
//!
//! Nothing here deletes a directory, and nothing of the original is written: what a copy does not take over is only
//! forgotten by the copy's own records.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weald_core::agent_rules::{self, AgentInput};
use weald_core::landing::{LandingInput, Reason};
use weald_core::landing_rules;
use weald_core::maintenance;
use weald_core::queue::QueueInput;
use weald_core::queue_rules;
use weald_core::session_rules;
use weald_core::store::{AgentFilter, Durability, SessionSet, Write};
use weald_core::task_rules::TaskInput;
use weald_core::tree::{Trash, Tree, TreeKind, TreeStatus};
use weald_core::tree_rules::TreeInput;
use weald_git::{Door, set_aside};

use crate::Upkeep;
use weald_control::files::same_directory;
use weald_control::marker::{self, TreeNote};
use weald_control::standing::CopyOf;
use weald_control::tasks::move_in;
use weald_trees::identity_of;
use weald_trees::remove::RemoveRequest;
use weald_trees::{TreeError, at};

/// What a copy took over, and what it forgot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdoptedCopy {
    /// Where the original is, as far as that is known.
    pub original: Option<PathBuf>,
    /// Trees that came along, where they are now.
    pub taken: Vec<PathBuf>,
    /// Trees of the original, where they are; they stay the original's.
    pub forgotten: Vec<PathBuf>,
}

impl Upkeep<'_> {
    /// Makes a copy a repository of its own: it takes over the trees that were copied along, forgets the others, and gets
    /// a new id. Until the id is written it stays a copy, and this can be done again.
    pub fn adopt_copy(&self, copy: &CopyOf) -> Result<AdoptedCopy, TreeError> {
        // Nobody else has what the records name if the original is gone from its place, or is this very directory.
        let here = self.trees.place.repository().common_dir();
        // What can't be looked at may be there.
        let is_there =
            |path: &&Path| path.try_exists().unwrap_or(true) && !same_directory(path, here);
        let original = copy.original.as_deref().filter(is_there);
        let mut adopted = AdoptedCopy {
            original: original.map(Path::to_owned),
            ..AdoptedCopy::default()
        };
        if let Some(original) = original {
            self.end_copied_work(original)?;
            for tree in self.trees.records()? {
                self.take_or_leave(&tree, original, &mut adopted)?;
            }
        }
        let state = self.trees.host.state.as_deref();
        let written = self.trees.place.become_original(state);
        written.map_err(at(self.trees.place.private()))?;
        Ok(adopted)
    }

    /// Takes a tree over, or leaves it to the original.
    fn take_or_leave(
        &self,
        tree: &Tree,
        original: &Path,
        adopted: &mut AdoptedCopy,
    ) -> Result<(), TreeError> {
        if tree.status == TreeStatus::Removed || self.is_from_here(tree) {
            return Ok(());
        }
        if let Some(path) = self.take_copied(tree, original)? {
            adopted.taken.push(path);
            return Ok(());
        }
        let path = tree.trash.as_ref().map_or(&tree.path, |trash| &trash.path);
        adopted.forgotten.push(path.clone());
        self.forget_original(tree)
    }

    /// Ends on record what runs in the original: its processes are not the copy's to watch or to end.
    fn end_copied_work(&self, original: &Path) -> Result<(), TreeError> {
        let place = original.display().to_string();
        self.trees.engine.change(None, Durability::Power, |tx| {
            end_agents(tx, &place)?;
            end_landings(tx, &place)?;
            for known in tx.sessions(SessionSet::Open)? {
                let (_, change) = session_rules::ended(&known, tx.now());
                tx.record(None, change)?;
            }
            Ok::<_, TreeError>(())
        })?;
        // Plans of landings name the original's checkout.
        let plans = weald_landing::plans(self.trees.place.private());
        match plans.symlink_metadata() {
            Ok(_) => set_aside(&plans, &self.trees.aside())
                .map(drop)
                .map_err(at(&plans)),
            Err(_) => Ok(()),
        }
    }

    /// Whether a tree was this repository's before it was copied, or is one already that was taken over.
    fn is_from_here(&self, tree: &Tree) -> bool {
        let here = self.trees.place.repository().common_dir();
        tree.path.starts_with(self.trees.place.root())
            || marker::is_named_for(&tree.path, self.trees.host.state.as_deref(), here)
    }

    /// Takes over the directory that was copied along, if there is one; answers where it is.
    fn take_copied(&self, tree: &Tree, original: &Path) -> Result<Option<PathBuf>, TreeError> {
        if tree.status == TreeStatus::Creating {
            return Ok(None);
        }
        let root = root_of(original);
        let Some(path) = self.counterpart(&root, &tree.path) else {
            return Ok(None);
        };
        match &tree.trash {
            Some(trash) if tree.status == TreeStatus::Trashed => {
                let Some(place) = self.counterpart(&root, &trash.path) else {
                    return Ok(None);
                };
                if !is_another_directory(&place, &trash.path) {
                    return Ok(None);
                }
                self.know_in_trash(tree, path, place.clone())?;
                Ok(Some(place))
            }
            _ if !is_another_directory(&path, &tree.path) => Ok(None),
            _ => {
                self.know_again(tree, &path)?;
                Ok(Some(path))
            }
        }
    }

    /// Where something of the original would be if it was copied with the repository.
    fn counterpart(&self, root: &Path, path: &Path) -> Option<PathBuf> {
        let here = self.trees.place.root();
        if let Ok(below) = path.strip_prefix(root) {
            return Some(here.join(below));
        }
        let (theirs, ours) = (root.parent()?, here.parent()?);
        let below = path.strip_prefix(theirs).ok()?;
        (theirs != ours).then(|| ours.join(below))
    }

    /// Forgets a tree. Its entry in this repository's `worktrees/` goes aside: a linked tree's HEAD and index are in it.
    fn forget_original(&self, tree: &Tree) -> Result<(), TreeError> {
        let registrations = self.trees.registrations();
        for known in registrations.list().unwrap_or_default() {
            if TreeNote::of(&known).is_some_and(|note| note.tree == tree.id) {
                let entry = registrations.directory(&known.name);
                set_aside(&entry, &self.trees.aside()).map_err(at(&entry))?;
            }
        }
        self.trees
            .engine
            .change(self.trees.actor(), Durability::Power, |tx| {
                self.trees
                    .record_end(tx, tree, TreeInput::Forgotten, &RemoveRequest::default())
                    .map(drop)
            })
    }

    /// Takes what is at `path` for the tree whose record says so: a person restored or copied it there.
    pub fn adopt_tree(&self, path: &Path) -> Result<Tree, TreeError> {
        let records = self.trees.records()?;
        let name = path.file_name().and_then(|name| name.to_str());
        let is_lost = |tree: &&Tree| {
            let is_missing = tree.path.symlink_metadata().is_err();
            tree.is_live() && Some(tree.name.as_str()) == name && is_missing
        };
        let in_trash = |tree: &&Tree| {
            let place = tree.trash.as_ref().map(|trash| trash.path.as_path());
            tree.status == TreeStatus::Trashed && place == Some(path)
        };
        let found = records
            .iter()
            .find(|tree| tree.is_live() && tree.path == path);
        let found = found.or_else(|| records.iter().find(in_trash));
        let found = found.or_else(|| records.iter().find(is_lost));
        let tree = found.ok_or_else(|| TreeError::NotFound {
            name: path.display().to_string(),
        })?;
        self.trees.require_ours(tree)?;
        self.require_plausible(tree, path)?;
        match tree.status {
            TreeStatus::Trashed => self.know_in_trash(tree, tree.path.clone(), path.to_owned()),
            _ => self.know_again(tree, path),
        }
    }

    /// What can be checked: it is a directory, the entry in `worktrees/` is this tree's, and it says itself that it is.
    fn require_plausible(&self, tree: &Tree, path: &Path) -> Result<(), TreeError> {
        let replaced = |why: &str| TreeError::Replaced {
            name: tree.name.clone(),
            path: path.to_owned(),
            why: why.to_owned(),
        };
        let door = Door::open(path).map_err(|_| replaced("it is not a directory"))?;
        if tree.kind == TreeKind::Linked {
            let name = tree.registration.as_deref().unwrap_or(tree.name.as_str());
            let note = self.trees.registrations().read(name);
            let note = note.as_ref().and_then(TreeNote::of);
            if note.is_none_or(|note| note.tree != tree.id) {
                return Err(replaced(
                    "its entry in worktrees/ is gone or belongs to another worktree",
                ));
            }
        }
        match self.trees.leads_here(tree, path, &door) || led_here(tree, path, &door) {
            true => Ok(()),
            false => Err(replaced("nothing in it points to this repository")),
        }
    }

    /// Records where a tree is and which directory it is, and points both at each other.
    fn know_again(&self, tree: &Tree, path: &Path) -> Result<Tree, TreeError> {
        let tree = &self.end_runs(tree)?;
        self.trees.accept_move(tree, path)?;
        let tree = self.trees.engine.look(|tx| tx.tree_by_id(tree.id))?;
        let tree = tree.ok_or(TreeError::NoTree)?;
        Ok(self.trees.hold_ports(tree, None)?.0)
    }

    fn know_in_trash(&self, tree: &Tree, path: PathBuf, place: PathBuf) -> Result<Tree, TreeError> {
        let input = TreeInput::FoundInTrash {
            identity: identity_of(&place)?,
            path,
            trash: place.clone(),
        };
        let tree = self.trees.decide(tree, Durability::Power, input)?;
        if let (TreeKind::Linked, Some(trash)) = (tree.kind, &tree.trash) {
            let trash = Trash {
                path: place,
                ..trash.clone()
            };
            self.trees.register_in_trash(&tree, &trash)?;
        }
        Ok(tree)
    }

    /// Runs and a removal that were at work when it was copied are not at work here.
    fn end_runs(&self, tree: &Tree) -> Result<Tree, TreeError> {
        let mut tree = tree.clone();
        for run in tree.runs.clone() {
            let ends = TreeInput::RunEnds {
                process: run.process,
                timed_out: false,
                code: None,
            };
            tree = self.trees.decide(&tree, Durability::Process, ends)?;
        }
        match tree.removing {
            false => Ok(tree),
            true => {
                let error = "it was copied in the meantime".to_owned();
                self.trees.decide(
                    &tree,
                    Durability::Process,
                    TreeInput::RemoveFailed { error },
                )
            }
        }
    }
}

/// Whether a tree says that it belonged to a repository that is gone from its place, in the words that weald writes.
fn led_here(tree: &Tree, path: &Path, door: &Door) -> bool {
    let name = tree.registration.as_deref().unwrap_or(tree.name.as_str());
    let (file, from, tail) = match tree.kind {
        TreeKind::Sealed => {
            let file = ".git/objects/info/alternates";
            (file, ".git/objects", "weald/vault/objects".to_owned())
        }
        TreeKind::Linked => (".git", "", format!("worktrees/{name}")),
    };
    let text = door.read(file, 16 * 1024).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().next().unwrap_or_default();
    let said = path
        .join(from)
        .join(line.strip_prefix("gitdir: ").unwrap_or(line));
    said.ends_with(tail) && said.symlink_metadata().is_err()
}

/// Ends every agent, and gives its task back.
fn end_agents(tx: &mut dyn Write, place: &str) -> Result<(), TreeError> {
    for agent in tx.agents(&AgentFilter::OPEN)? {
        let why = format!("this repository is a copy; the agent runs in {place}");
        let crash = AgentInput::Crash { why };
        let ended = agent_rules::decide(&agent, crash, tx.now());
        let (_, change) = ended.map_err(|error| unfit(&error))?;
        tx.record(None, change)?;
        if let Some(task) = tx.task(&agent.task)?
            && let Some(lease) = &task.lease
            && lease.token == agent.token
        {
            let token = Some(lease.token);
            move_in(tx, None, &task, TaskInput::Release { token })?;
        }
    }
    Ok(())
}

/// Takes everything out of the queue, and the queue from its holder.
fn end_landings(tx: &mut dyn Write, place: &str) -> Result<(), TreeError> {
    for known in tx.open_landings()? {
        let reason = Reason {
            code: "repository_copy".into(),
            message: format!("this repository is a copy; the landing was queued in {place}"),
            hint: None,
            paths: Vec::new(),
        };
        let ended = landing_rules::decide(&known, LandingInput::Refuse(reason), tx.now());
        let (_, change) = ended.map_err(|error| unfit(&error))?;
        tx.record(None, change)?;
    }
    let mut line = tx.queue()?;
    if line.holder.is_some() {
        let release = QueueInput::Release { token: line.token };
        let released = queue_rules::decide(&line, release, tx.now());
        let (next, change) = released.map_err(|error| unfit(&error))?;
        tx.record(None, change)?;
        line = next;
    }
    if line.maintenance.holder.is_some() {
        let released = maintenance::release(&line, line.maintenance.token);
        let (_, change) = released.map_err(|error| unfit(&error))?;
        tx.record(None, change)?;
    }
    Ok(())
}

/// The main checkout of a repository, or the folder that stands for it, by its common directory.
fn root_of(common_dir: &Path) -> PathBuf {
    let name = common_dir.file_name().and_then(|name| name.to_str());
    match (name, common_dir.parent()) {
        (Some(".git" | ".bare"), Some(root)) => root.to_owned(),
        _ => common_dir.to_owned(),
    }
}

/// Whether a directory is there, and is not the one at `known`.
fn is_another_directory(path: &Path, known: &Path) -> bool {
    let number = |found: fs::Metadata| (found.dev(), found.ino());
    let known = known.symlink_metadata().ok().map(number);
    let found = path.symlink_metadata().ok();
    let found = found.filter(fs::Metadata::is_dir).map(number);
    found.is_some() && found != known
}

/// A record that can't be ended as it is.
fn unfit(error: &dyn std::fmt::Display) -> TreeError {
    TreeError::Unsupported {
        what: error.to_string(),
    }
}
