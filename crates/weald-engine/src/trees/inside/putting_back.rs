//! Putting a snapshot back: HEAD, files and index as they were. What is in the way, or can't be had again, goes aside.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::{InsideError, Reply, Request, say};

impl Request {
    /// Puts a snapshot back. Files that no snapshot could hold, and that would be overwritten, go aside first.
    pub(super) fn restore_snapshot(
        &self,
        commit: &str,
        unkept: &[String],
    ) -> Result<(), InsideError> {
        let aside = self.set_aside(unkept)?;
        let parent = self
            .git("rev-parse")
            .args(["-q", "--verify", &format!("{commit}^1")])
            .output()?;
        let parent = String::from_utf8_lossy(&parent.stdout)
            .trim_end()
            .to_owned();
        let index = self.git_dir.join("index");
        self.set_operation_aside()?;
        if !parent.is_empty() {
            self.put_head(commit, &parent)?;
            self.git("read-tree")
                .args(["--reset", "-u", "--no-recurse-submodules", &parent])
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
        let mut parts = differences
            .split(|byte| *byte == 0)
            .filter(|part| !part.is_empty());
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
        // What the snapshot has nothing to say about is where it was.
        for (file, kept) in aside {
            if file.symlink_metadata().is_err() {
                fs::rename(kept, file)?;
            }
        }
        Ok(say(&Reply::default())?)
    }

    /// Renames files; answers where each was and is.
    fn set_aside(&self, paths: &[String]) -> Result<Vec<(PathBuf, PathBuf)>, InsideError> {
        let mut moved = Vec::new();
        for path in paths {
            let file = self.work_tree.join(path);
            if file.symlink_metadata().is_ok_and(|found| !found.is_dir()) {
                let to = move_away(&file, &beside(&file))?;
                moved.push((file, to));
            }
        }
        Ok(moved)
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
                move_away(&path, &beside(&path))?;
            }
        }
        if full.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            move_away(full, &beside(full))?;
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

fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".before-restore");
    path.with_file_name(name)
}

/// Renames to a name that nobody has, and answers it.
fn move_away(from: &Path, to: &Path) -> io::Result<PathBuf> {
    let free = (0..1000_u32)
        .map(|number| match number {
            0 => to.to_owned(),
            number => to.with_extension(format!("{number}")),
        })
        .find(|path| path.symlink_metadata().is_err());
    match free {
        Some(free) => fs::rename(from, &free).map(|()| free),
        None => Err(io::Error::other("too much is in the way")),
    }
}
