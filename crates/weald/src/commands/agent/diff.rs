//! `weald agent diff`

use clap::Args;
use weald_app::{Against, Failure, Landings, exit};

use super::Which;
use crate::commands::diff::{Style, print};
use crate::context::Context;

/// Show what an agent changed in its worktree or landed
#[derive(Args)]
pub struct Diff {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    style: Style,
}

impl Diff {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.ground()?;
        let agent = self.which.find(&ground)?;
        let trees = ground.trees(context)?;
        let style = self.style.wanted(context).into();
        let progress = context.stage("looking");
        let own = agent.tree.as_ref().and_then(|name| {
            let tree = trees.named(Some(name.as_str())).ok()?;
            (Some(tree.id) == agent.tree_id && tree.is_live()).then_some(tree)
        });
        let landing = ground.engine.landed_by(&agent)?;
        let diff = match (own, landing) {
            (Some(tree), _) => trees.diff(Some(tree.name.as_str()), Against::Base, style)?,
            (None, Some(landing)) => Landings::new(&trees).landing_diff(landing, style)?,
            (None, None) => {
                return Err(Failure::new(
                    "no_tree",
                    exit::NOT_FOUND,
                    format!(
                        "the worktree of {} is gone, and it landed nothing",
                        agent.id
                    ),
                )
                .hint("to see worktrees that can be restored: weald restore"));
            }
        };
        drop(progress);
        print(context, &diff.into())
    }
}
