//! `weald ensure`

use clap::Args;
use serde_json::Value;
use weald_app::supervision::{defers, is_foreign_tree};
use weald_app::{Created, Failure, Ground, Outcome, Trees};
use weald_sandbox::{catch_interrupts, interrupted};

use weald_core::id::TaskId;

use super::new::{NewOptions, print};
use crate::context::Context;
use crate::ui::Fields;

/// Print the worktree for NAME, creating it if needed
///
/// Inside a worktree, prints that worktree and creates nothing. Set WEALD_DEFER_CLAUDE=0 to turn this off.
#[derive(Args)]
pub struct Ensure {
    /// Name of the worktree (default: from its task)
    #[arg(value_name = "NAME", required_unless_present = "task")]
    name: Option<String>,
    #[command(flatten)]
    options: NewOptions,
}

impl Ensure {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.ground()?;
        ground.warn_of_settings(context);
        let trees = ground.trees(context)?;
        if defers(context, &ground) {
            if ground.place.inside().is_some() {
                let tree = trees.named(None)?;
                context.note(&format!("already in worktree {}", tree.name));
                let created = Created {
                    tree,
                    outcome: Outcome::Skipped,
                    population: None,
                    branch_reused: false,
                    notes: Vec::new(),
                    setup: None,
                };
                return print(context, &trees, &created);
            }
            if is_foreign_tree(context) {
                return skipped(context);
            }
        }
        if let Some(task) = self.task(&trees) {
            refuse_contest(context, &ground, &task)?;
        }
        catch_interrupts();
        let progress = context.stage("creating the worktree");
        let created = trees.ensure(&self.options.request(self.name, None))?;
        drop(progress);
        context.tell(&ground.engine);
        let code = print(context, &trees, &created)?;
        context.refill_pool(&trees, &ground.place.root());
        Ok(interrupted().map_or(code, |signal| 128 + signal))
    }
}

impl Ensure {
    /// The task that is meant, or that has the tree of this name.
    fn task(&self, trees: &Trees<'_>) -> Option<TaskId> {
        let of_name = || {
            let name = self.name.as_deref()?;
            trees.named(Some(name)).ok()?.task
        };
        self.options.task.clone().or_else(of_name)
    }
}

/// Stops where another session that may live works on the task.
fn refuse_contest(context: &Context<'_>, ground: &Ground, task: &TaskId) -> Result<(), Failure> {
    let me = context.quiet_session(&ground.engine)?;
    let contest = ground.engine.contest(&me, task)?;
    match (contest.contested, contest.owner) {
        (true, Some(owner)) => Err(Failure::contested(task, &owner, contest.since)),
        _ => Ok(()),
    }
}

fn skipped(context: &Context<'_>) -> Result<u8, Failure> {
    let path = context.directory();
    context.ui.answer(
        || {
            Fields::new()
                .with("tree", &Value::Null)
                .with("outcome", &Outcome::Skipped)
                .with("path", path)
        },
        |out| {
            use std::io::Write;
            writeln!(
                out,
                "{} is already a worktree; nothing was created",
                path.display()
            )
        },
    )
}
