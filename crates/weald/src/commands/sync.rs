//! `weald sync`

use std::io::Write;

use clap::Args;

use crate::completion;
use crate::context::Context;
use crate::ui::{ACCENT, Fields, clean_line, paint};
use weald_app::{Failure, Landings, SyncOutcome, exit};

/// Merge the target into a worktree
///
/// Also joins a diverged branch. A conflict (exit 3) is left in the worktree for you to resolve. An ignored file that is in
/// the way is kept as NAME.before-sync.
#[derive(Args)]
pub struct Sync {
    /// The worktree or its task (default: the current worktree)
    #[arg(value_name = "NAME", add = completion::trees())]
    name: Option<String>,
    /// Rebase the worktree's commits instead of merging
    #[arg(long)]
    rebase: bool,
}

impl Sync {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.ground()?;
        let trees = ground.trees(context)?;
        let progress = context.stage("syncing with the target");
        let name = match &self.name {
            Some(name) => Some(Landings::new(&trees).tree_or_task(name)?.name),
            None => None,
        };
        let name = name.as_ref().map(|name| name.as_str());
        trees.require_own(&trees.named(name)?)?;
        let synced = trees.sync(name, self.rebase)?;
        drop(progress);
        context.tell(&ground.engine);
        for path in &synced.set_aside {
            let path = clean_line(path);
            context.warn(&format!(
                "ignored by git and in the way, so it is kept: {path}"
            ));
        }
        let tree = &synced.tree;
        context.ui.answer(
            || {
                Fields::new()
                    .with("tree", &trees.view(tree.clone()))
                    .with("outcome", &synced.outcome)
                    .with("conflicts", &synced.conflicts)
                    .with("operation", &synced.operation)
                    .with("set_aside", &synced.set_aside)
            },
            |out| {
                let name = paint(ACCENT, &tree.name);
                match synced.outcome {
                    SyncOutcome::UpToDate => {
                        writeln!(out, "{name} already has all of {}", tree.target)
                    }
                    SyncOutcome::Conflict => {
                        writeln!(out, "{name} conflicts; resolve it in the worktree:")?;
                        for path in &synced.conflicts {
                            writeln!(out, "  {}", clean_line(path))?;
                        }
                        let tree = &tree.name;
                        let (on, back) = match synced.operation.as_deref() {
                            Some("rebase") => ("git rebase --continue", "git rebase --abort"),
                            _ => ("git commit", "git merge --abort"),
                        };
                        writeln!(out, "  then: weald run {tree} -- {on}")?;
                        writeln!(out, "  or abort it: weald run {tree} -- {back}")
                    }
                    SyncOutcome::Merged => writeln!(out, "{name} now has all of {}", tree.target),
                }
            },
        )?;
        Ok(match synced.conflicts.is_empty() {
            true => exit::DONE,
            false => exit::CONFLICT,
        })
    }
}
