//! The ways in which commits are on a target that does not contain them, as git tells.
//!
//! Commits that change nothing say nothing: they are not on the target just because it does not miss them.

use std::collections::BTreeSet;
use std::path::Path;

use weald_core::landed::Landed;
use weald_git::Git;

use crate::trees::TreeError;

/// How much of the target's history, since both parted, is compared commit by commit.
const COMPARED: u64 = 5_000;

/// Commits of `tip` that none of `bases` has.
pub(super) fn count(git_dir: &Path, bases: &[&str], tip: &str) -> Result<u64, TreeError> {
    if bases.contains(&tip) {
        return Ok(0);
    }
    let answer = Git::new(git_dir, "rev-list")
        .args(["--count", "--end-of-options", tip])
        .args(without(bases))
        .run()?;
    Ok(number(&answer))
}

/// Those of `ids` that are here.
pub(super) fn present<'i>(
    git_dir: &Path,
    ids: impl Iterator<Item = &'i str>,
) -> Result<BTreeSet<String>, TreeError> {
    let asked: String = ids.map(|id| format!("{id}\n")).collect();
    let answer = Git::new(git_dir, "cat-file")
        .args(["--batch-check=%(objectname)"])
        .input(asked)
        .run()?;
    let text = String::from_utf8_lossy(&answer);
    let here = text.lines().filter(|line| !line.ends_with(" missing"));
    Ok(here.map(str::to_owned).collect())
}

/// Those of `commits`, which are here, that `tip` does not contain.
pub(super) fn lacking(
    git_dir: &Path,
    tip: &str,
    commits: &[&str],
) -> Result<BTreeSet<String>, TreeError> {
    let mut asked: String = commits.iter().map(|id| format!("{id}\n")).collect();
    asked.push_str(&format!("^{tip}\n"));
    let answer = Git::new(git_dir, "rev-list")
        .args(["--stdin"])
        .input(asked)
        .run()?;
    let text = String::from_utf8_lossy(&answer);
    Ok(text.lines().map(str::to_owned).collect())
}

/// How all of `tip`, but for what `had` has, came to `target`; `None` if it did not.
pub(super) fn way(
    git_dir: &Path,
    target: &str,
    had: &[&str],
    tip: &str,
) -> Result<Option<Landed>, TreeError> {
    let fork = Git::new(git_dir, "merge-base")
        .args([target, tip])
        .output()?;
    let fork = first_line(&fork.stdout);
    // Without a common start, or without news on the target, nothing of it can be there.
    if fork.is_empty() || fork == target {
        return Ok(None);
    }
    let is_comparable = count(git_dir, &[tip], target)? <= COMPARED;
    if is_comparable && has_patches(git_dir, target, had, tip)? {
        return Ok(Some(Landed::Patches));
    }
    let tree = tree_of(git_dir, tip)?;
    if tree_of(git_dir, &fork)? == tree {
        return Ok(None);
    }
    if is_comparable && looked_like(git_dir, &fork, target, &tree)? {
        return Ok(Some(Landed::SameTree));
    }
    let adds_nothing = adds_nothing(git_dir, target, tip)?;
    Ok(adds_nothing.then_some(Landed::AddsNothing))
}

/// Whether the target has a commit with the same change for each commit of `tip`. A merge or an empty commit has none.
fn has_patches(git_dir: &Path, target: &str, had: &[&str], tip: &str) -> Result<bool, TreeError> {
    let others: Vec<_> = had.iter().copied().filter(|id| *id != target).collect();
    let missing = Git::new(git_dir, "rev-list")
        .args(["--count", "--right-only", "--cherry-pick"])
        .args([format!("{target}...{tip}")])
        .args(without(&others))
        .output()?;
    // A partial clone may lack the files that would have to be compared.
    if !missing.status.success() || number(&missing.stdout) > 0 {
        return Ok(false);
    }
    let changing = Git::new(git_dir, "rev-list")
        .args(["--count", "--full-history", tip])
        .args(without(had))
        .args(["--", "."])
        .run()?;
    Ok(number(&changing) == count(git_dir, had, tip)?)
}

/// Whether a commit of the target since `fork` has this tree.
fn looked_like(git_dir: &Path, fork: &str, target: &str, tree: &str) -> Result<bool, TreeError> {
    let trees = Git::new(git_dir, "log")
        .args(["--format=%T", &format!("{fork}..{target}")])
        .run()?;
    let trees = String::from_utf8_lossy(&trees);
    Ok(trees.lines().any(|known| known == tree))
}

/// Whether merging `tip` into `target` would leave that as it is.
fn adds_nothing(git_dir: &Path, target: &str, tip: &str) -> Result<bool, TreeError> {
    let merged = Git::new(git_dir, "merge-tree")
        .args(["--write-tree", "--no-messages", "--end-of-options"])
        .args([target, tip])
        .output()?;
    Ok(merged.status.success() && first_line(&merged.stdout) == tree_of(git_dir, target)?)
}

fn tree_of(git_dir: &Path, commit: &str) -> Result<String, TreeError> {
    let answer = Git::new(git_dir, "rev-parse")
        .args([format!("{commit}^{{tree}}")])
        .run()?;
    Ok(first_line(&answer))
}

fn without<'b>(bases: &'b [&str]) -> impl Iterator<Item = String> + 'b {
    bases.iter().map(|base| format!("^{base}"))
}

fn first_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.lines().next().unwrap_or_default().to_owned()
}

/// A count; one that can't be read is no proof of anything.
pub(super) fn number(answer: &[u8]) -> u64 {
    String::from_utf8_lossy(answer)
        .trim()
        .parse()
        .unwrap_or(u64::MAX)
}
