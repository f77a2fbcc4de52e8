//! Looks at worktrees: which there are, how they stand, where they are and what changed in them.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use weald_core::git_diff::DiffOptions;
use weald_core::name::TreeName;

use super::{Broker, Caller, Inside, Operation, asked, parsed};
use crate::git_view::GitView;
use crate::screen::clean_patch;
use crate::{
    Against, Ask, Board, Call, DiffForm, DiffStyle, Failure, ForeignTree, Freshness, Ground,
    Overview, Reader, ShownDiff, StageView, TreePorts, TreeView, Trees, Upkeep,
};

entries!(
    ListTrees, CheckTrees, ShowTree, FindPath, ShowPorts, DiffTree, ShowBoard, ShowOwnRun
);

/// Lists worktrees.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListTrees {
    /// Look into each of them now.
    pub fresh: bool,
    /// Also those that git or another tool made.
    pub all: bool,
}

/// Worktrees, and those that weald did not make.
#[derive(Debug, Serialize)]
pub struct ListedTrees {
    /// Those that weald made or adopted.
    pub trees: Vec<TreeView>,
    /// Those of others, if they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreign: Option<Vec<ForeignTree>>,
}

impl Operation for ListTrees {
    const NAME: &'static str = "tree_list";
    const READS: bool = true;
    type Output = ListedTrees;

    fn run(self, call: &Call<'_>) -> Result<ListedTrees, Failure> {
        let ground = call.ground()?;
        let trees = ground.trees(call)?;
        let listed = match self.fresh {
            true => {
                let _progress = call.stage("looking");
                trees.list_fresh()?
            }
            false => trees.list()?,
        };
        Ok(ListedTrees {
            trees: listed,
            foreign: match self.all {
                true => Some(trees.foreign()?),
                false => None,
            },
        })
    }
}

/// Looks into one worktree, or into all with what goes on in them.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckTrees {
    /// Which one; without a name the one that the caller stands in, and all if it stands in none.
    pub tree: Option<String>,
    /// Every worktree, with agents, tasks and what needs attention.
    pub all: bool,
}

/// One worktree, or all.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum CheckedTrees {
    /// Looked into.
    One(Box<ShownTree>),
    /// Side by side.
    All(Box<Overview>),
}

impl Operation for CheckTrees {
    const NAME: &'static str = "tree_status";
    const READS: bool = true;
    type Output = CheckedTrees;

    fn run(self, call: &Call<'_>) -> Result<CheckedTrees, Failure> {
        let ground = call.ground()?;
        let trees = ground.trees(call)?;
        if self.all || (self.tree.is_none() && ground.place.inside().is_none()) {
            let _progress = call.stage("looking");
            let found = Upkeep::new(&trees).overview(Freshness::Now)?;
            return Ok(CheckedTrees::All(Box::new(found)));
        }
        let shown = look(call, &ground, &trees, self.tree.as_deref())?;
        Ok(CheckedTrees::One(Box::new(shown)))
    }

    fn run_inside(&self, broker: &dyn Broker, call: &Call<'_>) -> Inside<CheckedTrees> {
        if self.all {
            return Some(Err(Failure::not_allowed_inside()));
        }
        let tree = self.tree.clone();
        let shown = ShowTree { tree }.run_inside(broker, call)?;
        Some(shown.map(|shown| CheckedTrees::One(Box::new(shown))))
    }
}

/// Looks into one worktree.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShowTree {
    /// The caller's own unless given.
    #[serde(default)]
    pub tree: Option<String>,
}

/// What a look into a worktree found.
#[derive(Debug, Serialize, Deserialize)]
pub struct ShownTree {
    /// Its record with what is in it now.
    pub tree: TreeView,
    /// The phases that its task went through; none inside a sandbox.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageView>,
}

impl Operation for ShowTree {
    const NAME: &'static str = "tree_show";
    const READS: bool = true;
    type Output = ShownTree;

    fn run(self, call: &Call<'_>) -> Result<ShownTree, Failure> {
        let ground = call.ground()?;
        look(call, &ground, &ground.trees(call)?, self.tree.as_deref())
    }

    fn run_inside(&self, broker: &dyn Broker, call: &Call<'_>) -> Inside<ShownTree> {
        let tree = call.anywhere(self.tree.as_deref());
        Some(asked(broker, call, Ask::Status(Self { tree })))
    }
}

fn look(
    call: &Call<'_>,
    ground: &Ground,
    trees: &Trees<'_>,
    name: Option<&str>,
) -> Result<ShownTree, Failure> {
    let progress = call.stage("looking");
    let name = ground.tree_name(call, name)?;
    let view = trees.look(name.as_deref())?;
    drop(progress);
    let stages = match &view.tree.task {
        Some(task) => ground.engine.stages(task)?,
        None => Vec::new(),
    };
    call.tell(&ground.engine);
    Ok(ShownTree { tree: view, stages })
}

/// Where a worktree is, where a path is in it, or where the caller's session works.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FindPath {
    /// The caller's own unless given.
    pub tree: Option<String>,
    /// Where the caller's session works, instead.
    pub of_session: bool,
    /// Map this path into the worktree, or refuse it.
    pub check: Option<PathBuf>,
}

/// A path on this machine.
#[derive(Debug, Serialize, Deserialize)]
pub struct FoundPath {
    /// Absolute, without a slash at its end.
    pub path: String,
}

impl Operation for FindPath {
    const NAME: &'static str = "tree_path";
    const READS: bool = true;
    type Output = FoundPath;

    fn run(self, call: &Call<'_>) -> Result<FoundPath, Failure> {
        let ground = call.ground()?;
        let trees = ground.trees(call)?;
        let path = match self.of_session {
            true => {
                let name = call.session(&ground.engine)?;
                trees.directory_of_name(&name)?
            }
            false => {
                let check = self.check.as_deref().unwrap_or(Path::new(""));
                let name = ground.tree_name(call, self.tree.as_deref())?;
                trees.scoped(name.as_deref(), check)?
            }
        };
        let text = path.display().to_string();
        Ok(FoundPath {
            path: text.strip_suffix('/').unwrap_or(&text).to_owned(),
        })
    }

    /// A run works in its worktree, whatever it says of its session.
    fn run_inside(&self, broker: &dyn Broker, call: &Call<'_>) -> Inside<FoundPath> {
        let check = self.check.as_ref().map(|path| path.display().to_string());
        let tree = call.anywhere(self.tree.as_deref());
        let answer = broker.ask(&Caller::default(), Ask::Path { tree, check });
        Some(answer.and_then(parsed))
    }
}

/// The ports of one worktree, or of each.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShowPorts {
    /// All of them unless given.
    pub tree: Option<String>,
}

/// Ports that worktrees have for themselves.
#[derive(Debug, Serialize)]
pub struct ShownPorts {
    /// All of them, as one object.
    pub ports: PortsInUse,
}

/// The range, and who has what of it.
#[derive(Debug, Serialize)]
pub struct PortsInUse {
    /// The first and the last port that a block may have.
    pub first: u16,
    /// The last port of the range.
    pub last: u16,
    /// How many ports a block has.
    pub count: u16,
    /// One for each worktree.
    pub blocks: Vec<TreePorts>,
}

impl Operation for ShowPorts {
    const NAME: &'static str = "tree_ports";
    const READS: bool = true;
    type Output = ShownPorts;

    fn run(self, call: &Call<'_>) -> Result<ShownPorts, Failure> {
        let ground = call.ground()?;
        let trees = ground.trees(call)?;
        let name = ground.tree_name(call, self.tree.as_deref())?;
        let blocks = trees.ports(name.as_deref())?;
        let range = trees.port_range();
        Ok(ShownPorts {
            ports: PortsInUse {
                first: range.first,
                last: range.last,
                count: range.count,
                blocks,
            },
        })
    }
}

/// What changed in a worktree, committed or not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiffTree {
    /// The worktree or its task.
    #[serde(default)]
    pub tree: Option<String>,
    /// Since it left the target, instead of since its base.
    #[serde(default)]
    pub against_target: bool,
    /// As files, a patch, or numbers.
    pub style: DiffStyle,
    /// What git shall do otherwise than usual.
    #[serde(default)]
    pub options: DiffOptions,
    /// A person, whose configuration counts. Nobody else names one.
    #[serde(skip)]
    pub reader: Option<Reader>,
}

impl DiffTree {
    /// What it is compared with.
    pub fn against(&self) -> Against {
        match self.against_target {
            true => Against::Target,
            false => Against::Base,
        }
    }

    /// What git is asked for if a program reads.
    pub fn form(&self) -> DiffForm {
        DiffForm {
            options: self.options.arguments(),
            ..self.style.into()
        }
    }
}

impl Operation for DiffTree {
    const NAME: &'static str = "tree_diff";
    const READS: bool = true;
    type Output = ShownDiff;

    fn run(self, call: &Call<'_>) -> Result<ShownDiff, Failure> {
        let ground = call.ground()?;
        let trees = ground.trees(call)?;
        let _progress = call.stage("looking");
        let name = ground.tree_name(call, self.tree.as_deref())?;
        let view = GitView::new(call, &ground.place, self.style, &self.options, self.reader)?;
        let diff = trees.diff(name.as_deref(), self.against(), view.form.clone())?;
        Ok(view.show(diff))
    }

    fn run_inside(&self, broker: &dyn Broker, call: &Call<'_>) -> Inside<ShownDiff> {
        let wanted = Self {
            tree: call.anywhere(self.tree.as_deref()),
            against_target: self.against_target,
            style: self.style,
            options: self.options.clone(),
            reader: None,
        };
        let diff = asked::<ShownDiff>(broker, call, Ask::Diff(wanted));
        Some(diff.map(|diff| ShownDiff {
            text: diff.text.as_deref().map(clean_patch),
            ..diff
        }))
    }
}

/// Everything at a glance. In a run it is another operation: [`ShowOwnRun`].
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShowBoard {}

/// The board of a repository.
#[derive(Debug, Serialize)]
pub struct ShownBoard {
    /// Its fields stand next to `total`.
    #[serde(flatten)]
    pub board: Board,
    /// The lengths of lists that the board shows in part.
    pub total: BoardTotal,
    /// Worktrees with commits that their branches in main do not have yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unimported: Vec<TreeName>,
}

/// How long the lists are that are shown in part. All others are whole.
#[derive(Debug, Serialize)]
pub struct BoardTotal {
    /// Tasks that are ready; the board has only the next ones.
    pub ready: u64,
}

impl Operation for ShowBoard {
    const NAME: &'static str = "board";
    const READS: bool = true;
    type Output = ShownBoard;

    fn run(self, call: &Call<'_>) -> Result<ShownBoard, Failure> {
        let ground = call.ground()?;
        let me = call.actor(&ground.engine)?;
        let board = ground.engine.board(&ground.place, me.as_ref())?;
        let ready = board.ready_count;
        // What can't be looked at is shown without it.
        let trees = ground.trees_with_any_git(call);
        let views = trees.ok().and_then(|trees| trees.list().ok());
        let views = views.into_iter().flatten().filter(|view| view.unimported);
        Ok(ShownBoard {
            board,
            total: BoardTotal { ready },
            unimported: views.map(|view| view.tree.name).collect(),
        })
    }
}

/// Where the caller's run stands, and what it may ask. Only inside of one.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShowOwnRun {}

impl Operation for ShowOwnRun {
    const NAME: &'static str = "overview";
    /// As its broker says it.
    type Output = Map<String, Value>;

    fn run(self, _: &Call<'_>) -> Result<Self::Output, Failure> {
        Err(Failure::no_operation(Self::NAME))
    }

    fn run_inside(&self, broker: &dyn Broker, call: &Call<'_>) -> Inside<Map<String, Value>> {
        Some(asked(broker, call, Ask::Overview {}))
    }
}
