//! The user's own files come back to their places after a stash was put back.
//!
//! The user may save at any moment. So a file changes places with what lies there only if that is what git put there, and
//! what came out of its place is looked at again. What somebody wrote meanwhile stays, and the file as it was before is
//! rescued.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use weald_core::id::LandingId;
use weald_git::Git;

use super::super::LandError;
use super::Move;
use super::checkout::Checkout;
use super::folder::{Folder, Stamp};
use super::originals::{Original, Originals};
use super::stage::Stage;
use super::swap::Left;
use super::touched;
use crate::Landings;
use weald_control::steps::step;
use weald_trees::at;

/// A checkout, and where its user's own files have their second names.
struct Places {
    checkout: Folder,
    own: Folder,
}

impl Landings<'_> {
    /// Puts files back as they were, after a stash was put back, where a landing that `moved` did not touch them.
    pub(super) fn restore_originals(
        &self,
        landing: LandingId,
        moved: Option<&Move>,
        checkout: &Checkout,
        stage: &Stage,
    ) {
        if let Err(error) = self.put_originals_back(landing, moved, checkout, stage) {
            let place = checkout.path.display();
            self.trees.engine.notice(format!(
                "your changes are back in {place}, but not all as they were: {error}"
            ));
        }
    }

    fn put_originals_back(
        &self,
        landing: LandingId,
        moved: Option<&Move>,
        checkout: &Checkout,
        stage: &Stage,
    ) -> Result<(), LandError> {
        let Some(mut known) = Originals::read(stage).map_err(at(&stage.path))? else {
            return Ok(());
        };
        let touched = match moved {
            Some(wanted) => self.touched_by(wanted)?,
            None => Vec::new(),
        };
        let touched: BTreeSet<&[u8]> = touched.iter().map(|one| one.path.as_slice()).collect();
        let folder = stage.originals();
        let places = Places {
            checkout: Folder::open(&checkout.path).map_err(at(&checkout.path))?,
            own: Folder::open(&folder).map_err(at(&folder))?,
        };
        let mut there = BTreeMap::new();
        for one in &known.files {
            if touched.contains(one.path.0.as_slice()) {
                continue;
            }
            let found = places.differing(one, checkout, stage);
            if let Some(here) = found.map_err(at(&folder))? {
                there.insert(one.path.0.clone(), here);
            }
        }
        if there.is_empty() {
            return Ok(());
        }
        let stash = known.stash.clone().unwrap_or_default();
        let asked = there.iter().filter(|(_, here)| here.is_some());
        let asked = asked.map(|(path, _)| path.as_slice()).collect();
        let popped = self.popped(checkout, stage, &stash, &asked);
        let (popped, failed) = match popped {
            Ok(popped) => (popped, None),
            Err(error) => (BTreeSet::new(), Some(error)),
        };
        for one in &mut known.files {
            let here = there.get(&one.path.0).copied().flatten();
            one.popped = here.filter(|_| popped.contains(&one.path.0)).or(one.popped);
        }
        stage.write_originals(&known).map_err(at(&stage.path))?;
        step("stash.restoring");
        let waiting = known.files.iter();
        let waiting = waiting.filter_map(|one| Some((one, *there.get(&one.path.0)?)));
        let mut left = Vec::new();
        for (one, here) in waiting {
            let is_popped = popped.contains(&one.path.0);
            left.extend(places.put_back(one, here, is_popped));
        }
        self.rescue(landing, &checkout.path, stage, left)
            .map_err(at(&folder))?;
        failed.map_or(Ok(()), Err)
    }

    /// Those of these paths where a file of the stash lies, as far as the user's filters tell.
    fn popped(
        &self,
        checkout: &Checkout,
        stage: &Stage,
        stash: &str,
        paths: &BTreeSet<&[u8]>,
    ) -> Result<BTreeSet<Vec<u8>>, LandError> {
        let mut found = BTreeSet::new();
        let mut lines = Vec::new();
        // The third parent has what was untracked; there is none without any.
        for tree in [stash.to_owned(), format!("{stash}^3")] {
            let listed = Git::new(&checkout.git_dir, "ls-tree")
                .args(["-r", "-z", &tree])
                .output()?;
            for line in listed.stdout.split(|byte| *byte == 0) {
                let tab = line.iter().position(|byte| *byte == b'\t');
                let path = tab.map_or(&[][..], |tab| &line[tab + 1..]);
                if paths.contains(path) && found.insert(path.to_vec()) {
                    lines.extend_from_slice(line);
                    lines.push(0);
                }
            }
        }
        if found.is_empty() {
            return Ok(found);
        }
        let index = stage.path.join("index.popped");
        match fs::remove_file(&index) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(at(&index)(error).into());
            }
            _ => {}
        }
        Git::new(&checkout.git_dir, "update-index")
            .index_file(&index)
            .work_tree(&checkout.path)
            .args(["-z", "--index-info"])
            .input(lines)
            .run()?;
        let differing = touched::parse(&self.unstaged(checkout, stage, &index)?)?;
        for (_, one) in differing {
            found.remove(&one.path);
        }
        Ok(found)
    }
}

impl Places {
    /// What is at the place of a file that is to go back there; `None` if it need not.
    fn differing(
        &self,
        one: &Original,
        checkout: &Checkout,
        stage: &Stage,
    ) -> io::Result<Option<Option<Stamp>>> {
        let waits = self.own.stamp(&one.name())?;
        if waits.is_none_or(|waits| waits.inode != one.linked.inode) {
            return Ok(None);
        }
        let kept = stage.originals().join(one.number.to_string());
        let place = checkout.path.join(OsStr::from_bytes(&one.path.0));
        match is_same(&kept, &place) {
            true => Ok(None),
            false => self.checkout.stamp(&one.path.0).map(Some),
        }
    }

    /// Puts a file back; answers one that can't go there.
    fn put_back(&self, one: &Original, here: Option<Stamp>, is_popped: bool) -> Option<Left> {
        let (path, name) = (one.path.0.as_slice(), one.name());
        let Some(seen) = here else {
            let given = self.own.give(&name, &self.checkout, path);
            return (!matches!(given, Ok(true))).then(|| one.left());
        };
        let is_untouched = || matches!(self.checkout.stamp(path), Ok(Some(now)) if now == seen);
        if !is_popped || !is_untouched() || self.own.exchange(&name, &self.checkout, path).is_err()
        {
            return Some(one.left());
        }
        let came_out = self.own.stamp(&name);
        if matches!(came_out, Ok(Some(out)) if out.is_same_file(&seen)) {
            return None;
        }
        // Somebody saved at this very moment: that goes back, and whatever comes out then is kept.
        let _ = self.own.exchange(&name, &self.checkout, path);
        Some(one.left())
    }
}

/// Whether two names lead to the same file, or to files of which nothing differs.
fn is_same(one: &Path, other: &Path) -> bool {
    let (Ok(first), Ok(second)) = (one.symlink_metadata(), other.symlink_metadata()) else {
        return false;
    };
    if (first.dev(), first.ino()) == (second.dev(), second.ino()) {
        return true;
    }
    let alone = first.nlink() <= 2;
    alone
        && first.mode() == second.mode()
        && match first.is_symlink() {
            true => matches!((fs::read_link(one), fs::read_link(other)), (Ok(a), Ok(b)) if a == b),
            false => matches!((fs::read(one), fs::read(other)), (Ok(a), Ok(b)) if a == b),
        }
}
