//! Changes that git was told not to look at: files marked as assumed unchanged or skipped that are there all the same and
//! differ.
//!
//! Nothing in the tree is written: marks are cleared in a copy of the index. A file that is absent, as in a sparse checkout,
//! is no change.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use weald_git::{CheckoutIndex, copy_index};

use super::aside::Paths;
use super::changes::unstaged_path;
use super::{InsideError, Workplace, scratch};

impl Workplace {
    /// Paths of files that a mark hides, that are there, and that differ from the index.
    pub(super) fn hidden(&self, is_sha256: bool) -> Result<Vec<Vec<u8>>, InsideError> {
        let index = self.git_dir.join("index");
        let plain = CheckoutIndex::read(&index, is_sha256).ok().flatten();
        if !index.exists() || plain.is_some_and(|index| !index.has_marks()) {
            return Ok(Vec::new());
        }
        let listed = self.git("ls-files").args(["-v", "-z"]).run()?;
        let marked = listed.split(|byte| *byte == 0).filter_map(|line| {
            let (tag, path) = (line.first()?, line.get(2..)?);
            (tag.is_ascii_lowercase() || *tag == b'S').then_some(path)
        });
        let there: Paths = marked
            .filter(|path| is_there(&self.work_tree, path))
            .map(<[u8]>::to_vec)
            .collect();
        if there.is_empty() {
            return Ok(Vec::new());
        }
        let copy = scratch()?.join("unmarked-index");
        copy_index(&index, &copy)?;
        self.clear_marks(&copy, &there)?;
        let answer = self.status(&copy)?.run()?;
        let lines = answer.split(|byte| *byte == 0);
        let changed = lines.filter_map(unstaged_path);
        let hidden = changed.filter(|path| there.contains(*path));
        Ok(hidden.map(<[u8]>::to_vec).collect())
    }

    /// Takes the marks of paths out of an index.
    pub(super) fn clear_marks(&self, index: &Path, paths: &Paths) -> Result<(), InsideError> {
        if paths.is_empty() {
            return Ok(());
        }
        let named: Vec<u8> = paths
            .iter()
            .flat_map(|path| [path, &b"\0"[..]].concat())
            .collect();
        for mark in ["--no-assume-unchanged", "--no-skip-worktree"] {
            self.git("update-index")
                .index_file(index)
                .args([mark, "-z", "--stdin"])
                .input(named.clone())
                .run()?;
        }
        Ok(())
    }
}

/// Whether something is at a path of the tree.
pub(super) fn is_there(root: &Path, path: &[u8]) -> bool {
    let path = root.join(OsStr::from_bytes(path));
    path.symlink_metadata().is_ok()
}
