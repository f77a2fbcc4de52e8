//! Making a tree: intent, vault, build beside its place, rename, register, done.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use weald_core::binding::{self, BindStart};
use weald_core::id::{TaskId, TreeId};
use weald_core::name::TreeName;
use weald_core::store::{Counter, Durability, StoreError};
use weald_core::task::Task;
use weald_core::tree::{Base, DirectoryIdentity, Tree, TreeKind, TreeLock, TreeStatus};
use weald_core::tree_rules::{self, TreeInput};
use weald_git::{
    Commit, Expected, MainRef, NewRegistration, RefChange, Reference, list_refs, update_refs,
};

use super::inner::Inner;
use super::inside::Job;
use super::layout::Layout;
use super::visit::{Access, Site};
use super::{TreeError, Trees, at, decided, require_task_record};
use crate::marker::{self, TreeNote};

/// What happens when the branch exists already.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BranchExists {
    /// The tree is not made.
    #[default]
    Error,
    /// The tree starts from it.
    Reuse,
    /// The branch is made anew; what it held is kept in the vault.
    Recreate,
}

/// A tree to be made.
#[derive(Debug, Clone, Default)]
pub struct NewTree {
    /// What to call it; without one, the task says.
    pub name: Option<String>,
    /// Whose tree it is.
    pub task: Option<TaskId>,
    /// What it starts from.
    pub base: Option<String>,
    /// What it lands on.
    pub target: Option<String>,
    /// Sealed or linked.
    pub kind: TreeKind,
    /// When the branch exists.
    pub branch_exists: BranchExists,
    /// The tree whose branch a short-lived one lands on.
    pub scratch_for: Option<String>,
}

/// How a tree came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was made.
    Created,
    /// It was there.
    Reused,
    /// Its directory was gone and was made again.
    Recreated,
    /// The caller is in a tree already.
    Skipped,
}

/// A tree, and what a person should know about how it came about.
#[derive(Debug, Clone)]
pub struct Created {
    /// The tree.
    pub tree: Tree,
    /// How.
    pub outcome: Outcome,
    /// What may be unexpected.
    pub notes: Vec<String>,
}

/// What a tree is made from, decided before anything is written.
struct Plan {
    tree: Tree,
    start: String,
    refs: Vec<MainRef>,
    target_tip: Option<String>,
    replaced: Option<String>,
    reused: bool,
    dedicated: bool,
    notes: Vec<String>,
}

impl Trees<'_> {
    /// Makes a tree.
    pub fn create(&self, new: &NewTree) -> Result<Created, TreeError> {
        let (name, task) = self.wanted(new)?;
        self.refuse_taken(&name)?;
        let plan = self.plan(new, name, task.as_ref())?;
        let tree = self.announce(&plan)?;
        match self.build(&plan, &tree) {
            Ok((tree, notes)) => Ok(Created {
                tree,
                outcome: Outcome::Created,
                notes,
            }),
            Err(error) => {
                self.take_back(&plan, &tree);
                let input = TreeInput::CreateFailed {
                    error: error.to_string(),
                };
                self.decide(&tree, Durability::Process, input)?;
                Err(error)
            }
        }
    }

    /// The tree of this name or task: as it is, made, or made again where its directory is gone.
    pub fn ensure(&self, new: &NewTree) -> Result<Created, TreeError> {
        let (name, _) = self.wanted(new)?;
        let known = self
            .engine
            .look(|tx| Ok::<_, StoreError>(tx.tree(&name)?))?;
        let Some(tree) = known.filter(Tree::is_live) else {
            return self.create(new);
        };
        if let (Some(wanted), Some(bound)) = (&new.task, &tree.task)
            && wanted != bound
        {
            return Err(binding::BindRefusal::TreeBound {
                tree: tree.name,
                task: bound.clone(),
            }
            .into());
        }
        match self.site(&tree) {
            Ok(_) => Ok(Created {
                tree,
                outcome: Outcome::Reused,
                notes: Vec::new(),
            }),
            Err(TreeError::Missing { .. }) => self.recreate(&tree),
            Err(other) => Err(other),
        }
    }

    /// The name and the task, both checked.
    fn wanted(&self, new: &NewTree) -> Result<(TreeName, Option<Task>), TreeError> {
        let task = match &new.task {
            Some(id) => Some(self.engine.look(|tx| require_task_record(tx, id))?),
            None => None,
        };
        let name = match (&new.name, &task) {
            (Some(name), _) => self.name(name)?,
            (None, Some(task)) => match &task.worktree {
                Some(bound) => bound.clone(),
                None => self.name_for(task)?,
            },
            (None, None) => return Err(TreeError::NoTree),
        };
        Ok((name, task))
    }

    fn refuse_taken(&self, name: &TreeName) -> Result<(), TreeError> {
        let known = self.engine.look(|tx| Ok::<_, StoreError>(tx.tree(name)?))?;
        match known.filter(|tree| tree.is_live() || tree.status == TreeStatus::Creating) {
            Some(tree) => Err(TreeError::Exists {
                name: tree.name,
                path: tree.path,
            }),
            None => Ok(()),
        }
    }

    fn plan(&self, new: &NewTree, name: TreeName, task: Option<&Task>) -> Result<Plan, TreeError> {
        let mut notes = Vec::new();
        let parent = match &new.scratch_for {
            Some(name) => Some(self.look(Some(name))?.tree),
            None => None,
        };
        let target = match (&new.target, &parent, &self.target) {
            (Some(target), ..) => target.clone(),
            (None, Some(parent), _) => parent.branch.clone(),
            (None, None, Some((branch, _))) => branch.clone(),
            (None, None, None) => return Err(TreeError::NoCommit),
        };
        let base = match &parent {
            Some(parent) if new.base.is_none() => Base {
                reference: parent.branch.clone(),
                commit: parent
                    .head
                    .clone()
                    .unwrap_or_else(|| parent.base.commit.clone()),
            },
            _ => self.base(new.base.as_deref(), &target)?,
        };
        notes.extend(self.judge_dirty_main()?);
        let id = self.engine.change(None, Durability::Process, |tx| {
            Ok::<_, StoreError>(TreeId(tx.next_number(Counter::Tree)?))
        })?;
        let layout = self.layout(id, &name, task)?;
        notes.extend(layout.told.clone());
        let (start, replaced) = self.branch_start(new, &name, &layout, &base)?;
        let full = format!("refs/heads/{}", layout.branch);
        let reused = replaced.is_none() && self.place.repository().resolve(&full)?.is_some();
        if layout.path.symlink_metadata().is_ok() {
            return Err(TreeError::Occupied { path: layout.path });
        }
        let root = layout.path.parent().unwrap_or(&layout.path).to_owned();
        let dedicated = !root.exists() || root.join(marker::MARKER).is_file();
        let now = self.engine.look(|tx| Ok::<_, StoreError>(tx.now()))?;
        let tree = Tree {
            kind: new.kind,
            branch: layout.branch,
            target: target.clone(),
            task: task.map(|task| task.id.clone()),
            scratch_for: parent.map(|parent| parent.name),
            ..Tree::new(id, name, layout.path, base, now)
        };
        let target_tip = self.place.repository().target(&target)?;
        Ok(Plan {
            tree,
            start,
            refs: self.main_refs()?,
            target_tip: target_tip.map(|target| target.tip.as_str().to_owned()),
            replaced,
            reused,
            dedicated,
            notes,
        })
    }

    /// Refs of main that a tree sees.
    pub(crate) fn main_refs(&self) -> Result<Vec<MainRef>, TreeError> {
        let git_dir = self.place.repository().common_dir();
        Ok(list_refs(git_dir, &["refs/remotes/", "refs/tags/"])?)
    }

    /// What a tree starts from: as named, or as the configuration says.
    fn base(&self, named: Option<&str>, target: &str) -> Result<Base, TreeError> {
        let repository = self.place.repository();
        let policy = self.config.text("tree.base");
        let reference = match (named, policy) {
            (Some(named), _) => named.to_owned(),
            (None, "head") => "HEAD".to_owned(),
            (None, "remote_default") => match repository.resolve("refs/remotes/origin/HEAD")? {
                Some(_) => "origin/HEAD".to_owned(),
                None => "HEAD".to_owned(),
            },
            (None, _) => target.to_owned(),
        };
        let unknown = || TreeError::UnknownBase {
            base: reference.clone(),
        };
        // The named commit as the main checkout sees it, wherever the caller stands.
        let spelled = format!("{reference}^{{commit}}");
        let asked = weald_git::Git::new(repository.common_dir(), "rev-parse")
            .args(["-q", "--verify", "--end-of-options", &spelled])
            .output()?;
        let text = String::from_utf8_lossy(&asked.stdout).trim_end().to_owned();
        let text = text.lines().last().unwrap_or_default().to_owned();
        match Commit::parse(&text).filter(|_| asked.status.success()) {
            Some(commit) => Ok(Base {
                reference,
                commit: commit.as_str().to_owned(),
            }),
            None => match repository.target(&reference)? {
                Some(target) if named.is_none() => Ok(Base {
                    reference,
                    commit: target.tip.as_str().to_owned(),
                }),
                _ if self.target.is_none() => Err(TreeError::NoCommit),
                _ => Err(unknown()),
            },
        }
    }

    /// What to say or refuse about uncommitted changes in main; they never come along.
    fn judge_dirty_main(&self) -> Result<Option<String>, TreeError> {
        let policy = self.config.text("tree.dirty_main");
        let root = self.place.root();
        if policy == "ignore" || !root.join(".git").exists() {
            return Ok(None);
        }
        let status = weald_git::Git::new(self.place.repository().common_dir(), "status")
            .work_tree(&root)
            .args([
                "--porcelain",
                "-z",
                "--untracked-files=no",
                "--ignore-submodules=all",
            ])
            .run()?;
        let count = status
            .split(|byte| *byte == 0)
            .filter(|line| !line.is_empty())
            .count();
        match (count, policy) {
            (0, _) => Ok(None),
            (count, "refuse") => Err(TreeError::DirtyMain { count }),
            (count, _) => Ok(Some(format!(
                "the main checkout has {count} uncommitted changes; they are not in the tree"
            ))),
        }
    }

    /// What the branch will start with, and what it held if it is made anew.
    fn branch_start(
        &self,
        new: &NewTree,
        name: &TreeName,
        layout: &Layout,
        base: &Base,
    ) -> Result<(String, Option<String>), TreeError> {
        let repository = self.place.repository();
        let full = format!("refs/heads/{}", layout.branch);
        if let Some(user) = self.user_of_branch(&full)? {
            return Err(TreeError::BranchInUse {
                branch: layout.branch.clone(),
                path: user,
            });
        }
        let existing = repository
            .resolve(&full)?
            .map(|commit| commit.as_str().to_owned());
        match (existing, new.branch_exists) {
            (None, _) => {
                self.refuse_clash(&layout.branch)?;
                Ok((base.commit.clone(), None))
            }
            (Some(tip), BranchExists::Reuse) => Ok((tip, None)),
            (Some(tip), BranchExists::Recreate) => Ok((base.commit.clone(), Some(tip))),
            (Some(_), BranchExists::Error) => Err(TreeError::BranchExists {
                branch: layout.branch.clone(),
                name: name.clone(),
            }),
        }
    }

    /// The worktree that has a branch checked out.
    fn user_of_branch(&self, full: &str) -> Result<Option<PathBuf>, TreeError> {
        let head = Reference::Symbolic(full.to_owned());
        let registrations = self.registrations();
        let listed = registrations
            .list()
            .map_err(at(&registrations.directory("")))?;
        let user = listed
            .iter()
            .find(|known| known.head.as_ref() == Some(&head));
        if let Some(user) = user {
            return Ok(user.path().map(Path::to_owned));
        }
        let root = self.place.root();
        let main = fs::read_to_string(self.place.repository().common_dir().join("HEAD"));
        let in_main = main.ok().and_then(|text| Reference::parse(text.trim_end())) == Some(head);
        Ok(in_main.then_some(root))
    }

    /// `wt` and `wt/x` can't both be branches.
    fn refuse_clash(&self, branch: &str) -> Result<(), TreeError> {
        let repository = self.place.repository();
        let parts: Vec<_> = branch.split('/').collect();
        for end in 1..parts.len() {
            let above = parts[..end].join("/");
            if repository
                .resolve(&format!("refs/heads/{above}"))?
                .is_some()
            {
                return Err(TreeError::BranchClash {
                    branch: branch.to_owned(),
                    existing: above,
                });
            }
        }
        let below = list_refs(repository.common_dir(), &[&format!("refs/heads/{branch}/")])?;
        match below.first() {
            Some(existing) => Err(TreeError::BranchClash {
                branch: branch.to_owned(),
                existing: existing.name.trim_start_matches("refs/heads/").to_owned(),
            }),
            None => Ok(()),
        }
    }

    /// Writes the intent; the name, the path and the task are taken from here on.
    fn announce(&self, plan: &Plan) -> Result<Tree, TreeError> {
        self.engine.change(self.actor(), Durability::Process, |tx| {
            for known in tx.trees()? {
                let holds = known.is_live() || known.status == TreeStatus::Creating;
                if holds && (known.name == plan.tree.name || known.path == plan.tree.path) {
                    return Err(TreeError::Exists {
                        name: known.name,
                        path: known.path,
                    });
                }
            }
            let bare = Tree {
                task: None,
                worker: self.me(),
                ..plan.tree.clone()
            };
            let (mut tree, change) = tree_rules::announce(bare);
            tx.record(self.actor(), change)?;
            if let Some(id) = &plan.tree.task {
                let task = require_task_record(tx, id)?;
                if let Some(bound) = &task.worktree
                    && *bound != tree.name
                {
                    return Err(binding::BindRefusal::TaskBound {
                        task: id.clone(),
                        tree: bound.clone(),
                    }
                    .into());
                }
                tree.task = Some(id.clone());
            }
            Ok(tree)
        })
    }

    /// Everything on disk, then the record.
    fn build(&self, plan: &Plan, tree: &Tree) -> Result<(Tree, Vec<String>), TreeError> {
        let mut notes = plan.notes.clone();
        let root = tree.path.parent().unwrap_or(&tree.path);
        fs::create_dir_all(root).map_err(at(root))?;
        if plan.dedicated {
            marker::mark(root, self.place.repository().common_dir()).map_err(at(root))?;
        }
        self.exclude(root)?;
        let building = building(tree);
        let _ = fs::remove_dir_all(&building);
        fs::create_dir(&building).map_err(at(&building))?;
        let building = building.canonicalize().map_err(at(&building))?;
        let index = self.workshop().join(format!("index-{}", tree.id));
        match tree.kind {
            TreeKind::Sealed => {
                notes.extend(self.feed(plan)?);
                let inner = Inner {
                    branch: &tree.branch,
                    commit: &plan.start,
                    target: plan
                        .target_tip
                        .as_deref()
                        .map(|tip| (tree.target.as_str(), tip)),
                    refs: &plan.refs,
                    path: &tree.path,
                };
                let git_dir = building.join(".git");
                fs::create_dir(&git_dir).map_err(at(&git_dir))?;
                self.write_inner(&git_dir, &inner)?;
                self.populate(tree, &building, git_dir, &plan.start, None)?;
            }
            TreeKind::Linked => {
                let git_dir = self.place.repository().common_dir().to_owned();
                self.populate(tree, &building, git_dir, &plan.start, Some(&index))?;
            }
        }
        sync_file_system(&building)?;
        let identity = identity_of(&building)?;
        self.keep_replaced(plan, tree)?;
        let registration = self.register(tree, identity, Some(&index))?;
        self.make_branch(plan, tree).inspect_err(|_| {
            // Without the registration nobody takes somebody else's branch for this call's.
            let _ = self.registrations().remove(&registration);
        })?;
        if tree.kind == TreeKind::Linked {
            self.write_pointer(&building, &registration)?;
        }
        renameat_with(CWD, &building, CWD, &tree.path, RenameFlags::NOREPLACE).map_err(
            |error| match error {
                rustix::io::Errno::EXIST | rustix::io::Errno::NOTEMPTY => TreeError::Occupied {
                    path: tree.path.clone(),
                },
                error => at(&tree.path)(error.into()),
            },
        )?;
        if let Some(state) = &self.host.state {
            // An index that can't be written leaves the marker.
            let _ = marker::index(state, &tree.path, self.place.repository().common_dir());
        }
        let tree = self.activate(tree, identity, registration)?;
        Ok((tree, notes))
    }

    /// The branch in main: made, or left where it is reused.
    fn make_branch(&self, plan: &Plan, tree: &Tree) -> Result<(), TreeError> {
        if plan.replaced.is_none() && self.branch_holds(tree, &plan.start)? {
            return Ok(());
        }
        let branch = RefChange {
            name: format!("refs/heads/{}", tree.branch),
            new: Some(plan.start.clone()),
            expected: match &plan.replaced {
                Some(old) => Expected::Holds(old.clone()),
                None => Expected::Absent,
            },
        };
        let git_dir = self.place.repository().common_dir();
        Ok(update_refs(
            git_dir,
            &[branch],
            &format!("weald: tree {}", tree.name),
        )?)
    }

    fn branch_holds(&self, tree: &Tree, commit: &str) -> Result<bool, TreeError> {
        let full = format!("refs/heads/{}", tree.branch);
        let held = self.place.repository().resolve(&full)?;
        Ok(held.is_some_and(|held| held.as_str() == commit))
    }

    /// A branch that is made anew: its old tip stays in the vault.
    fn keep_replaced(&self, plan: &Plan, tree: &Tree) -> Result<(), TreeError> {
        let Some(old) = &plan.replaced else {
            return Ok(());
        };
        self.vault().require(&plan.refs, &[old])?;
        let kept = RefChange {
            name: format!("refs/tree/{}/old/1", tree.id),
            new: Some(old.clone()),
            expected: Expected::Any,
        };
        Ok(update_refs(self.vault().path(), &[kept], "weald: kept")?)
    }

    fn feed(&self, plan: &Plan) -> Result<Option<String>, TreeError> {
        let mut wanted = vec![plan.start.as_str(), plan.tree.base.commit.as_str()];
        wanted.extend(plan.target_tip.as_deref());
        wanted.sort_unstable();
        wanted.dedup();
        Ok(self.vault().require(&plan.refs, &wanted)?)
    }

    /// The files, by git in the new directory's sandbox.
    fn populate(
        &self,
        tree: &Tree,
        building: &Path,
        git_dir: PathBuf,
        commit: &str,
        index: Option<&Path>,
    ) -> Result<(), TreeError> {
        let site = Site {
            path: building.to_owned(),
            git_dir,
            kind: TreeKind::Sealed,
        };
        // A linked tree's index is written beside its files, and moved to main's registration afterwards.
        let beside = building.join(".weald-index");
        let job = Job::Populate {
            commit: commit.to_owned(),
            index: index.map(|_| beside.clone()),
        };
        self.do_inside(tree.name.as_str(), &site, Access::Write, job)?;
        if let Some(index) = index {
            fs::create_dir_all(self.workshop()).map_err(at(&self.workshop()))?;
            fs::rename(&beside, index)
                .or_else(|_| fs::copy(&beside, index).and_then(|_| fs::remove_file(&beside)))
                .map_err(at(index))?;
        }
        Ok(())
    }

    /// Puts the tree into main's `worktrees/`.
    pub(crate) fn register(
        &self,
        tree: &Tree,
        identity: DirectoryIdentity,
        index: Option<&Path>,
    ) -> Result<String, TreeError> {
        let note = TreeNote {
            tree: tree.id,
            identity,
        };
        let locked = locked_text(tree);
        let new = NewRegistration {
            name: tree.name.as_str(),
            path: &tree.path,
            head: Reference::Symbolic(format!("refs/heads/{}", tree.branch)),
            locked: locked.as_deref(),
            note: &note.to_text(),
            index: index.filter(|index| index.is_file()),
        };
        let registrations = self.registrations();
        registrations
            .add(&new)
            .map_err(at(&registrations.directory(tree.name.as_str())))
    }

    fn write_pointer(&self, building: &Path, registration: &str) -> Result<(), TreeError> {
        let directory = self.registrations().directory(registration);
        let text = format!("gitdir: {}\n", directory.display());
        let file = building.join(".git");
        fs::write(&file, text).map_err(at(&file))
    }

    /// The tree is there: record it, bound to its task, locked if the profile wants that.
    fn activate(
        &self,
        tree: &Tree,
        identity: DirectoryIdentity,
        registration: String,
    ) -> Result<Tree, TreeError> {
        let start = match self.config.switch("bind_advances") {
            true => BindStart::Start(None),
            false => BindStart::Keep,
        };
        let locks = self.config.text("tree.lock") == "create";
        let made = self
            .engine
            .change(self.actor(), Durability::Process, |tx| {
                let input = TreeInput::Created {
                    identity,
                    registration,
                };
                let (mut made, change) = decided(tx, tree, input)?;
                tx.record(self.actor(), change)?;
                if let Some(id) = &tree.task {
                    let task = require_task_record(tx, id)?;
                    let (_, bound, change) = binding::bind(&task, &made, start, tx.now())?;
                    tx.record(self.actor(), change)?;
                    made = bound;
                }
                if locks {
                    let lock = TreeLock {
                        owner: self.actor().map_or("weald".to_owned(), ToString::to_string),
                        reason: match &tree.task {
                            Some(task) => format!("task {task}"),
                            None => "by profile".to_owned(),
                        },
                    };
                    let (locked, change) = decided(tx, &made, TreeInput::Lock(lock))?;
                    tx.record(self.actor(), change)?;
                    made = locked;
                }
                Ok::<_, TreeError>(made)
            })?;
        if locks {
            self.show_lock(&made)?;
        }
        Ok(made)
    }

    /// A creation that failed leaves nothing: not the directory, not the registration, not a branch of this call's.
    fn take_back(&self, plan: &Plan, tree: &Tree) {
        let _ = fs::remove_dir_all(building(tree));
        let registrations = self.registrations();
        let mine = |note: TreeNote| note.tree == tree.id;
        for known in registrations.list().unwrap_or_default() {
            if TreeNote::of(&known).is_some_and(mine) {
                let _ = registrations.remove(&known.name);
                let name = format!("refs/heads/{}", tree.branch);
                let back = RefChange {
                    name,
                    new: plan.replaced.clone(),
                    expected: Expected::Holds(plan.start.clone()),
                };
                if !plan.reused {
                    let git_dir = self.place.repository().common_dir();
                    let _ = update_refs(git_dir, &[back], "weald: tree not made");
                }
            }
        }
        let root = tree.path.parent().unwrap_or(&tree.path);
        // Only where it holds nothing but the marker.
        if plan.dedicated && fs::read_dir(root).is_ok_and(|entries| entries.count() <= 1) {
            let _ = fs::remove_file(root.join(marker::MARKER));
            let _ = fs::remove_dir(root);
        }
    }

    /// Roots inside the repository are told to git's own exclude file, never to a tracked one.
    pub(crate) fn exclude(&self, root: &Path) -> Result<(), TreeError> {
        let repo = self.place.root();
        let Ok(inside) = root.strip_prefix(&repo) else {
            return Ok(());
        };
        if inside.starts_with(".git") || inside.as_os_str().is_empty() {
            return Ok(());
        }
        let line = format!("/{}/", inside.display());
        let file = self.place.repository().common_dir().join("info/exclude");
        crate::files::edit_alone(&self.place.private().join("exclude"), || {
            let text = fs::read_to_string(&file).unwrap_or_default();
            if text.lines().any(|known| known == line) {
                return Ok(());
            }
            if let Some(parent) = file.parent() {
                fs::create_dir_all(parent)?;
            }
            let ending = if text.is_empty() || text.ends_with('\n') {
                ""
            } else {
                "\n"
            };
            crate::files::replace(&file, &format!("{text}{ending}{line}\n"))
        })
        .and_then(|done| done)
        .map_err(at(&file))
    }
}

/// What `git worktree list` shows as the reason.
pub(crate) fn locked_text(tree: &Tree) -> Option<String> {
    match (&tree.locked, tree.kind) {
        (Some(lock), _) => Some(format!("{}: {}", lock.owner, lock.reason)),
        (None, TreeKind::Sealed) => Some(super::keep::SEALED.to_owned()),
        (None, TreeKind::Linked) => None,
    }
}

/// Where a tree is built: beside its place, so that the rename is one step.
pub(crate) fn building(tree: &Tree) -> PathBuf {
    tree.path.with_file_name(format!(".weald-new-{}", tree.id))
}

/// A directory, to know it again.
pub(crate) fn identity_of(path: &Path) -> Result<DirectoryIdentity, TreeError> {
    let found = path.symlink_metadata().map_err(at(path))?;
    Ok(DirectoryIdentity {
        device: found.dev(),
        inode: found.ino(),
    })
}

/// Everything on the file system of `path` is on disk afterwards.
fn sync_file_system(path: &Path) -> Result<(), TreeError> {
    // Small files of the inner repository; the work tree's files can be made again from the vault.
    let git_dir = path.join(".git");
    for name in [
        "HEAD",
        "config",
        "packed-refs",
        "objects/info/alternates",
        "index",
    ] {
        let file = git_dir.join(name);
        if git_dir.is_dir() && file.is_file() {
            fs::File::open(&file)
                .and_then(|file| file.sync_all())
                .map_err(at(&file))?;
        }
    }
    fs::File::open(path)
        .and_then(|directory| directory.sync_all())
        .map_err(at(path))
}
