//! What a stash would lose: it puts tracked files back to the commit, and holds only what git sees as changed.
//!
//! Each of these refuses before anything moves.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use weald_core::kept_change::quoted;

use super::super::LandError;
use super::checkout::Checkout;
use super::perform::text_of;
use super::stage::Stage;
use super::users_git::ANSWER_LIMIT;
use crate::Landings;
use weald_trees::at;

impl Landings<'_> {
    /// Refuses while the checkout holds something that a stash would lose, or would not take though it is in the way. It
    /// takes untracked files if any are.
    pub(super) fn refuse_unstashable(
        &self,
        checkout: &Checkout,
        stage: &Stage,
        in_the_way: &[Vec<u8>],
    ) -> Result<(), LandError> {
        stage.begin().map_err(at(&stage.path))?;
        let hidden = self.hidden_changes(checkout, stage)?;
        if let Some((path, bit)) = hidden.first() {
            let file = Path::new(OsStr::from_bytes(path));
            let why = format!(
                "{} is changed, but git is set to ignore that",
                file.display()
            );
            let command = format!("update-index --no-{bit} -- {}", quoted(file));
            let paths = hidden.iter().map(|(path, _)| path.clone()).collect();
            return Err(unstashable(checkout, &why, &command, paths));
        }
        let killed = self.paths_in_checkout(checkout, &["ls-files", "--killed", "-z"])?;
        if let Some(path) = killed.first() {
            let path = String::from_utf8_lossy(path).into_owned();
            let why = format!("{path} replaces a tracked file or folder");
            return Err(unstashable(checkout, &why, "status", killed));
        }
        if !in_the_way.is_empty() {
            self.refuse_not_taken(checkout, in_the_way)?;
            self.refuse_odd_files(checkout)?;
        }
        Ok(())
    }

    /// A stash leaves ignored files and other repositories where they are. And of a file that was taken out of the index
    /// alone it keeps two copies, which are in each other's way when it is put back.
    fn refuse_not_taken(
        &self,
        checkout: &Checkout,
        in_the_way: &[Vec<u8>],
    ) -> Result<(), LandError> {
        let list = |args: &[&str]| self.paths_in_checkout(checkout, args);
        let untracked = list(&["ls-files", "-o", "--exclude-standard", "-z"])?;
        let untracked: BTreeSet<_> = untracked.into_iter().collect();
        let tracked: BTreeSet<_> = list(&["ls-files", "-z"])?.into_iter().collect();
        let left = in_the_way.iter();
        let left = left.filter(|path| !untracked.contains(*path) && !tracked.contains(*path));
        let left: Vec<_> = left.cloned().collect();
        if let Some(first) = left.first() {
            let first = String::from_utf8_lossy(first).into_owned();
            return Err(LandError::refused(
                "target_dirty",
                format!("{first} is in the way and can't be stashed (git ignores it, or it is in a nested repository); nothing was changed"),
            )
            .hint("move those files out of the way, then land again")
            .paths(text_of(left)));
        }
        let args = [
            "diff-index",
            "--cached",
            "--diff-filter=D",
            "--name-only",
            "-z",
            "HEAD",
        ];
        let out = list(&args)?.into_iter();
        let out: Vec<_> = out.filter(|path| untracked.contains(path)).collect();
        match out.first() {
            Some(path) => {
                let file = Path::new(OsStr::from_bytes(path));
                let why = format!(
                    "{} was removed from the index but still exists",
                    file.display()
                );
                let command = format!("add -- {}", quoted(file));
                Err(unstashable(checkout, &why, &command, out))
            }
            None => Ok(()),
        }
    }

    /// Git keeps neither empty folders nor anything but files and links, and takes both away with untracked files.
    fn refuse_odd_files(&self, checkout: &Checkout) -> Result<(), LandError> {
        let args = ["ls-files", "-o", "--directory", "--exclude-standard", "-z"];
        let top = |path: &Vec<u8>| PathBuf::from(OsStr::from_bytes(path));
        let mut open: Vec<_> = self
            .paths_in_checkout(checkout, &args)?
            .iter()
            .map(top)
            .collect();
        while let Some(path) = open.pop() {
            let place = checkout.path.join(&path);
            let Ok(found) = place.symlink_metadata() else {
                continue;
            };
            let mut below = Vec::new();
            if found.is_dir() {
                let entries = fs::read_dir(&place).map_err(at(&place))?.flatten();
                below.extend(entries.map(|entry| path.join(entry.file_name())));
                // A repository of its own stays where it is.
                if below.iter().any(|path| path.ends_with(".git")) {
                    continue;
                }
            }
            if below.is_empty() && !found.is_file() && !found.is_symlink() {
                let why = format!("a stash does not keep {}", path.display());
                let paths = vec![path.as_os_str().as_bytes().to_vec()];
                return Err(unstashable(checkout, &why, "status", paths));
            }
            open.extend(below);
        }
        Ok(())
    }

    /// The paths that git lists in the checkout, all of them.
    pub(super) fn paths_in_checkout(
        &self,
        checkout: &Checkout,
        args: &[&str],
    ) -> Result<Vec<Vec<u8>>, LandError> {
        let answer = self.git_in_checkout(checkout, args)?;
        if answer.code != 0 || answer.stdout.len() as u64 >= ANSWER_LIMIT {
            let why = format!("git can't list its changes: {}", answer.stderr);
            return Err(unstashable(checkout, &why, "status", Vec::new()));
        }
        let paths = answer.stdout.split(|byte| *byte == 0);
        let paths = paths.filter(|path| !path.is_empty());
        Ok(paths.map(<[u8]>::to_vec).collect())
    }
}

/// The refusal, with the git command that helps.
pub(super) fn unstashable(
    checkout: &Checkout,
    why: &str,
    command: &str,
    paths: Vec<Vec<u8>>,
) -> LandError {
    let paths: BTreeSet<_> = paths.into_iter().collect();
    let place = quoted(&checkout.path);
    LandError::refused(
        "target_dirty",
        format!("the checkout can't be stashed without loss: {why}; nothing was changed"),
    )
    .hint(format!("git -C {place} {command}, then land again"))
    .paths(text_of(paths.into_iter().collect()))
}
