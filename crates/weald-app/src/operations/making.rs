//! How worktrees come about, and how they are set up and brought up to date.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use weald_core::id::TaskId;
use weald_core::meant::{Form, Word};
use weald_core::tree::TreeKind;

use super::keeping::OneTree;
use super::{Broker, Inside, Operation, asked};
use crate::project::missing_dependency;
use crate::screen::clean_line;
use crate::supervision::{defers, is_foreign_tree};
use crate::{
    Adoption, Ask, BranchExists, Call, CreateOutcome, Created, Failure, Ground, NewTree,
    Population, SetupReport, SyncOutcome, Synced, TreeError, TreeView, Trees, exit, is_news,
};

entries!(
    CreateTree, EnsureTree, AdoptTree, AdoptTrees, SetUpTree, SyncTree
);

/// What a worktree is made of.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TreeWishes {
    /// The task that it is for.
    pub task: Option<Word>,
    /// The commit or branch that it starts from.
    pub base: Option<String>,
    /// The branch that it lands on.
    pub target: Option<String>,
    /// Sealed from main, or linked to it.
    pub kind: TreeKind,
    /// What becomes of a branch of its name that is there already.
    pub branch_exists: BranchExists,
    /// Check out all files, whatever the pool has.
    pub no_pool: bool,
}

impl TreeWishes {
    /// The task that is meant.
    fn task(&self, call: &Call<'_>, ground: &Ground) -> Result<Option<TaskId>, Failure> {
        let task = self.task.as_ref();
        task.map(|word| ground.task_by_id(call, word)).transpose()
    }

    fn new_tree(
        self,
        name: Option<String>,
        task: Option<TaskId>,
        scratch_for: Option<String>,
    ) -> NewTree {
        NewTree {
            name,
            task,
            base: self.base,
            target: self.target,
            kind: self.kind,
            branch_exists: self.branch_exists,
            scratch_for,
            no_pool: self.no_pool,
            branch: None,
            entry_of: None,
        }
    }
}

/// Creates a worktree; one of that name must not be there.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreateTree {
    /// Without one it is called after its branch, its task, or the worktree that it is a scratch worktree of.
    pub name: Option<String>,
    /// What it is made of.
    pub wishes: TreeWishes,
    /// The worktree or task on whose branch a short-lived one lands.
    pub scratch_for: Option<String>,
    /// A branch that is there, here or on one remote, instead of a new one.
    pub branch: Option<String>,
}

/// A worktree that is ready.
#[derive(Debug, Serialize)]
pub struct CreatedTree {
    /// As it is now.
    pub tree: TreeView,
    /// Whether it was created, made again or there already.
    pub outcome: CreateOutcome,
    /// Whether a new one starts from a branch that was there.
    pub branch_reused: bool,
    /// Where the files of a new one come from.
    pub population: Option<Population>,
    /// What was copied and run in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<SetupReport>,
    /// What asked for an end while it was made: that is part of the answer.
    #[serde(skip)]
    pub(super) signal: Option<u8>,
}

impl CreatedTree {
    fn exit(&self) -> u8 {
        self.signal.map_or(exit::DONE, |signal| 128 + signal)
    }
}

impl Operation for CreateTree {
    const NAME: &'static str = "tree_create";
    type Output = CreatedTree;

    fn run(self, call: &Call<'_>) -> Result<CreatedTree, Failure> {
        let is_called = self.name.is_some() || self.branch.is_some();
        if !is_called && self.wishes.task.is_none() && self.scratch_for.is_none() {
            return Err(nameless());
        }
        if self.branch.is_some() && (self.wishes.base.is_some() || self.scratch_for.is_some()) {
            let message = "a worktree for a branch that is there starts from that branch";
            return Err(Failure::new("usage", exit::USAGE, message)
                .hint("leave out the base, and the worktree that a scratch one is for"));
        }
        let ground = call.ground()?;
        ground.warn_of_settings(call);
        let trees = ground.trees(call)?;
        call.cancel.catch();
        let progress = call.stage("creating the worktree");
        let parent = ground.tree_name(call, self.scratch_for.as_deref())?;
        let task = self.wishes.task(call, &ground)?;
        let is_named = self.name.is_some();
        let branch = self.branch.clone();
        let new = NewTree {
            branch: self.branch,
            ..self.wishes.new_tree(self.name, task, parent)
        };
        let created = trees.create(&new).map_err(|error| match (&error, branch) {
            (TreeError::Exists { .. } | TreeError::Name(_), Some(branch)) if !is_named => {
                let hint = format!("give it another name: weald new NAME --branch {branch}");
                Failure::from(error).hint(hint)
            }
            _ => error.into(),
        })?;
        drop(progress);
        hint_at_set_up(call, &ground, &created);
        Ok(made(call, &ground, &trees, created))
    }

    fn exit(created: &CreatedTree) -> u8 {
        created.exit()
    }
}

/// Says once in a repository that its new worktrees lack what main has installed.
fn hint_at_set_up(call: &Call<'_>, ground: &Ground, created: &Created) {
    let Some(checkout) = ground.place.repository().checkout() else {
        return;
    };
    if created.setup.is_some() || created.outcome != CreateOutcome::Created {
        return;
    }
    let missing = missing_dependency(ground.config(), checkout, &created.tree.path);
    if let Some(folder) = missing
        && is_news(
            &ground.place,
            "hint: dependencies are missing in new worktrees",
        )
    {
        call.note(&format!(
            "{folder} is in main and not in new worktrees; to set them up: weald init"
        ));
    }
}

fn nameless() -> Failure {
    let message = "a worktree needs a name or a task";
    Failure::new("usage", exit::USAGE, message).hint("weald new --help")
}

fn made(call: &Call<'_>, ground: &Ground, trees: &Trees<'_>, created: Created) -> CreatedTree {
    call.tell(&ground.engine);
    for note in &created.notes {
        call.warn(note);
    }
    call.refill_pool(trees, &ground.place.root());
    CreatedTree {
        tree: trees.view(created.tree),
        outcome: created.outcome,
        branch_reused: created.branch_reused,
        population: created.population,
        setup: created.setup,
        signal: call.cancel.asked(),
    }
}

/// The worktree of a name or task, which is created if there is none. A caller who is in a worktree works there.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnsureTree {
    /// Without one it is called after its task.
    pub name: Option<String>,
    /// For one that has to be created.
    pub wishes: TreeWishes,
}

/// Where the caller works.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum EnsuredTree {
    /// In a worktree of weald's.
    Tree(Box<CreatedTree>),
    /// Where it is.
    Elsewhere(Elsewhere),
}

/// The caller is in a worktree that another system made: nothing was created.
#[derive(Debug, Serialize)]
pub struct Elsewhere {
    /// None of weald's.
    pub tree: (),
    /// That nothing was created.
    pub outcome: CreateOutcome,
    /// Where the caller is.
    pub path: PathBuf,
}

impl Operation for EnsureTree {
    const NAME: &'static str = "tree_ensure";
    type Output = EnsuredTree;

    fn run(self, call: &Call<'_>) -> Result<EnsuredTree, Failure> {
        if self.name.is_none() && self.wishes.task.is_none() {
            return Err(nameless());
        }
        let ground = call.ground()?;
        ground.warn_of_settings(call);
        let trees = ground.trees(call)?;
        if defers(call, &ground) {
            if ground.place.inside().is_some() {
                let tree = trees.named(None)?;
                call.note(&format!("already in worktree {}", tree.name));
                return Ok(EnsuredTree::Tree(Box::new(CreatedTree {
                    tree: trees.view(tree),
                    outcome: CreateOutcome::Skipped,
                    branch_reused: false,
                    population: None,
                    setup: None,
                    signal: None,
                })));
            }
            if is_foreign_tree(call) {
                return Ok(EnsuredTree::Elsewhere(Elsewhere {
                    tree: (),
                    outcome: CreateOutcome::Skipped,
                    path: call.directory().clone(),
                }));
            }
        }
        let (name, task) = self.meant(call, &ground)?;
        let bound = name
            .as_deref()
            .and_then(|name| trees.named(Some(name)).ok()?.task);
        if let Some(task) = task.as_ref().or(bound.as_ref()) {
            refuse_contest(call, &ground, task)?;
        }
        let made = ensured(call, &ground, &trees, name, task, self.wishes)?;
        Ok(EnsuredTree::Tree(Box::new(made)))
    }

    fn exit(ensured: &EnsuredTree) -> u8 {
        match ensured {
            EnsuredTree::Tree(created) => created.exit(),
            EnsuredTree::Elsewhere(_) => exit::DONE,
        }
    }
}

/// The worktree, as it is or created. An end that is asked for meanwhile is part of the answer.
pub(super) fn ensured(
    call: &Call<'_>,
    ground: &Ground,
    trees: &Trees<'_>,
    name: Option<String>,
    task: Option<TaskId>,
    wishes: TreeWishes,
) -> Result<CreatedTree, Failure> {
    call.cancel.catch();
    let progress = call.stage("creating the worktree");
    let created = trees.ensure(&wishes.new_tree(name, task, None))?;
    drop(progress);
    Ok(made(call, ground, trees, created))
}

impl EnsureTree {
    /// The worktree by its own name if it is there, and its task. Any other word is the name of a new one, unless it says that
    /// it is something else.
    pub(super) fn meant(
        &self,
        call: &Call<'_>,
        ground: &Ground,
    ) -> Result<(Option<String>, Option<TaskId>), Failure> {
        let task = self.wishes.task(call, ground)?;
        let Some(name) = &self.name else {
            return Ok((None, task));
        };
        let Ok(word) = name.parse::<Word>() else {
            return Ok((Some(name.clone()), task));
        };
        match ground.tree(call, name) {
            // As it was given: a name with plus signs is made from slashes alone.
            Ok(tree) => Ok((Some(tree.name.as_str().replace('+', "/")), task)),
            Err(failure) if failure.code.as_str() == "ambiguous_name" => Err(failure),
            Err(failure) => match word.form() {
                None => Ok((Some(name.clone()), task)),
                Some(Form::Worktree) => Ok((Some(word.bare().to_owned()), task)),
                Some(Form::Task) if task.is_none() => Ok((None, Some(ground.task(call, &word)?))),
                Some(_) => Err(failure),
            },
        }
    }
}

/// Stops where another session that may live works on the task.
fn refuse_contest(call: &Call<'_>, ground: &Ground, task: &TaskId) -> Result<(), Failure> {
    let me = call.quiet_session(&ground.engine)?;
    let contest = ground.engine.contest(&me, task)?;
    match (contest.contested, contest.owner) {
        (true, Some(owner)) => Err(Failure::contested(task, &owner, contest.since)),
        _ => Ok(()),
    }
}

/// Registers a worktree that git or another tool made; nothing in it is changed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdoptTree {
    /// Its directory.
    pub path: PathBuf,
    /// That of its directory unless given.
    pub name: Option<String>,
    /// The task that it is for.
    pub task: Option<Word>,
    /// The branch that it lands on.
    pub target: Option<String>,
}

impl Operation for AdoptTree {
    const NAME: &'static str = "tree_adopt";
    type Output = OneTree;

    fn run(self, call: &Call<'_>) -> Result<OneTree, Failure> {
        let ground = call.ground()?;
        let trees = ground.trees(call)?;
        let task = self.task.as_ref();
        let task = task.map(|word| ground.task_by_id(call, word)).transpose()?;
        let tree = trees.adopt(&Adoption {
            path: self.path,
            name: self.name,
            task,
            target: self.target,
        })?;
        call.tell(&ground.engine);
        let tree = trees.view(tree);
        Ok(OneTree { tree })
    }
}

/// Registers every worktree that can be; the others are in the answer with the reason.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdoptTrees {
    /// The branch that all of them land on.
    pub target: Option<String>,
}

/// Those that have records now, and those that could not get one.
#[derive(Debug, Serialize)]
pub struct AdoptedTrees {
    /// Each as it is now.
    pub trees: Vec<TreeView>,
    /// Left as they are.
    pub skipped: Vec<NotAdopted>,
}

/// Why a worktree got no record: the error of adopting it alone.
#[derive(Debug, Serialize)]
pub struct NotAdopted {
    /// Its directory.
    pub path: PathBuf,
    /// For programs.
    pub code: String,
    /// In one sentence.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

impl Operation for AdoptTrees {
    const NAME: &'static str = "tree_adopt_all";
    type Output = AdoptedTrees;

    fn run(self, call: &Call<'_>) -> Result<AdoptedTrees, Failure> {
        let ground = call.ground()?;
        let trees = ground.trees(call)?;
        let mut adopted = AdoptedTrees {
            trees: Vec::new(),
            skipped: Vec::new(),
        };
        for foreign in trees.foreign()? {
            let wanted = Adoption {
                path: foreign.path.clone(),
                target: self.target.clone(),
                ..Adoption::default()
            };
            match trees.adopt(&wanted) {
                Ok(tree) => adopted.trees.push(trees.view(tree)),
                Err(error) => {
                    let why = Failure::from(error);
                    adopted.skipped.push(NotAdopted {
                        path: foreign.path,
                        code: why.code.as_str().to_owned(),
                        message: why.message,
                        hint: why.hint,
                    });
                }
            }
        }
        call.tell(&ground.engine);
        Ok(adopted)
    }
}

/// Sets a worktree up again: adds what is missing, and runs the commands.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetUpTree {
    /// The caller's own unless given.
    pub tree: Option<String>,
}

/// A worktree that was set up again.
#[derive(Debug, Serialize)]
pub struct PreparedTree {
    /// As it is now.
    pub tree: TreeView,
    /// What was added, and what ran.
    pub setup: Option<SetupReport>,
}

impl Operation for SetUpTree {
    const NAME: &'static str = "tree_setup";
    type Output = PreparedTree;

    fn run(self, call: &Call<'_>) -> Result<PreparedTree, Failure> {
        let ground = call.ground()?;
        ground.warn_of_settings(call);
        let trees = ground.trees(call)?;
        let name = ground.tree_name(call, self.tree.as_deref())?;
        let done = trees.set_up_again(name.as_deref())?;
        call.tell(&ground.engine);
        for note in &done.notes {
            call.warn(note);
        }
        Ok(PreparedTree {
            tree: trees.view(done.tree),
            setup: done.setup,
        })
    }
}

/// Brings the target's commits into a worktree; a conflict is left there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SyncTree {
    /// The worktree or its task.
    pub tree: Option<String>,
    /// Put its commits on top of the target's, instead of merging those.
    pub rebase: bool,
}

/// A worktree that has the target's commits, or a conflict with them.
#[derive(Debug, Serialize, Deserialize)]
pub struct SyncedTree {
    /// As it is now.
    pub tree: TreeView,
    /// What had to be done.
    pub outcome: SyncOutcome,
    /// Paths to resolve in the worktree.
    pub conflicts: Vec<String>,
    /// What is in progress in the worktree because of a conflict: `merge` or `rebase`.
    pub operation: Option<String>,
    /// Files that git ignores and that were in the way, by their new names.
    pub set_aside: Vec<String>,
}

impl SyncedTree {
    /// What a sync came to.
    pub fn of(trees: &Trees<'_>, synced: Synced) -> Self {
        Self {
            tree: trees.view(synced.tree),
            outcome: synced.outcome,
            conflicts: synced.conflicts,
            operation: synced.operation,
            set_aside: synced.set_aside,
        }
    }
}

impl Operation for SyncTree {
    const NAME: &'static str = "tree_sync";
    type Output = SyncedTree;

    fn run(self, call: &Call<'_>) -> Result<SyncedTree, Failure> {
        let ground = call.ground()?;
        let trees = ground.trees(call)?;
        let progress = call.stage("syncing with the target");
        let name = ground.tree_name(call, self.tree.as_deref())?;
        let name = name.as_deref();
        trees.require_own(&trees.named(name)?)?;
        let synced = trees.sync(name, self.rebase)?;
        drop(progress);
        call.tell(&ground.engine);
        for path in &synced.set_aside {
            let path = clean_line(path);
            call.warn(&format!(
                "ignored by git and in the way, so it is kept: {path}"
            ));
        }
        Ok(SyncedTree::of(&trees, synced))
    }

    fn run_inside(&self, broker: &dyn Broker, call: &Call<'_>) -> Inside<SyncedTree> {
        let tree = call.anywhere(self.tree.as_deref());
        let wanted = Self {
            tree,
            rebase: self.rebase,
        };
        Some(asked(broker, call, Ask::Sync(wanted)))
    }

    fn exit(synced: &SyncedTree) -> u8 {
        match synced.conflicts.is_empty() {
            true => exit::DONE,
            false => exit::CONFLICT,
        }
    }
}
