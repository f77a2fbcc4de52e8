//! A shell that goes into a worktree, and comes back.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weald_core::error_code::ErrorCode;
use weald_core::id::TaskId;
use weald_core::tree::Tree;

use super::Operation;
use crate::{
    Call, Failure, Ground, LockAtEnd, RemoveRequest, TreeError, TreeView, Trees, Upkeep, exit,
    is_news,
};

entries!(EnterTree, ExitTree);

/// What a shell knows while it is in a worktree.
pub const VARIABLES: [&str; 7] = [
    "WEALD_TREE",
    "WEALD_TREE_PATH",
    "WEALD_TASK",
    "WEALD_MAIN",
    "WEALD_PORT",
    "WEALD_PORTS",
    "WEALD_BACK",
];

/// Records that a shell goes into a worktree.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnterTree {
    /// Which one; `-` is the one that was entered last.
    pub tree: String,
}

/// A worktree, and what a shell needs to go there.
#[derive(Debug, Serialize, Deserialize)]
pub struct EnteredTree {
    /// With what was in it at that moment.
    pub tree: TreeView,
    /// Its directory, absolute: where the shell goes.
    pub path: PathBuf,
    /// The variables of the shell.
    pub env: BTreeMap<String, String>,
}

impl Operation for EnterTree {
    const NAME: &'static str = "tree_enter";
    type Output = EnteredTree;

    fn run(self, call: &Call<'_>) -> Result<EnteredTree, Failure> {
        let ground = call.ground()?;
        let trees = ground.trees(call)?;
        let back = match call.environment.get("WEALD_BACK") {
            Some(back) if ground.place.inside().is_some() => PathBuf::from(back),
            _ => call.directory().clone(),
        };
        let name = match self.tree.as_str() {
            LAST => trees.entered_last()?.ok_or_else(none_entered)?.name,
            _ => ground.tree(call, &self.tree)?.name,
        };
        let view = trees.enter(Some(name.as_str()), back.clone())?;
        warn_of_owner(call, &ground, view.tree.task.as_ref())?;
        call.tell(&ground.engine);
        let tree = &view.tree;
        let unconfined = format!(
            "enter does not sandbox: what you run in {name} can write all that you can (weald shell {name} does)"
        );
        if is_news(&ground.place, &unconfined) {
            call.note(&unconfined);
        }
        let path = tree.path.clone();
        let task = tree.task.as_ref().map(ToString::to_string);
        let ports = tree.ports;
        let values = [
            tree.name.to_string(),
            path.display().to_string(),
            task.unwrap_or_default(),
            ground.place.root().display().to_string(),
            ports.map_or(String::new(), |block| block.first.to_string()),
            ports.map_or(String::new(), |block| block.to_text()),
            back.display().to_string(),
        ];
        let names = VARIABLES.map(str::to_owned);
        Ok(EnteredTree {
            env: names.into_iter().zip(values).collect(),
            tree: view,
            path,
        })
    }
}

/// The word for the worktree that was entered last.
pub(super) const LAST: &str = "-";

pub(super) fn none_entered() -> Failure {
    let message = "you have not entered another worktree yet";
    Failure::new("tree_not_found", exit::NOT_FOUND, message).hint("weald list")
}

/// Warns a person who enters a worktree in which another session works: nothing keeps the two apart there.
pub(super) fn warn_of_owner(
    call: &Call<'_>,
    ground: &Ground,
    task: Option<&TaskId>,
) -> Result<(), Failure> {
    let Some(task) = task else { return Ok(()) };
    let me = call.quiet_session(&ground.engine)?;
    let contest = ground.engine.contest(&me, task)?;
    if let (true, Some(owner)) = (contest.contested, contest.owner) {
        call.warn(&format!(
            "{owner} works on task {task} here: weald session check --task {task}"
        ));
    }
    Ok(())
}

/// Leaves the worktree that the shell is in. A short-lived one without changes is removed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExitTree {
    /// What becomes of the worktree.
    pub then: Then,
}

/// What becomes of a worktree that is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Then {
    /// It stays, except a short-lived one without changes.
    Stays,
    /// It is exempt from clean-up.
    Kept,
    /// It goes to the trash.
    Removed {
        /// Even with uncommitted changes or unlanded commits.
        discard: bool,
    },
}

/// A worktree that a shell has left.
#[derive(Debug, Serialize, Deserialize)]
pub struct ExitedTree {
    /// Its record after that.
    pub tree: Tree,
    /// `kept`, `removed` or `left`.
    pub outcome: String,
    /// Its branch, which a removal may have deleted.
    pub branch: String,
    /// Where it is, or was before its removal.
    pub path: PathBuf,
    /// Where the shell goes.
    pub back: PathBuf,
    /// Locks of the caller on this worktree, whether opened or not; none of a removed one.
    pub locks: Vec<LockAtEnd>,
}

impl Operation for ExitTree {
    const NAME: &'static str = "tree_exit";
    type Output = ExitedTree;

    fn run(self, call: &Call<'_>) -> Result<ExitedTree, Failure> {
        let ground = entered_ground(call)?;
        let trees = ground.trees(call)?;
        let named = call
            .environment
            .get("WEALD_TREE")
            .filter(|name| !name.is_empty());
        let name = match ground.place.inside() {
            Some(_) => None,
            None => named.as_deref(),
        };
        if let Some(name) = name {
            require_entered(call, &trees, name)?;
        }
        let exited = match self.then {
            Then::Kept => trees.leave_and_keep(name)?,
            Then::Removed { discard } => {
                let request = RemoveRequest {
                    discard,
                    ..RemoveRequest::default()
                };
                let removed = trees.leave_and_remove(name, request);
                removed.map_err(|error| Failure::from(error).of_exit())?
            }
            Then::Stays => trees.leave(name)?,
        };
        // What goes to the trash has no lock any more.
        let mut locks = match exited.outcome {
            "removed" => Vec::new(),
            _ => Upkeep::new(&trees).release_on_end(call.actor(&ground.engine)?.as_ref())?,
        };
        locks.retain(|lock| lock.tree == exited.tree.name);
        call.tell(&ground.engine);
        let tree = exited.tree;
        Ok(ExitedTree {
            outcome: exited.outcome.to_owned(),
            branch: tree.branch.clone(),
            path: tree.path.clone(),
            back: way_back(call, &trees, &tree)?,
            locks,
            tree,
        })
    }
}

/// Outside of any repository the shell still knows where it came from.
fn entered_ground(call: &Call<'_>) -> Result<Ground, Failure> {
    let main = call.environment.get("WEALD_MAIN").map(PathBuf::from);
    match (call.ground(), main) {
        (Err(failure), Some(main)) if failure.code == ErrorCode::NotARepository => {
            call.ground_at(&main)
        }
        (ground, _) => ground,
    }
}

fn known_back(call: &Call<'_>) -> Option<PathBuf> {
    let back = call.environment.get("WEALD_BACK").map(PathBuf::from)?;
    back.is_dir().then_some(back)
}

impl Call<'_> {
    /// The directory in main that the shell came from, else main's own.
    pub(super) fn came_from(&self, main: &Path) -> PathBuf {
        let back = known_back(self).filter(|back| back.starts_with(main));
        back.unwrap_or_else(|| main.to_owned())
    }
}

/// Where to go: where the shell came from, else as the session or the worktree remembers it.
fn way_back(call: &Call<'_>, trees: &Trees<'_>, tree: &Tree) -> Result<PathBuf, Failure> {
    let back = match known_back(call).filter(|back| !back.starts_with(&tree.path)) {
        Some(back) => back,
        None => trees.way_back(tree)?,
    };
    trees.note_left(tree)?;
    Ok(back)
}

/// Another repository may have a worktree of the same name.
fn require_entered(call: &Call<'_>, trees: &Trees<'_>, name: &str) -> Result<(), Failure> {
    let entered = call.environment.get("WEALD_TREE_PATH");
    let is_other = |path: String| {
        let tree = trees.named(Some(name));
        tree.is_ok_and(|tree| tree.path != Path::new(&path))
    };
    match entered.is_some_and(is_other) {
        true => Err(TreeError::NoTree.into()),
        false => Ok(()),
    }
}
