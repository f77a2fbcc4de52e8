//! `weald path`

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use weald_app::Failure;
use weald_app::operations::Caller;
use weald_app::operations::looking::FindPath;
use weald_core::name::SessionName;

use crate::completion;
use crate::context::Context;

/// Print the path of a worktree or of a file in it
///
/// With --check, maps a path in the main checkout to the worktree and refuses a path outside the worktree.
#[derive(Args)]
pub struct Path {
    /// Worktree, task, agent, branch or path (default: current)
    #[arg(value_name = "NAME", add = completion::trees())]
    name: Option<String>,
    /// Print where this session works (default: your session)
    ///
    /// That is the worktree it entered or claimed last, or the main checkout.
    #[arg(long, value_name = "SESSION", num_args = 0..=1, conflicts_with_all = ["name", "check"])]
    session: Option<Option<SessionName>>,
    /// Map this path into the worktree, or refuse it
    #[arg(long, value_name = "PATH")]
    check: Option<PathBuf>,
}

impl Path {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let request = FindPath {
            tree: self.name,
            of_session: self.session.is_some(),
            check: self.check,
        };
        let caller = Caller {
            session: self.session.flatten(),
            ..Caller::default()
        };
        let answer = context.perform_as(&caller, request)?;
        context
            .ui
            .show(&answer, |out| writeln!(out, "{}", answer.path))
    }
}
