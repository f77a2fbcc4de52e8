//! The user's files themselves, while git stashes their content.
//!
//! A stash holds content as git keeps it: line ends may be others afterwards, modes are, links to the same file are gone.
//! So each file that is stashed gets a second name first, and comes back as it was wherever the landing did not touch it.
//! None of these names goes while there is something behind it that is nowhere else: a program may have gone on writing.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use weald_core::id::LandingId;

use super::super::LandError;
use super::checkout::Checkout;
use super::folder::{Folder, Stamp};
use super::plan::{RawPath, is_inside};
use super::stage::Stage;
use super::stash_limits::unstashable;
use super::swap::{Left, Side};
use crate::Landings;
use crate::refusal::Loss;
use weald_trees::at;

/// What is known of the files that got a second name.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Originals {
    /// The stash's commit, once there is one.
    pub stash: Option<String>,
    pub files: Vec<Original>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Original {
    pub number: usize,
    pub path: RawPath,
    /// What it was when it got that name.
    pub linked: Stamp,
    /// What git put in its place, if both are to change places.
    pub popped: Option<Stamp>,
}

impl Original {
    pub(super) fn name(&self) -> Vec<u8> {
        self.number.to_string().into_bytes()
    }

    /// The same as something that could not go back.
    pub(super) fn left(&self) -> Left {
        Left {
            path: self.path.0.clone(),
            kept: Some((Side::Originals, self.name())),
        }
    }

    /// Whether what has its second name now is also elsewhere: in the stash, or where it was put back.
    fn is_kept_elsewhere(&self, now: &Stamp) -> bool {
        match now.inode == self.linked.inode {
            true => now.is_same_file(&self.linked),
            false => self.popped.is_some_and(|popped| now.is_same_file(&popped)),
        }
    }
}

impl Originals {
    /// What was written down; paths that lead out of a checkout are left out.
    pub(super) fn read(stage: &Stage) -> io::Result<Option<Self>> {
        let Some(bytes) = weald_control::files::read_bytes(&stage.originals_note())? else {
            return Ok(None);
        };
        let mut known: Self = serde_json::from_slice(&bytes)?;
        known.files.retain(|one| is_inside(&one.path.0));
        Ok(Some(known))
    }
}

impl Landings<'_> {
    /// Gives every changed file, and every untracked one if the stash takes those, a second name in the stage. One that can't
    /// get one refuses.
    pub(super) fn keep_originals(
        &self,
        checkout: &Checkout,
        stage: &Stage,
        untracked: bool,
    ) -> Result<Originals, LandError> {
        let folder = stage.originals();
        fs::create_dir_all(&folder).map_err(at(&folder))?;
        let own = Folder::open(&folder).map_err(at(&folder))?;
        let which = if untracked { "-uall" } else { "-uno" };
        let args = ["status", "--porcelain", "-z", "--no-renames", which];
        let mut known = Originals::default();
        let listed = self.paths_in_checkout(checkout, &args)?;
        let paths: BTreeSet<_> = listed.iter().filter_map(|line| line.get(3..)).collect();
        for (number, path) in paths.into_iter().enumerate() {
            let file = Path::new(OsStr::from_bytes(path));
            let place = checkout.path.join(file);
            // A deleted file has nothing that a stash would lose; a folder is a repository of its own, which git leaves alone.
            if place
                .symlink_metadata()
                .map_or(true, |found| found.is_dir())
            {
                continue;
            }
            let name = number.to_string();
            if let Err(error) = fs::hard_link(&place, folder.join(&name)) {
                let loss = Loss::NotKept(file.to_owned(), error.to_string());
                return Err(unstashable(checkout, loss, vec![path.to_vec()]));
            }
            if let Some(linked) = own.stamp(name.as_bytes()).map_err(at(&folder))? {
                known.files.push(Original {
                    number,
                    path: RawPath(path.to_vec()),
                    linked,
                    popped: None,
                });
            }
        }
        stage.write_originals(&known).map_err(at(&stage.path))?;
        Ok(known)
    }

    /// Takes a stage away after a move, but for what is nowhere else.
    pub(super) fn clear_stage(
        &self,
        landing: LandingId,
        checkout: &Checkout,
        stage: &Stage,
    ) -> io::Result<()> {
        self.settle_originals(landing, checkout, stage)?;
        stage.remove()
    }

    /// Rescues second names behind which something is that is nowhere else. If it can't, the stage stays, under a name that
    /// no landing has.
    pub(super) fn settle_originals(
        &self,
        landing: LandingId,
        checkout: &Checkout,
        stage: &Stage,
    ) -> io::Result<()> {
        let settled = Originals::read(stage).and_then(|known| match known {
            Some(known) if stage.originals().is_dir() => {
                let left = only_here(&known, checkout, stage)?;
                self.rescue(landing, &checkout.path, stage, left)
            }
            _ => Ok(()),
        });
        if let Err(error) = settled {
            let kept = stage.path.with_extension("kept");
            fs::rename(&stage.path, &kept)?;
            self.trees.engine.notice(format!(
                "files that landing {landing} took out of {} are kept in {} ({error})",
                checkout.path.display(),
                kept.display()
            ));
        }
        Ok(())
    }
}

/// What is behind a second name and nowhere else.
fn only_here(known: &Originals, checkout: &Checkout, stage: &Stage) -> io::Result<Vec<Left>> {
    let own = Folder::open(&stage.originals())?;
    // Without the checkout nothing of it is elsewhere.
    let folder = Folder::open(&checkout.path).ok();
    let mut left = Vec::new();
    for one in &known.files {
        let Some(now) = own.stamp(&one.name())? else {
            continue;
        };
        let here = match &folder {
            Some(folder) => folder.stamp(&one.path.0)?,
            None => None,
        };
        let is_there = here.is_some_and(|here| here.inode == now.inode);
        if !is_there && !one.is_kept_elsewhere(&now) {
            left.push(one.left());
        }
    }
    Ok(left)
}
