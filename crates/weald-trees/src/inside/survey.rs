//! Looking for `clean`: what changed, what holds commits, and when somebody was last at it. Sends nothing.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;

use serde::{Deserialize, Serialize};

use super::changes::Changes;
use super::{Access, InsideError, InspectReply, Job, Tips, Workplace};

/// How many changed paths are named.
const PATHS: usize = 1_000;

/// Files of a repository that change when somebody works by hand: a commit, a checkout, an `add`.
const TRACES: [&str; 5] = [
    "index",
    "HEAD",
    "logs/HEAD",
    "reftable/tables.list",
    "COMMIT_EDITMSG",
];

/// Says what changed and what holds commits, by name, and when somebody was last at it.
#[derive(Serialize, Deserialize)]
pub struct Survey;

impl Job for Survey {
    type Reply = InspectReply;
    const ACCESS: Access = Access::Read;

    fn work(&self, at: &Workplace) -> Result<InspectReply, InsideError> {
        // Before git looks: it must not be taken for somebody.
        let touched_at = at.touched_at();
        let changes = at.changes()?;
        // The refs that a linked worktree sees are main's.
        let tips = match at.git_dir.join("commondir").exists() {
            true => Tips::default(),
            false => Tips {
                refs: at.refs(changes.head.as_deref())?,
                stash: at.stash()?,
                worktrees: at.worktree_heads()?,
                ..Tips::default()
            },
        };
        at.inspected(&changes, tips, touched_at)
    }
}

impl Workplace {
    /// What was found, with the names of what changed.
    pub(super) fn inspected(
        &self,
        changes: &Changes,
        tips: Tips,
        touched_at: Option<i64>,
    ) -> Result<InspectReply, InsideError> {
        let paths = self.named(changes);
        Ok(InspectReply {
            look: self.complete(changes, &tips)?,
            tips,
            truncated: paths.len() < changes.paths.len() + changes.hidden.len(),
            paths,
            touched_at,
            changed: None,
        })
    }

    /// The newest time of what changes when somebody works in the tree, in seconds.
    pub(super) fn touched_at(&self) -> Option<i64> {
        let traces = TRACES.iter().map(|name| self.git_dir.join(name));
        let seen = traces.chain([self.work_tree.clone()]);
        let times = seen.filter_map(|path| Some(path.symlink_metadata().ok()?.mtime()));
        times.max()
    }

    /// What changed, by name; not all of it where that is too much. What is no file may hold anything, another repository,
    /// too, and is not named. One that is gone holds nothing.
    fn named(&self, changes: &Changes) -> Vec<String> {
        let is_file = |path: &&Vec<u8>| {
            let path = self.work_tree.join(OsStr::from_bytes(path));
            match path.symlink_metadata() {
                Ok(found) => found.is_file(),
                Err(error) => error.kind() == io::ErrorKind::NotFound,
            }
        };
        let some = changes.paths.iter().chain(&changes.hidden).take(PATHS);
        some.filter(is_file)
            .filter_map(|path| String::from_utf8(path.clone()).ok())
            .collect()
    }
}
