//! What a tree will be made from, decided before anything is written.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use weald_core::config::{BasePolicy, DirtyPolicy};
use weald_core::file_view::BESIDE_TREES;
use weald_core::id::TreeId;
use weald_core::name::TreeName;
use weald_core::store::{Counter, Durability, StoreError};
use weald_core::task::Task;
use weald_core::tree::{Base, Tree};
use weald_git::{Commit, Git, GitError, MainRef, Reference, list_refs};

use super::layout::Layout;
use super::new_tree::{BranchExists, NewTree};
use super::{TreeError, Trees, require_task_record};
use weald_control::marker;

/// What a tree is made from, decided before anything is written.
pub(super) struct Plan {
    pub tree: Tree,
    pub start: String,
    pub refs: Vec<MainRef>,
    pub target_tip: Option<String>,
    pub replaced: Option<String>,
    /// The remote's branch that a new branch follows.
    pub upstream: Option<String>,
    pub reused: bool,
    pub dedicated: bool,
    /// Whether it may come from the pool.
    pub pool: bool,
    /// True when a ref of main leads to where it starts, so main has all of that.
    pub is_in_main: bool,
    pub notes: Vec<String>,
}

/// An index below this size is looked through in a few milliseconds.
const SMALL_INDEX: u64 = 128 << 10;

/// A look at main's uncommitted changes, while other things are done.
pub(super) struct DirtyMain(Receiver<Result<usize, GitError>>);

impl DirtyMain {
    /// How many there are, however long that takes.
    fn count(self) -> Result<usize, TreeError> {
        let lost = |_| TreeError::unreadable("the main checkout", "the look at it was lost");
        Ok(self.0.recv().map_err(lost)??)
    }

    /// What to say about them, if that is known in time.
    pub(super) fn told(self, patience: Option<Duration>) -> Option<String> {
        let told = match patience {
            None => self.0.recv().ok(),
            Some(patience) => self.0.recv_timeout(patience).ok(),
        };
        // A main that git can't read says so where it is used; here it is only a warning.
        let count = told?.ok().filter(|count| *count > 0)?;
        Some(format!(
            "the main checkout has {count} uncommitted changes; they are not in the worktree"
        ))
    }
}

impl Trees<'_> {
    /// Why nothing is the target.
    fn no_target(&self) -> Result<TreeError, TreeError> {
        Ok(match self.repository().resolve("HEAD")? {
            Some(_) => TreeError::NoTarget,
            None => TreeError::NoCommit,
        })
    }

    /// Whoever stands on another branch may take that one for the target.
    fn other_branch(&self, target: &str, base: &Base) -> Result<Option<String>, TreeError> {
        let repository = self.repository();
        // A bare repository is on nothing that anybody sees.
        let is_checkout = repository.common_dir().join("index").is_file();
        let branch = repository.main_branch()?.filter(|_| is_checkout);
        let other = branch.filter(|branch| branch != target);
        let lands = match base.reference == target {
            true => "there".to_owned(),
            false => format!("on {target}"),
        };
        Ok(other.map(|branch| {
            format!(
                "the main checkout is on {branch}; this worktree starts from {} and lands {lands} (for {branch}: weald new --target {branch}, or weald config set target {branch})",
                base.reference
            )
        }))
    }

    /// Where a tree lands: as named, on what it is a scratch tree of, on the branch that its task brought along, or on the
    /// repository's target.
    fn target_of(
        &self,
        new: &NewTree,
        parent: Option<&Tree>,
        task: Option<&Task>,
    ) -> Result<String, TreeError> {
        let is_branch = |name: &str| Ok::<_, GitError>(self.repository().target(name)?.is_some());
        if let Some(target) = new.target.clone() {
            return match is_branch(&target)? {
                true => Ok(target),
                false => Err(TreeError::UnknownTarget { target }),
            };
        }
        match (parent, branch_of(task), &self.target) {
            (Some(parent), ..) => Ok(parent.branch.clone()),
            (None, Some(branch), _) if is_branch(&branch)? => Ok(branch),
            // There any commit will do to start from.
            (None, Some(base), _) if self.config.tree_base != BasePolicy::Task => {
                Err(TreeError::UnknownBase { base })
            }
            (None, _, Some((branch, _))) => Ok(branch.clone()),
            (None, _, None) => Err(self.no_target()?),
        }
    }

    pub(super) fn plan(
        &self,
        new: &NewTree,
        name: TreeName,
        task: Option<&Task>,
    ) -> Result<Plan, TreeError> {
        let mut notes = Vec::new();
        let parent = match &new.scratch_for {
            Some(name) => Some(self.look(Some(name))?.tree),
            None => None,
        };
        let target = self.target_of(new, parent.as_ref(), task)?;
        let chosen = match &new.branch {
            Some(branch) => Some(self.chosen_branch(branch)?),
            None => None,
        };
        let base = match (&parent, &chosen) {
            (_, Some(chosen)) if chosen.branch == target => {
                return Err(TreeError::BranchIsTarget { branch: target });
            }
            (_, Some(chosen)) => self.common_commit(&chosen.branch, &chosen.tip, &target)?,
            (Some(parent), None) if new.base.is_none() => Base {
                reference: parent.branch.clone(),
                commit: parent.tip().to_owned(),
            },
            _ => self.base(new.base.as_deref(), &target, task, &mut notes)?,
        };
        let is_chosen = new.target.is_some() || new.base.is_some() || branch_of(task).is_some();
        if !is_chosen && parent.is_none() && chosen.is_none() {
            notes.extend(self.other_branch(&target, &base)?);
        }
        if self.config.tree_dirty_main == DirtyPolicy::Refuse
            && let Some(main) = self.dirty_main()
            && let count @ 1.. = main.count()?
        {
            return Err(TreeError::DirtyMain { count });
        }
        let id = self.engine.change(None, Durability::Process, |tx| {
            Ok::<_, StoreError>(TreeId(tx.next_number(Counter::Tree)?))
        })?;
        let raced = self.raced_task(new)?;
        let mut layout = self.layout(id, &name, task.or(raced.as_ref()))?;
        notes.extend(layout.told.clone());
        let (start, replaced) = match &chosen {
            Some(chosen) => {
                layout.branch = chosen.branch.clone();
                let reusing = NewTree {
                    branch_exists: BranchExists::Reuse,
                    ..new.clone()
                };
                self.existing_branch(&reusing, &name, &layout)?;
                (chosen.tip.clone(), None)
            }
            None => self.branch_start(new, &name, &layout, &base)?,
        };
        let reused = replaced.is_none() && self.branch_tip(&layout.branch)?.is_some();
        if layout.path.symlink_metadata().is_ok() {
            return Err(TreeError::Occupied {
                by: self.holder(layout.path, new.task.as_ref())?,
            });
        }
        let root = layout.path.parent().unwrap_or(&layout.path).to_owned();
        let dedicated = root.join(marker::MARKER).is_file() || holds_nothing(&root);
        let now = self.now()?;
        let tree = Tree {
            kind: new.kind,
            branch: layout.branch,
            target: target.clone(),
            task: task.map(|task| task.id.clone()),
            scratch_for: parent.map(|parent| parent.name),
            foreign_branch: chosen
                .as_ref()
                .is_some_and(|known| known.upstream.is_none()),
            ..Tree::new(id, name, layout.path, base, now)
        };
        let target_tip = self.repository().target(&target)?;
        let target_tip = target_tip.map(|target| target.tip.as_str().to_owned());
        let refs = self.main_refs()?;
        let is_in_main = reused
            || target_tip.as_ref() == Some(&start)
            || refs.iter().any(|known| known.commit == start);
        Ok(Plan {
            tree,
            start,
            pool: !new.no_pool,
            is_in_main,
            upstream: chosen.and_then(|chosen| chosen.upstream),
            refs,
            target_tip,
            replaced,
            reused,
            dedicated,
            notes,
        })
    }

    /// The task that an entry of a race is called after.
    pub(super) fn raced_task(&self, new: &NewTree) -> Result<Option<Task>, TreeError> {
        let id = new.entry_of.as_ref();
        id.map(|id| self.engine.look(|tx| require_task_record(tx, id)))
            .transpose()
    }

    /// What a tree starts from: as named, or as the configuration says.
    pub(super) fn base(
        &self,
        named: Option<&str>,
        target: &str,
        task: Option<&Task>,
        notes: &mut Vec<String>,
    ) -> Result<Base, TreeError> {
        let repository = self.repository();
        let policy = self.config.tree_base;
        let is_of_task = branch_of(task).is_some_and(|branch| branch == target);
        let reference = match (named, policy) {
            (Some(named), _) => named.to_owned(),
            // Started anywhere else, it would bring what is there to the branch that its task is for.
            (None, _) if is_of_task => target.to_owned(),
            (None, BasePolicy::Head) => "HEAD".to_owned(),
            (None, BasePolicy::RemoteDefault) => {
                match repository.resolve("refs/remotes/origin/HEAD")? {
                    Some(_) => "origin/HEAD".to_owned(),
                    None => "HEAD".to_owned(),
                }
            }
            (None, BasePolicy::Main) => self.main_branch(target)?,
            (None, BasePolicy::Task) => base_of(task).unwrap_or_else(|| target.to_owned()),
            (None, BasePolicy::Target) => target.to_owned(),
        };
        let reference = match named {
            Some(_) => reference,
            None => self.fetched_base(reference, notes)?,
        };
        let unknown = || TreeError::UnknownBase {
            base: reference.clone(),
        };
        // The branch of that name, not a tag of the same name; and without a process.
        if named.is_none() {
            let branch = repository.target(&reference)?.map(|known| known.tip);
            let known = match branch {
                Some(tip) => Some(tip),
                None => repository.resolve(&format!("refs/remotes/{reference}"))?,
            };
            if let Some(tip) = known {
                let commit = tip.as_str().to_owned();
                return Ok(Base { reference, commit });
            }
        }
        // The named commit as the main checkout sees it, wherever the caller stands.
        let spelled = format!("{reference}^{{commit}}");
        let asked = Git::new(repository.common_dir(), "rev-parse")
            .args(["-q", "--verify", "--end-of-options", &spelled])
            .output()?;
        let text = String::from_utf8_lossy(&asked.stdout).trim_end().to_owned();
        let text = text.lines().last().unwrap_or_default().to_owned();
        match Commit::parse(&text).filter(|_| asked.status.success()) {
            Some(commit) => Ok(Base {
                reference,
                commit: commit.as_str().to_owned(),
            }),
            None if self.target.is_none() => Err(TreeError::NoCommit),
            None => Err(unknown()),
        }
    }

    /// The branch that is called so, wherever work lands.
    fn main_branch(&self, target: &str) -> Result<String, TreeError> {
        for name in ["main", "master"] {
            if self.repository().target(name)?.is_some() {
                return Ok(name.to_owned());
            }
        }
        Ok(target.to_owned())
    }

    /// A look at uncommitted changes in main, which never come along; `None` where there is nothing to look at.
    pub(super) fn dirty_main(&self) -> Option<DirtyMain> {
        let root = self.place.root();
        let common_dir = self.common_dir().to_owned();
        let is_ignored = self.config.tree_dirty_main == DirtyPolicy::Ignore;
        // A bare repository has no index, also where a `.git` points at it.
        if is_ignored || !root.join(".git").exists() || !common_dir.join("index").is_file() {
            return None;
        }
        let status = move || {
            let status = Git::new(&common_dir, "status")
                .work_tree(&root)
                .args(["--porcelain", "-z", "--untracked-files=no"])
                .args(["--ignore-submodules=all"])
                .run()?;
            let lines = status.split(|byte| *byte == 0);
            Ok(lines.filter(|line| !line.is_empty()).count())
        };
        let (tell, told) = mpsc::channel();
        // Nobody may be there any more to be told.
        thread::spawn(move || tell.send(status()));
        Some(DirtyMain(told))
    }

    /// Whether looking at main takes a moment only.
    pub(super) fn is_small_main(&self) -> bool {
        let index = self.common_dir().join("index");
        index
            .metadata()
            .is_ok_and(|found| found.len() < SMALL_INDEX)
    }

    /// What the branch will start with, and what it held if it is made anew.
    fn branch_start(
        &self,
        new: &NewTree,
        name: &TreeName,
        layout: &Layout,
        base: &Base,
    ) -> Result<(String, Option<String>), TreeError> {
        Ok(
            match (self.existing_branch(new, name, layout)?, new.branch_exists) {
                (Some(tip), BranchExists::Reuse) => (tip, None),
                (existing, _) => (base.commit.clone(), existing),
            },
        )
    }

    /// What a branch holds that may be reused or made anew; `None` if there is none.
    pub(super) fn existing_branch(
        &self,
        new: &NewTree,
        name: &TreeName,
        layout: &Layout,
    ) -> Result<Option<String>, TreeError> {
        let existing = self.branch_tip(&layout.branch)?;
        if existing.is_some()
            && let Some(user) = self.user_of_branch(&layout.branch)?
        {
            return Err(TreeError::BranchInUse {
                branch: layout.branch.clone(),
                by: self.holder(user, new.task.as_ref())?,
            });
        }
        match (&existing, new.branch_exists) {
            (None, _) => self.refuse_clash(&layout.branch)?,
            (Some(_), BranchExists::Error) => {
                return Err(self.branch_exists(new, name, &layout.branch));
            }
            _ => {}
        }
        Ok(existing)
    }

    /// A branch that nobody uses, with how much it holds: whoever asks decides whether its commits come along.
    fn branch_exists(&self, new: &NewTree, name: &TreeName, branch: &str) -> TreeError {
        let target = self.target.as_ref().map(|(_, tip)| tip.as_str().to_owned());
        let count = target.and_then(|tip| {
            let range = format!("{tip}..refs/heads/{branch}");
            let counted = Git::new(self.common_dir(), "rev-list")
                .args(["--count", &range])
                .output()
                .ok()?;
            String::from_utf8_lossy(&counted.stdout).trim().parse().ok()
        });
        TreeError::BranchExists {
            branch: branch.to_owned(),
            name: name.clone(),
            task: new.task.clone(),
            commits: count,
        }
    }

    /// The worktree that has a branch checked out.
    pub(crate) fn user_of_branch(&self, branch: &str) -> Result<Option<PathBuf>, TreeError> {
        let head = Reference::Symbolic(format!("refs/heads/{branch}"));
        let listed = self.registered()?;
        let mut listed = listed.iter();
        if let Some(user) = listed.find(|known| known.head.as_ref() == Some(&head)) {
            return Ok(user.path().map(Path::to_owned));
        }
        let in_main = self.repository().main_head()? == Some(head);
        Ok(in_main.then(|| self.place.root()))
    }

    /// `wt` and `wt/x` can't both be branches.
    fn refuse_clash(&self, branch: &str) -> Result<(), TreeError> {
        let parts: Vec<_> = branch.split('/').collect();
        for end in 1..parts.len() {
            let above = parts[..end].join("/");
            if self.branch_tip(&above)?.is_some() {
                return Err(TreeError::BranchClash {
                    branch: branch.to_owned(),
                    existing: above,
                });
            }
        }
        let below = list_refs(self.common_dir(), &[&format!("refs/heads/{branch}/")])?;
        match below.first() {
            Some(existing) => Err(TreeError::BranchClash {
                branch: branch.to_owned(),
                existing: existing.name.trim_start_matches("refs/heads/").to_owned(),
            }),
            None => Ok(()),
        }
    }
}

/// Whether a folder is not there, or holds file views alone.
fn holds_nothing(folder: &Path) -> bool {
    let Ok(mut entries) = fs::read_dir(folder) else {
        return !folder.exists();
    };
    entries.all(|entry| {
        entry.is_ok_and(|entry| BESIDE_TREES.iter().any(|view| entry.file_name() == *view))
    })
}

/// The base that a task of another system brought along.
fn base_of(task: Option<&Task>) -> Option<String> {
    ["base_branch", "base_ref", "base"]
        .iter()
        .find_map(|key| brought(task, key))
}

/// The branch that a task of another system is for: its work starts from there and lands there.
fn branch_of(task: Option<&Task>) -> Option<String> {
    brought(task, "base_branch")
}

fn brought(task: Option<&Task>, key: &str) -> Option<String> {
    let value = task?.extra.get(key)?.as_str()?;
    Some(value.to_owned()).filter(|value| !value.is_empty())
}
