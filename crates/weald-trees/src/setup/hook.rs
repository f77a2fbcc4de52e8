//! The user's `post-checkout` hook, which git runs after `worktree add`: here in the new tree's sandbox.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use weald_core::tree::Tree;

use super::commands::Step;
use crate::Trees;
use crate::view::peek_head;
use weald_control::files;

/// The largest configuration file of git's that is looked through.
const LIMIT: u64 = 1 << 20;

impl Trees<'_> {
    /// The hook as a step, if there is one. Asks git only if some configuration may speak of another folder for hooks.
    pub(super) fn hook_step(&self, tree: &Tree) -> Option<Step> {
        let folder = match self.may_have_other_hooks() {
            false => self.place.repository().common_dir().join("hooks"),
            // Relative to the tree, in which it runs.
            true => tree.path.join(self.hooks().ok()??),
        };
        if !files::is_program(&folder.join("post-checkout")) {
            return None;
        }
        let opened = self.opened(tree).ok();
        let head = opened.and_then(|(_, door)| peek_head(&door));
        let head = &head.unwrap_or_else(|| tree.base.commit.clone());
        let nothing = "0".repeat(head.len());
        let words = [
            "git",
            "hook",
            "run",
            "--ignore-missing",
            "post-checkout",
            "--",
            &nothing,
            head,
            "1",
        ];
        Some(Step {
            told: "post-checkout hook".to_owned(),
            words: words.iter().map(OsString::from).collect(),
            is_hook: true,
        })
    }

    fn may_have_other_hooks(&self) -> bool {
        let home = self.host.home.as_deref();
        let named = |name: &str| {
            let known = self.host.environment.iter();
            let mut found = known.filter(|(known, _)| known == name);
            found.next().map(|(_, value)| PathBuf::from(value))
        };
        let user = named("XDG_CONFIG_HOME").or_else(|| Some(home?.join(".config")));
        let files = [
            Some(self.place.repository().common_dir().join("config")),
            Some(PathBuf::from("/etc/gitconfig")),
            home.map(|home| home.join(".gitconfig")),
            user.map(|user| user.join("git/config")),
        ];
        files.iter().flatten().any(|file| may_name_hooks(file))
    }
}

/// Whether a file of git's configuration names a folder for hooks, or further files.
fn may_name_hooks(file: &Path) -> bool {
    match files::read_small(file, LIMIT) {
        Ok(None) => false,
        Ok(Some(text)) => {
            let text = text.to_ascii_lowercase();
            text.contains("hookspath") || text.contains("[include")
        }
        Err(_) => true,
    }
}
