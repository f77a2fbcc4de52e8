//! `weald new`

use std::io::{self, Write};

use clap::{Args, ValueEnum};
use weald_app::operations::Operation;
use weald_app::operations::making::{CreateTree, CreatedTree, TreeWishes};
use weald_app::{BranchExists, CreateOutcome, Failure};
use weald_core::meant::Word;
use weald_core::tree::TreeKind;

use crate::completion;
use crate::context::Context;
use crate::ui::{ACCENT, Out, paint};

/// Create a worktree outside the main checkout
///
/// The worktree starts from the target (or --base) on its own branch. Uncommitted changes in the main checkout are not
/// copied.
#[derive(Args)]
pub struct New {
    /// Name of the worktree (default: from branch, task or --for)
    #[arg(value_name = "NAME", required_unless_present_any = ["task", "scratch", "branch"])]
    name: Option<String>,
    /// Use this existing branch, from here or from a remote
    ///
    /// The worktree starts from the commits of the branch, and removing it keeps the branch. A branch that only a remote has is
    /// created and follows it.
    #[arg(long, value_name = "BRANCH", conflicts_with_all = ["base", "on_branch_exists", "scratch"], add = completion::branches())]
    branch: Option<String>,
    #[command(flatten)]
    options: NewOptions,
    /// Create a short-lived worktree that lands on another one
    ///
    /// It starts from the branch of the worktree named by --for and lands on that branch.
    #[arg(long, requires = "parent")]
    scratch: bool,
    /// Worktree that a scratch worktree belongs to
    #[arg(long = "for", value_name = "TREE", id = "parent", requires = "scratch", add = completion::trees())]
    parent: Option<String>,
}

/// What `new` and `ensure` both take.
#[derive(Args)]
pub struct NewOptions {
    /// Task the worktree is for
    #[arg(long, value_name = "ID", add = completion::tasks())]
    task: Option<Word>,
    /// Commit or branch to start from (default: tree.base)
    #[arg(long, value_name = "REF")]
    base: Option<String>,
    /// Branch it lands on (default: target)
    #[arg(long, value_name = "BRANCH")]
    target: Option<String>,
    /// Kind: sealed and sandboxed, or a linked git worktree
    ///
    /// A sealed worktree has a repository of its own, so sandboxed runs cannot reach the main one.
    #[arg(long, value_name = "KIND", default_value = "sealed")]
    kind: KindArg,
    /// Action if the branch already exists
    #[arg(long, value_name = "WHAT", default_value = "error")]
    on_branch_exists: BranchArg,
    /// Check out all files; use no spare or donor of the pool
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
    /// Same as error; weald never prompts
    Ask,
    Error,
    /// Start from the existing branch
    Reuse,
    /// Recreate it and keep its commits in the vault
    Recreate,
}

impl NewOptions {
    pub fn wishes(self) -> TreeWishes {
        TreeWishes {
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
            no_pool: self.no_pool,
        }
    }
}

impl New {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let answer = context.perform(CreateTree {
            name: self.name,
            wishes: self.options.wishes(),
            scratch_for: self.parent,
            branch: self.branch,
        })?;
        context.ui.show(&answer, |out| told(out, &answer))?;
        Ok(CreateTree::exit(&answer))
    }
}

/// The answer of `new` and `ensure`.
pub fn told(out: &mut Out, created: &CreatedTree) -> io::Result<()> {
    let tree = &created.tree.tree;
    let done = match created.outcome {
        CreateOutcome::Created => "created",
        CreateOutcome::Reused => "already exists",
        CreateOutcome::Recreated => "recreated",
        CreateOutcome::Skipped => "you are already in it",
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
            "  branch {} with its commits, for {}",
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
