//! `weald sync`

use std::io::Write;

use clap::Args;

use crate::completion;
use crate::context::Context;
use crate::ui::{ACCENT, Fields, clean_line, paint};
use weald_app::{Failure, Landings, exit};

/// Bring the target into a tree
///
/// Also brings together what diverged. A conflict is left in the tree to be resolved there: exit 3. An ignored file that is
/// in the way is kept as NAME.before-sync.
#[derive(Args)]
pub struct Sync {
    /// Which tree, or its task (default: the one you are in)
    #[arg(value_name = "NAME", add = completion::trees())]
    name: Option<String>,
    /// Rebase the tree's commits instead of merging
    #[arg(long)]
    rebase: bool,
}

impl Sync {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.ground()?;
        let trees = ground.trees(context)?;
        let progress = context.stage("bringing the target in");
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
                match synced.outcome.as_str() {
                    "up_to_date" => writeln!(out, "{name} has all of {} already", tree.target),
                    "conflict" => {
                        writeln!(out, "{name} conflicts; resolve it in the tree:")?;
                        for path in &synced.conflicts {
                            writeln!(out, "  {}", clean_line(path))?;
                        }
                        let tree = &tree.name;
                        let (on, back) = match synced.operation.as_deref() {
                            Some("rebase") => ("git rebase --continue", "git rebase --abort"),
                            _ => ("git commit", "git merge --abort"),
                        };
                        writeln!(out, "  then: weald run {tree} -- {on}")?;
                        writeln!(out, "  or take it back: weald run {tree} -- {back}")
                    }
                    _ => writeln!(out, "{name} has all of {} now", tree.target),
                }
            },
        )?;
        Ok(match synced.conflicts.is_empty() {
            true => exit::DONE,
            false => exit::CONFLICT,
        })
    }
}
