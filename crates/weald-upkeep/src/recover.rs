//! Trees that git or the disk has and no record speaks of: what they are, as far as that can be told.
//!
//! A registration with weald's note names a tree and its number. A folder that borrows from this vault is a sealed tree
//! whose registration is gone, or one in the trash. Nothing is changed here but records.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use weald_core::Timestamp;
use weald_core::id::{Seq, TreeId};
use weald_core::name::{TreeName, numbered};
use weald_core::rebuild::{FoundTree, recovered_tree};
use weald_core::store::{Counter, Durability, Write};
use weald_core::tree::{Base, Trash, Tree, TreeKind, TreeLock, TreeStatus};
use weald_core::tree_rules::TreeInput;
use weald_git::{Commit, Door, Reference, Registration, list_tips};

use crate::Upkeep;
use crate::rebuild::RecoveredTree;
use weald_control::marker::TreeNote;
use weald_trees::SEALED;
use weald_trees::identity_of;
use weald_trees::remove::IN_TRASH;
use weald_trees::{TreeError, decided};

/// The most of a small file in a tree that is read.
const LIMIT: u64 = 1024 * 1024;

/// One that was found.
struct Found {
    id: Option<TreeId>,
    tree: FoundTree,
    by: &'static str,
}

impl Upkeep<'_> {
    /// Records every tree that is there and on no record. `step` is the event that all of it is part of.
    pub(crate) fn recover_trees(&self, step: Seq) -> Result<Vec<RecoveredTree>, TreeError> {
        let heads = self.trees_in_vault()?;
        let records = self.trees.records()?;
        let mut found = self.registered_unknown(&records, &heads)?;
        found.extend(self.in_folders(&records, &found, &heads)?);
        let recovered = self.trees.engine.change(None, Durability::Power, |tx| {
            let mut recovered = Vec::new();
            for one in found {
                recovered.push(record(tx, one, step)?);
            }
            Ok::<_, TreeError>(recovered)
        })?;
        self.note_unseen_removals(&records)?;
        Ok(recovered)
    }

    /// The numbers of trees that the vault names, each with the last HEAD that is known.
    pub(crate) fn trees_in_vault(&self) -> Result<BTreeMap<u64, Option<String>>, TreeError> {
        let vault = self.trees.vault();
        let mut named = BTreeMap::new();
        if !vault.path().join("HEAD").exists() {
            return Ok(named);
        }
        for tip in list_tips(vault.path(), &["refs/tree/", "refs/snap/"])? {
            let mut parts = tip.name.splitn(4, '/').skip(2);
            let (Some(id), rest) = (parts.next().and_then(|id| id.parse().ok()), parts.next())
            else {
                continue;
            };
            let head = named.entry(id).or_insert(None);
            if rest == Some("HEAD") && tip.name.starts_with("refs/tree/") {
                *head = Some(tip.commit);
            }
        }
        Ok(named)
    }

    /// Registrations with a note of weald's whose tree is on no record.
    fn registered_unknown(
        &self,
        records: &[Tree],
        heads: &BTreeMap<u64, Option<String>>,
    ) -> Result<Vec<Found>, TreeError> {
        let mut found = Vec::new();
        for known in self.trees.registrations().list().unwrap_or_default() {
            let Some(note) = TreeNote::of(&known) else {
                continue;
            };
            let is_it = |tree: &&Tree| {
                tree.identity == Some(note.identity)
                    || (tree.id == note.tree && tree.identity.is_none())
            };
            if records.iter().any(|tree| is_it(&tree)) {
                continue;
            }
            // Its number may be another tree's by now, if two databases gave it out.
            let id = (!records.iter().any(|tree| tree.id == note.tree)).then_some(note.tree);
            let head = heads.get(&note.tree.0).cloned().flatten();
            let head = head.filter(|_| id.is_some());
            if let Some(tree) = self.of_registration(&known, &note, head)? {
                let by = "registration";
                found.push(Found { id, tree, by });
            }
        }
        Ok(found)
    }

    fn of_registration(
        &self,
        known: &Registration,
        note: &TreeNote,
        head: Option<String>,
    ) -> Result<Option<FoundTree>, TreeError> {
        let Some(path) = known.path().map(Path::to_owned) else {
            return Ok(None);
        };
        let file_name = path.file_name().and_then(|name| name.to_str());
        let is_trashed = known.locked.as_deref() == Some(IN_TRASH);
        let name = match (is_trashed, file_name) {
            (false, Some(name)) => name.parse().or_else(|_| known.name.parse()),
            _ => known.name.parse(),
        };
        let Ok(name) = name else {
            return Ok(None);
        };
        let layout = self.trees.layout(note.tree, &name, None)?;
        // A linked tree's index is in its registration; a sealed one has its own.
        let has_index = self
            .trees
            .registrations()
            .directory(&known.name)
            .join("index");
        let kind = match has_index.exists() {
            true => TreeKind::Linked,
            false => TreeKind::Sealed,
        };
        let branch = match &known.head {
            Some(Reference::Symbolic(full)) => full.strip_prefix("refs/heads/").map(str::to_owned),
            _ => None,
        };
        let branch = branch.unwrap_or(layout.branch);
        let (base, target) = self.origin(&branch, head.as_ref())?;
        let trash = match is_trashed {
            true => Some(trash_at(path.clone(), head.clone(), self.trees.now()?)),
            false => None,
        };
        Ok(Some(FoundTree {
            kind,
            path: match is_trashed {
                true => layout.path,
                false => path,
            },
            branch,
            base,
            target,
            head,
            identity: Some(note.identity),
            registration: Some(known.name.clone()),
            locked: lock_of(known.locked.as_deref()),
            trash,
            name,
        }))
    }

    /// Folders beside known trees, and in their trash, that borrow from this vault.
    fn in_folders(
        &self,
        records: &[Tree],
        registered: &[Found],
        heads: &BTreeMap<u64, Option<String>>,
    ) -> Result<Vec<Found>, TreeError> {
        let mut known: Vec<_> = records.iter().filter_map(|tree| tree.identity).collect();
        known.extend(registered.iter().filter_map(|one| one.tree.identity));
        let mut taken: Vec<u64> = records.iter().map(|tree| tree.id.0).collect();
        taken.extend(registered.iter().filter_map(|one| one.id).map(|id| id.0));
        let mut found = Vec::new();
        for (folder, is_trash) in self.places_of_trees(records, registered)? {
            for path in folders_in(&folder) {
                let identity = identity_of(&path).ok();
                if identity.is_none_or(|identity| known.contains(&identity)) {
                    continue;
                }
                let Some(tree) = self.of_folder(&path, &folder, is_trash)? else {
                    continue;
                };
                // One that was restored from a backup has its record; a person says whether it is the one.
                if records.iter().any(|known| is_place_of(known, &path, &tree)) {
                    continue;
                }
                known.extend(identity);
                // The number of the one tree whose last HEAD this is.
                let holds =
                    |(_, head): &(&u64, &Option<String>)| head.is_some() && **head == tree.head;
                let mut same = heads.iter().filter(holds).map(|(id, _)| *id);
                let id = match (same.next(), same.next()) {
                    (Some(id), None) if !taken.contains(&id) => Some(id),
                    _ => None,
                };
                taken.extend(id);
                let by = if is_trash { "trash" } else { "folder" };
                let id = id.map(TreeId);
                found.push(Found { id, tree, by });
            }
        }
        Ok(found)
    }

    /// Folders that hold trees, and their trash.
    fn places_of_trees(
        &self,
        records: &[Tree],
        registered: &[Found],
    ) -> Result<Vec<(PathBuf, bool)>, TreeError> {
        let somewhere: TreeName = "x".parse()?;
        let mut paths = vec![self.trees.layout(TreeId(0), &somewhere, None)?.path];
        paths.extend(records.iter().map(|tree| tree.path.clone()));
        paths.extend(registered.iter().map(|one| one.tree.path.clone()));
        let mut places = Vec::new();
        for path in paths {
            let root = path.parent().unwrap_or(&path).to_owned();
            places.push((root, false));
            places.push((self.trees.trash_directory(&path)?, true));
        }
        places.sort();
        places.dedup();
        Ok(places)
    }

    fn of_folder(
        &self,
        path: &Path,
        folder: &Path,
        is_trash: bool,
    ) -> Result<Option<FoundTree>, TreeError> {
        let Some(text) = path.file_name().and_then(|name| name.to_str()) else {
            return Ok(None);
        };
        let (text, at) = match is_trash {
            true => in_trash_since(text),
            false => (text, None),
        };
        let Ok(name) = text.parse::<TreeName>() else {
            return Ok(None);
        };
        let layout = self.trees.layout(TreeId(0), &name, None)?;
        // In the trash only the name is left of where it was.
        let home = match (is_trash, folder.parent()) {
            (false, _) => path.to_owned(),
            (true, Some(root)) if folder.ends_with(".trash") => root.join(text),
            (true, _) => layout.path,
        };
        if !self.trees.is_borrower(path, &home) {
            return Ok(None);
        }
        let (branch, head) = inner_head(path);
        let branch = branch.unwrap_or(layout.branch);
        let (base, target) = self.origin(&branch, head.as_ref())?;
        let at = match at {
            Some(at) => at,
            None => self.trees.now()?,
        };
        Ok(Some(FoundTree {
            kind: TreeKind::Sealed,
            path: home,
            branch,
            base,
            target,
            head: head.clone(),
            identity: identity_of(path).ok(),
            registration: None,
            locked: None,
            trash: is_trash.then(|| trash_at(path.to_owned(), head, at)),
            name,
        }))
    }

    /// The target by the configuration, and the base as what both have in common.
    fn origin(&self, branch: &str, head: Option<&String>) -> Result<(Base, String), TreeError> {
        let tip = match head {
            Some(head) => Some(head.clone()),
            None => {
                let held = self
                    .trees
                    .place
                    .repository()
                    .resolve(&format!("refs/heads/{branch}"))?;
                held.map(|tip| tip.as_str().to_owned())
            }
        };
        let (target, commit) = match (&self.trees.target, tip) {
            (Some((target, at)), Some(tip)) => {
                let common = self.merge_base(&tip, at).unwrap_or_else(|| at.clone());
                (target.clone(), common)
            }
            (Some((target, at)), None) => (target.clone(), at.clone()),
            (None, tip) => ("HEAD".to_owned(), tip.unwrap_or_default()),
        };
        let reference = target.clone();
        Ok((Base { reference, commit }, target))
    }

    fn merge_base(&self, one: &str, other: &str) -> Option<String> {
        let asked = |git: weald_git::Git| {
            let answer = git.args(["--end-of-options", one, other]).output().ok()?;
            let text = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
            Commit::parse(&text).map(|found| found.as_str().to_owned())
        };
        let main = self.trees.place.repository();
        asked(main.git("merge-base")).or_else(|| asked(self.trees.vault().git("merge-base")))
    }

    /// A tree that is on record as there, and in the trash by now: `doctor` finishes what nobody recorded.
    fn note_unseen_removals(&self, records: &[Tree]) -> Result<(), TreeError> {
        let unseen = |tree: &&Tree| {
            tree.is_live()
                && !tree.removing
                && tree.path.symlink_metadata().is_err()
                && self.trees.in_trash(tree).is_some()
        };
        for tree in records.iter().filter(unseen) {
            self.trees.engine.change(None, Durability::Power, |tx| {
                let begins = TreeInput::RemoveBegins { worker: None };
                let (_, change) = decided(tx, tree, begins)?;
                tx.record(None, change)?;
                Ok::<_, TreeError>(())
            })?;
        }
        Ok(())
    }
}

fn record(tx: &mut dyn Write, found: Found, step: Seq) -> Result<RecoveredTree, TreeError> {
    let Found {
        id,
        tree: mut found,
        by,
    } = found;
    let id = match id {
        Some(id) => {
            tx.raise(Counter::Tree, id.0)?;
            id
        }
        None => TreeId(tx.next_number(Counter::Tree)?),
    };
    let trees = tx.trees()?;
    let first = found.name.clone();
    for number in 2.. {
        let is_taken = |tree: &Tree| tree.name == found.name && tree.is_live();
        if found.trash.is_some() || !trees.iter().any(is_taken) {
            break;
        }
        found.name = numbered(&first, number, 64)?;
    }
    let (tree, change) = recovered_tree(id, found, tx.now());
    tx.record(None, change.part_of(Some(step)))?;
    let trashed = tree.trash.map(|trash| trash.path);
    Ok(RecoveredTree {
        id,
        name: tree.name.to_string(),
        path: trashed.unwrap_or(tree.path),
        status: tree.status,
        found_by: by.into(),
    })
}

fn trash_at(path: PathBuf, tip: Option<String>, at: Timestamp) -> Trash {
    Trash {
        path,
        at,
        tip,
        branch_tip: None,
        snapshot: None,
        task: None,
        head: None,
        ports: None,
        status: None,
    }
}

/// The lock that weald shows in git for a person: `owner: reason`.
fn lock_of(text: Option<&str>) -> Option<TreeLock> {
    let text = text.filter(|text| *text != SEALED && *text != IN_TRASH)?;
    let (owner, reason) = text.split_once(": ")?;
    Some(TreeLock {
        owner: owner.to_owned(),
        reason: reason.to_owned(),
    })
}

/// The name and the time in the name of a folder in the trash: `fix-20260101T101010Z`, perhaps with a number.
fn in_trash_since(text: &str) -> (&str, Option<Timestamp>) {
    let stamp = |part: &str| {
        let parsed = jiff_stamp(part)?;
        parsed.parse::<Timestamp>().ok()
    };
    let mut rest = text;
    for _ in 0..2 {
        let Some((before, last)) = rest.rsplit_once('-') else {
            break;
        };
        if let Some(at) = stamp(last) {
            return (before, Some(at));
        }
        rest = before;
    }
    (text, None)
}

/// `20260101T101010Z` as a time is usually written.
fn jiff_stamp(part: &str) -> Option<String> {
    let is_stamp = part.len() == 16 && part.is_ascii() && part.ends_with('Z');
    is_stamp.then(|| {
        let (date, time) = part.split_at(8);
        format!(
            "{}-{}-{}T{}:{}:{}Z",
            &date[..4],
            &date[4..6],
            &date[6..],
            &time[1..3],
            &time[3..5],
            &time[5..7]
        )
    })
}

fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut paths: Vec<_> = folders.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// The branch and the commit that the repository in a tree is at; an agent may have forged both.
fn inner_head(path: &Path) -> (Option<String>, Option<String>) {
    let read = |file: &str| {
        let bytes = Door::open(path).ok()?.read(file, LIMIT).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    };
    let commit = |text: &str| Commit::parse(text).map(|found| found.as_str().to_owned());
    let text = read(".git/HEAD").unwrap_or_default();
    let Some(Reference::Symbolic(full)) = Reference::parse(&text) else {
        return (None, commit(&text));
    };
    // Refs in tables: an agent changed that, and only git inside could tell.
    if Door::open(path).is_ok_and(|door| door.has_directory(".git/reftable")) {
        return (None, None);
    }
    let packed = || {
        let text = read(".git/packed-refs")?;
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        let (id, _) = lines.find(|(_, name)| *name == full)?;
        commit(id)
    };
    let loose = read(&format!(".git/{full}")).and_then(|text| commit(&text));
    let name = full.strip_prefix("refs/heads/").map(str::to_owned);
    (name, loose.or_else(packed))
}

/// Whether a folder is where a tree on record should be, or has the name of one whose directory is missing.
fn is_place_of(known: &Tree, path: &Path, found: &FoundTree) -> bool {
    let is_trashed = |trash: &Trash| trash.path == path;
    let is_missing = || known.path.symlink_metadata().is_err();
    (known.is_live() && (known.path == path || known.name == found.name && is_missing()))
        || (known.status == TreeStatus::Trashed && known.trash.as_ref().is_some_and(is_trashed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p9_the_name_of_a_folder_in_the_trash_tells_which_tree_it_was_and_since_when() {
        let at = |text: &str| Some(text.parse::<Timestamp>().unwrap());
        for (text, expected) in [
            ("fix-20260102T030405Z", ("fix", at("2026-01-02T03:04:05Z"))),
            (
                "a-b-20260102T030405Z-2",
                ("a-b", at("2026-01-02T03:04:05Z")),
            ),
            ("fix", ("fix", None)),
            ("a-b-c", ("a-b-c", None)),
            ("fix-20269902T030405Z", ("fix-20269902T030405Z", None)),
        ] {
            assert_eq!(in_trash_since(text), expected, "{text}");
        }
    }
}
