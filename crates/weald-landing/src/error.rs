//! Why something did not land.

use weald_core::id::LandingId;
use weald_core::landing::{LandingInput, LandingRefusal, Reason};
use weald_core::queue::QueueRefusal;
use weald_core::store::StoreError;
use weald_git::{GitError, VaultError};
use weald_sandbox::SandboxError;

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
    #[error("{}", .0.message)]
    Refused(Box<Reason>),
    /// The target is not where it was, or another process holds the queue by now: begin again.
    #[error("{0} moved in the meantime")]
    Outrun(String),
    /// Somebody asked this process to end.
    #[error("interrupted")]
    Interrupted,
    /// Nobody could be told.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// There is no such landing.
    #[error("there is no landing {0}")]
    NoLanding(LandingId),
}

impl LandError {
    pub fn refused(code: &str, message: impl Into<String>) -> Self {
        Self::Refused(Box::new(Reason {
            code: code.to_owned(),
            message: message.into(),
            hint: None,
            paths: Vec::new(),
        }))
    }

    /// The same with the command that goes on.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        if let Self::Refused(reason) = &mut self {
            reason.hint = Some(hint.into());
        }
        self
    }

    /// The same with the paths that it is about.
    pub(crate) fn paths(mut self, paths: Vec<String>) -> Self {
        if let Self::Refused(reason) = &mut self {
            reason.paths = paths;
        }
        self
    }
}

/// What an error means for a landing; what is wrong with the queue itself stays an error.
pub(super) fn refusal_of(error: LandError) -> Result<LandingInput, LandError> {
    match error {
        LandError::Refused(reason) => Ok(LandingInput::Refuse(*reason)),
        LandError::Store(_) | LandError::Queue(_) | LandError::Rule(_) => Err(error),
        other => Ok(LandingInput::Refuse(Reason {
            code: match &other {
                LandError::Sandbox(SandboxError::Unavailable { .. }) => "sandbox_unavailable",
                _ => "failed",
            }
            .to_owned(),
            message: other.to_string(),
            hint: Some("weald doctor".to_owned()),
            paths: Vec::new(),
        })),
    }
}

/// Such a landing is refused, with what to do.
pub(super) fn target_gone(error: TreeError) -> LandError {
    let TreeError::TargetGone { name, target, base } = &error else {
        return error.into();
    };
    let hint = format!("git branch {target} {base}, then weald land {name}");
    LandError::refused("no_target", error.to_string()).hint(hint)
}
