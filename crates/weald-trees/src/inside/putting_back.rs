//! Putting a snapshot back: HEAD, files and index as they were. What is in the way, or can't be had again, goes aside.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weald_sandbox::strip_set_id;

use super::aside::{Aside, Paths, Place, beside, free, lines};
use super::hidden::is_there;
use super::stream::quoted;
use super::{Access, InsideError, Job, Workplace};
use crate::untrusted::{MANY, Reply, keep_paths};

/// What goes aside is called so.
const SUFFIX: &str = ".before-restore";

/// Puts a snapshot back. Files that nothing holds, and that would be overwritten, go aside first.
#[derive(Serialize, Deserialize)]
pub struct RestoreSnapshot {
    pub commit: String,
    /// The snapshot of what is there now.
    pub before: String,
    /// What that one could not hold.
    pub unkept: Vec<String>,
    pub vault: PathBuf,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RestoreReply {
    /// Files that were set aside, by their new names.
    pub aside: Vec<String>,
}

impl Job for RestoreSnapshot {
    type Reply = RestoreReply;
    const ACCESS: Access = Access::Write;

    fn work(&self, at: &Workplace) -> Result<RestoreReply, InsideError> {
        let commit = &self.commit;
        let parent = at
            .git("rev-parse")
            .args(["-q", "--verify", &format!("{commit}^1")])
            .output()?;
        let parent = String::from_utf8_lossy(&parent.stdout)
            .trim_end()
            .to_owned();
        let (held, marked) = at.held_before(self)?;
        let mut places = at.places_of(&format!("{commit}:files"))?;
        if !parent.is_empty() {
            places.extend(at.places_of(&parent)?);
        }
        places.extend(marked.iter().map(|path| Place {
            path: path.clone(),
            is_module: false,
        }));
        let mut aside = Aside::new(&at.work_tree, SUFFIX, held);
        let done = aside
            .make_way(&places)
            .map_err(InsideError::from)
            .and_then(|()| at.unmark(&marked))
            .and_then(|()| at.put_all(commit, &parent));
        let aside = aside.put_back();
        done?;
        strip_set_id(&at.work_tree)?;
        Ok(RestoreReply { aside })
    }
}

impl Reply for RestoreReply {
    fn checked(mut self) -> Option<Self> {
        keep_paths(&mut self.aside, MANY);
        Some(self)
    }
}

impl Workplace {
    /// What can be had again: what the index or the snapshot before has. And paths that git was told not to look at.
    fn held_before(&self, order: &RestoreSnapshot) -> Result<(Paths, Paths), InsideError> {
        let (mut held, marked) = self.indexed()?;
        let mut vault = Vec::new();
        quoted(&mut vault, order.vault.as_os_str().as_bytes());
        let kept = self
            .git("ls-tree")
            .args([
                "-r",
                "-z",
                "--name-only",
                &format!("{}:files", order.before),
            ])
            .env(
                "GIT_ALTERNATE_OBJECT_DIRECTORIES",
                OsString::from_vec(vault),
            )
            .run()?;
        held.extend(lines(&kept).map(<[u8]>::to_vec));
        for path in &order.unkept {
            held.remove(path.as_bytes());
        }
        Ok((held, marked))
    }

    /// Takes marks off files that are there: git would leave those as they are. The snapshot's index has its own.
    fn unmark(&self, marked: &Paths) -> Result<(), InsideError> {
        let there: Paths = marked
            .iter()
            .filter(|path| is_there(&self.work_tree, path))
            .cloned()
            .collect();
        self.clear_marks(&self.git_dir.join("index"), &there)
    }

    fn put_all(&self, commit: &str, parent: &str) -> Result<(), InsideError> {
        let index = self.git_dir.join("index");
        self.set_operation_aside()?;
        if !parent.is_empty() {
            self.bring_large_files(parent)?;
            self.put_head(commit, parent)?;
            self.git("read-tree")
                .args(["--reset", "-u", "--no-recurse-submodules", parent])
                .run()?;
        }
        let from = match parent.is_empty() {
            true => self
                .git("hash-object")
                .args(["-t", "tree", "/dev/null"])
                .run()?,
            false => format!("{parent}^{{tree}}").into_bytes(),
        };
        let from = String::from_utf8_lossy(&from).trim_end().to_owned();
        let differences = self
            .git("diff-tree")
            .args([
                "-r",
                "-z",
                "--no-renames",
                &from,
                &format!("{commit}:files"),
            ])
            .run()?;
        let mut parts = lines(&differences);
        while let (Some(meta), Some(path)) = (parts.next(), parts.next()) {
            let meta = String::from_utf8_lossy(meta).into_owned();
            let fields: Vec<_> = meta.split(' ').collect();
            let [_, mode, _, id, _] = fields[..] else {
                continue;
            };
            let full = self.work_tree.join(OsString::from_vec(path.to_vec()));
            self.put(&full, mode, id)?;
        }
        let kept = self
            .git("cat-file")
            .args(["blob", &format!("{commit}:index")])
            .run()?;
        let building = self.git_dir.join("index.weald");
        fs::write(&building, kept)?;
        fs::rename(&building, &index)?;
        Ok(())
    }

    /// A directory where a file was, or a file where a directory was, goes aside.
    fn clear_way(&self, full: &Path) -> Result<(), InsideError> {
        let within = full.strip_prefix(&self.work_tree).unwrap_or(full);
        let above = within
            .ancestors()
            .skip(1)
            .filter(|path| !path.as_os_str().is_empty());
        let mut above: Vec<_> = above.map(|path| self.work_tree.join(path)).collect();
        above.reverse();
        for path in above {
            if path.symlink_metadata().is_ok_and(|found| !found.is_dir()) {
                move_away(&path, &beside(&path, SUFFIX))?;
            }
        }
        if full.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            move_away(full, &beside(full, SUFFIX))?;
        }
        Ok(())
    }

    /// HEAD as it was: on its branch, which goes back to its commit, or on the commit alone. Other branches stay.
    fn put_head(&self, commit: &str, parent: &str) -> Result<(), InsideError> {
        let kept = self
            .git("cat-file")
            .args(["blob", &format!("{commit}:head")])
            .run()?;
        let kept = String::from_utf8_lossy(&kept).trim_end().to_owned();
        match kept
            .strip_prefix("ref: ")
            .filter(|name| name.starts_with("refs/heads/"))
        {
            Some(branch) => {
                self.git("symbolic-ref").args(["HEAD", branch]).run()?;
                self.git("update-ref").args([branch, parent]).run()?;
            }
            None => {
                self.git("update-ref")
                    .args(["--no-deref", "HEAD", parent])
                    .run()?;
            }
        }
        Ok(())
    }

    /// A merge or rebase that is going on belongs to what is replaced; its files are kept beside.
    fn set_operation_aside(&self) -> Result<(), InsideError> {
        let aside = self.git_dir.join("weald-before-restore");
        for name in OPERATIONS {
            let file = self.git_dir.join(name);
            if file.symlink_metadata().is_ok() {
                fs::create_dir_all(&aside)?;
                move_away(&file, &aside.join(name))?;
            }
        }
        Ok(())
    }

    /// Writes one file of a snapshot as it was.
    fn put(&self, full: &Path, mode: &str, id: &str) -> Result<(), InsideError> {
        self.clear_way(full)?;
        let _ = fs::remove_file(full);
        if mode == "000000" || mode == "160000" {
            return Ok(());
        }
        if let Some(parent) = full.parent() {
            fs::create_dir_all(parent)?;
        }
        let content = self.git("cat-file").args(["blob", id]).run()?;
        if mode == "120000" {
            std::os::unix::fs::symlink(OsString::from_vec(content), full)?;
            return Ok(());
        }
        fs::write(full, content)?;
        let bits = if mode == "100755" { 0o755 } else { 0o644 };
        Ok(fs::set_permissions(full, fs::Permissions::from_mode(bits))?)
    }
}

/// What a merge, rebase, cherry-pick, revert or bisect leaves while it goes on.
const OPERATIONS: [&str; 9] = [
    "rebase-merge",
    "rebase-apply",
    "MERGE_HEAD",
    "MERGE_MSG",
    "MERGE_MODE",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "AUTO_MERGE",
    "sequencer",
];

/// Renames to a name that nobody has.
fn move_away(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, free(to)?)
}
