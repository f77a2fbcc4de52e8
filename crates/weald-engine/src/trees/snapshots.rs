//! Snapshots: commits of everything in a tree, in the vault.

use serde::Serialize;
use weald_core::Timestamp;
use weald_core::config::parse_size;
use weald_core::tree::{Tree, TreeKind};
use weald_git::{Expected, GitError, RefChange, list_refs, receive_checked, transfer, update_refs};

use super::import::{is_empty_pack, is_outrun};
use super::inside::{Job, SnapshotLimits};
use super::visit::{Access, Site};
use super::{TreeError, Trees};

/// One snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SnapshotView {
    /// Its number in its tree.
    pub id: u64,
    /// The commit that holds it.
    pub commit: String,
    /// When it was taken.
    pub taken_at: Timestamp,
    /// Files that were too large for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

impl Trees<'_> {
    /// Takes a snapshot.
    pub fn snapshot(&self, name: Option<&str>) -> Result<SnapshotView, TreeError> {
        let tree = self.named(name)?;
        let site = self.site(&tree)?;
        self.snapshot_tree(&tree, &site)
    }

    /// The snapshots of a tree, oldest first.
    pub fn snapshots(&self, name: Option<&str>) -> Result<Vec<SnapshotView>, TreeError> {
        let tree = self.named(name)?;
        self.snapshots_of(&tree)
    }

    fn snapshots_of(&self, tree: &Tree) -> Result<Vec<SnapshotView>, TreeError> {
        if !self.vault().path().join("HEAD").exists() {
            return Ok(Vec::new());
        }
        let prefix = format!("refs/snap/{}/", tree.id);
        let mut found = Vec::new();
        for known in list_refs(self.vault().path(), &[&prefix])? {
            let id = known
                .name
                .strip_prefix(&prefix)
                .and_then(|id| id.parse().ok());
            let time = self
                .vault()
                .git("show")
                .args(["-s", "--format=%ct", &known.commit])
                .run()?;
            let seconds = String::from_utf8_lossy(&time).trim().parse().unwrap_or(0);
            if let Some(id) = id {
                found.push(SnapshotView {
                    id,
                    commit: known.commit,
                    taken_at: Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH),
                    left_out: Vec::new(),
                });
            }
        }
        found.sort_by_key(|view| view.id);
        Ok(found)
    }

    /// Takes a snapshot of a tree: what it stands on is imported first.
    pub(crate) fn snapshot_tree(
        &self,
        tree: &Tree,
        site: &Site,
    ) -> Result<SnapshotView, TreeError> {
        let look = self.import(tree, site)?;
        if tree.kind == TreeKind::Linked {
            // Its commits are main's, its staged blobs too; the vault takes all of main.
            let wanted: Vec<_> = look.head.iter().map(String::as_str).collect();
            self.vault().require(&self.main_refs()?, &wanted)?;
            let main = self.place.repository().common_dir();
            drop(transfer(main, self.vault().path(), &wanted, &[])?);
        }
        let size = |key: &str| parse_size(self.config.text(key)).unwrap_or(u64::MAX);
        let limits = SnapshotLimits {
            file: size("snapshot.file_limit"),
            all: size("snapshot.limit"),
        };
        let mut visit = self.visit(
            tree.name.as_str(),
            site,
            Access::Read,
            Job::Snapshot { limits },
        )?;
        let mut taken = Ok(());
        if visit.reply.error.is_none()
            && let Some(mut pack) = visit.pack()
            // Nothing new: the same content in the same second is the same commit.
            && !is_empty_pack(&mut pack)
        {
            taken = receive_checked(self.vault().path(), pack, limits.all.saturating_mul(2));
        }
        let finished = visit.finish(tree.name.as_str());
        taken?;
        let reply = finished?;
        let commit = reply.snapshot.ok_or_else(|| TreeError::Unreadable {
            name: tree.name.to_string(),
            why: "it gave no snapshot".to_owned(),
        })?;
        if !self.vault().has_object(&commit)? {
            return Err(TreeError::Unreadable {
                name: tree.name.to_string(),
                why: "its snapshot did not arrive".to_owned(),
            });
        }
        let id = self.number_snapshot(tree, &commit)?;
        let taken_at = self.now()?;
        Ok(SnapshotView {
            id,
            commit,
            taken_at,
            left_out: reply.paths,
        })
    }

    /// Gives a snapshot the next number; another process may take one at the same time.
    fn number_snapshot(&self, tree: &Tree, commit: &str) -> Result<u64, TreeError> {
        for _ in 0..20 {
            let id = self
                .snapshots_of(tree)?
                .last()
                .map_or(1, |last| last.id + 1);
            let change = RefChange {
                name: format!("refs/snap/{}/{id}", tree.id),
                new: Some(commit.to_owned()),
                expected: Expected::Absent,
            };
            match update_refs(self.vault().path(), &[change], "weald: snapshot") {
                Ok(()) => return Ok(id),
                Err(GitError::Failed { stderr, .. }) if is_outrun(&stderr) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(TreeError::Unreadable {
            name: tree.name.to_string(),
            why: "others keep taking snapshots of it".to_owned(),
        })
    }

    /// Puts a snapshot back; what is there now is taken first. Without an id, the newest one.
    pub fn restore_snapshot(
        &self,
        name: Option<&str>,
        id: Option<u64>,
    ) -> Result<(Tree, SnapshotView, SnapshotView), TreeError> {
        let tree = self.named(name)?;
        let site = self.site(&tree)?;
        self.require_idle(&tree)?;
        let known = self.snapshots_of(&tree)?;
        let wanted = match id {
            Some(id) => known.into_iter().find(|view| view.id == id),
            None => known.into_iter().next_back(),
        };
        let wanted = wanted.ok_or(TreeError::NoSnapshot {
            name: tree.name.clone(),
            id: id.unwrap_or(0),
        })?;
        if tree.kind == TreeKind::Linked {
            let main = self.place.repository().common_dir();
            drop(transfer(self.vault().path(), main, &[&wanted.commit], &[])?);
        }
        let before = self.snapshot_tree(&tree, &site)?;
        let job = Job::RestoreSnapshot {
            commit: wanted.commit.clone(),
        };
        self.do_inside(tree.name.as_str(), &site, Access::Write, job)
            .map_err(|error| TreeError::Unsupported {
                what: format!(
                    "snapshot {} was not put back as a whole ({error}); as it was before: weald snapshot restore {} {}",
                    wanted.id, tree.name, before.id
                ),
            })?;
        Ok((self.look_at(tree)?.tree, wanted, before))
    }
}
