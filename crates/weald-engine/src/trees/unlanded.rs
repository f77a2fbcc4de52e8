//! What of a tree's work the target does not have.
//!
//! Judged by the commits themselves, never by an upstream. After a squash the commits are not on the target, but merging
//! them would change nothing: that counts as landed, too.

use std::path::{Path, PathBuf};

use weald_core::tree::{Tree, TreeKind};
use weald_git::Git;

use super::{TreeError, Trees};

impl Trees<'_> {
    /// Where the commits of a tree can be compared with the target.
    pub(crate) fn comparing(&self, tree: &Tree) -> PathBuf {
        match tree.kind {
            TreeKind::Sealed => self.vault().path().to_owned(),
            TreeKind::Linked => self.place.repository().common_dir().to_owned(),
        }
    }

    /// The target's tip, present where it is compared.
    pub(crate) fn target_tip(&self, tree: &Tree) -> Result<Option<String>, TreeError> {
        let Some(target) = self.place.repository().target(&tree.target)? else {
            return Ok(None);
        };
        let tip = target.tip.as_str().to_owned();
        if tree.kind == TreeKind::Sealed {
            self.vault().require(&self.main_refs()?, &[&tip])?;
        }
        Ok(Some(tip))
    }

    /// How many commits of `tips` the target lacks, counting nothing whose content is on it.
    pub(crate) fn unlanded(&self, tree: &Tree, tips: &[String]) -> Result<u64, TreeError> {
        let place = self.comparing(tree);
        let base = self
            .target_tip(tree)?
            .unwrap_or_else(|| tree.base.commit.clone());
        let mut had = vec![base.as_str()];
        had.extend(self.base_on_remote(tree)?);
        let mut open = Vec::new();
        for tip in tips {
            let count = count(&place, &had, tip)?;
            if count > 0 && !adds_nothing(&place, &base, tip)? {
                open.push(tip.as_str());
            }
        }
        match open.is_empty() {
            true => Ok(0),
            false => {
                let mut input: String = had.iter().map(|id| format!("^{id}\n")).collect();
                input.push_str(&open.join("\n"));
                input.push('\n');
                let answer = Git::new(&place, "rev-list")
                    .args(["--count", "--stdin"])
                    .input(input)
                    .run()?;
                Ok(number(&answer))
            }
        }
    }

    /// The commit that a tree started from, if a remote has it: the target here may be behind that.
    fn base_on_remote<'t>(&self, tree: &'t Tree) -> Result<Option<&'t str>, TreeError> {
        let tracking = format!("refs/remotes/{}", tree.base.reference);
        let is_seen = self.place.repository().resolve(&tracking)?.is_some();
        Ok(is_seen.then_some(tree.base.commit.as_str()))
    }

    /// How far a tree is ahead of its base and behind its target.
    pub(crate) fn distance(&self, tree: &Tree, head: &str) -> Result<(u64, u64), TreeError> {
        let place = self.comparing(tree);
        let ahead = count(&place, &[&tree.base.commit], head)?;
        let behind = match self.target_tip(tree)? {
            Some(tip) => count(&place, &[head], &tip)?,
            None => 0,
        };
        Ok((ahead, behind))
    }
}

/// Commits of `tip` that none of `bases` has.
fn count(git_dir: &Path, bases: &[&str], tip: &str) -> Result<u64, TreeError> {
    if bases.contains(&tip) {
        return Ok(0);
    }
    let answer = Git::new(git_dir, "rev-list")
        .args(["--count", "--end-of-options", tip])
        .args(bases.iter().map(|base| format!("^{base}")))
        .run()?;
    Ok(number(&answer))
}

/// Whether `tip` changes something, and merging it into `base` would still leave `base` as it is. Commits that change
/// nothing say nothing: they are not on the target just because it does not miss them.
fn adds_nothing(git_dir: &Path, base: &str, tip: &str) -> Result<bool, TreeError> {
    let merged = Git::new(git_dir, "merge-tree")
        .args([
            "--write-tree",
            "--no-messages",
            "--end-of-options",
            base,
            tip,
        ])
        .output()?;
    let fork = Git::new(git_dir, "merge-base").args([base, tip]).output()?;
    if !merged.status.success() || !fork.status.success() {
        return Ok(false);
    }
    let fork = first_line(&fork.stdout);
    let is_empty = tree_of(git_dir, &fork)? == tree_of(git_dir, tip)?;
    Ok(!is_empty && first_line(&merged.stdout) == tree_of(git_dir, base)?)
}

fn tree_of(git_dir: &Path, commit: &str) -> Result<String, TreeError> {
    let answer = Git::new(git_dir, "rev-parse")
        .args([format!("{commit}^{{tree}}")])
        .run()?;
    Ok(first_line(&answer))
}

fn first_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.lines().next().unwrap_or_default().to_owned()
}

fn number(answer: &[u8]) -> u64 {
    String::from_utf8_lossy(answer).trim().parse().unwrap_or(0)
}
