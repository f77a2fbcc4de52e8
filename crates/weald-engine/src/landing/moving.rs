//! Moving the target, together with the checkout that it is checked out in.

use weald_core::id::{LandingId, Token};
use weald_core::landing::{Landing, MoveIntent};

use super::LandError;
use crate::trees::Trees;

/// What to move where.
pub(crate) struct MoveRequest<'m> {
    /// For which landing; names files and the reflog entry.
    pub landing: LandingId,
    /// The branch.
    pub target: &'m str,
    /// Where it must be.
    pub old: &'m str,
    /// Where it goes; the commit is in the vault.
    pub new: &'m str,
    /// What the fence must hold.
    pub fence: &'m str,
}

/// A move that was looked at: nothing of the user's was touched yet.
pub(crate) struct PreparedMove {}

impl PreparedMove {
    /// What is recorded before anything of the user's is touched.
    pub(crate) fn intent(&self) -> MoveIntent {
        todo!()
    }
}

/// What became of a move that was cut short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recovered {
    /// The target had moved, or was moved now: it landed.
    Landed,
    /// Everything is as before: it has to begin again.
    TakenBack,
}

impl Trees<'_> {
    /// Moves the fence to `token`; answers what it holds then.
    pub(crate) fn move_fence(&self, _token: Token) -> Result<String, LandError> {
        todo!()
    }

    /// Finds out what has to move, and brings the objects into main.
    pub(crate) fn prepare_move(
        &self,
        _request: &MoveRequest<'_>,
    ) -> Result<PreparedMove, LandError> {
        todo!()
    }

    /// Moves checkout, index and ref; a refusal or a failure leaves them as they were.
    pub(crate) fn perform_move(&self, _prepared: PreparedMove) -> Result<(), LandError> {
        todo!()
    }

    /// Ends a move that somebody else began and did not end; its process is gone.
    pub(crate) fn recover_move(
        &self,
        _landing: &Landing,
        _fence: &str,
    ) -> Result<Recovered, LandError> {
        todo!()
    }
}
