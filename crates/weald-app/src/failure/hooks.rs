//! Errors of hooks. Their exit code is 1: 2 would stop the agent.

use serde_json::json;
use weald_core::claude::{ConeError, HookInputError};
use weald_core::name::NameError;

use super::Failure;
use crate::exit;

impl From<HookInputError> for Failure {
    fn from(error: HookInputError) -> Self {
        Self::new("hook_input", exit::REFUSED, error.to_string())
            .hint("nothing was changed; a hook needs one JSON object on stdin, see `What the hooks do` in docs/claude-code.md")
    }
}

impl From<ConeError> for Failure {
    fn from(error: ConeError) -> Self {
        Self::new("sparse_path", exit::REFUSED, error.to_string())
            .hint("nothing was created; fix worktree.sparsePaths in Claude Code's settings")
    }
}

impl Failure {
    /// In one line, with what to do: for what is told beside an answer.
    pub fn in_short(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{}: {hint}", self.message),
            None => self.message.clone(),
        }
    }

    /// A name that no tree can have.
    pub fn tree_name(error: &NameError) -> Self {
        Self::new("invalid_name", exit::REFUSED, error.to_string())
            .hint("nothing was created; choose another name")
    }

    /// An event of which this weald knows nothing, as `client` called it.
    pub fn unknown_hook(event: &str, client: &str) -> Self {
        Self::new(
            "hook_unknown",
            exit::REFUSED,
            format!("there is no hook `{event}`"),
        )
        .hint(format!(
            "update weald, or reinstall its hooks: weald install {client}"
        ))
        .details(json!({"event": event}))
    }

    /// A tree in a tree's sandbox.
    pub fn nested_tree() -> Self {
        Self::new(
            "nested_tree",
            exit::REFUSED,
            "can't create a worktree from inside a sandbox: this run is confined to its own worktree",
        )
        .hint("work in this worktree, or ask your lead: weald msg ask NAME TEXT")
    }

    /// A path that can't be told on one line.
    pub fn odd_path(path: &std::path::Path) -> Self {
        Self::new(
            "odd_path",
            exit::REFUSED,
            format!("{} contains a control character", path.display()),
        )
        .hint("set tree.path to another place")
    }
}
