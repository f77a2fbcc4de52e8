//! Why something did not land.

use weald_core::id::LandingId;
use weald_core::landing::{LandingInput, LandingRefusal};
use weald_core::queue::QueueRefusal;
use weald_core::store::StoreError;
use weald_git::{GitError, VaultError};
use weald_sandbox::SandboxError;

use crate::refusal::Refusal;
use weald_control::messages::MessageError;
use weald_trees::TreeError;

/// Why something did not land.
#[derive(Debug, thiserror::Error)]
pub enum LandError {
    /// Something about the tree.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// git did not do it.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The vault can't be used.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// The sandbox did not start.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// Another process works the queue, or took it over.
    #[error(transparent)]
    Queue(#[from] QueueRefusal),
    /// The landing is not in a state for it.
    #[error(transparent)]
    Rule(#[from] LandingRefusal),
    /// Something has to be done first. Nothing was changed.
    #[error("{0}")]
    Refused(Box<Refusal>),
    /// The target is not where it was, or another process holds the queue by now: begin again.
    #[error("{0} moved in the meantime")]
    Outrun(String),
    /// The end was asked for, by this signal or as by it.
    #[error("interrupted")]
    Interrupted(u8),
    /// Nobody could be told.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// There is no such landing.
    #[error("there is no landing {0}")]
    NoLanding(LandingId),
}

impl From<Refusal> for LandError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(Box::new(refusal))
    }
}

/// What an error means for a landing; what is wrong with the queue itself stays an error.
pub(super) fn refusal_of(error: LandError) -> Result<LandingInput, LandError> {
    let refusal = match error {
        LandError::Refused(refusal) => *refusal,
        LandError::Store(_) | LandError::Queue(_) | LandError::Rule(_) => return Err(error),
        LandError::Sandbox(error @ SandboxError::Unavailable { .. }) => {
            Refusal::SandboxUnavailable(error.to_string())
        }
        other => Refusal::Failed(other.to_string()),
    };
    Ok(LandingInput::Refuse(refusal.into()))
}

/// Such a landing is refused, with what to do.
pub(super) fn target_gone(error: TreeError) -> LandError {
    let said = error.to_string();
    match error {
        TreeError::TargetGone { name, target, base } => {
            Refusal::TargetGone(name, target, base, said).into()
        }
        other => other.into(),
    }
}
