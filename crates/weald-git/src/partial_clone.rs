//! Partial clones: a main whose objects are partly on a remote.
//!
//! The vault takes what main has. Of a commit that is checked out somewhere every file is fetched first, into main, by the
//! user's own git; blobs of older history that main never had are not in the vault either. Its packs carry main's
//! promise (`.promisor`), so that git in a tree knows that such a blob is elsewhere, and asks the remote or says so.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::object_stores::{object_stores, packs_of};
use crate::process::{Git, GitError};
use crate::reference::MainRef;
use crate::vault::{Vault, VaultError};

/// How long walks and fetches may take.
const TIME_LIMIT: Duration = Duration::from_secs(1800);

/// Lets a git command be the user's own: their configuration, and what their credentials need.
pub type AsUser<'a> = &'a dyn Fn(Git) -> Git;

impl Vault {
    /// Whether main lacks objects that a remote has promised.
    pub fn main_is_partial(&self) -> bool {
        packs_of(&object_stores(&self.main))
            .iter()
            .any(|pack| pack.with_extension("promisor").exists())
    }

    /// Fetches what a partial clone lacks of one commit, as the user's own git would; the network is asked.
    pub fn complete_checkout(&self, commit: &str, as_user: AsUser<'_>) -> Result<(), VaultError> {
        if !self.main_is_partial() {
            return Ok(());
        }
        let missing = lacking(&self.main, commit)?;
        if missing.is_empty() {
            return Ok(());
        }
        let mut failed = None;
        for remote in self.promisors()? {
            // All of them at once, as git itself does before a checkout.
            let fetch = Git::new(&self.main, "fetch")
                .args(["--quiet", "--no-tags", "--no-write-fetch-head"])
                .args(["--no-auto-maintenance", "--no-recurse-submodules"])
                .args(["--filter=blob:none", "--stdin", &remote])
                .config("fetch.negotiationAlgorithm", "noop")
                .input(missing.join("\n") + "\n")
                .limit(TIME_LIMIT);
            match as_user(fetch).run() {
                Ok(_) => return Ok(()),
                Err(error) => failed = Some(error.to_string()),
            }
        }
        Err(VaultError::Partial {
            missing: missing.len(),
            name: commit.to_owned(),
            why: failed.unwrap_or_else(|| "no remote has promised them".to_owned()),
        })
    }

    /// Makes sure that every file of a commit is here, though main may be a partial clone.
    pub fn require_files(
        &self,
        refs: &[MainRef],
        commit: &str,
        as_user: AsUser<'_>,
    ) -> Result<(), VaultError> {
        if !self.main_is_partial() || lacking(&self.path, commit)?.is_empty() {
            return Ok(());
        }
        self.complete_checkout(commit, as_user)?;
        self.locked(|| self.feed(false, refs, &[commit]).map(drop))?;
        match lacking(&self.path, commit)?.len() {
            0 => Ok(()),
            missing => Err(VaultError::Partial {
                missing,
                name: commit.to_owned(),
                why: "they did not arrive".to_owned(),
            }),
        }
    }

    /// Marks a pack that was made from main's objects, where main lacks some that they need.
    pub(crate) fn promise(&self, pack: &Path) -> Result<(), VaultError> {
        let file = pack.with_extension("promisor");
        fs::write(&file, "").map_err(VaultError::file(file))
    }

    /// Remotes of main that hold what it lacks.
    fn promisors(&self) -> Result<Vec<String>, GitError> {
        let asked = Git::new(&self.main, "config")
            .args(["--type=bool", "--get-regexp", r"^remote\..*\.promisor$"])
            .output()?;
        let text = String::from_utf8_lossy(&asked.stdout);
        let named = text.lines().filter_map(|line| {
            let key = line.strip_suffix(" true")?.strip_prefix("remote.")?;
            Some(key.strip_suffix(".promisor")?.to_owned())
        });
        Ok(named.filter(|name| !name.starts_with('-')).collect())
    }
}

/// What a repository lacks of one commit's own files.
fn lacking(git_dir: &Path, commit: &str) -> Result<Vec<String>, GitError> {
    let answer = Git::new(git_dir, "rev-list")
        .args(["--objects", "--missing=print", "--no-walk", commit])
        .limit(TIME_LIMIT)
        .run()?;
    let text = String::from_utf8_lossy(&answer);
    let missing = text.lines().filter_map(|line| line.strip_prefix('?'));
    Ok(missing.map(str::to_owned).collect())
}
