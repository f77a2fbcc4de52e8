//! Why a run did not start, in words.

use std::io;
use std::path::{Path, PathBuf};

use crate::policy::Level;

/// Why a run did not start.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// A layer of the level is missing on this machine: a probe that touches no directory of the run found it out.
    #[error("the sandbox (level {}) is not available: {step}: {message}", .level.as_str())]
    Unavailable {
        /// Which level was asked for.
        level: Level,
        step: String,
        /// What the system said.
        message: String,
    },
    /// The machine gives every layer, but this run could not be prepared. A weaker level is no answer to that.
    #[error("the sandbox (level {}) could not be prepared: {step}: {message}", .level.as_str())]
    NotPrepared {
        /// Which level was asked for.
        level: Level,
        step: String,
        /// What the system said.
        message: String,
    },
    /// It lies in a directory that the command may write, and level landlock makes no exceptions there.
    #[error("level landlock can't protect {}: it lies in a directory that the command may write", .path.display())]
    Exposed { path: PathBuf },
    /// The command is not there, or can't be executed.
    #[error("{program} can't be started: {source}{}", unseen(.program, .source))]
    NotExecutable { program: String, source: io::Error },
    /// A directory of the policy is not usable.
    #[error("{}: {source}", .path.display())]
    Directory { path: PathBuf, source: io::Error },
    /// The launcher itself could not work.
    #[error("the launcher failed: {0}")]
    Launcher(#[from] io::Error),
}

/// Why a program is missing inside that is there outside.
fn unseen(program: &str, source: &io::Error) -> &'static str {
    let is_outside = program.starts_with('/') && Path::new(program).exists();
    match is_outside && source.kind() == io::ErrorKind::NotFound {
        true => "; it is there, but not inside: a run has a /tmp and a home of its own",
        false => "",
    }
}

/// A directory or device that a run can't have.
pub(crate) fn refused<T>(path: &Path, why: &str) -> Result<T, SandboxError> {
    Err(SandboxError::Directory {
        path: path.to_owned(),
        source: io::Error::other(why.to_owned()),
    })
}
