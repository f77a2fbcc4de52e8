//! Looking for `clean`: what changed, what holds commits, and when somebody was last at it. Sends nothing.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;

use super::changes::Changes;
use super::{InsideError, Reply, Request, Tips, say};

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

impl Request {
    pub(super) fn survey(&self) -> Result<(), InsideError> {
        // Before git looks: it must not be taken for somebody.
        let touched_at = self.touched_at();
        let changes = self.changes()?;
        // The refs that a linked worktree sees are main's.
        let tips = match self.git_dir.join("commondir").exists() {
            true => Tips::default(),
            false => Tips {
                refs: self.refs(changes.head.as_deref())?,
                stash: self.stash()?,
                worktrees: self.worktree_heads()?,
                ..Tips::default()
            },
        };
        let look = self.complete(&changes, &tips)?;
        let paths = self.named(&changes);
        let all = changes.paths.len() + changes.hidden.len();
        Ok(say(&Reply {
            look: Some(look),
            truncated: paths.len() < all,
            paths,
            tips: Some(tips),
            touched_at,
            ..Reply::default()
        })?)
    }

    /// The newest time of what changes when somebody works in the tree, in seconds.
    pub(super) fn touched_at(&self) -> Option<i64> {
        let traces = TRACES.iter().map(|name| self.git_dir.join(name));
        let seen = traces.chain([self.work_tree.clone()]);
        let times = seen.filter_map(|path| Some(path.symlink_metadata().ok()?.mtime()));
        times.max()
    }
}

impl Request {
    /// What changed, by name; not all of it where that is too much. What is no file may hold anything, another repository,
    /// too, and is not named. One that is gone holds nothing.
    pub(super) fn named(&self, changes: &Changes) -> Vec<String> {
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
