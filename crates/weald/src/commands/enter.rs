//! `weald enter` and `weald exit`: shell code that changes the directory.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use clap::Args;
use weald_app::{Exited, Failure, Ground, RemoveRequest, TreeError, Trees, Upkeep};
use weald_core::error_code::ErrorCode;
use weald_core::id::TaskId;
use weald_core::tree::Tree;

use super::session::told_lock;
use super::shell_init::Moves;
use crate::completion;
use crate::context::Context;
use crate::ui::Fields;

/// What a shell knows while it is in a tree.
const VARIABLES: [&str; 7] = [
    "WEALD_TREE",
    "WEALD_TREE_PATH",
    "WEALD_TASK",
    "WEALD_MAIN",
    "WEALD_PORT",
    "WEALD_PORTS",
    "WEALD_BACK",
];

/// Print shell code that enters a worktree
///
/// With `weald shell-init` set up, `weald enter NAME` changes the directory itself.
#[derive(Args)]
pub struct Enter {
    /// The worktree
    #[arg(value_name = "NAME", add = completion::trees())]
    name: String,
}

/// Print shell code that leaves the current worktree
///
/// Returns to the directory where `weald enter` was called. A scratch worktree without changes is removed.
#[derive(Args)]
pub struct Exit {
    /// Exempt the worktree from clean-up
    #[arg(long)]
    keep: bool,
    /// Move the worktree to the trash
    #[arg(long, conflicts_with = "keep")]
    remove: bool,
    /// Remove it even with uncommitted changes or unlanded commits
    #[arg(long, requires = "remove")]
    discard: bool,
}

impl Enter {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.ground()?;
        let trees = ground.trees(context)?;
        let back = match context.environment.get("WEALD_BACK") {
            Some(back) if ground.place.inside().is_some() => PathBuf::from(back),
            _ => context.directory().clone(),
        };
        let view = trees.enter(Some(&self.name), back.clone())?;
        warn_of_owner(context, &ground, view.tree.task.as_ref())?;
        context.tell(&ground.engine);
        let (tree, back) = (&view.tree, back.display().to_string());
        let task = tree
            .task
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default();
        let ports = tree.ports;
        let variables = [
            ("WEALD_TREE", tree.name.to_string()),
            ("WEALD_TREE_PATH", tree.path.display().to_string()),
            ("WEALD_TASK", task),
            ("WEALD_MAIN", ground.place.root().display().to_string()),
            (
                "WEALD_PORT",
                ports.map_or(String::new(), |block| block.first.to_string()),
            ),
            (
                "WEALD_PORTS",
                ports.map_or(String::new(), |block| block.to_text()),
            ),
            ("WEALD_BACK", back),
        ];
        let moves = Moves {
            to: &tree.path,
            set: &variables,
            unset: &[],
        };
        let moved = told_shell(context, &moves)?;
        context.ui.answer(
            || {
                let env: serde_json::Map<_, _> = variables
                    .iter()
                    .map(|(name, value)| ((*name).to_owned(), value.clone().into()))
                    .collect();
                Fields::new()
                    .with("tree", &view)
                    .with("path", &tree.path)
                    .with("env", &env)
            },
            |out| {
                if moved {
                    return Ok(());
                }
                for (name, value) in &variables {
                    writeln!(out, "export {name}={};", quoted(value))?;
                }
                writeln!(out, "cd {};", quoted(&tree.path.display().to_string()))
            },
        )
    }
}

/// Warns whoever enters a tree in which another session works: nothing keeps the two apart there.
fn warn_of_owner(
    context: &Context<'_>,
    ground: &Ground,
    task: Option<&TaskId>,
) -> Result<(), Failure> {
    let Some(task) = task else { return Ok(()) };
    let me = context.quiet_session(&ground.engine)?;
    let contest = ground.engine.contest(&me, task)?;
    if let (true, Some(owner)) = (contest.contested, contest.owner) {
        context.warn(&format!(
            "{owner} works on task {task} here: weald session check --task {task}"
        ));
    }
    Ok(())
}

impl Exit {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        // Outside of any repository the shell still knows where it came from.
        let main = context.environment.get("WEALD_MAIN").map(PathBuf::from);
        let ground = match (context.ground(), main) {
            (Err(failure), Some(main)) if failure.code == ErrorCode::NotARepository => {
                context.ground_at(&main)?
            }
            (ground, _) => ground?,
        };
        let trees = ground.trees(context)?;
        let named = context
            .environment
            .get("WEALD_TREE")
            .filter(|name| !name.is_empty());
        let name = match ground.place.inside() {
            Some(_) => None,
            None => named.as_deref(),
        };
        if let Some(name) = name {
            require_entered(context, &trees, name)?;
        }
        let exited = match (self.keep, self.remove) {
            (true, _) => trees.leave_and_keep(name)?,
            (_, true) => {
                let request = RemoveRequest {
                    discard: self.discard,
                    ..RemoveRequest::default()
                };
                let removed = trees.leave_and_remove(name, request);
                removed.map_err(|error| Failure::from(error).of_exit())?
            }
            _ => trees.leave(name)?,
        };
        // What goes to the trash has no lock any more.
        let locks = match exited.outcome {
            "removed" => Vec::new(),
            _ => Upkeep::new(&trees).release_on_end(context.actor(&ground.engine)?.as_ref())?,
        };
        let locks: Vec<_> = locks
            .into_iter()
            .filter(|lock| lock.tree == exited.tree.name)
            .collect();
        context.tell(&ground.engine);
        let back = way_back(context, &trees, &exited.tree)?;
        narrate(context, &exited);
        for lock in &locks {
            context.note(&told_lock(lock));
        }
        let moves = Moves {
            to: &back,
            set: &[],
            unset: &VARIABLES,
        };
        let moved = told_shell(context, &moves)?;
        context.ui.answer(
            || {
                Fields::new()
                    .with("tree", &exited.tree)
                    .with("outcome", &exited.outcome)
                    .with("branch", &exited.tree.branch)
                    .with("path", &exited.tree.path)
                    .with("back", &back)
                    .with("locks", &locks)
            },
            |out| {
                if moved {
                    return Ok(());
                }
                writeln!(out, "cd {};", quoted(&back.display().to_string()))?;
                writeln!(out, "unset {};", VARIABLES.join(" "))
            },
        )
    }
}

/// Where to go: where the shell came from, else as the session or the tree remembers it.
fn way_back(context: &Context<'_>, trees: &Trees<'_>, tree: &Tree) -> Result<PathBuf, Failure> {
    let known = context.environment.get("WEALD_BACK").map(PathBuf::from);
    let known = known.filter(|back| back.is_dir() && !back.starts_with(&tree.path));
    let back = match known {
        Some(back) => back,
        None => trees.way_back(tree)?,
    };
    trees.note_left(tree)?;
    Ok(back)
}

/// Another repository may have a tree of the same name.
fn require_entered(context: &Context<'_>, trees: &Trees<'_>, name: &str) -> Result<(), Failure> {
    let entered = context
        .environment
        .get("WEALD_TREE_PATH")
        .map(PathBuf::from);
    let is_other = |path| trees.named(Some(name)).is_ok_and(|tree| tree.path != path);
    match entered.is_some_and(is_other) {
        true => Err(TreeError::NoTree.into()),
        false => Ok(()),
    }
}

/// Moves the shell by its script. Whoever sees the code instead is told what is missing.
fn told_shell(context: &Context<'_>, moves: &Moves<'_>) -> Result<bool, Failure> {
    let moved = moves.tell(context)?;
    if !moved && !context.ui.is_json() && io::stdout().is_terminal() {
        context.note(
            "your shell stays where it is; to let it change directory, add `eval \"$(weald shell-init bash)\"` to its start-up file (or zsh; see docs/shell.md)",
        );
    }
    Ok(moved)
}

fn narrate(context: &Context<'_>, exited: &Exited) {
    let tree = &exited.tree;
    match exited.outcome {
        "removed" => context.note(&format!(
            "{} is in the trash: weald restore {}",
            tree.name, tree.id
        )),
        "kept" => context.note(&format!("{} is kept", tree.name)),
        _ => context.note(&format!(
            "{} stays: {} (branch {})",
            tree.name,
            tree.path.display(),
            tree.branch
        )),
    }
}

/// A word that any shell takes as it is.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
