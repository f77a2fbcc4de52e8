//! What a tree would commit now: everything in it that git does not ignore, with the filters that a commit would use.
//!
//! Made with a copy of the index and objects in the private /tmp, so nothing in the tree is written. Unlike a snapshot it
//! can be merged: line ends and large files are as they would be in history.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use weald_git::{Commit, Git, copy_index};

use super::changes::Changes;
use super::snapshot::{Made, SnapshotLimits, SnapshotWish};
use super::{InsideError, Workplace, scratch};

impl Workplace {
    /// The git tree of what would be committed; `None` if that is HEAD's.
    pub(super) fn make_work(
        &self,
        changes: &Changes,
        wish: &SnapshotWish,
    ) -> Result<Option<Made>, InsideError> {
        let Some(head) = changes
            .head
            .as_deref()
            .filter(|_| !changes.paths.is_empty())
        else {
            return Ok(None);
        };
        let objects = self.own_repository(wish)?.join("objects");
        let index = scratch()?.join("work-index");
        let git = |name: &str| -> Git {
            self.git(name)
                .index_file(&index)
                .env("GIT_OBJECT_DIRECTORY", &objects)
        };
        if copy_index(&self.git_dir.join("index"), &index).is_err() {
            git("read-tree").args([head]).run()?;
        }
        let (taken, left_out) = chosen(&self.work_tree, &changes.paths, wish.limits);
        git("update-index")
            .args(["--add", "--remove", "--replace", "-z", "--stdin"])
            .input(taken)
            .run()?;
        let answer = git("write-tree").run()?;
        let tree = String::from_utf8_lossy(&answer).trim_end().to_owned();
        if Commit::parse(&tree).is_none() {
            return Err(InsideError::Damaged("git made no tree of it".to_owned()));
        }
        Ok(Some(Made {
            commit: tree,
            left_out,
        }))
    }
}

/// The paths to be taken, each ended by NUL, and those that are too large for it or no files.
fn chosen(root: &Path, paths: &[Vec<u8>], limits: SnapshotLimits) -> (Vec<u8>, Vec<String>) {
    let (mut taken, mut left_out, mut room) = (Vec::new(), Vec::new(), limits.all);
    // A repository inside that git does not know of ends with a slash; it is somebody's own.
    for path in paths.iter().filter(|path| !path.ends_with(b"/")) {
        let found = root.join(OsStr::from_bytes(path)).symlink_metadata().ok();
        let fits = found.is_none_or(|found| match found.is_file() {
            true => {
                let fits = found.len() <= limits.file.min(room);
                room -= if fits { found.len() } else { 0 };
                fits
            }
            false => found.is_symlink() || found.is_dir(),
        });
        if fits {
            taken.extend_from_slice(path);
            taken.push(0);
        } else {
            left_out.push(String::from_utf8_lossy(path).into_owned());
        }
    }
    (taken, left_out)
}
