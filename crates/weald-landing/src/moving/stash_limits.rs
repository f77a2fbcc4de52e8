//! What a stash would lose: it puts tracked files back to the commit, and holds only what git sees as changed.
//!
//! Each of these refuses before anything moves.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::super::LandError;
use super::checkout::Checkout;
use super::perform::text_of;
use super::stage::Stage;
use super::users_git::ANSWER_LIMIT;
use crate::Landings;
use crate::refusal::{Loss, Refusal};
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
            let file = path_of(path);
            let paths = hidden.iter().map(|(path, _)| path.clone()).collect();
            return Err(unstashable(checkout, Loss::Hidden(file, bit), paths));
        }
        let killed = self.paths_in_checkout(checkout, &["ls-files", "--killed", "-z"])?;
        if let Some(path) = killed.first() {
            let path = String::from_utf8_lossy(path).into_owned();
            return Err(unstashable(checkout, Loss::Replaced(path), killed));
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
        if !left.is_empty() {
            return Err(Refusal::StashMisses(text_of(left)).into());
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
                let loss = Loss::Removed(path_of(path));
                Err(unstashable(checkout, loss, out))
            }
            None => Ok(()),
        }
    }

    /// Git keeps neither empty folders nor anything but files and links, and takes both away with untracked files.
    fn refuse_odd_files(&self, checkout: &Checkout) -> Result<(), LandError> {
        let args = ["ls-files", "-o", "--directory", "--exclude-standard", "-z"];
        let mut open: Vec<_> = self
            .paths_in_checkout(checkout, &args)?
            .iter()
            .map(|path| path_of(path))
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
                let paths = vec![path.as_os_str().as_bytes().to_vec()];
                return Err(unstashable(checkout, Loss::Odd(path), paths));
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
            let loss = Loss::Unlisted(answer.stderr);
            return Err(unstashable(checkout, loss, Vec::new()));
        }
        let paths = answer.stdout.split(|byte| *byte == 0);
        let paths = paths.filter(|path| !path.is_empty());
        Ok(paths.map(<[u8]>::to_vec).collect())
    }
}

pub(super) fn unstashable(checkout: &Checkout, loss: Loss, paths: Vec<Vec<u8>>) -> LandError {
    let paths: BTreeSet<_> = paths.into_iter().collect();
    Refusal::Unstashable(
        checkout.path.clone(),
        loss,
        text_of(paths.into_iter().collect()),
    )
    .into()
}

fn path_of(path: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(path))
}
