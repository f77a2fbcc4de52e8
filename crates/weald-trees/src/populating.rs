//! The files of a new tree: a spare, a copy of the donor, or a checkout; then what only this tree has.

use std::fs;
use std::io;
use std::path::Path;

use weald_core::tree::{Tree, TreeKind};

use super::gate_tree::GATES;
use super::inner::Inner;
use super::inside::Populate;
use super::planning::Plan;
use super::pool::{Pool, Population, Taken};
use super::setup::Setup;
use super::site::Site;
use super::{TreeError, Trees, at, delete};
use weald_control::steps::step;

/// The folder that a tree and its neighbours lie in; those of gates are one level below.
fn root_of(tree: &Tree) -> &Path {
    let parent = tree.path.parent().unwrap_or(&tree.path);
    match parent.file_name().is_some_and(|name| name == GATES) {
        true => parent.parent().unwrap_or(parent),
        false => parent,
    }
}

impl Trees<'_> {
    /// A spare of the pool, brought to where the tree starts.
    pub(super) fn take_spare(
        &self,
        plan: &Plan,
        tree: &Tree,
        building: &Path,
    ) -> Result<Option<Population>, TreeError> {
        let Some(pool) = self.pool_of(plan, root_of(tree)) else {
            return Ok(None);
        };
        match pool.take(&plan.start, building) {
            Some(taken) => {
                step("pool.taken");
                self.brought_forward(plan, building, taken)
            }
            None => Ok(None),
        }
    }

    fn pool_of(&self, plan: &Plan, root: &Path) -> Option<Pool<'_>> {
        // Spares hold every file.
        match plan.pool && self.wishes.sparse.is_none() {
            // A pool that can't be used costs time, not the tree.
            true => self.pool(root, &plan.start).unwrap_or_default(),
            false => None,
        }
    }

    fn brought_forward(
        &self,
        plan: &Plan,
        building: &Path,
        taken: Taken,
    ) -> Result<Option<Population>, TreeError> {
        let is_there = (taken.base == plan.start && !self.wants_large_files(building, &taken)?)
            || self
                .bring_forward(building, &taken.base, &plan.start)
                .unwrap_or(false);
        if is_there {
            self.renew_settings(building, &plan.start, &taken)?;
            return Ok(Some(taken.population));
        }
        delete(building).map_err(at(building))?;
        Ok(None)
    }

    /// The files without a spare: a copy of the donor, or by git in the new directory's sandbox.
    pub(super) fn copy_or_check_out(
        &self,
        plan: &Plan,
        tree: &Tree,
        building: &Path,
        index: &Path,
    ) -> Result<Population, TreeError> {
        if let Some(pool) = self.pool_of(plan, root_of(tree))
            && let Some(taken) = pool.copy(building).unwrap_or_default()
            && let Some(population) = self.brought_forward(plan, building, taken)?
        {
            return Ok(population);
        }
        // A copy that failed half-way.
        let _ = delete(building);
        fs::create_dir(building).map_err(at(building))?;
        match tree.kind {
            TreeKind::Sealed => {
                let git_dir = building.join(".git");
                fs::create_dir(&git_dir).map_err(at(&git_dir))?;
                self.write_settings(&git_dir, &plan.start)?;
                self.populate(tree, Site::sealed(building), &plan.start, None)?;
            }
            TreeKind::Linked => {
                self.vault()
                    .complete_checkout(&plan.start, &|git| self.as_user(git))?;
                let site = Site {
                    git_dir: self.common_dir().to_owned(),
                    ..Site::sealed(building)
                };
                self.populate(tree, site, &plan.start, Some(index))?;
            }
        }
        Ok(Population::Checkout)
    }

    /// What only this tree has: its branch and refs, or for a linked one nothing but the index beside its registration.
    pub(super) fn finish_files(
        &self,
        plan: &Plan,
        tree: &Tree,
        building: &Path,
        index: &Path,
    ) -> Result<(), TreeError> {
        let git_dir = building.join(".git");
        match tree.kind {
            TreeKind::Sealed => {
                let tip = plan.target_tip.as_deref();
                let inner = Inner::of(tree, &plan.start, tip, &plan.refs);
                self.write_refs(&git_dir, &inner)?;
                self.fill_submodules(building)?;
            }
            TreeKind::Linked if git_dir.is_dir() => {
                self.move_index(&git_dir.join("index"), index)?;
                delete(&git_dir).map_err(at(&git_dir))?;
            }
            TreeKind::Linked => {}
        }
        Ok(())
    }

    /// Ignored files of main, while nobody is in the tree yet.
    pub(super) fn bring_files(
        &self,
        tree: &Tree,
        building: &Path,
        index: &Path,
    ) -> Result<Setup, TreeError> {
        let site = Site::sealed(building);
        if tree.kind == TreeKind::Sealed {
            let index = site.git_dir.join("index");
            return Ok(self.set_up_files(tree, &site, &index));
        }
        // The index of a linked tree waits elsewhere, where no visit can write.
        let beside = building.join(".weald-index");
        self.move_index(index, &beside)?;
        let site = Site {
            git_dir: self.common_dir().to_owned(),
            ..site
        };
        let setup = self.set_up_files(tree, &site, &beside);
        self.move_index(&beside, index)?;
        Ok(setup)
    }

    /// An index on its way into a registration.
    fn move_index(&self, from: &Path, to: &Path) -> Result<(), TreeError> {
        fs::create_dir_all(self.workshop()).map_err(at(&self.workshop()))?;
        if !from.symlink_metadata().is_ok_and(|found| found.is_file()) {
            return Err(at(from)(io::Error::other("it is not a regular file")));
        }
        fs::rename(from, to)
            .or_else(|_| fs::copy(from, to).and_then(|_| fs::remove_file(from)))
            .map_err(at(to))
    }

    /// The files, by git in the new directory's sandbox.
    pub(super) fn populate(
        &self,
        tree: &Tree,
        site: Site,
        commit: &str,
        index: Option<&Path>,
    ) -> Result<(), TreeError> {
        // A linked tree's index is written beside its files, and moved to main's registration afterwards.
        let beside = site.path.join(".weald-index");
        let job = Populate {
            commit: commit.to_owned(),
            index: index.map(|_| beside.clone()),
        };
        self.visit(tree.name.as_str(), &site, job)?;
        match index {
            Some(index) => self.move_index(&beside, index),
            None => Ok(()),
        }
    }
}
