//! Files of git's configuration that have a say in main. Looked through as text, where asking git would cost a process.

use std::path::{Path, PathBuf};

use weald_control::files;

use super::Trees;

/// The largest one that is looked through.
const LIMIT: u64 = 1 << 20;

impl Trees<'_> {
    pub(crate) fn configurations(&self) -> Vec<PathBuf> {
        let common_dir = self.common_dir();
        let own = ["config", "config.worktree"].map(|file| common_dir.join(file));
        let home = self.host.home.as_ref().map(|home| home.join(".gitconfig"));
        let user = self.user_directory().map(|user| user.join("config"));
        let machine = ["/etc/gitconfig", "/usr/local/etc/gitconfig"].map(PathBuf::from);
        own.into_iter()
            .chain(home)
            .chain(user)
            .chain(machine)
            .collect()
    }

    /// Where git keeps the user's configuration.
    pub(crate) fn user_directory(&self) -> Option<PathBuf> {
        let configured = self.host.variable("XDG_CONFIG_HOME").map(PathBuf::from);
        let home = self.host.home.as_ref().map(|home| home.join(".config"));
        configured.or(home).map(|directory| directory.join("git"))
    }

    /// Whether main's or the user's configuration may set a key with this word, in lower case. If not, git need not be
    /// asked.
    pub(crate) fn may_set(&self, word: &str) -> bool {
        self.configurations().iter().any(|file| may_say(file, word))
    }
}

/// Whether a file names a key with this word, or further files. One that can't be read may.
pub(crate) fn may_say(file: &Path, word: &str) -> bool {
    match files::read_small_bytes(file, LIMIT) {
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes.unwrap_or_default()).to_lowercase();
            text.contains(word) || text.contains("[include")
        }
        Err(_) => true,
    }
}
