//! Removing a tree: a rename into the trash, when nothing speaks against it.
//!
//! Whatever can't be verified refuses. The directory with everything in it (ignored files, inner repository) waits in the
//! trash; branch tip and vault refs stay. The registration goes last.

mod as_judged;
mod branch;
mod completing;
pub mod facts;
mod registering;
mod traces;

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde::{Deserialize, Serialize};
use weald_core::Timestamp;
use weald_core::binding::released;
use weald_core::id::{Seq, Token};
use weald_core::objections::{Contents, Objection, RemovalConsent, RemovalFacts, objections};
use weald_core::store::{Durability, Write};
use weald_core::task::{Closeout, Task};
use weald_core::tree::{Trash, Tree};
use weald_core::tree_rules::TreeInput;

use super::half_made::Mended;
use super::inside::InspectReply;
use super::locking::has_task_lock;
use super::{TreeError, Trees, at, decided, require_task_record};
use weald_control::steps::step;

pub use as_judged::AsJudged;
use as_judged::require_as_judged;
pub use branch::BranchOutcome;
use completing::completed;
pub use registering::IN_TRASH;
use traces::Traces;

/// How often a tree that is stirred meanwhile is looked at.
const LOOKS: u32 = 3;

#[derive(Debug, Clone, Default)]
pub struct RemoveRequest {
    /// Uncommitted changes and commits that nobody else has may go to the trash, too.
    pub discard: bool,
    /// Once: also when it is referenced. Twice: also when it is locked.
    pub force: u8,
    /// Whether its task is completed by it.
    pub complete_task: bool,
    /// The token of the claim that its task is under, if it is.
    pub token: Option<Token>,
    /// Why, for the record.
    pub reason: Option<String>,
    /// Whether the caller leaves it by this very step.
    pub leaving: bool,
    /// The event that began the operation of which this is a part.
    pub operation: Option<Seq>,
    /// Changed files that don't count as changes: paths, or patterns as in `.gitignore`. They go to the trash, too.
    pub ignore_dirty: Vec<String>,
    /// A head that goes though nobody else has its commits, if they cancel out: somebody was asked to land them.
    pub empty_head: Option<String>,
    /// Remove only what was judged before: nothing that changed since.
    pub as_judged: Option<AsJudged>,
}

/// How a removal ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Removed {
    pub tree: Tree,
    pub outcome: String,
    /// What became of its branch.
    pub branch: BranchOutcome,
    /// Whether its directory was gone before.
    pub stale_path: bool,
    /// Ignored files and folders that went to the trash with it.
    pub ignored: u64,
    /// How to get it back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restore: Option<String>,
    /// Its task, if that was completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<Task>,
}

impl Removed {
    /// Its directory was gone before.
    fn gone(tree: Tree, branch: BranchOutcome, task: Option<Task>) -> Self {
        Self {
            tree,
            outcome: "already_gone".to_owned(),
            branch,
            stale_path: true,
            ignored: 0,
            restore: None,
            task,
        }
    }
}

/// What was found out before.
pub struct Verdict {
    pub tree: Tree,
    /// All that the look into it said.
    pub reply: Option<InspectReply>,
    is_gone: bool,
    ignored: u64,
    is_dirty: bool,
    unlanded: u64,
    traces: Traces,
}

impl Verdict {
    /// Nothing was looked at yet.
    pub fn of(tree: Tree) -> Self {
        Self {
            tree,
            reply: None,
            is_gone: false,
            ignored: 0,
            is_dirty: true,
            unlanded: u64::MAX,
            traces: Traces::default(),
        }
    }
}

impl Trees<'_> {
    pub fn remove(
        &self,
        name: Option<&str>,
        request: &RemoveRequest,
    ) -> Result<Removed, TreeError> {
        let tree = match self.made_or_gone(self.named(name)?)? {
            Ok(tree) => tree,
            Err(gone) => return Ok(*gone),
        };
        if self.host.directory.starts_with(&tree.path) && !request.leaving {
            let (name, discard) = (tree.name, request.discard);
            return Err(TreeError::Standing { discard, name });
        }
        self.refuse_completion(&tree, request)?;
        self.reserve().release();
        let mut removed = self.look_and_remove(name, tree, request);
        for _ in 1..LOOKS {
            // Whoever stirred it may only have looked, as another weald does: what is there now is judged anew.
            let Err(TreeError::Stirred { .. }) = removed else {
                break;
            };
            removed = self.look_and_remove(name, self.named(name)?, request);
        }
        self.reserve().regain();
        removed
    }

    /// The tree that is to be removed. If its creation was cut short it is on record by then, or nothing of it is left.
    fn made_or_gone(&self, tree: Tree) -> Result<Result<Tree, Box<Removed>>, TreeError> {
        Ok(match self.mend_creation(&tree.name)? {
            None => Ok(tree),
            Some(Mended::Recorded(made)) => Ok(*made),
            Some(Mended::TakenBack) => {
                Err(Box::new(Removed::gone(tree, BranchOutcome::Absent, None)))
            }
        })
    }

    fn look_and_remove(
        &self,
        name: Option<&str>,
        tree: Tree,
        request: &RemoveRequest,
    ) -> Result<Removed, TreeError> {
        let mut verdict = Verdict::of(tree);
        let contents = self
            .contents(&mut verdict, request)
            .map_err(|error| self.raced(name, error))?;
        self.remove_seen(verdict, contents, request)
    }

    /// Another removal may have been faster, which says more than a missing directory or a lock of git's.
    fn raced(&self, name: Option<&str>, error: TreeError) -> TreeError {
        match self.named(name) {
            Ok(tree) => self.require_no_worker(&tree).err().unwrap_or(error),
            Err(gone @ (TreeError::InTrash { .. } | TreeError::NotFound { .. })) => gone,
            Err(_) => error,
        }
    }

    /// Removes a tree that was looked into just now, if nothing speaks against it.
    pub fn remove_seen(
        &self,
        verdict: Verdict,
        contents: Contents,
        request: &RemoveRequest,
    ) -> Result<Removed, TreeError> {
        let name = verdict.tree.name.clone();
        let raced = |error| self.raced(Some(name.as_str()), error);
        let verdict = self.judge(verdict, contents, request).map_err(raced)?;
        step("remove.judged");
        let tree = self.begin_removal(&verdict.tree, request).map_err(raced)?;
        step("remove.announced");
        let removed = match verdict.is_gone {
            true => self.forget(&tree, &verdict, request),
            false => self.to_trash(&tree, &verdict, request),
        };
        let removed = removed.inspect(|_| self.release_ports(&tree));
        removed.inspect_err(|error| {
            let input = TreeInput::RemoveFailed {
                error: error.to_string(),
            };
            let _ = self.decide(&tree, Durability::Process, input);
        })
    }

    /// Gathers the other facts and refuses, on record, what they speak against.
    fn judge(
        &self,
        verdict: Verdict,
        contents: Contents,
        request: &RemoveRequest,
    ) -> Result<Verdict, TreeError> {
        let facts = RemovalFacts {
            running: self.running(&verdict.tree),
            references: self.references(&verdict.tree, request.token)?,
            foreign_lock: self.foreign_lock(&verdict.tree),
            contents,
        };
        let found = objections(&verdict.tree, facts, consent(&verdict.tree, request));
        if found.is_empty() {
            return Ok(verdict);
        }
        self.refuse(verdict.tree, found)
    }

    /// Announces a removal, if nothing came in the way since the facts were gathered.
    fn begin_removal(&self, tree: &Tree, request: &RemoveRequest) -> Result<Tree, TreeError> {
        self.engine.change(self.actor(), Durability::Process, |tx| {
            let current = tx.tree_by_id(tree.id)?.unwrap_or_else(|| tree.clone());
            self.require_no_worker(&current)?;
            require_as_judged(tx, &current, request)?;
            let facts = RemovalFacts {
                running: self.running(&current),
                references: Vec::new(),
                foreign_lock: None,
                contents: Contents::Gone,
            };
            let objections = objections(&current, facts, consent(&current, request));
            if !objections.is_empty() {
                return Err(TreeError::Removal {
                    tree: Box::new(current),
                    objections,
                });
            }
            let begins = TreeInput::RemoveBegins { worker: self.me() };
            let (tree, change) = decided(tx, &current, begins)?;
            tx.record(self.actor(), change)?;
            Ok(tree)
        })
    }

    /// Refuses while another process removes or purges the tree.
    pub(crate) fn require_no_worker(&self, tree: &Tree) -> Result<(), TreeError> {
        let others = tree.worker.as_ref().filter(|worker| {
            tree.removing && self.may_live(worker) && Some(*worker) != self.me().as_ref()
        });
        match others {
            Some(worker) => Err(TreeError::Busy {
                name: tree.name.clone(),
                running: vec![format!("process {} is removing it", worker.pid)],
            }),
            None => Ok(()),
        }
    }

    fn refuse<T>(&self, tree: Tree, objections: Vec<Objection>) -> Result<T, TreeError> {
        let refusal = TreeError::Removal {
            tree: Box::new(tree.clone()),
            objections,
        };
        self.engine
            .change(self.actor(), Durability::Process, |tx| {
                let current = tx.tree_by_id(tree.id)?.unwrap_or_else(|| tree.clone());
                if current.removing {
                    // Somebody else's removal is not this one's to end.
                    return Ok(());
                }
                let begins = TreeInput::RemoveBegins { worker: None };
                let (begun, change) = decided(tx, &tree, begins)?;
                tx.record(self.actor(), change)?;
                let failed = TreeInput::RemoveFailed {
                    error: refusal.to_string(),
                };
                let (_, change) = weald_core::tree_rules::decide(&begun, failed, tx.now())?;
                tx.record(self.actor(), change)?;
                Ok::<_, TreeError>(())
            })?;
        Err(refusal)
    }

    /// The directory is gone: what is left of the tree goes, too.
    fn forget(
        &self,
        tree: &Tree,
        verdict: &Verdict,
        request: &RemoveRequest,
    ) -> Result<Removed, TreeError> {
        let branch = self.settle_branch(tree, verdict)?;
        step("remove.forgetting");
        self.unregister(tree)?;
        let (tree, task) = self
            .engine
            .change(self.actor(), durability(request), |tx| {
                self.record_end(tx, tree, TreeInput::Removed, request)
            })?;
        Ok(Removed::gone(tree, branch, task))
    }

    fn to_trash(
        &self,
        tree: &Tree,
        verdict: &Verdict,
        request: &RemoveRequest,
    ) -> Result<Removed, TreeError> {
        let snapshot = match verdict.is_dirty && request.discard && !self.reserve().is_cramped() {
            // The directory itself is kept; a snapshot is one more way back, where there is room for it.
            true => self
                .site(tree)
                .and_then(|site| self.snapshot_before(tree, &site, "removal"))
                .ok()
                .map(|view| view.commit),
            false => None,
        };
        let now = self.now()?;
        let place = self.free_trash_place(tree, now)?;
        step("remove.prepared");
        rename(&tree.path, &place)?;
        step("remove.renamed");
        let ended = self.after_rename(tree, verdict, request, &place, now, snapshot);
        ended.inspect_err(|_| {
            // Nothing was removed: the tree goes back to where it was.
            let _ = rename(&place, &tree.path);
            let _ = self.reinstate_missing_branch(tree);
            if let Some(identity) = tree.identity {
                let _ = self.reinstate_registration(tree, identity);
            }
            self.find_again(tree);
        })
    }

    fn after_rename(
        &self,
        tree: &Tree,
        verdict: &Verdict,
        request: &RemoveRequest,
        place: &Path,
        now: Timestamp,
        snapshot: Option<String>,
    ) -> Result<Removed, TreeError> {
        if self.traces(tree, place)? != verdict.traces {
            return Err(TreeError::Stirred {
                name: tree.name.clone(),
            });
        }
        let trash = self.trash_at(tree, place.to_owned(), now, snapshot)?;
        let branch = self.settle_branch(tree, verdict)?;
        step("remove.branch_settled");
        self.register_trash(tree, &trash)?;
        step("remove.unregistered");
        let (tree, task) = self
            .engine
            .change(self.actor(), durability(request), |tx| {
                self.record_end(tx, tree, TreeInput::Trashed(Box::new(trash)), request)
            })?;
        step("remove.recorded");
        Ok(Removed {
            outcome: "trashed".to_owned(),
            branch,
            stale_path: false,
            ignored: verdict.ignored,
            restore: Some(format!("weald trash restore {}", tree.id)),
            tree,
            task,
        })
    }

    /// The record of a tree that lies in the trash at `path`, while its branch is there.
    pub(crate) fn trash_at(
        &self,
        tree: &Tree,
        path: PathBuf,
        at: Timestamp,
        snapshot: Option<String>,
    ) -> Result<Trash, TreeError> {
        Ok(Trash {
            path,
            at,
            tip: Some(tree.tip().to_owned()),
            branch_tip: self.branch_tip(&tree.branch)?,
            snapshot,
            task: tree.task.clone(),
            head: self.registered_head(tree),
            ports: tree.ports,
            status: None,
        })
    }

    /// A place in the trash that nobody has.
    fn free_trash_place(&self, tree: &Tree, now: Timestamp) -> Result<PathBuf, TreeError> {
        let directory = self.trash_directory(&tree.path)?;
        self.require_own_trash(&directory)?;
        fs::create_dir_all(&directory).map_err(at(&directory))?;
        self.exclude(&directory)?;
        self.free_place(&directory, tree.name.as_str(), now)
    }

    /// A path in the trash that nothing is at.
    pub fn free_place(
        &self,
        directory: &Path,
        name: &str,
        now: Timestamp,
    ) -> Result<PathBuf, TreeError> {
        let stamp = now.strftime("%Y%m%dT%H%M%SZ");
        let name = format!("{name}-{stamp}");
        let free = (0..1000_u32).map(|number| match number {
            0 => directory.join(&name),
            number => directory.join(format!("{name}-{number}")),
        });
        free.into_iter()
            .find(|path| path.symlink_metadata().is_err())
            .ok_or_else(|| at(directory)(std::io::Error::other("the trash is full of this name")))
    }

    /// The end of a removal: the tree, its task's binding, and what was asked of the task.
    pub fn record_end(
        &self,
        tx: &mut dyn Write,
        tree: &Tree,
        input: TreeInput,
        request: &RemoveRequest,
    ) -> Result<(Tree, Option<Task>), TreeError> {
        let current = tx.tree_by_id(tree.id)?.unwrap_or_else(|| tree.clone());
        let (ended, change) = decided(tx, tree, input)?;
        let change = change.part_of(request.operation);
        let bound = current
            .task
            .as_ref()
            .map(|id| require_task_record(tx, id))
            .transpose()?;
        let Some(task) = bound else {
            tx.record(self.actor(), change)?;
            return Ok((ended, None));
        };
        let mut task = released(&task, tx.now());
        if let Some(reason) = &request.reason {
            task.closeout = Some(Closeout {
                action: "remove".to_owned(),
                reason: reason.clone(),
                at: tx.now(),
            });
        }
        let ends = tx.record(self.actor(), change.and_task(task.clone()))?;
        if !request.complete_task {
            return Ok((ended, None));
        }
        let Some((task, change)) = completed(&task, request, tx.now())? else {
            return Ok((ended, Some(task)));
        };
        tx.record(self.actor(), change.part_of(Some(ends)))?;
        Ok((ended, Some(task)))
    }
}

/// A clean-up takes a tree only when its work is done, and with that the lock that a profile put on it.
fn consent(tree: &Tree, request: &RemoveRequest) -> RemovalConsent {
    RemovalConsent {
        discard: request.discard,
        referenced: request.force > 0,
        locked: request.force > 1 || (request.as_judged.is_some() && has_task_lock(tree)),
    }
}

/// A part of an operation is safe when that is over: whoever began it waits once for the disk.
fn durability(request: &RemoveRequest) -> Durability {
    match request.operation {
        Some(_) => Durability::Process,
        None => Durability::Power,
    }
}

/// A rename that replaces nothing, durable on both sides.
pub fn rename(from: &Path, to: &Path) -> Result<(), TreeError> {
    renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)
        .map_err(|error| at(to)(error.into()))?;
    for side in [from, to] {
        if let Some(parent) = side.parent() {
            fs::File::open(parent)
                .and_then(|directory| directory.sync_all())
                .map_err(at(parent))?;
        }
    }
    Ok(())
}
