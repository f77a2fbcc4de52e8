//! Snapshots: commits of everything in a tree, in the vault.
//!
//! The inside half makes them, with the time and the reason that the host gives; the host checks that and gives numbers.
//! Older ones are thinned (`weald_core::thinning`): only their refs go, the vault prunes nothing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use weald_core::Timestamp;
use weald_core::thinning::{self, Taken};
use weald_core::tree::{Tree, TreeKind};
use weald_git::{Expected, GitError, RefChange, list_refs, transfer, update_refs};

use super::differences::TEXT_LIMIT;
use super::import::is_outrun;
use super::inside::{
    COMMITTER, Diff, DiffForm, DiffSnapshots, RestoreSnapshot, SnapshotForm, SnapshotLimits,
    SnapshotReply, SnapshotWish, Unless,
};
use super::site::Site;
use super::untrusted::is_path;
use super::{TreeError, Trees};
use weald_control::steps::step;

/// The largest commit that is taken for a snapshot's; its message names at most a thousand files.
const COMMIT_LIMIT: u64 = 16 << 20;

/// How often a number is tried when others take snapshots at the same time.
const ATTEMPTS: usize = 20;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotView {
    /// Its number in its tree.
    pub id: u64,
    /// The commit that holds it.
    pub commit: String,
    /// When it was taken.
    pub taken_at: Timestamp,
    /// Why it was taken: `asked`, `timer`, `before sync` …
    pub reason: String,
    /// Files that were too large for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

/// A snapshot that was put back.
#[derive(Debug, Clone)]
pub struct SnapshotRestored {
    pub tree: Tree,
    /// What was put back.
    pub snapshot: SnapshotView,
    /// What was there before.
    pub before: SnapshotView,
    /// Files that no snapshot holds and that were in the way, by their new names.
    pub set_aside: Vec<String>,
}

impl Trees<'_> {
    pub fn snapshot(&self, name: Option<&str>) -> Result<SnapshotView, TreeError> {
        let tree = self.named(name)?;
        let site = self.site(&tree)?;
        self.snapshot_now(&tree, &site, "asked")
    }

    /// The snapshots of a tree, oldest first.
    pub fn snapshots(&self, name: Option<&str>) -> Result<Vec<SnapshotView>, TreeError> {
        let tree = self.named(name)?;
        self.snapshots_of(&tree)
    }

    pub(super) fn snapshots_of(&self, tree: &Tree) -> Result<Vec<SnapshotView>, TreeError> {
        let numbered = self.numbered(tree)?;
        let commits = self.read_commits(numbered.values())?;
        let views = numbered.into_iter().filter_map(|(id, commit)| {
            let text = commits.get(&commit)?;
            Some(view_of(id, commit, text))
        });
        Ok(views.collect())
    }

    /// The numbers and commits of a tree's snapshots.
    pub fn numbered(&self, tree: &Tree) -> Result<BTreeMap<u64, String>, TreeError> {
        // Linked trees need no vault before their first snapshot.
        if !self.vault().path().join("HEAD").exists() {
            return Ok(BTreeMap::new());
        }
        let prefix = format!("refs/snap/{}/", tree.id);
        let listed = list_refs(self.vault().path(), &[&prefix])?;
        let numbered = listed.into_iter().filter_map(|known| {
            let id = known.name.strip_prefix(&prefix)?.parse().ok()?;
            Some((id, known.commit))
        });
        Ok(numbered.collect())
    }

    /// Commits of the vault, as they are stored, with one process for all.
    fn read_commits<'a>(
        &self,
        ids: impl IntoIterator<Item = &'a String>,
    ) -> Result<BTreeMap<String, String>, TreeError> {
        let list: String = ids.into_iter().map(|id| format!("{id}\n")).collect();
        if list.is_empty() {
            return Ok(BTreeMap::new());
        }
        let answer = self
            .vault()
            .git("cat-file")
            .args(["--batch"])
            .input(list)
            .run()?;
        Ok(parse_batch(&answer))
    }

    /// Takes a snapshot before something that could go wrong.
    pub fn snapshot_before(
        &self,
        tree: &Tree,
        site: &Site,
        step: &str,
    ) -> Result<SnapshotView, TreeError> {
        self.snapshot_now(tree, site, &format!("before {step}"))
    }

    fn snapshot_now(
        &self,
        tree: &Tree,
        site: &Site,
        reason: &str,
    ) -> Result<SnapshotView, TreeError> {
        let (view, _) = self.snapshot_unless(tree, site, reason, None)?;
        view.ok_or_else(|| TreeError::unreadable(&tree.name, "it gave no snapshot"))
    }

    /// Takes a snapshot, perhaps only if something changed. What the tree stands on is imported with it.
    pub(super) fn snapshot_unless(
        &self,
        tree: &Tree,
        site: &Site,
        reason: &str,
        unless: Option<Unless>,
    ) -> Result<(Option<SnapshotView>, SnapshotReply), TreeError> {
        let mut wish = self.wish(tree, reason, unless)?;
        if tree.kind == TreeKind::Linked {
            // Its commits are main's, and the vault takes all of main.
            let look = self.import(tree, site, None)?.look;
            let wanted: Vec<_> = look.head.iter().map(String::as_str).collect();
            self.vault().require(&self.main_refs()?, &wanted)?;
            wish.haves.extend(look.head);
        }
        let reply = self.import_snapshot(tree, site, wish.clone())?;
        step("snapshot.imported");
        let view = match &reply.snapshot {
            Some(commit) => Some(self.keep_snapshot(tree, commit, &wish)?),
            None => None,
        };
        Ok((view, reply))
    }

    pub fn wish(
        &self,
        tree: &Tree,
        reason: &str,
        unless: Option<Unless>,
    ) -> Result<SnapshotWish, TreeError> {
        Ok(SnapshotWish {
            form: SnapshotForm::Everything,
            limits: SnapshotLimits {
                file: self.config.snapshot_file_limit.unwrap_or(u64::MAX),
                all: self.config.snapshot_limit.unwrap_or(u64::MAX),
            },
            taken_at: self.now()?.as_second(),
            reason: reason.to_owned(),
            vault: self.vault().objects(),
            haves: Vec::new(),
            is_sha256: tree.base.commit.len() == 64,
            unless,
        })
    }

    /// Gives a snapshot the next number, if it is what was wished for; another process may take one at the same time.
    fn keep_snapshot(
        &self,
        tree: &Tree,
        commit: &str,
        wish: &SnapshotWish,
    ) -> Result<SnapshotView, TreeError> {
        self.require_small_commit(tree, commit)?;
        for _ in 0..ATTEMPTS {
            let mut numbered = self.numbered(tree)?;
            let id = numbered.last_key_value().map_or(1, |(last, _)| last + 1);
            numbered.insert(id, commit.to_owned());
            let commits = self.read_commits(numbered.values())?;
            let all: Vec<_> = numbered
                .into_iter()
                .filter_map(|(id, commit)| Some(view_of(id, commit.clone(), commits.get(&commit)?)))
                .collect();
            let view = all.last().filter(|view| view.id == id).cloned();
            let is_wished = |view: &SnapshotView| {
                view.taken_at.as_second() == wish.taken_at && view.reason == wish.reason
            };
            let Some(view) = view.filter(is_wished) else {
                return Err(self.odd_snapshot(tree));
            };
            let change = RefChange::set(
                format!("refs/snap/{}/{id}", tree.id),
                commit.to_owned(),
                Expected::Absent,
            );
            match update_refs(self.vault().path(), &[change], "weald: snapshot") {
                Ok(()) => {
                    step("snapshot.kept");
                    self.thin(tree, &all);
                    return Ok(view);
                }
                Err(GitError::Failed { stderr, .. }) if is_outrun(&stderr) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(TreeError::unreadable(
            &tree.name,
            "other processes keep taking snapshots of it",
        ))
    }

    /// Refuses what is no commit, or one that would take long to read in every list.
    fn require_small_commit(&self, tree: &Tree, commit: &str) -> Result<(), TreeError> {
        let answer = self
            .vault()
            .git("cat-file")
            .args(["--batch-check=%(objecttype) %(objectsize)"])
            .input(format!("{commit}\n"))
            .run()?;
        let text = String::from_utf8_lossy(&answer).trim_end().to_owned();
        let size = text
            .strip_prefix("commit ")
            .and_then(|size| size.parse().ok());
        match size {
            Some(0..=COMMIT_LIMIT) => Ok(()),
            _ => Err(self.odd_snapshot(tree)),
        }
    }

    fn odd_snapshot(&self, tree: &Tree) -> TreeError {
        TreeError::unreadable(&tree.name, "its snapshot is not what was asked for")
    }

    /// Lets go of older ones. One that stays too long costs room, nothing else.
    fn thin(&self, tree: &Tree, all: &[SnapshotView]) {
        let trashed = tree
            .trash
            .as_ref()
            .and_then(|trash| trash.snapshot.as_deref());
        let taken: Vec<_> = all
            .iter()
            .map(|view| Taken {
                id: view.id,
                at: view.taken_at,
                needed: trashed == Some(view.commit.as_str()),
            })
            .collect();
        let going = thinning::superfluous(&taken);
        let changes: Vec<_> = all
            .iter()
            .filter(|view| going.contains(&view.id))
            .map(|view| {
                RefChange::delete(
                    format!("refs/snap/{}/{}", tree.id, view.id),
                    view.commit.clone(),
                )
            })
            .collect();
        let _ = update_refs(self.vault().path(), &changes, "weald: thinned");
    }

    /// A snapshot by its number, or the newest one.
    fn require_snapshot(&self, tree: &Tree, id: Option<u64>) -> Result<SnapshotView, TreeError> {
        let mut known = self.snapshots_of(tree)?.into_iter();
        let found = match id {
            Some(id) => known.find(|view| view.id == id),
            None => known.next_back(),
        };
        found.ok_or(TreeError::NoSnapshot {
            name: tree.name.clone(),
            id,
        })
    }

    /// Puts a snapshot back; what is there now is taken first. Without an id, the newest one.
    pub fn restore_snapshot(
        &self,
        name: Option<&str>,
        id: Option<u64>,
    ) -> Result<SnapshotRestored, TreeError> {
        let tree = self.named(name)?;
        self.require_own(&tree)?;
        let site = self.site(&tree)?;
        self.require_idle(&tree)?;
        let wanted = self.require_snapshot(&tree, id)?;
        if tree.kind == TreeKind::Linked {
            let main = self.common_dir();
            let haves = self.target.iter().map(|(_, tip)| tip.clone());
            let haves = self.present(haves.collect())?;
            let haves: Vec<_> = haves.iter().map(String::as_str).collect();
            let tips = [wanted.commit.as_str()];
            drop(transfer(self.vault().path(), main, &tips, &haves)?);
        }
        let before = self.snapshot_before(&tree, &site, "restore")?;
        step("snapshot.putting_back");
        let job = RestoreSnapshot {
            commit: wanted.commit.clone(),
            before: before.commit.clone(),
            unkept: before.left_out.clone(),
            vault: self.vault().objects(),
        };
        let reply = self
            .visit(tree.name.as_str(), &site, job)
            .map_err(|error| TreeError::Unsupported {
                what: format!(
                    "snapshot {} was not fully restored ({error}); to go back: weald restore {} --snapshot {}",
                    wanted.id, tree.name, before.id
                ),
            })?;
        step("snapshot.put_back");
        Ok(SnapshotRestored {
            tree: self.look_at(tree)?.tree,
            snapshot: wanted,
            before,
            set_aside: reply.aside,
        })
    }

    /// Tells what changed since a snapshot (the newest one without an id), or from one to another.
    pub fn snapshot_diff(
        &self,
        name: Option<&str>,
        from: Option<u64>,
        to: Option<u64>,
        form: DiffForm,
    ) -> Result<Diff, TreeError> {
        let tree = self.named(name)?;
        let site = self.site(&tree)?;
        let from = self.require_snapshot(&tree, from)?;
        let to = match to {
            Some(to) => Some(self.require_snapshot(&tree, Some(to))?.commit),
            None => None,
        };
        let job = DiffSnapshots {
            from: from.commit,
            to,
            now: self.wish(&tree, "diff", None)?,
            form,
            limit: TEXT_LIMIT,
        };
        self.visit(tree.name.as_str(), &site, job)
    }
}

/// The answer of `cat-file --batch`: `<id> commit <size>`, that many bytes, and the end of the line.
fn parse_batch(answer: &[u8]) -> BTreeMap<String, String> {
    let mut commits = BTreeMap::new();
    let mut rest = answer;
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let head = String::from_utf8_lossy(&rest[..end]).into_owned();
        rest = &rest[end + 1..];
        let mut fields = head.split(' ');
        let (Some(id), Some(kind), size) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        let Some(size) = size.and_then(|size| size.parse::<usize>().ok()) else {
            continue;
        };
        let text = String::from_utf8_lossy(&rest[..size.min(rest.len())]).into_owned();
        rest = rest.get(size + 1..).unwrap_or_default();
        if kind == "commit" {
            commits.insert(id.to_owned(), text);
        }
    }
    commits
}

/// What the commit of a snapshot says; the paths in it are an agent's word.
fn view_of(id: u64, commit: String, text: &str) -> SnapshotView {
    let (head, message) = text.split_once("\n\n").unwrap_or((text, ""));
    let seconds = head
        .lines()
        .find_map(|line| line.strip_prefix(&format!("committer {COMMITTER} ")))
        .and_then(|time| time.split(' ').next()?.parse().ok());
    let reason = message
        .lines()
        .find_map(|line| line.strip_prefix("reason: "));
    let left_out = message
        .lines()
        .filter_map(|line| line.strip_prefix("left-out: "))
        .filter_map(|path| serde_json::from_str::<String>(path).ok())
        .filter(|path| is_path(path));
    SnapshotView {
        id,
        commit,
        taken_at: seconds
            .and_then(|seconds| Timestamp::from_second(seconds).ok())
            .unwrap_or(Timestamp::UNIX_EPOCH),
        reason: reason.unwrap_or("asked").to_owned(),
        left_out: left_out.collect(),
    }
}
