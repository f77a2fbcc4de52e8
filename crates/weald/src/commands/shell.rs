//! `weald shell`

use clap::Args;
use weald_app::operations::making::TreeWishes;
use weald_app::operations::shells::{LeftShell, OpenShell};
use weald_app::{Failure, LandWish};

use super::deciding::{can_ask, decide, landing_command};
use super::run::SandboxArg;
use crate::attaching::require_terminal;
use crate::completion;
use crate::context::Context;

/// Open a sandboxed shell in a worktree
///
/// Runs $SHELL, sandboxed as `weald run` is. `weald land` typed in it is noted; when the shell ends, weald shows what changed
/// and asks whether to land it. Exits with the shell's exit code, or with that of the landing.
#[derive(Args)]
pub struct Shell {
    /// Worktree or task; - for the last (default: current or only)
    #[arg(value_name = "NAME", add = completion::trees())]
    name: Option<String>,
    /// Create the worktree if needed
    #[arg(long, short, requires = "name")]
    create: bool,
    /// Commit or branch that a new one starts from
    #[arg(long, value_name = "REF", requires = "create")]
    base: Option<String>,
    /// Sandbox level (default: sandbox.level)
    #[arg(long, value_name = "LEVEL")]
    sandbox: Option<SandboxArg>,
}

impl Shell {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        require_terminal().map_err(|_| Failure::shell_without_terminal())?;
        let left = context.perform(OpenShell {
            tree: self.name,
            create: self.create.then(|| TreeWishes {
                base: self.base,
                ..TreeWishes::default()
            }),
            sandbox: self.sandbox.map(SandboxArg::as_sandbox),
        })?;
        let LeftShell { exit, tree, wish } = left;
        let name = tree.name.as_str();
        match wish {
            Some(wish) if can_ask(context) => {
                context.cancel.catch();
                if let Some(code) = decide(context, &tree, wish)? {
                    return Ok(code);
                }
                context.note(&kept(name, &LandWish::default()));
            }
            Some(wish) => context.note(&kept(name, &wish)),
            None => context.note(&format!("left {name}; back: weald shell -")),
        }
        Ok(exit)
    }
}

fn kept(name: &str, wish: &LandWish) -> String {
    format!(
        "{name} is kept; to land it: {}",
        landing_command(name, wish)
    )
}
