//! `weald adopt`

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use weald_app::{Adoption, Failure, Trees};
use weald_core::id::TaskId;
use weald_core::tree::Tree;

use crate::completion;
use crate::context::Context;
use crate::ui::{ACCENT, Fields, Out, clean, paint};

/// Register a worktree that git or another tool created
///
/// The worktree itself is not changed. It becomes a linked worktree: status, diff, run, keep, rm and restore work on it.
#[derive(Args)]
pub struct Adopt {
    /// Path of the worktree
    #[arg(value_name = "PATH", required_unless_present = "all")]
    path: Option<PathBuf>,
    /// Name of the worktree (default: from its directory)
    #[arg(long, value_name = "NAME", conflicts_with = "all")]
    name: Option<String>,
    /// Task the worktree is for
    #[arg(long, value_name = "ID", conflicts_with = "all", add = completion::tasks())]
    task: Option<TaskId>,
    /// Branch it lands on (default: target)
    #[arg(long, value_name = "BRANCH")]
    target: Option<String>,
    /// Adopt every worktree that can be adopted
    #[arg(long, conflicts_with = "path")]
    all: bool,
}

impl Adopt {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.ground()?;
        let trees = ground.trees(context)?;
        let Some(path) = self.path else {
            let answer = adopt_all(context, &trees, self.target);
            context.tell(&ground.engine);
            return answer;
        };
        let tree = trees.adopt(&Adoption {
            path,
            name: self.name,
            task: self.task,
            target: self.target,
        })?;
        context.tell(&ground.engine);
        context.ui.answer(
            || Fields::new().with("tree", &trees.view(tree.clone())),
            |out| told(out, &tree),
        )
    }
}

/// Adopts what can be; the others are told with the reason.
fn adopt_all(
    context: &Context<'_>,
    trees: &Trees<'_>,
    target: Option<String>,
) -> Result<u8, Failure> {
    let (mut adopted, mut skipped) = (Vec::new(), Vec::new());
    for foreign in trees.foreign()? {
        let wanted = Adoption {
            path: foreign.path.clone(),
            target: target.clone(),
            ..Adoption::default()
        };
        match trees.adopt(&wanted) {
            Ok(tree) => adopted.push(tree),
            Err(error) => skipped.push((foreign.path, Failure::from(error))),
        }
    }
    context.ui.answer(
        || {
            let views: Vec<_> = adopted.iter().map(|tree| trees.view(tree.clone())).collect();
            let skipped: Vec<Value> = skipped
                .iter()
                .map(|(path, why)| {
                    json!({"path": path, "code": why.code, "message": why.message, "hint": why.hint})
                })
                .collect();
            Fields::new().with("trees", &views).with("skipped", &skipped)
        },
        |out| {
            if adopted.is_empty() && skipped.is_empty() {
                return writeln!(out, "weald already manages every worktree");
            }
            adopted.iter().try_for_each(|tree| told(out, tree))?;
            for (path, why) in &skipped {
                writeln!(out, "left alone: {}", clean(&path.display().to_string()))?;
                let hint = why.hint.as_deref().unwrap_or_default();
                writeln!(out, "  {}; {}", clean(&why.message), clean(hint))?;
            }
            Ok(())
        },
    )
}

fn told(out: &mut Out, tree: &Tree) -> io::Result<()> {
    let (name, path) = (paint(ACCENT, &tree.name), tree.path.display());
    writeln!(out, "{name} adopted: {path}")?;
    writeln!(
        out,
        "  branch {}, for {}; nothing in it was changed",
        tree.branch, tree.target
    )?;
    writeln!(out, "  inspect it: weald status {}", tree.name)
}
