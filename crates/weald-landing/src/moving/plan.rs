//! The plan of a swap: every path, what was there and what comes, written down before the first file moves.
//!
//! Whoever finds a plan can tell for each path whether it was swapped, by the numbers of the files, and put it back or
//! bring it to its end.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use weald_core::id::LandingId;

use super::checkout::Checkout;
use super::folder::{Folder, Stamp, ancestors};
use super::refs::LockNote;
use super::stage::Stage;
use super::touched::{Side, Touched};

/// A path of any bytes; in JSON each byte is one character.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RawPath(pub Vec<u8>);

impl Serialize for RawPath {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let text: String = self.0.iter().map(|byte| char::from(*byte)).collect();
        to.serialize_str(&text)
    }
}

impl<'de> Deserialize<'de> for RawPath {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let bytes: Result<_, _> = text
            .chars()
            .map(|each| u8::try_from(u32::from(each)))
            .collect();
        bytes.map(Self).map_err(serde::de::Error::custom)
    }
}

/// What happens to one path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Action {
    /// The file goes, to this number among the old ones.
    Delete { old: Stamp, place: usize },
    /// The folder of a submodule goes if it is empty.
    DropGitlink,
    /// The file changes places with the new one.
    Change { old: Stamp, new: Stamp },
    /// The folder of a submodule is made.
    MakeGitlink,
    /// The new file comes where nothing is.
    Add { new: Stamp },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub path: RawPath,
    /// What happens to it.
    pub action: Action,
    /// The object in the index before.
    pub old_id: Option<String>,
    /// The object in the index after.
    pub new_id: Option<String>,
}

/// Everything about one swap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Plan {
    pub landing: LandingId,
    pub target: String,
    pub old: String,
    pub new: String,
    pub checkout: PathBuf,
    pub git_dir: PathBuf,
    /// Where the new files wait.
    pub stage: PathBuf,
    /// The paths, in the order of the swap.
    pub entries: Vec<Entry>,
    /// Folders that may be empty afterwards and go, with their modes; outermost first.
    pub emptied: Vec<(RawPath, u32)>,
    /// Folders that are made; outermost first.
    pub made: Vec<RawPath>,
    /// Lock files that git holds meanwhile.
    pub locks: Vec<LockNote>,
}

/// What a plan is made of.
pub(super) struct Sources<'s> {
    pub checkout: &'s Folder,
    pub files: &'s Folder,
    pub touched: &'s [Touched],
    /// What the checkout's files were before they were compared.
    pub seen: &'s BTreeMap<Vec<u8>, Stamp>,
}

/// The paths of a plan.
#[derive(Debug, Default)]
pub(super) struct Paths {
    pub entries: Vec<Entry>,
    pub emptied: Vec<(RawPath, u32)>,
    pub made: Vec<RawPath>,
    /// Files at places that a sparse checkout leaves out: they would look like a change of the user's afterwards.
    pub blocked: Vec<Vec<u8>>,
}

/// Decides what happens to every path.
pub(super) fn paths(sources: &Sources<'_>) -> io::Result<Paths> {
    let mut found = Paths::default();
    for one in sources.touched {
        let mut push = |action| {
            found.entries.push(Entry {
                path: RawPath(one.path.clone()),
                action,
                old_id: one.old.as_ref().map(|side| side.id.clone()),
                new_id: one.new.as_ref().map(|side| side.id.clone()),
            });
        };
        let is_gitlink = |side: &Option<Side>| side.as_ref().is_some_and(Side::is_gitlink);
        let (was_link, is_link) = (is_gitlink(&one.old), is_gitlink(&one.new));
        let old = sources.seen.get(&one.path).copied();
        let staged = sources.files.stamp(&one.path)?;
        let new = staged.filter(|stamp| !stamp.is_directory() && one.new.is_some() && !is_link);
        if was_link && !is_link {
            push(Action::DropGitlink);
        }
        match (old, new) {
            (Some(old), Some(new)) => push(Action::Change { old, new }),
            (None, Some(new)) => push(Action::Add { new }),
            (Some(old), None) if one.new.is_none() || is_link => {
                push(Action::Delete { old, place: 0 });
            }
            (Some(_), None) => found.blocked.push(one.path.clone()),
            (None, None) => {}
        }
        if is_link && !was_link && staged.is_some_and(|stamp| stamp.is_directory()) {
            push(Action::MakeGitlink);
        }
    }
    found.entries.sort_by_key(|entry| rank(&entry.action));
    for (number, entry) in found.entries.iter_mut().enumerate() {
        if let Action::Delete { place, .. } = &mut entry.action {
            *place = number;
        }
    }
    found.folders(sources.checkout)?;
    Ok(found)
}

/// What goes makes room for what comes.
fn rank(action: &Action) -> u8 {
    match action {
        Action::Delete { .. } => 0,
        Action::DropGitlink => 1,
        Action::Change { .. } => 2,
        Action::MakeGitlink => 3,
        Action::Add { .. } => 4,
    }
}

impl Paths {
    /// Which folders go and which come.
    fn folders(&mut self, checkout: &Folder) -> io::Result<()> {
        let mut going = BTreeMap::new();
        let mut coming = BTreeSet::new();
        let mut needed = BTreeSet::new();
        for entry in &self.entries {
            let path = entry.path.0.as_slice();
            match entry.action {
                Action::Delete { .. } | Action::DropGitlink => {
                    for above in ancestors(path) {
                        note_folder(checkout, above, &mut going)?;
                    }
                    if entry.action == Action::DropGitlink {
                        note_folder(checkout, path, &mut going)?;
                    }
                }
                Action::Change { .. } => needed.extend(ancestors(path).map(<[u8]>::to_vec)),
                Action::Add { .. } | Action::MakeGitlink => {
                    let mut wanted: Vec<_> = ancestors(path).map(<[u8]>::to_vec).collect();
                    match entry.action {
                        Action::MakeGitlink => wanted.push(path.to_vec()),
                        _ => note_below(checkout, path, &mut going)?,
                    }
                    for folder in wanted {
                        let there = checkout.stamp(&folder)?;
                        if !there.is_some_and(|stamp| stamp.is_directory()) {
                            coming.insert(folder.clone());
                        }
                        needed.insert(folder);
                    }
                }
            }
        }
        going.retain(|folder, _| !needed.contains(folder));
        self.emptied = going
            .into_iter()
            .map(|(path, mode)| (RawPath(path), mode))
            .collect();
        self.made = coming.into_iter().map(RawPath).collect();
        Ok(())
    }
}

fn note_folder(
    checkout: &Folder,
    path: &[u8],
    into: &mut BTreeMap<Vec<u8>, u32>,
) -> io::Result<()> {
    if !into.contains_key(path)
        && let Some(stamp) = checkout.stamp(path)?.filter(Stamp::is_directory)
    {
        into.insert(path.to_vec(), stamp.mode & 0o7777);
    }
    Ok(())
}

/// Every folder at and below a path.
fn note_below(checkout: &Folder, path: &[u8], into: &mut BTreeMap<Vec<u8>, u32>) -> io::Result<()> {
    let mut open = vec![path.to_vec()];
    while let Some(folder) = open.pop() {
        let is_folder = checkout
            .stamp(&folder)?
            .is_some_and(|stamp| stamp.is_directory());
        if !is_folder {
            continue;
        }
        note_folder(checkout, &folder, into)?;
        for name in checkout.names(&folder)? {
            open.push([folder.as_slice(), b"/", &name].concat());
        }
    }
    Ok(())
}

impl Plan {
    /// A plan, if one was written. One that leads out of its checkout, or into a repository, is none.
    pub(super) fn read(file: &Path) -> io::Result<Option<Self>> {
        let Some(bytes) = weald_control::files::read_bytes(file)? else {
            return Ok(None);
        };
        let plan: Self = serde_json::from_slice(&bytes)?;
        let entries = plan.entries.iter().map(|entry| &entry.path);
        let emptied = plan.emptied.iter().map(|(path, _)| path);
        let mut paths = entries.chain(emptied).chain(&plan.made);
        match paths.find(|path| !is_inside(&path.0)) {
            None => Ok(Some(plan)),
            Some(path) => Err(odd(format!(
                "its plan leads to {}",
                String::from_utf8_lossy(&path.0)
            ))),
        }
    }

    /// The plan of a stage, which has to be about that stage and its checkout.
    pub(super) fn of(stage: &Stage, checkout: &Checkout) -> io::Result<Option<Self>> {
        let Some(plan) = Self::read(&stage.plan())? else {
            return Ok(None);
        };
        let says = (&plan.stage, &plan.checkout, &plan.git_dir);
        match says == (&stage.path, &checkout.path, &checkout.git_dir) {
            true => Ok(Some(plan)),
            false => Err(odd("its plan is about another checkout".to_owned())),
        }
    }
}

fn odd(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Whether a path stays below the checkout and out of repositories.
pub(super) fn is_inside(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/').all(|name| {
        let is_odd = name.is_empty() || name == b"." || name == b"..";
        !is_odd && !name.eq_ignore_ascii_case(b".git")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_stay_in_their_checkout_and_out_of_repositories() {
        for path in ["a", "a/b", ".gitignore", "a/.github/x", "..a", "a..b"] {
            assert!(is_inside(path.as_bytes()), "{path}");
        }
        let outside = [
            "",
            "/a",
            "a//b",
            "a/",
            "..",
            "../a",
            "a/../b",
            "./a",
            ".git",
            ".git/x",
            ".GIT/hooks/x",
            "sub/.Git/config",
        ];
        for path in outside {
            assert!(!is_inside(path.as_bytes()), "{path}");
        }
    }

    #[test]
    fn paths_of_any_bytes_survive_the_json() {
        let all = RawPath((1..=255).collect());
        let text = serde_json::to_string(&all).unwrap();
        assert_eq!(serde_json::from_str::<RawPath>(&text).unwrap(), all);
        assert!(serde_json::from_str::<RawPath>("\"\u{20ac}\"").is_err());
    }
}
