//! The ways in which commits are on a target that does not contain them, as git tells.
//!
//! Commits that change nothing say nothing: they are not on the target just because it does not miss them.

use std::collections::BTreeSet;

use weald_core::landed::Landed;

use super::comparing::Comparing;
use crate::TreeError;

/// How much of the target's history, since both parted, is compared commit by commit.
const COMPARED: u64 = 5_000;

/// Commits of `tip` that none of `bases` has.
pub(super) fn count(place: &Comparing, bases: &[&str], tip: &str) -> Result<u64, TreeError> {
    if bases.contains(&tip) {
        return Ok(0);
    }
    let answer = place
        .git("rev-list")
        .args(["--count", "--end-of-options", tip])
        .args(without(bases))
        .run()?;
    number(&answer)
}

/// Those of `ids` that are here.
pub(super) fn present<'i>(
    place: &Comparing,
    ids: impl Iterator<Item = &'i str>,
) -> Result<BTreeSet<String>, TreeError> {
    let asked: String = ids.map(|id| format!("{id}\n")).collect();
    let text = place
        .git("cat-file")
        .args(["--batch-check=%(objectname)"])
        .input(asked)
        .text()?;
    let here = text.lines().filter(|line| !line.ends_with(" missing"));
    Ok(here.map(str::to_owned).collect())
}

/// Everything behind `commits`, which are here, that none of `tips` contains.
pub(super) fn lacking(
    place: &Comparing,
    tips: &[&str],
    commits: &[&str],
) -> Result<BTreeSet<String>, TreeError> {
    let mut asked: String = commits.iter().map(|id| format!("{id}\n")).collect();
    asked.extend(tips.iter().map(|tip| format!("^{tip}\n")));
    let text = place
        .git("rev-list")
        .args(["--stdin"])
        .input(asked)
        .text()?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// How all of `tip`, but for what `had` has, came to `target`; `None` if it did not.
pub(super) fn way(
    place: &Comparing,
    target: &str,
    had: &[&str],
    tip: &str,
) -> Result<Option<Landed>, TreeError> {
    let fork = parting(place, target, tip)?;
    // Without a common start, or without news on the target, nothing of it can be there.
    if fork.is_empty() || fork == target {
        return Ok(None);
    }
    let is_comparable = count(place, &[tip], target)? <= COMPARED;
    if is_comparable && has_patches(place, target, had, tip)? {
        return Ok(Some(Landed::Patches));
    }
    let tree = tree_of(place, tip)?;
    if tree_of(place, &fork)? == tree {
        return Ok(None);
    }
    if is_comparable && looked_like(place, &fork, target, &tree)? {
        return Ok(Some(Landed::SameTree));
    }
    let adds_nothing = adds_nothing(place, target, None, tip)?;
    Ok(adds_nothing.then_some(Landed::AddsNothing))
}

/// Where two histories part; empty if they have nothing in common.
pub(super) fn parting(place: &Comparing, one: &str, other: &str) -> Result<String, TreeError> {
    let found = place.git("merge-base").args([one, other]).output()?;
    Ok(first_line(&found.stdout))
}

/// Whether the target has a commit with the same change for each commit of `tip`. A merge or an empty commit has none.
fn has_patches(
    place: &Comparing,
    target: &str,
    had: &[&str],
    tip: &str,
) -> Result<bool, TreeError> {
    let others: Vec<_> = had.iter().copied().filter(|id| *id != target).collect();
    let missing = place
        .git("rev-list")
        .args(["--count", "--right-only", "--cherry-pick"])
        .args([format!("{target}...{tip}")])
        .args(without(&others))
        .output()?;
    // A partial clone may lack the files that would have to be compared.
    if !missing.status.success() || number(&missing.stdout)? > 0 {
        return Ok(false);
    }
    let changing = place
        .git("rev-list")
        .args(["--count", "--full-history", tip])
        .args(without(had))
        .args(["--", "."])
        .run()?;
    Ok(number(&changing)? == count(place, had, tip)?)
}

/// Whether a commit of the target since `fork` has this tree.
fn looked_like(place: &Comparing, fork: &str, target: &str, tree: &str) -> Result<bool, TreeError> {
    let trees = place
        .git("log")
        .args(["--format=%T", &format!("{fork}..{target}")])
        .text()?;
    Ok(trees.lines().any(|known| known == tree))
}

/// Whether merging `tip` into `target` would leave that as it is. `base` is where both started; without one git finds out.
pub(super) fn adds_nothing(
    place: &Comparing,
    target: &str,
    base: Option<&str>,
    tip: &str,
) -> Result<bool, TreeError> {
    let merged = place
        .git("merge-tree")
        .args(["--write-tree", "--no-messages"])
        .args(base.map(|base| format!("--merge-base={base}")))
        .args(["--end-of-options", target, tip])
        .output()?;
    Ok(merged.status.success() && first_line(&merged.stdout) == tree_of(place, target)?)
}

fn tree_of(place: &Comparing, commit: &str) -> Result<String, TreeError> {
    let answer = place
        .git("rev-parse")
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
pub(super) fn number(answer: &[u8]) -> Result<u64, TreeError> {
    Ok(weald_git::counted("rev-list", answer)?)
}
