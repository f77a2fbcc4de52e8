//! What a landing touches, and whether anything of the user's is in its way.
//!
//! Where the index itself says that every touched file is as it was, nobody else is asked. Otherwise git compares, with
//! the user's own filters, and what it finds is refused by name.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use weald_git::{CheckoutIndex, Git};

use super::super::LandError;
use super::Move;
use super::checkout::Checkout;
use super::folder::{Folder, Stamp};
use super::known_index::KnownIndex;
use super::perform::{dirty, text_of};
use super::reserved::refuse_reserved;
use super::stage::Stage;
use super::touched::{self, Touched};
use super::users_git::UsersGit;
use crate::Landings;
use crate::refusal::Refusal;
use weald_trees::at;

/// What the landing touches, and what the checkout's files were before they were compared with the index.
pub(super) struct Examined {
    pub touched: Vec<Touched>,
    pub seen: BTreeMap<Vec<u8>, Stamp>,
    /// The index, if it alone told that nothing touched was changed.
    pub clean: Option<CheckoutIndex>,
}

impl Landings<'_> {
    /// What differs between the two tips of a move.
    pub(super) fn touched_by(&self, wanted: &Move) -> Result<Vec<Touched>, LandError> {
        let answer = self.difference(self.trees.vault().path(), &wanted.old, &wanted.new)?;
        let found = touched::parse(&answer)?.into_iter();
        Ok(found.map(|(_, one)| one).collect())
    }

    /// Finds out what the landing touches; refuses if anything of the user's is in its way.
    pub(super) fn examine(
        &self,
        wanted: &Move,
        checkout: &Checkout,
        stage: &Stage,
    ) -> Result<Examined, LandError> {
        let touched = self.touched_by(wanted)?;
        refuse_reserved(&touched)?;
        self.refuse_other_lanes(&checkout.path, &touched)?;
        let folder = Folder::open(&checkout.path).map_err(at(&checkout.path))?;
        // Before the comparison: what is written after this is seen as another file by the swap.
        let seen = touched::stamps(&folder, &touched).map_err(at(&checkout.path))?;
        let is_sha256 = wanted.old.len() == 64;
        let known = KnownIndex::read(&stage.index, is_sha256).map_err(at(&stage.index))?;
        let known = known.filter(|known| known.is_clean(&touched, &seen));
        let clean = match known {
            Some(known)
                if holds_old(&folder, &touched, is_sha256).map_err(at(&checkout.path))? =>
            {
                Some(known.into_entries())
            }
            _ => None,
        };
        let mut found = match clean {
            Some(_) => Vec::new(),
            None => self.changed_of(wanted, checkout, stage, (&touched, &seen))?,
        };
        found.extend(touched::in_the_way(&folder, &touched).map_err(at(&checkout.path))?);
        found.sort();
        found.dedup();
        match found.is_empty() {
            true => Ok(Examined {
                touched,
                seen,
                clean,
            }),
            false => Err(dirty(wanted, checkout, found)),
        }
    }

    /// What the user changed, staged or not, and the landing touches; as git sees it.
    fn changed_of(
        &self,
        wanted: &Move,
        checkout: &Checkout,
        stage: &Stage,
        (touched, seen): (&[Touched], &BTreeMap<Vec<u8>, Stamp>),
    ) -> Result<Vec<Vec<u8>>, LandError> {
        let answer = Git::new(&checkout.git_dir, "diff-index")
            .index_file(&stage.new_index())
            .args(["--cached", "-z", "--raw", "--no-renames", "--no-abbrev"])
            .args([&wanted.old])
            .run()?;
        let staged = touched::overlap(touched, &paths_of(checkout, &answer)?);
        if !staged.is_empty() {
            return Err(dirty(wanted, checkout, staged));
        }
        let paths: BTreeSet<&[u8]> = touched.iter().map(|one| one.path.as_slice()).collect();
        let hidden = self.forget_assumptions(checkout, stage, |path| paths.contains(path))?;
        forget_times(checkout, stage, touched, seen)?;
        let answer = self.unstaged(checkout, stage, &stage.new_index())?;
        set_bit(checkout, stage, "--skip-worktree", &hidden.skipped)?;
        Ok(touched::overlap(touched, &paths_of(checkout, &answer)?))
    }

    /// Files that differ from the index behind a bit that hides them from git, each with the name of that bit.
    pub(super) fn hidden_changes(
        &self,
        checkout: &Checkout,
        stage: &Stage,
    ) -> Result<Vec<(Vec<u8>, &'static str)>, LandError> {
        let hidden = self.forget_assumptions(checkout, stage, |_| true)?;
        if hidden.assumed.is_empty() && hidden.skipped.is_empty() {
            return Ok(Vec::new());
        }
        let changed = paths_of(
            checkout,
            &self.unstaged(checkout, stage, &stage.new_index())?,
        )?;
        let skipped = hidden.skipped.iter().map(|path| (path, "skip-worktree"));
        let assumed = hidden.assumed.iter().map(|path| (path, "assume-unchanged"));
        let all = skipped.chain(assumed);
        let all = all.filter(|(path, _)| changed.contains(*path));
        Ok(all.map(|(path, bit)| (path.clone(), bit)).collect())
    }

    /// What differs between an index in the stage and the files, by the user's own filters.
    pub(super) fn unstaged(
        &self,
        checkout: &Checkout,
        stage: &Stage,
        index: &Path,
    ) -> Result<Vec<u8>, LandError> {
        self.refresh(checkout, stage, index)?;
        let answer = self.users_git(&UsersGit {
            checkout,
            work_tree: &checkout.path,
            index: Some(index),
            write: vec![stage.path.clone()],
            args: &[
                "diff-files",
                "-z",
                "--raw",
                "--no-abbrev",
                "--ignore-submodules=all",
            ],
        })?;
        match answer.code {
            0 => Ok(answer.stdout),
            _ => Err(Refusal::TargetUnreadable(answer.stderr).into()),
        }
    }

    /// Brings the stat data of an index in the stage up to date. That files differ is no failure.
    pub(super) fn refresh(
        &self,
        checkout: &Checkout,
        stage: &Stage,
        index: &Path,
    ) -> Result<(), LandError> {
        let answer = self.users_git(&UsersGit {
            checkout,
            work_tree: &checkout.path,
            index: Some(index),
            write: vec![stage.path.clone()],
            args: &["update-index", "-q", "--refresh"],
        })?;
        match answer.code {
            0 | 1 => Ok(()),
            _ => Err(Refusal::TargetUnreadable(answer.stderr).into()),
        }
    }

    /// Entries that the user told git to take for unchanged, or not to look at, are compared, too, if they are `wanted` and,
    /// for the second kind, a file is there.
    fn forget_assumptions(
        &self,
        checkout: &Checkout,
        stage: &Stage,
        wanted: impl Fn(&[u8]) -> bool,
    ) -> Result<Hidden, LandError> {
        let listed = Git::new(&checkout.git_dir, "ls-files")
            .index_file(&stage.new_index())
            .args(["-v", "-z"])
            .run()?;
        let folder = Folder::open(&checkout.path).map_err(at(&checkout.path))?;
        let mut hidden = Hidden::default();
        for line in listed.split(|byte| *byte == 0) {
            let (Some(tag), Some(path)) = (line.first(), line.get(2..)) else {
                continue;
            };
            let is_skipped = tag.eq_ignore_ascii_case(&b'S');
            if !(is_skipped || tag.is_ascii_lowercase()) || !wanted(path) {
                continue;
            }
            let is_there = || folder.stamp(path).map_err(at(&checkout.path));
            if is_skipped && is_there()?.is_none() {
                continue;
            }
            if is_skipped {
                hidden.skipped.push(path.to_vec());
            }
            if tag.is_ascii_lowercase() {
                hidden.assumed.push(path.to_vec());
            }
        }
        set_bit(checkout, stage, "--no-assume-unchanged", &hidden.assumed)?;
        set_bit(checkout, stage, "--no-skip-worktree", &hidden.skipped)?;
        Ok(hidden)
    }
}

/// Entries whose changes the user told git not to see.
#[derive(Default)]
struct Hidden {
    assumed: Vec<Vec<u8>>,
    skipped: Vec<Vec<u8>>,
}

/// Whether the files that the landing touches hold what it starts from, byte for byte. The index is no proof of that: a run
/// in a linked worktree can write it.
fn holds_old(folder: &Folder, touched: &[Touched], is_sha256: bool) -> io::Result<bool> {
    for one in touched {
        let Some(side) = one.old.as_ref().filter(|side| !side.is_gitlink()) else {
            continue;
        };
        if folder.blob_id(&one.path, is_sha256)?.as_ref() != Some(&side.id) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Makes git read the files that the landing touches, whatever the index says of their times. Their entries hold what the
/// landing starts from.
fn forget_times(
    checkout: &Checkout,
    stage: &Stage,
    touched: &[Touched],
    seen: &BTreeMap<Vec<u8>, Stamp>,
) -> Result<(), LandError> {
    let mut lines = Vec::new();
    for one in touched.iter().filter(|one| seen.contains_key(&one.path)) {
        if let Some(side) = one.old.as_ref().filter(|side| !side.is_gitlink()) {
            lines.extend(format!("{} {}\t", side.mode, side.id).bytes());
            lines.extend_from_slice(&one.path);
            lines.push(0);
        }
    }
    if !lines.is_empty() {
        Git::new(&checkout.git_dir, "update-index")
            .index_file(&stage.new_index())
            .work_tree(&checkout.path)
            .args(["-z", "--index-info"])
            .input(lines)
            .run()?;
    }
    Ok(())
}

/// Sets or clears a bit of entries in the index in the making.
fn set_bit(
    checkout: &Checkout,
    stage: &Stage,
    bit: &str,
    entries: &[Vec<u8>],
) -> Result<(), LandError> {
    if entries.is_empty() {
        return Ok(());
    }
    let ended = entries.iter().flat_map(|path| [path.as_slice(), b"\0"]);
    Git::new(&checkout.git_dir, "update-index")
        .index_file(&stage.new_index())
        .work_tree(&checkout.path)
        .args([bit, "-z", "--stdin"])
        .input(ended.collect::<Vec<_>>().concat())
        .run()?;
    Ok(())
}

/// The paths of raw differences; unmerged ones refuse.
fn paths_of(checkout: &Checkout, raw: &[u8]) -> Result<BTreeSet<Vec<u8>>, LandError> {
    let found = touched::parse(raw)?;
    let open: BTreeSet<_> = found
        .iter()
        .filter(|(status, _)| *status == 'U')
        .map(|(_, one)| one.path.clone())
        .collect();
    match open.is_empty() {
        true => Ok(found.into_iter().map(|(_, one)| one.path).collect()),
        // They are something that goes on, whatever became of its files.
        false => Err(Refusal::TargetUnmerged(
            checkout.path.clone(),
            text_of(open.into_iter().collect()),
        )
        .into()),
    }
}
