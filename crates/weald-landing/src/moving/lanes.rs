//! A landing stays in its lane: where worktrees lie in the checkout, it brings nothing into their folders, whatever paths it
//! names, and nothing into a `.git` of any case.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::super::LandError;
use super::touched::Touched;
use crate::Landings;
use crate::refusal::Refusal;
use weald_control::marker::is_marked;
use weald_trees::at;

/// Folders below a checkout that no landing writes to, relative to it.
struct Lanes {
    /// Where weald makes worktrees, trash and gates: nothing comes there.
    roots: Vec<PathBuf>,
    /// Worktrees, weald's or not: nothing comes there, and nothing goes from there.
    worktrees: Vec<PathBuf>,
}

impl Landings<'_> {
    /// Refuses a landing that would write into a worktree, or where weald makes them.
    pub(super) fn refuse_other_lanes(
        &self,
        checkout: &Path,
        touched: &[Touched],
    ) -> Result<(), LandError> {
        let lanes = self.lanes(checkout)?;
        let found: Vec<_> = touched.iter().filter(|one| lanes.blocks(one)).collect();
        if found.is_empty() {
            return Ok(());
        }
        let text = |one: &&Touched| String::from_utf8_lossy(&one.path).into_owned();
        Err(Refusal::PathInWorktree(found.iter().map(text).collect()).into())
    }

    fn lanes(&self, checkout: &Path) -> Result<Lanes, LandError> {
        let inside = |path: &Path| {
            let inside = path.strip_prefix(checkout).ok()?;
            (!inside.as_os_str().is_empty()).then(|| inside.to_owned())
        };
        let known = self.trees.records()?;
        // Also where they were made under another `tree.path`: a folder that weald marked as its own.
        let mut roots = self.trees.tree_roots()?;
        let earlier = known.iter().filter_map(|tree| tree.path.parent());
        roots.extend(earlier.filter(|root| is_marked(root)).map(Path::to_owned));
        roots.sort();
        roots.dedup();
        for root in roots.clone() {
            roots.extend([".trash", weald_trees::GATES].map(|name| root.join(name)));
        }
        let registrations = self.trees.registrations();
        let listed = registrations
            .list()
            .map_err(at(&registrations.directory("")))?;
        let registered = listed.iter().filter_map(|known| known.path());
        let trashed = known
            .iter()
            .filter_map(|tree| Some(&*tree.trash.as_ref()?.path));
        let live = known.iter().filter(|tree| tree.is_live());
        let on_record = live.map(|tree| tree.path.as_path()).chain(trashed);
        let worktrees = registered.map(AsRef::as_ref).chain(on_record);
        Ok(Lanes {
            roots: roots.iter().filter_map(|root| inside(root)).collect(),
            worktrees: worktrees.filter_map(inside).collect(),
        })
    }
}

impl Lanes {
    fn blocks(&self, one: &Touched) -> bool {
        let meets = |lane: &PathBuf| {
            let lane = lane.as_os_str().as_bytes();
            // At its place, in it, or a file where a folder on the way to it is.
            is_at_or_below(&one.path, lane) || is_at_or_below(lane, &one.path)
        };
        let comes = one.new.is_some();
        let mut parts = one.path.split(|byte| *byte == b'/');
        let is_git = parts.any(|part| part.eq_ignore_ascii_case(b".git"));
        (comes && (is_git || self.roots.iter().any(meets))) || self.worktrees.iter().any(meets)
    }
}

/// Whether a path is another one, or lies below it, on a file system that may ignore case.
fn is_at_or_below(path: &[u8], above: &[u8]) -> bool {
    let (head, rest) = path.split_at(above.len().min(path.len()));
    head.eq_ignore_ascii_case(above) && matches!(rest.first(), None | Some(b'/'))
}

#[cfg(test)]
mod tests {
    use super::super::touched::Side;
    use super::*;

    #[test]
    fn x25_what_lies_in_a_lane_is_told_from_what_does_not() {
        let lanes = Lanes {
            roots: vec![
                ".claude/worktrees".into(),
                ".claude/worktrees/.trash".into(),
            ],
            worktrees: vec![".claude/worktrees/a".into(), "own".into()],
        };
        let side = || Side {
            mode: "100644".to_owned(),
            id: "1".repeat(40),
        };
        for (path, added, removed) in [
            (".claude/worktrees/a/f", true, true),
            (".claude/worktrees/b/f", true, false),
            (".claude/worktrees/.trash/x", true, false),
            (".claude/worktrees", true, true),
            (".claude", true, true),
            (".Claude/Worktrees/a", true, true),
            ("own/.git/config", true, true),
            ("own/x", true, true),
            ("sub/.GIT/hooks/x", true, false),
            (".claude/settings.json", false, false),
            (".claude/worktrees-of-mine", false, false),
            ("owner", false, false),
            ("src/own", false, false),
        ] {
            let touched = |old, new| Touched {
                path: path.into(),
                old,
                new,
            };
            let blocked = |one: Touched| lanes.blocks(&one);
            assert_eq!(blocked(touched(None, Some(side()))), added, "{path}");
            assert_eq!(blocked(touched(Some(side()), None)), removed, "{path}");
        }
    }
}
