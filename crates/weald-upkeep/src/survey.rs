//! The survey that upkeep works from: records, claims, sessions, agents, landings, entries of git, and who stands where.
//!
//! Every part is read when it is first asked for, and then once; records are all of one moment. What a repair or a removal
//! changed is seen by a new survey.
//! It tells all that can be told of worktrees without looking into them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use weald_core::agent::Agent;
use weald_core::clean::{AtPath, CleanFacts, Inside, Work};
use weald_core::id::TaskId;
use weald_core::landing::Landing;
use weald_core::session::Liveness;
use weald_core::store::{AgentFilter, Read, StoreError, TaskFilter};
use weald_core::task::{Task, TaskStatus};
use weald_core::tree::{Tree, TreeKind, TreeStatus};
use weald_git::{Reference, Registration};

use crate::whereabouts::Whereabouts;
use weald_control::machine::Places;
use weald_control::marker::TreeNote;
use weald_control::sessions::SessionView;
use weald_trees::TreeError;
use weald_trees::view::peek_head;
use weald_trees::{Trees, at, has_task_lock, is_own_lock};

/// One reading of everything.
pub(crate) struct Survey<'a> {
    pub trees: &'a Trees<'a>,
    /// What lies in the workshop. It is listed before the records are read, or what is just being made would pass for left over.
    pub workshop: Vec<PathBuf>,
    pub whereabouts: Whereabouts,
    records: OnceLock<Records>,
    sessions: OnceLock<Vec<SessionView>>,
    registrations: OnceLock<Vec<Registration>>,
    /// The branch of the main checkout.
    main_branch: OnceLock<Option<String>>,
    processes: OnceLock<Places>,
}

/// What is on record at one moment. Without the trees there is nothing to survey; of the rest, each can be unreadable alone.
struct Records {
    trees: Vec<Tree>,
    tasks: Part<BTreeMap<TaskId, Task>>,
    agents: Part<Vec<Agent>>,
    landings: Part<Vec<Landing>>,
}

/// What was read, or why it can't be.
type Part<T> = Result<T, String>;

fn part<T>(read: Result<T, StoreError>) -> Part<T> {
    read.map_err(|error| match error {
        StoreError::Backend(why) => why,
        error => error.to_string(),
    })
}

fn known<T>(part: &Part<T>) -> Result<&T, TreeError> {
    let failed = |why: &String| StoreError::Backend(why.clone()).into();
    part.as_ref().map_err(failed)
}

/// Who uses a tree, or may, in words.
pub(crate) struct Uses {
    /// What goes on in it, or may.
    pub activity: Vec<String>,
    /// Who refers to it.
    pub references: Vec<String>,
    pub lock: Option<String>,
    /// A process that stands in it.
    pub standing: Option<String>,
}

impl Uses {
    pub(crate) fn all(self) -> Vec<String> {
        let beside = self.lock.into_iter().chain(self.references);
        let all = self.activity.into_iter().chain(self.standing);
        all.chain(beside).collect()
    }
}

/// What a part is, which is read if nobody asked for it yet.
fn once<T>(
    part: &OnceLock<T>,
    read: impl FnOnce() -> Result<T, TreeError>,
) -> Result<&T, TreeError> {
    match part.get() {
        Some(known) => Ok(known),
        None => read().map(|known| part.get_or_init(|| known)),
    }
}

impl<'a> Survey<'a> {
    /// `places` are further directories in which moved trees may be.
    pub(crate) fn new(trees: &'a Trees<'a>, places: &[PathBuf]) -> Self {
        let workshop = fs::read_dir(trees.workshop()).into_iter().flatten();
        Self {
            trees,
            workshop: workshop.flatten().map(|entry| entry.path()).collect(),
            whereabouts: Whereabouts::new(places),
            records: OnceLock::new(),
            sessions: OnceLock::new(),
            registrations: OnceLock::new(),
            main_branch: OnceLock::new(),
            processes: OnceLock::new(),
        }
    }

    fn on_record(&self) -> Result<&Records, TreeError> {
        let read = |tx: &dyn Read| {
            Ok::<_, StoreError>(Records {
                tasks: part(tx.tasks(&TaskFilter::default()).map(by_id)),
                agents: part(tx.agents(&AgentFilter::OPEN)),
                landings: part(tx.open_landings()),
                trees: tx.trees()?,
            })
        };
        once(&self.records, || Ok(self.trees.engine.look(read)?))
    }

    pub(crate) fn records(&self) -> Result<&[Tree], TreeError> {
        Ok(&self.on_record()?.trees)
    }

    /// The trees that are there, or should be.
    pub(crate) fn live(&self) -> Result<impl Iterator<Item = &Tree>, TreeError> {
        Ok(self.records()?.iter().filter(|tree| tree.is_live()))
    }

    pub(crate) fn tasks(&self) -> Result<&BTreeMap<TaskId, Task>, TreeError> {
        known(&self.on_record()?.tasks)
    }

    /// Every session, also those that have ended.
    pub(crate) fn sessions(&self) -> Result<&[SessionView], TreeError> {
        once(&self.sessions, || self.trees.known_sessions()).map(Vec::as_slice)
    }

    /// Agents that have not ended.
    pub(crate) fn agents(&self) -> Result<&[Agent], TreeError> {
        known(&self.on_record()?.agents).map(Vec::as_slice)
    }

    /// Landings that have not ended, or whose clean-up did not run.
    pub(crate) fn landings(&self) -> Result<&[Landing], TreeError> {
        known(&self.on_record()?.landings).map(Vec::as_slice)
    }

    /// Every entry of git that can be read.
    pub(crate) fn registrations(&self) -> Result<&[Registration], TreeError> {
        let known = self.trees.registrations();
        let read = || known.list().map_err(at(&known.directory("")));
        once(&self.registrations, read).map(Vec::as_slice)
    }

    fn main_branch(&self) -> Result<Option<&String>, TreeError> {
        let read = || match self.trees.place.repository().reference("HEAD")? {
            Some(Reference::Symbolic(name)) => Ok(Some(name)),
            _ => Ok(None),
        };
        once(&self.main_branch, read).map(Option::as_ref)
    }

    /// A process that stands in a directory or below.
    pub(crate) fn process_in(&self, directory: &Path) -> Option<u32> {
        self.processes.get_or_init(Places::now).within(directory)
    }

    /// The same in words.
    pub(crate) fn standing_in(&self, directory: &Path) -> Option<String> {
        let pid = self.process_in(directory)?;
        Some(format!("process {pid} is in it"))
    }

    /// Whether a process is at work on a tree, or may be.
    pub(crate) fn is_worked_on(&self, tree: &Tree) -> bool {
        let worker = tree.worker.as_ref();
        worker.is_some_and(|worker| self.trees.may_live(worker))
    }

    /// The task that a tree is bound to.
    fn task_of(&self, tree: &Tree) -> Result<Option<&Task>, TreeError> {
        Ok(match &tree.task {
            Some(id) => self.tasks()?.get(id),
            None => None,
        })
    }

    /// Whether git's entry points at a tree's path and is known to be of that tree.
    pub(crate) fn is_registered(&self, tree: &Tree) -> Result<bool, TreeError> {
        let known = self.registration(tree)?;
        Ok(known.is_some_and(|known| points_at(known, tree)))
    }

    fn registration(&self, tree: &Tree) -> Result<Option<&Registration>, TreeError> {
        let name = tree.registration.as_ref();
        let mut known = self.registrations()?.iter();
        Ok(known.find(|known| Some(&known.name) == name))
    }

    /// Others that have the same path or branch.
    fn sharers(&self, tree: &Tree) -> Result<Vec<String>, TreeError> {
        let full = format!("refs/heads/{}", tree.branch);
        let mut found = Vec::new();
        let others = self.records()?.iter().filter(|other| {
            other.id != tree.id && (other.is_live() || other.status == TreeStatus::Creating)
        });
        for other in others {
            if is_nested(&other.path, &tree.path) || other.branch == tree.branch {
                found.push(format!(
                    "worktree {} of weald has its path or branch",
                    other.name
                ));
            }
        }
        let own = tree.registration.as_deref();
        let entries = self.registrations()?.iter();
        for entry in entries.filter(|entry| Some(entry.name.as_str()) != own) {
            let on_branch = entry.head == Some(Reference::Symbolic(full.clone()));
            if on_branch || entry.path() == Some(&tree.path) {
                found.push(format!(
                    "git worktree {} has its path or branch",
                    entry.name
                ));
            }
        }
        if self.main_branch()? == Some(&full) {
            found.push("the main checkout is on its branch".to_owned());
        }
        Ok(found)
    }

    /// Who refers to it: sessions, landings that wait, short-lived trees that land on it.
    fn references(&self, tree: &Tree, task: Option<&Task>) -> Result<Vec<String>, TreeError> {
        let is_over =
            |task: &&Task| matches!(task.status, TaskStatus::Completed | TaskStatus::Cancelled);
        // A session that still names a task that is over says nothing about its tree.
        let open_task = task.filter(|task| !is_over(task)).map(|task| &task.id);
        let here = |view: &&SessionView| {
            let session = &view.session;
            let works_here = session.tree.as_ref() == Some(&tree.name);
            let works_on_it = open_task.is_some() && session.task.as_ref() == open_task;
            session.ended_at.is_none()
                && view.liveness != Liveness::Dead
                && (works_here || works_on_it)
        };
        let sessions = self.sessions()?.iter().filter(here);
        let mut found: Vec<_> = sessions
            .map(|view| format!("session {} refers to it", view.session.name))
            .collect();
        let waiting = self.landings()?.iter().filter(|one| one.tree_id == tree.id);
        found.extend(waiting.map(|landing| format!("landing {} has not ended", landing.id)));
        let scratches = self
            .live()?
            .filter(|other| other.scratch_for.as_ref() == Some(&tree.name));
        found.extend(scratches.map(|other| format!("worktree {} lands on it", other.name)));
        Ok(found)
    }

    /// Why it is locked, by weald or by somebody with git.
    fn lock(&self, tree: &Tree) -> Result<Option<String>, TreeError> {
        // The one of its profile is for the time of the work, and clean-ups ask whether that is done.
        if let Some(lock) = tree.locked.as_ref().filter(|_| !has_task_lock(tree)) {
            return Ok(Some(format!("locked by {}: {}", lock.owner, lock.reason)));
        }
        let known = self.registration(tree)?;
        let reason = known.and_then(|known| known.locked.as_ref());
        let foreign = reason.filter(|reason| !is_own_lock(tree, reason));
        Ok(foreign.map(|reason| format!("locked with git: {reason}")))
    }

    /// What can be told of a tree from outside; the rest is unknown.
    pub(crate) fn facts_of(&self, tree: &Tree) -> Result<(CleanFacts, Vec<String>), TreeError> {
        let task = self.task_of(tree)?;
        let mut notes = Vec::new();
        let at_path = match self.trees.opened(tree) {
            // Without it the directory can't be known again.
            Ok(_) if tree.identity.is_none() => AtPath::Other,
            Ok(_) => AtPath::Tree,
            Err(TreeError::Missing { .. }) => AtPath::Nothing,
            Err(error) => {
                notes.push(error.to_string());
                AtPath::Other
            }
        };
        let sharers = self.sharers(tree)?;
        let mut uses = self.uses(tree)?;
        let holds_caller = self.trees.host.directory.starts_with(&tree.path);
        if !holds_caller {
            uses.activity.extend(uses.standing);
        }
        let fits_branch = tree.adopted || self.trees.fits_branch(&tree.branch)?;
        if !fits_branch {
            notes.push(format!(
                "{} is not a branch that worktrees use here",
                tree.branch
            ));
        }
        let facts = CleanFacts {
            status: tree.status,
            task: task.map(|task| task.status),
            at_path,
            path_fits: self.trees.fits_path(&tree.path)?,
            inside: Inside::Unknown,
            base_known: true,
            work: Work::Unknown,
            branch_fits: fits_branch && tree.branch != tree.target,
            last_used: Some(tree.last_used_at),
            is_shared: !sharers.is_empty(),
            is_referenced: !uses.references.is_empty(),
            is_locked: uses.lock.is_some(),
            is_active: !uses.activity.is_empty(),
            holds_caller,
        };
        notes.extend(uses.activity.into_iter().chain(uses.lock));
        notes.extend(sharers.into_iter().chain(uses.references));
        Ok((facts, notes))
    }

    /// Whether a tree's HEAD is where it was made, as far as that shows from outside: then it has nothing to land.
    pub(crate) fn is_at_base(&self, tree: &Tree) -> Result<bool, TreeError> {
        let repository = self.trees.place.repository();
        let head = match tree.kind {
            TreeKind::Sealed => self
                .trees
                .opened(tree)
                .ok()
                .and_then(|(_, door)| peek_head(&door)),
            TreeKind::Linked => match self.registration(tree)?.and_then(|own| own.head.clone()) {
                Some(Reference::Direct(head)) => Some(head.as_str().to_owned()),
                Some(Reference::Symbolic(name)) => repository
                    .resolve(&name)
                    .ok()
                    .flatten()
                    .map(|head| head.as_str().to_owned()),
                None => None,
            },
        };
        Ok(head.as_ref() == Some(&tree.base.commit))
    }

    /// Who uses a tree, or may: all that speaks against taking it, or anything from it.
    pub(crate) fn uses(&self, tree: &Tree) -> Result<Uses, TreeError> {
        let task = self.task_of(tree)?;
        Ok(Uses {
            activity: self.activity(tree, task)?,
            references: self.references(tree, task)?,
            lock: self.lock(tree)?,
            standing: self.standing_in(&tree.path),
        })
    }

    /// What goes on in a tree, or may.
    fn activity(&self, tree: &Tree, task: Option<&Task>) -> Result<Vec<String>, TreeError> {
        let running = self.trees.running(tree).into_iter();
        let mut found: Vec<_> = running.map(|what| format!("runs: {what}")).collect();
        if self
            .agents()?
            .iter()
            .any(|one| one.tree_id == Some(tree.id))
        {
            found.push("an agent is at work".to_owned());
        }
        let worker = tree.worker.as_ref().filter(|one| self.trees.may_live(one));
        found.extend(worker.map(|one| format!("process {} is creating or removing it", one.pid)));
        if tree.removing {
            found.push(
                "a removal has not finished; if it was interrupted: weald doctor --fix".to_owned(),
            );
        }
        if let Some(lease) = task.and_then(|task| task.lease.as_ref())
            && !lease.is_expired(self.trees.now()?)
        {
            found.push(format!("{} has claimed its task", lease.session));
        }
        Ok(found)
    }
}

fn by_id(tasks: Vec<Task>) -> BTreeMap<TaskId, Task> {
    let tasks = tasks.into_iter();
    tasks.map(|task| (task.id.clone(), task)).collect()
}

/// Whether an entry of git points at a tree's path and is known to be of that tree.
pub(crate) fn points_at(known: &Registration, tree: &Tree) -> bool {
    let note = TreeNote::of(known);
    known.path() == Some(&tree.path) && note.is_some_and(|note| note.tree == tree.id)
}

/// Whether one path lies in the other. Bytes first: of a thousand trees each is compared with each.
fn is_nested(one: &Path, other: &Path) -> bool {
    let (text, others) = (one.as_os_str().as_bytes(), other.as_os_str().as_bytes());
    (text.starts_with(others) && one.starts_with(other))
        || (others.starts_with(text) && other.starts_with(one))
}
