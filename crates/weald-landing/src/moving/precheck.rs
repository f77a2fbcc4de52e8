//! A look ahead, before anything is tested: would the checkout of the target let this landing through?
//!
//! It takes no lock and touches nothing, so its yes counts for nothing later; its no saves a run of the gate.

use super::super::LandError;
use super::folder::Folder;
use super::known_index::KnownIndex;
use super::perform::dirty;
use super::touched;
use super::users_git::UsersGit;
use super::{Move, MoveRequest};
use crate::Landings;
use weald_trees::at;

/// With more paths than this git is asked when the target moves, not before.
const PATHS: usize = 2000;

impl Landings<'_> {
    /// Refuses what would be refused now.
    pub(crate) fn precheck_move(&self, request: &MoveRequest<'_>) -> Result<(), LandError> {
        if self.sealed_on(request.target)?.is_some() {
            // Its own git says no when the target moves.
            return Ok(());
        }
        let Some(checkout) = self.checkout_of(request.target)? else {
            return Ok(());
        };
        let wanted = Move::of(request);
        let touched = self.touched_by(&wanted)?;
        self.refuse_other_lanes(&checkout.path, &touched)?;
        let folder = Folder::open(&checkout.path).map_err(at(&checkout.path))?;
        let in_the_way = touched::in_the_way(&folder, &touched).map_err(at(&checkout.path))?;
        let stashes = self.trees.config.landing_autostash;
        if !in_the_way.is_empty() && !stashes {
            return Err(dirty(&wanted, &checkout, in_the_way));
        }
        let seen = touched::stamps(&folder, &touched).map_err(at(&checkout.path))?;
        let index = checkout.git_dir.join("index");
        let known = KnownIndex::read(&index, request.new.len() == 64).map_err(at(&index))?;
        let is_clean = known.is_some_and(|known| known.is_clean(&touched, &seen));
        if is_clean || stashes || touched.len() > PATHS {
            return Ok(());
        }
        let paths: Vec<_> = touched.iter().map(|one| one.path.clone()).collect();
        let Ok(texts) = paths
            .iter()
            .map(|path| std::str::from_utf8(path))
            .collect::<Result<Vec<_>, _>>()
        else {
            return Ok(());
        };
        let mut args = vec!["--literal-pathspecs", "status", "--porcelain", "-z"];
        args.extend([
            "--untracked-files=no",
            "--no-renames",
            "--ignore-submodules=all",
            "--",
        ]);
        args.extend(texts);
        let scratch = self.trees.workshop_directory()?;
        let answer = self.users_git(&UsersGit {
            checkout: &checkout,
            work_tree: &checkout.path,
            index: None,
            write: vec![scratch.path().to_owned()],
            args: &args,
        })?;
        let changed: Vec<Vec<u8>> = answer
            .stdout
            .split(|byte| *byte == 0)
            .filter_map(|line| line.get(3..))
            .map(<[u8]>::to_vec)
            .collect();
        match answer.code == 0 && !changed.is_empty() {
            true => Err(dirty(&wanted, &checkout, changed)),
            // Whatever git says otherwise is said when the target moves.
            false => Ok(()),
        }
    }
}
