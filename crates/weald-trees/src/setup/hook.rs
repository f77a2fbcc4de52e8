//! The user's `post-checkout` hook, which git runs after `worktree add`: here in the new tree's sandbox.

use std::ffi::OsString;

use weald_core::tree::Tree;

use super::commands::Step;
use crate::Trees;
use crate::view::peek_head;
use weald_control::files;

impl Trees<'_> {
    /// The hook as a step, if there is one. Asks git only if some configuration may speak of another folder for hooks.
    pub(super) fn hook_step(&self, tree: &Tree) -> Option<Step> {
        let folder = match self.may_set("hookspath") {
            false => self.common_dir().join("hooks"),
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
}
