//! Worktrees that git or another tool made: seeing them, and adopting them as linked trees.
//!
//! Nothing in such a worktree is written. git's own registration stays as it is, with weald's note beside it, by which
//! commands inside find main and the directory is known again. A lock that somebody set with git stays theirs.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weald_core::id::{TaskId, TreeId};
use weald_core::name::TreeName;
use weald_core::store::{Counter, Durability, StoreError};
use weald_core::tree::{Base, Tree, TreeStatus};
use weald_core::tree_rules;
use weald_git::{Commit, Door, Git, Reference, Registration};

use super::error::AdoptError;
use super::site::identity_of;
use super::site::leads_to;
use super::{TreeError, Trees, at, require_task_record};
use weald_control::marker::TreeNote;
use weald_control::steps::step;

/// A worktree to be adopted.
#[derive(Debug, Clone, Default)]
pub struct Adoption {
    pub path: PathBuf,
    /// What to call it; without one, after its directory.
    pub name: Option<String>,
    /// Whose tree it will be.
    pub task: Option<TaskId>,
    /// What it lands on.
    pub target: Option<String>,
}

/// A worktree of the repository that is no tree of weald's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeignTree {
    pub name: String,
    pub kind: String,
    pub path: PathBuf,
    /// Its branch; `None` if it is on none.
    pub branch: Option<String>,
    /// Why git shows it as locked.
    pub locked: Option<String>,
    /// Whether its directory is there.
    pub exists: bool,
    /// How to adopt it.
    pub adopt: String,
}

impl Trees<'_> {
    /// Worktrees of the repository that are no trees of weald's. Reads registrations and nothing else.
    pub fn foreign(&self) -> Result<Vec<ForeignTree>, TreeError> {
        let records = self.records()?;
        let is_ours = |known: &Registration| {
            TreeNote::of(known).is_some_and(|note| records.iter().any(|tree| tree.id == note.tree))
        };
        let foreign = self
            .registered()?
            .into_iter()
            .filter(|known| !is_ours(known));
        Ok(foreign.filter_map(|known| shown(&known)).collect())
    }

    /// Takes a worktree that somebody else made into the registry. Nothing in it is touched.
    pub fn adopt(&self, wanted: &Adoption) -> Result<Tree, TreeError> {
        let (known, path) = self.worktree_at(&wanted.path)?;
        let name = match (
            &wanted.name,
            path.file_name().and_then(|name| name.to_str()),
        ) {
            (Some(name), _) => self.name(name)?,
            // As its maker spelled it, if weald could have.
            (None, name) => name.unwrap_or_default().parse()?,
        };
        self.refuse_taken(&name)?;
        let plan = self.adopted(wanted, &known, &path, name)?;
        step("adopt.numbered");
        let tree = self.record_adoption(plan, &known.name)?;
        step("adopt.recorded");
        self.find_again(&tree);
        Ok(tree)
    }

    /// The record of a worktree as it will be.
    fn adopted(
        &self,
        wanted: &Adoption,
        known: &Registration,
        path: &Path,
        name: TreeName,
    ) -> Result<Tree, TreeError> {
        let branch = match &known.head {
            Some(Reference::Symbolic(full)) => full.strip_prefix("refs/heads/"),
            _ => None,
        };
        let branch = branch.ok_or_else(|| AdoptError::Detached {
            path: path.to_owned(),
        })?;
        let target = match (&wanted.target, &self.target) {
            (Some(target), _) => target.clone(),
            (None, Some((target, _))) => target.clone(),
            (None, None) => return Err(TreeError::NoCommit),
        };
        if branch == target {
            return Err(AdoptError::OnTarget {
                path: path.to_owned(),
                branch: target,
            }
            .into());
        }
        let tip = self.branch_tip(branch)?;
        let tip = tip.ok_or_else(|| AdoptError::Unborn {
            path: path.to_owned(),
            branch: branch.to_owned(),
        })?;
        let base = self.common_commit(branch, &tip, &target)?;
        let id = self.engine.change(None, Durability::Process, |tx| {
            Ok::<_, StoreError>(TreeId(tx.next_number(Counter::Tree)?))
        })?;
        let bare = Tree::new(id, name, path.to_owned(), base, self.now()?);
        Ok(Tree {
            branch: branch.to_owned(),
            target,
            identity: Some(identity_of(path)?),
            registration: Some(known.name.clone()),
            head: Some(tip),
            task: wanted.task.clone(),
            adopted: true,
            ..bare
        })
    }

    /// Where a branch left the target.
    pub(super) fn common_commit(
        &self,
        branch: &str,
        tip: &str,
        target: &str,
    ) -> Result<Base, TreeError> {
        let repository = self.repository();
        let known = repository.target(target)?;
        let known = known.ok_or_else(|| TreeError::UnknownBase {
            base: target.to_owned(),
        })?;
        let asked = Git::new(repository.common_dir(), "merge-base")
            .args([tip, known.tip.as_str()])
            .output()?;
        let text = String::from_utf8_lossy(&asked.stdout);
        match Commit::parse(text.lines().next().unwrap_or_default()) {
            Some(commit) => Ok(Base {
                reference: target.to_owned(),
                commit: commit.as_str().to_owned(),
            }),
            None => Err(AdoptError::Unrelated {
                branch: branch.to_owned(),
                target: target.to_owned(),
            }
            .into()),
        }
    }

    /// Records it, bound to its task. The note comes last before the commit, when nobody else can be adopting it; one
    /// whose commit fails names a tree that never was.
    fn record_adoption(&self, plan: Tree, registration: &str) -> Result<Tree, TreeError> {
        let start = self.bind_start();
        self.engine.change(self.actor(), Durability::Process, |tx| {
            for known in tx.trees()? {
                if known.is_wanted() && (known.name == plan.name || known.path == plan.path) {
                    return Err(TreeError::exists(known));
                }
            }
            let task = plan
                .task
                .as_ref()
                .map(|id| require_task_record(tx, id))
                .transpose()?;
            let (mut tree, change) = tree_rules::adopt(plan);
            tx.record(self.actor(), change)?;
            if let Some(task) = task {
                tree = self.bind_in(tx, &task, &tree, start)?.1;
            }
            let note = TreeNote {
                tree: tree.id,
                identity: identity_of(&tree.path)?,
            };
            let registrations = self.registrations();
            registrations
                .set_note(registration, &note.to_text())
                .map_err(at(&registrations.directory(registration)))?;
            step("adopt.noted");
            Ok(tree)
        })
    }

    /// The registration of the worktree at `path`, both ends checked.
    fn worktree_at(&self, path: &Path) -> Result<(Registration, PathBuf), TreeError> {
        let given = self.host.directory.join(path);
        let path = given.canonicalize().unwrap_or(given);
        if path == self.place.root() || path == self.common_dir() {
            return Err(AdoptError::Main { path }.into());
        }
        let same = |known: &Registration| {
            known.path().is_some_and(|known| {
                known == path || known.canonicalize().is_ok_and(|known| known == path)
            })
        };
        let Some(known) = self.registered()?.into_iter().find(same) else {
            return Err(AdoptError::NoWorktree { path }.into());
        };
        self.refuse_ours(&known)?;
        let broken = |why: String| AdoptError::Broken {
            path: path.clone(),
            why,
        };
        let Ok(door) = Door::open(&path) else {
            return Err(AdoptError::Gone { path }.into());
        };
        let Ok(pointer) = door.read(".git", 64 * 1024) else {
            return Err(broken("it has no .git file".to_owned()).into());
        };
        if !leads_to(
            &path,
            &pointer,
            &self.registrations().directory(&known.name),
        ) {
            return Err(broken("its .git leads elsewhere".to_owned()).into());
        }
        match known.path() {
            Some(registered) if registered == path => Ok((known, path)),
            Some(other) => Err(broken(format!("it is registered as {}", other.display())).into()),
            None => Err(broken("its registration can't be read".to_owned()).into()),
        }
    }

    /// A note of a tree on record is weald's; any other is left from something that never counted.
    fn refuse_ours(&self, known: &Registration) -> Result<(), TreeError> {
        let Some(note) = TreeNote::of(known) else {
            return Ok(());
        };
        match self.engine.look(|tx| tx.tree_by_id(note.tree))? {
            Some(tree) if tree.status == TreeStatus::Trashed => Err(TreeError::in_trash(tree)),
            Some(tree) => Err(TreeError::exists(tree)),
            None => Ok(()),
        }
    }
}

fn shown(known: &Registration) -> Option<ForeignTree> {
    let path = known.path()?.to_owned();
    let branch = match &known.head {
        Some(Reference::Symbolic(full)) => full.strip_prefix("refs/heads/").map(str::to_owned),
        _ => None,
    };
    Some(ForeignTree {
        name: path.file_name()?.to_string_lossy().into_owned(),
        kind: "foreign".to_owned(),
        branch,
        locked: known.locked.clone(),
        exists: path.symlink_metadata().is_ok(),
        adopt: format!("weald adopt {}", quoted(&path)),
        path,
    })
}

/// A path as a shell takes it for one word.
pub fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@%".contains(c);
    match text.chars().all(is_plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}
