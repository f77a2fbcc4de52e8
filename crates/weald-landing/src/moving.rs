//! Moving the target, together with the checkout that it is checked out in.
//!
//! The order is what makes it safe. The ref is prepared (locked and checked), then files and index move, and the ref is
//! committed last: a kill at any point, and even a user who deletes the lock and commits, reverts nothing that landed.
//! Until the index is in place everything is put back; from then on it is brought to its end. Nothing of the user's is
//! overwritten: what they changed refuses before, and what they write meanwhile stays.

mod checkout;
mod examine;
mod fence;
mod fill;
mod folder;
mod hold;
mod index_lock;
mod into_tree;
mod known_index;
mod lanes;
mod leave;
mod leftovers;
mod originals;
mod originals_back;
mod perform;
mod plan;
mod precheck;
mod recovery;
mod refs;
mod rescue;
mod reserved;
mod stage;
mod stash;
mod stash_limits;
mod swap;
mod touched;
mod users_git;

use std::path::PathBuf;

use weald_core::id::LandingId;
use weald_core::landing::MoveIntent;
use weald_core::session::ProcessIdentity;
use weald_core::tree::Tree;
use weald_git::{Reference, Transfer, send};

use super::LandError;
use crate::Landings;
use crate::refusal::Refusal;
use checkout::Checkout;
use stage::Stage;

pub use fence::FENCE;
pub use fence::free_main;
pub(crate) use hold::TargetHold;
pub use leave::LeftConflict;
pub use leftovers::{Leftover, LeftoverKind};
pub(crate) use recovery::Recovered;
pub use stage::plans;

/// What to move where.
pub(crate) struct MoveRequest<'m> {
    /// For which landing; names files and the reflog entry.
    pub landing: LandingId,
    pub target: &'m str,
    /// Where it must be.
    pub old: &'m str,
    /// Where it goes; the commit is in the vault.
    pub new: &'m str,
    /// What the fence must hold.
    pub fence: &'m str,
}

#[derive(Debug, Clone)]
struct Move {
    landing: LandingId,
    target: String,
    old: String,
    new: String,
    fence: String,
}

impl Move {
    fn of(request: &MoveRequest<'_>) -> Self {
        Self {
            landing: request.landing,
            target: request.target.to_owned(),
            old: request.old.to_owned(),
            new: request.new.to_owned(),
            fence: request.fence.to_owned(),
        }
    }
}

/// A move that was looked at: nothing of the user's was touched yet.
pub(crate) struct PreparedMove {
    wanted: Move,
    place: Option<(Checkout, Stage)>,
    /// The sealed worktree whose branch the target is.
    into: Option<Box<Tree>>,
    worker: ProcessIdentity,
    common_dir: PathBuf,
    /// Keeps the objects in main until the ref holds them.
    objects: Transfer,
}

impl PreparedMove {
    /// What is recorded before anything of the user's is touched.
    pub(crate) fn intent(&self) -> MoveIntent {
        let common = &self.common_dir;
        let checkout = self.place.as_ref().map(|(checkout, _)| checkout);
        let git_dir = checkout.map_or(common, |checkout| &checkout.git_dir);
        let mut locks = refs::lock_files(common, git_dir, &self.wanted.target);
        if let Some((_, stage)) = &self.place {
            locks.push(git_dir.join("index.lock"));
            locks.push(index_lock::building(git_dir, self.wanted.landing));
            locks.push(stage.path.join("index.new.lock"));
        }
        MoveIntent {
            worker: self.worker.clone(),
            checkout: checkout.map(|checkout| checkout.path.clone()),
            git_dir: git_dir.clone(),
            stage: self.place.as_ref().map(|(_, stage)| stage.path.clone()),
            locks,
        }
    }
}

impl Landings<'_> {
    /// Finds out what has to move, and brings the objects into main.
    pub(crate) fn prepare_move(
        &self,
        request: &MoveRequest<'_>,
    ) -> Result<PreparedMove, LandError> {
        let repository = self.trees.place.repository();
        let name = format!("refs/heads/{}", request.target);
        if let Some(Reference::Symbolic(other)) = repository.reference(&name)? {
            return Err(Refusal::TargetSymbolic(request.target.to_owned(), other).into());
        }
        let wanted = Move::of(request);
        let worker = self.trees.me().ok_or(Refusal::ProcessUnknown)?;
        let into = self.sealed_on(request.target)?.map(Box::new);
        let place = match &into {
            Some(_) => None,
            None => self.checkout_of(request.target)?,
        };
        let place = place.map(|checkout| {
            let stage = Stage::choose(self.trees.place.private(), &checkout, request.landing);
            (checkout, stage)
        });
        if place.is_none() {
            self.refuse_reserved_in(request.old, request.new)?;
            let root = into
                .as_ref()
                .map_or_else(|| self.trees.place.root(), |tree| tree.path.clone());
            self.refuse_other_lanes(&root, &self.touched_by(&wanted)?)?;
        }
        let common_dir = repository.common_dir().to_owned();
        let objects = send(
            self.trees.vault().path(),
            &common_dir,
            &[request.new],
            &[request.old],
        )?;
        Ok(PreparedMove {
            wanted,
            place,
            into,
            worker,
            common_dir,
            objects,
        })
    }
}
