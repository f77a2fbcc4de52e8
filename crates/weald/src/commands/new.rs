//! `weald new`

use std::io::{self, Write};

use clap::{Args, ValueEnum};
use weald_app::{BranchExists, Created, Failure, Landings, NewTree, Outcome, Trees};
use weald_core::id::TaskId;
use weald_core::tree::TreeKind;
use weald_sandbox::{catch_interrupts, interrupted};

use crate::completion;
use crate::context::Context;
use crate::ui::{ACCENT, Fields, Out, paint};

/// Make a tree: a worktree of its own, outside of the main checkout
///
/// The tree starts from the target (or --base) on a branch of its own. Nothing of the main checkout's uncommitted changes
/// comes along.
#[derive(Args)]
pub struct New {
    /// What to call it (default: after its task, or after the tree that a scratch one is for)
    #[arg(value_name = "NAME", required_unless_present_any = ["task", "scratch"])]
    name: Option<String>,
    #[command(flatten)]
    options: NewOptions,
    /// A short-lived tree that starts from TREE and lands on its branch; needs --for
    #[arg(long, requires = "parent")]
    scratch: bool,
    /// The tree that a short-lived one belongs to
    #[arg(long = "for", value_name = "TREE", id = "parent", requires = "scratch", add = completion::trees())]
    parent: Option<String>,
}

/// What `new` and `ensure` both take.
#[derive(Args)]
pub struct NewOptions {
    /// The task it is for
    #[arg(long, value_name = "ID", add = completion::tasks())]
    pub task: Option<TaskId>,
    /// What it starts from (default: tree.base)
    #[arg(long, value_name = "REF")]
    base: Option<String>,
    /// The branch it lands on (default: target)
    #[arg(long, value_name = "BRANCH")]
    target: Option<String>,
    /// Sealed: a repository of its own, held by the kernel. Linked: a plain git worktree
    #[arg(long, value_name = "KIND", default_value = "sealed")]
    kind: KindArg,
    /// What to do when the branch exists
    #[arg(long, value_name = "WHAT", default_value = "error")]
    on_branch_exists: BranchArg,
    /// Check out anew: neither a spare of the pool nor a copy of its donor
    #[arg(long)]
    no_pool: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum KindArg {
    Sealed,
    Linked,
}

#[derive(Clone, Copy, ValueEnum)]
enum BranchArg {
    /// The same as error: nobody can be asked here
    Ask,
    Error,
    /// Start from it
    Reuse,
    /// Make it anew; what it held is kept in the vault
    Recreate,
}

impl NewOptions {
    /// As the engine wants it.
    pub fn request(self, name: Option<String>, scratch_for: Option<String>) -> NewTree {
        NewTree {
            name,
            task: self.task,
            base: self.base,
            target: self.target,
            kind: match self.kind {
                KindArg::Sealed => TreeKind::Sealed,
                KindArg::Linked => TreeKind::Linked,
            },
            branch_exists: match self.on_branch_exists {
                BranchArg::Ask | BranchArg::Error => BranchExists::Error,
                BranchArg::Reuse => BranchExists::Reuse,
                BranchArg::Recreate => BranchExists::Recreate,
            },
            scratch_for,
            no_pool: self.no_pool,
            entry_of: None,
        }
    }
}

impl New {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.ground()?;
        ground.warn_of_settings(context);
        let trees = ground.trees(context)?;
        catch_interrupts();
        let progress = context.stage("making the tree");
        // A task stands for its worktree.
        let parent = match &self.parent {
            Some(parent) => Some(Landings::new(&trees).tree_or_task(parent)?.name.to_string()),
            None => None,
        };
        let created = trees.create(&self.options.request(self.name, parent))?;
        drop(progress);
        context.tell(&ground.engine);
        let code = print(context, &trees, &created)?;
        context.refill_pool(&trees, &ground.place.root());
        // What was made by then is there, and told.
        Ok(interrupted().map_or(code, |signal| 128 + signal))
    }
}

/// The answer of `new` and `ensure`.
pub fn print(context: &Context<'_>, trees: &Trees<'_>, created: &Created) -> Result<u8, Failure> {
    for note in &created.notes {
        context.warn(note);
    }
    context.ui.answer(
        || {
            let fields = Fields::new()
                .with("tree", &trees.view(created.tree.clone()))
                .with("outcome", &created.outcome)
                .with("branch_reused", &created.branch_reused)
                .with("population", &created.population);
            match &created.setup {
                Some(setup) => fields.with("setup", setup),
                None => fields,
            }
        },
        |out| told(out, created),
    )
}

fn told(out: &mut Out, created: &Created) -> io::Result<()> {
    let tree = &created.tree;
    let done = match created.outcome {
        Outcome::Created => "made",
        Outcome::Reused => "there already",
        Outcome::Recreated => "made again",
        Outcome::Skipped => "you are in it already",
    };
    writeln!(
        out,
        "{} {done}: {}",
        paint(ACCENT, &tree.name),
        tree.path.display()
    )?;
    match created.branch_reused {
        true => writeln!(
            out,
            "  branch {} as it was, for {}",
            tree.branch, tree.target
        )?,
        false => writeln!(
            out,
            "  branch {}, from {} for {}",
            tree.branch, tree.base.reference, tree.target
        )?,
    }
    if let Some(setup) = &created.setup {
        let mut brought = setup.shared.clone();
        if setup.copied > 0 {
            brought.insert(0, format!("{} ignored files", setup.copied));
        }
        if !setup.commands.is_empty() {
            brought.push(format!("{} commands", setup.commands.len()));
        }
        if !brought.is_empty() {
            writeln!(out, "  set up: {}", brought.join(", "))?;
        }
    }
    writeln!(out, "  work in it: weald run {} -- CMD…", tree.name)
}
