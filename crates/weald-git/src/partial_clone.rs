//! Partial clones: a main whose objects are partly on a remote.

use std::path::Path;
use std::time::Duration;

use crate::object_stores::{object_stores, packs_of};
use crate::process::Git;
use crate::vault::{Vault, VaultError};

/// How long walks and fetches may take.
const TIME_LIMIT: Duration = Duration::from_secs(1800);

impl Vault {
    fn main_is_partial(&self) -> bool {
        packs_of(&object_stores(&self.main))
            .iter()
            .any(|pack| pack.with_extension("promisor").exists())
    }

    /// Fetches what a partial clone lacks of one commit, as the user's own git would; the network is asked.
    pub fn complete_checkout(&self, commit: &str, home: Option<&Path>) -> Result<(), VaultError> {
        if !self.main_is_partial() {
            return Ok(());
        }
        let answer = Git::new(&self.main, "rev-list")
            .args(["--objects", "--missing=print", "--no-walk", commit])
            .limit(TIME_LIMIT)
            .run()?;
        let text = String::from_utf8_lossy(&answer);
        let missing: Vec<_> = text
            .lines()
            .filter_map(|line| line.strip_prefix('?'))
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        // Reading an object makes git fetch it, with whatever the user set up for their remote.
        Git::with_own_config(&self.main, "cat-file")
            .with_user_config(home)
            .env("GIT_NO_LAZY_FETCH", "0")
            .args(["--batch-check"])
            .input(missing.join("\n") + "\n")
            .limit(TIME_LIMIT)
            .run()?;
        Ok(())
    }

    /// Refuses a partial clone that lacks something of what is wanted.
    pub(crate) fn require_complete_main(&self, wanted: &[&str]) -> Result<(), VaultError> {
        if !self.main_is_partial() {
            return Ok(());
        }
        for name in wanted {
            let answer = Git::new(&self.main, "rev-list")
                .args(["--objects", "--missing=print", "--end-of-options", name])
                .limit(TIME_LIMIT)
                .run()?;
            let missing = answer
                .split(|byte| *byte == b'\n')
                .filter(|line| line.starts_with(b"?"))
                .count();
            if missing > 0 {
                return Err(VaultError::Partial {
                    missing,
                    name: (*name).to_owned(),
                });
            }
        }
        Ok(())
    }
}
