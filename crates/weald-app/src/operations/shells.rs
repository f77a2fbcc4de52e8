//! A person's shell in a worktree, sandboxed.

use serde::{Deserialize, Serialize};
use weald_core::name::TreeName;
use weald_core::tree::{Tree, TreeKind};
use weald_terminal::Lent;

use super::Operation;
use super::entering::{LAST, none_entered, warn_of_owner};
use super::making::{EnsureTree, TreeWishes, ensured};
use super::runs::{Finished, RunInTree, as_run_failure};
use crate::{Call, Failure, Ground, LandWish, Mandate, RunSandbox, TreeError, Trees, exit};

entries!(OpenShell);

/// What is opened where `$SHELL` is not set.
const SHELL: &str = "/bin/sh";

/// Opens the caller's shell in a worktree, on the terminal of this process.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenShell {
    /// By its name or its task; `-` is the one that was entered last. The one that the caller stands in unless given, else
    /// the only one.
    pub tree: Option<String>,
    /// Create it if there is none, like this.
    pub create: Option<TreeWishes>,
    /// As configured unless given.
    pub sandbox: Option<RunSandbox>,
}

/// A shell that has ended.
#[derive(Debug, Serialize, Deserialize)]
pub struct LeftShell {
    /// Its own exit code.
    pub exit: u8,
    /// The worktree that it was in.
    pub tree: Tree,
    /// What was asked to land in it. Nothing has: that is the caller's to decide.
    pub wish: Option<LandWish>,
}

impl Operation for OpenShell {
    const NAME: &'static str = "shell";
    const TAKES_STREAMS: bool = true;
    type Output = LeftShell;

    fn run(self, call: &Call<'_>) -> Result<LeftShell, Failure> {
        let ground = call.ground()?;
        let tree = self.tree(call, &ground)?;
        warn_of_owner(call, &ground, tree.task.as_ref())?;
        let trees = ground.trees(call)?;
        let tree = trees.note_entered(&tree, call.directory().clone())?;
        call.note(&notice(&tree, self.sandbox));
        let shell = call.environment.get("SHELL");
        let shell = shell.filter(|shell| !shell.is_empty());
        let run = RunInTree {
            tree: Some(tree.name.to_string()),
            timeout: None,
            sandbox: self.sandbox,
            max_output: None,
            command: vec![shell.unwrap_or(SHELL.to_owned()).into(), "-i".into()],
        };
        let terminal = Lent::of_input()?;
        let ended = run.attempt(call, &ground, Mandate::Wish);
        terminal.take_back();
        // What was the shell's is this process's again.
        call.cancel.heed();
        let Finished { exit, tree, wish } = ended.map_err(as_run_failure)?;
        Ok(LeftShell { exit, tree, wish })
    }

    fn exit(left: &LeftShell) -> u8 {
        left.exit
    }
}

impl OpenShell {
    fn tree(&self, call: &Call<'_>, ground: &Ground) -> Result<Tree, Failure> {
        let trees = ground.trees(call)?;
        match (self.tree.as_deref(), &self.create) {
            (None, _) => only_one(ground, &trees),
            (Some(LAST), _) => trees.entered_last()?.ok_or_else(none_entered),
            (Some(name), None) => ground.tree(call, name).map_err(|failure| {
                let is_new = matches!(trees.named(Some(name)), Err(TreeError::NotFound { .. }))
                    && failure.exit == exit::NOT_FOUND
                    && name.parse::<TreeName>().is_ok();
                match is_new {
                    true => failure.hint(format!("weald shell -c {name}")),
                    false => failure,
                }
            }),
            (Some(name), Some(wishes)) => {
                let wanted = EnsureTree {
                    name: Some(name.to_owned()),
                    wishes: wishes.clone(),
                };
                let (name, task) = wanted.meant(call, ground)?;
                let made = ensured(call, ground, &trees, name, task, wanted.wishes)?;
                call.cancel.heed();
                match made.signal {
                    Some(signal) => Err(interrupted(&made.tree.tree, signal)),
                    None => Ok(made.tree.tree),
                }
            }
        }
    }
}

fn interrupted(tree: &Tree, signal: u8) -> Failure {
    let message = format!(
        "interrupted; {} was created, no shell was opened",
        tree.name
    );
    Failure::new("interrupted", 128 + signal, message).hint(format!("weald shell {}", tree.name))
}

/// The worktree that the caller stands in, else the only one.
fn only_one(ground: &Ground, trees: &Trees<'_>) -> Result<Tree, Failure> {
    if ground.place.inside().is_some() {
        return Ok(trees.named(None)?);
    }
    let mut found = trees.records()?;
    found.retain(Tree::is_live);
    let refused = |message: String| Failure::new("tree_not_found", exit::NOT_FOUND, message);
    match &found[..] {
        [tree] => Ok(tree.clone()),
        [] => Err(refused("there is no worktree yet".to_owned()).hint("weald shell -c NAME")),
        several => {
            let names: Vec<_> = several.iter().map(|tree| tree.name.as_str()).collect();
            let message = format!("which worktree? There are {}", names.join(", "));
            Err(refused(message).hint("weald shell NAME, or weald shell - for the last one"))
        }
    }
}

/// Where one is, what can be changed there, and how to leave.
fn notice(tree: &Tree, sandbox: Option<RunSandbox>) -> String {
    let (name, branch) = (&tree.name, &tree.branch);
    let bounds = match (sandbox, tree.kind) {
        (Some(RunSandbox::Off), _) => "not sandboxed",
        (_, TreeKind::Linked) => {
            "sandboxed: only this worktree and the repository's .git can change"
        }
        (_, TreeKind::Sealed) => "sandboxed: only this worktree can change",
    };
    format!("{name} (branch {branch}), {bounds}; to leave: exit")
}
