//! Merging without a checkout: `merge-tree` and `commit-tree` in a repository of weald's own.
//!
//! No configuration of the user is read, so no merge driver of anybody runs; attributes come from one commit that the
//! caller names. Conflicts are an answer, not an error.

use std::path::Path;

use crate::process::{Git, GitError};
use crate::reference::Commit;

#[derive(Debug, Clone, Copy)]
pub struct MergeRequest<'m> {
    /// The commit that it is merged into.
    pub ours: &'m str,
    /// The commit that comes in.
    pub theirs: &'m str,
    /// Where both started; `None` lets git find out.
    pub base: Option<&'m str>,
    /// The commit whose attributes count.
    pub attributes: &'m str,
}

/// What a merge came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merged {
    Clean {
        tree: String,
    },
    /// It does not merge.
    Conflict {
        /// The tree with conflict markers in it.
        tree: String,
        paths: Vec<String>,
    },
}

/// Who wrote or committed something, and when, as git says it: `Name`, `mail`, `seconds zone`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    pub name: String,
    pub mail: String,
    /// Seconds since 1970 and the zone, as `1700000000 +0100`; `None` is now.
    pub when: Option<String>,
}

/// A commit to be made.
#[derive(Debug, Clone)]
pub struct NewCommit<'c> {
    pub tree: &'c str,
    /// Its parents, in order.
    pub parents: &'c [&'c str],
    pub message: &'c str,
    pub author: &'c Person,
    pub committer: &'c Person,
}

/// Merges two commits in memory.
pub fn merge_trees(git_dir: &Path, request: MergeRequest<'_>) -> Result<Merged, GitError> {
    let mut git = Git::new(git_dir, "merge-tree")
        .env("GIT_ATTR_SOURCE", request.attributes)
        .args(["--write-tree", "-z", "--name-only", "--no-messages"]);
    if let Some(base) = request.base {
        git = git.args([format!("--merge-base={base}")]);
    }
    let output = git
        .args(["--end-of-options", request.ours, request.theirs])
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut fields = text.split('\0').filter(|field| !field.is_empty());
    let tree = fields
        .next()
        .and_then(Commit::parse)
        .map(|id| id.as_str().to_owned());
    match (output.status.code(), tree) {
        (Some(0), Some(tree)) => Ok(Merged::Clean { tree }),
        (Some(1), Some(tree)) => {
            let mut paths: Vec<_> = fields.map(str::to_owned).collect();
            paths.sort();
            paths.dedup();
            Ok(Merged::Conflict { tree, paths })
        }
        (Some(0 | 1), None) => {
            let start: String = text.chars().take(200).collect();
            Err(GitError::unexpected("merge-tree", start))
        }
        _ => Err(output.failure("merge-tree")),
    }
}

/// Makes a commit object; no ref moves.
pub fn commit_tree(git_dir: &Path, commit: &NewCommit<'_>) -> Result<String, GitError> {
    let mut git = Git::new(git_dir, "commit-tree").args([commit.tree]);
    for parent in commit.parents {
        git = git.args(["-p", parent]);
    }
    for (role, person) in [("AUTHOR", commit.author), ("COMMITTER", commit.committer)] {
        git = git
            .env(format!("GIT_{role}_NAME"), &person.name)
            .env(format!("GIT_{role}_EMAIL"), &person.mail);
        if let Some(when) = &person.when {
            git = git.env(format!("GIT_{role}_DATE"), format!("@{when}"));
        }
    }
    let answer = git.args(["-F", "-"]).input(commit.message).run()?;
    let text = String::from_utf8_lossy(&answer);
    match Commit::parse(text.trim()) {
        Some(id) => Ok(id.as_str().to_owned()),
        None => Err(GitError::unexpected("commit-tree", text)),
    }
}
