//! `weald path`

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use weald_app::Ask;
use weald_app::Failure;
use weald_core::name::SessionName;

use super::inside::{Inside, field};
use crate::completion;
use crate::context::Context;
use crate::ui::Fields;

/// Print the path of a worktree or of a file in it
///
/// With --check, maps a path in the main checkout to the worktree and refuses a path outside the worktree.
#[derive(Args)]
pub struct Path {
    /// The worktree (default: the current one)
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
        let ground = context.ground()?;
        let trees = ground.trees(context)?;
        let path = match (&self.session, &self.check) {
            (Some(session), _) => {
                let name = context.session(&ground.engine, session.as_ref())?;
                trees.directory_of_name(&name)?
            }
            (None, Some(path)) => trees.scoped(self.name.as_deref(), path)?,
            (None, None) => trees.scoped(self.name.as_deref(), std::path::Path::new(""))?,
        };
        let text = path.display().to_string();
        let text = text.strip_suffix('/').unwrap_or(&text).to_owned();
        context.ui.answer(
            || Fields::new().with("path", &text),
            |out| writeln!(out, "{text}"),
        )
    }

    /// The same from inside a tree: its own.
    pub fn inside(self, inside: &Inside<'_>) -> Result<u8, Failure> {
        let check = self.check.map(|path| path.display().to_string());
        let reply = inside.ask(Ask::Path {
            tree: self.name,
            check,
        })?;
        let text: String = field(&reply, "path")?;
        inside.print(&reply, |out| writeln!(out, "{text}"))
    }
}
