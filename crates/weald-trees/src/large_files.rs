//! Large files of Git LFS that a tree's commits point to: main has them, or gets them, before any ref of main names them.
//!
//! The host decides which ones it wants, from pointers that it has checked itself, asks for them by a visit, and hashes what
//! comes. Content that is missing or is not what its pointer names stays where it is: commits are imported all the same, and
//! a landing refuses them.
//!
//! `lfs.storage` gives no permission to write there: a run in a linked worktree can change main's settings.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use weald_core::config::LargeFilesPolicy;
use weald_core::tree::Tree;
use weald_git::{
    Door, Git, LargeFile, LargeFileError, LargeFileStore, MainRef, Vault, list_pointers,
};

use super::configurations::may_say;
use super::inside::{LACKING, SendLargeFiles};
use super::pool::{Population, Taken};
use super::site::Site;
use super::{TreeError, Trees, at};

/// How many large files one import asks for at most.
const FILES: usize = 100_000;

/// So many bytes are read, hashed and written in a second, at least.
const PACE: u64 = 10 << 20;

/// Where large files are taken from, and where they go.
pub(super) struct Source<'s> {
    /// The repository in the tree, relative to the tree's own.
    pub repository: &'s str,
    /// What holds its commits.
    pub vault: &'s Vault,
    pub main: &'s Path,
}

impl Trees<'_> {
    /// The folder of large files that git-lfs uses for a repository of the user's.
    pub fn large_files_of(&self, git_dir: &Path) -> Result<LargeFileStore, TreeError> {
        let named = match self.has_own_large_files(git_dir) {
            true => {
                let asked = Git::with_own_config(git_dir, "config")
                    .with_user_config(self.host.home.as_deref())
                    .env("GIT_CONFIG_NOSYSTEM", "0")
                    .args(["--includes", "--get", "lfs.storage"])
                    .output()?;
                String::from_utf8_lossy(&asked.stdout).trim_end().to_owned()
            }
            false => String::new(),
        };
        Ok(LargeFileStore::at(match named.as_str() {
            "" => git_dir.join("lfs"),
            named => git_dir.join(named),
        }))
    }

    /// Whether some configuration may name another folder of large files than the repository's own; git need not be asked
    /// otherwise.
    pub(super) fn has_own_large_files(&self, git_dir: &Path) -> bool {
        self.may_set("storage") || may_say(&git_dir.join("config"), "storage")
    }

    /// Whether what came from the pool lacks large files that main may have: a copy has the files of its checkout alone, and
    /// others were made when main lacked them.
    pub(super) fn wants_large_files(&self, tree: &Path, taken: &Taken) -> Result<bool, TreeError> {
        let main = self.common_dir();
        if self.config.tree_lfs != LargeFilesPolicy::Smudge || !self.large_files_of(main)?.exists()
        {
            return Ok(false);
        }
        let door = Door::open(tree).map_err(at(tree))?;
        let is_copy = taken.population == Population::Clone;
        Ok(is_copy || !door.is_absent(&format!(".git/{LACKING}")))
    }

    /// Takes over the large files of everything that a tree holds.
    pub(super) fn take_large_files_of<'r>(
        &self,
        tree: &Tree,
        site: &Site,
        held: impl Iterator<Item = &'r String>,
        mains: &[MainRef],
    ) -> Result<(), TreeError> {
        let target = self.target.iter().map(|(_, tip)| tip);
        let known = mains.iter().map(|known| &known.commit).chain(target);
        let known = known.chain([&tree.base.commit]).map(|id| format!("^{id}"));
        let source = Source {
            repository: "",
            vault: &self.vault(),
            main: self.common_dir(),
        };
        self.take_large_files(tree, site, &source, held.cloned().chain(known))
    }

    /// Takes over the large files that commits in a vault point to, if main lacks them and the tree has them.
    pub(super) fn take_large_files(
        &self,
        tree: &Tree,
        site: &Site,
        source: &Source<'_>,
        revisions: impl Iterator<Item = String>,
    ) -> Result<(), TreeError> {
        let place = PathBuf::from(".git").join(source.repository);
        let folder = place.join("lfs/objects").display().to_string();
        let door = Door::open(&site.path).map_err(at(&site.path))?;
        if !door.has_directory(&folder) {
            return Ok(());
        }
        let lines: String = revisions.map(|line| line + "\n").collect();
        let pointers = list_pointers(|name| source.vault.git(name), &lines)?;
        let store = self.large_files_of(source.main)?;
        let missing: BTreeSet<LargeFile> = pointers.into_values().collect();
        let missing: Vec<_> = missing
            .into_iter()
            .filter(|file| !store.holds(file))
            .collect();
        match missing.len() {
            0 => Ok(()),
            1..=FILES => self.fetch_large_files(tree, site, source, &store, &missing),
            many => Err(untaken(tree, &format!("it points to {many} large files"))),
        }
    }

    fn fetch_large_files(
        &self,
        tree: &Tree,
        site: &Site,
        source: &Source<'_>,
        store: &LargeFileStore,
        wanted: &[LargeFile],
    ) -> Result<(), TreeError> {
        let limit = self.config.tree_lfs_limit.unwrap_or(u64::MAX);
        let total = |files: &[&LargeFile]| {
            files
                .iter()
                .fold(0, |sum: u64, file| sum.saturating_add(file.size()))
        };
        let all = total(&wanted.iter().collect::<Vec<_>>()).min(limit);
        let job = SendLargeFiles {
            repository: source.repository.into(),
            files: wanted
                .iter()
                .map(|file| (file.id().to_owned(), file.size()))
                .collect(),
            limit,
        };
        let time = self.config.tree_look_limit.unsigned_abs() + Duration::from_secs(all / PACE);
        let name = tree.name.as_str();
        let mut visit = self.begin_visit_for(name, site, job, time)?;
        let here = visit.answer.iter().flat_map(|reply| &reply.here);
        let here = wanted.iter().zip(here).filter(|(_, here)| **here);
        let here: Vec<_> = here.map(|(file, _)| file).collect();
        let size = total(&here);
        if size > limit {
            visit.finish(name)?;
            let why = format!(
                "its large files have {size} bytes, more than tree.lfs_limit; to allow it: weald config set tree.lfs_limit SIZE"
            );
            return Err(untaken(tree, &why));
        }
        let Some(mut stream) = visit.pack() else {
            return Ok(());
        };
        let mut is_whole = true;
        for file in here {
            match store.receive(file, &mut stream) {
                // A landing says so.
                Ok(()) | Err(LargeFileError::Differs) => {}
                Err(LargeFileError::Short) => is_whole = false,
                Err(LargeFileError::File(error)) => {
                    let why = format!("{}: {error}", store.root().display());
                    return Err(untaken(tree, &why));
                }
            }
        }
        drop(stream);
        visit.finish(name)?;
        match is_whole {
            true => Ok(()),
            false => Err(untaken(tree, "a large file ended early")),
        }
    }
}

fn untaken(tree: &Tree, why: &str) -> TreeError {
    TreeError::unreadable(
        &tree.name,
        format!("its large files can't be imported: {why}"),
    )
}
