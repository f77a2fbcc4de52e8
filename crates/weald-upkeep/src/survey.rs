//! The survey that upkeep begins with: records, claims, sessions, agents, landings, entries of git, and who stands where.
//!
//! It tells all that can be told of worktrees without looking into them. `clean` and `usage` read it once and take what they
//! find from it. `doctor` and `sweep` can't: what a repair or a cycle changed has to be read again, and a folder has to be
//! listed before the records are read, or what is just being made would pass for left over.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use weald_core::Timestamp;
use weald_core::clean::{AtPath, CleanFacts, Inside, Work};
use weald_core::id::{TaskId, TreeId};
use weald_core::landing::Landing;
use weald_core::session::Liveness;
use weald_core::store::AgentFilter;
use weald_core::task::{Task, TaskStatus};
use weald_core::tree::{Tree, TreeKind, TreeStatus};
use weald_git::{Reference, Registration};

use crate::Upkeep;
use weald_control::machine::Places;
use weald_control::marker::TreeNote;
use weald_control::sessions::SessionView;
use weald_trees::TreeError;
use weald_trees::view::peek_head;
use weald_trees::{has_task_lock, is_own_lock};

/// Everything around the worktrees, read once.
pub(crate) struct Survey {
    pub now: Timestamp,
    pub records: Vec<Tree>,
    /// Every entry of git.
    pub registrations: Vec<Registration>,
    tasks: BTreeMap<TaskId, Task>,
    sessions: Vec<SessionView>,
    agents: BTreeSet<TreeId>,
    landings: Vec<Landing>,
    places: Places,
    /// The branch of the main checkout.
    main_branch: Option<String>,
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

impl Survey {
    /// Whether git's entry points at a tree's path and is known to be of that tree.
    pub(crate) fn is_registered(&self, tree: &Tree) -> bool {
        self.registration(tree).is_some_and(|known| {
            known.path() == Some(&tree.path)
                && TreeNote::of(known).is_some_and(|note| note.tree == tree.id)
        })
    }

    fn registration(&self, tree: &Tree) -> Option<&Registration> {
        let name = tree.registration.as_deref()?;
        self.registrations.iter().find(|known| known.name == name)
    }

    /// Others that have the same path or branch.
    fn sharers(&self, tree: &Tree) -> Vec<String> {
        let full = format!("refs/heads/{}", tree.branch);
        let mut found = Vec::new();
        let others = self.records.iter().filter(|other| {
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
        let entries = self.registrations.iter();
        for entry in entries.filter(|entry| Some(entry.name.as_str()) != own) {
            let on_branch = entry.head == Some(Reference::Symbolic(full.clone()));
            if on_branch || entry.path() == Some(&tree.path) {
                found.push(format!(
                    "git worktree {} has its path or branch",
                    entry.name
                ));
            }
        }
        if self.main_branch.as_deref() == Some(&full) {
            found.push("the main checkout is on its branch".to_owned());
        }
        found
    }

    /// Who refers to it: sessions, landings that wait, short-lived trees that land on it.
    fn references(&self, tree: &Tree, task: Option<&Task>) -> Vec<String> {
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
        let sessions = self.sessions.iter().filter(here);
        let mut found: Vec<_> = sessions
            .map(|view| format!("session {} refers to it", view.session.name))
            .collect();
        let waiting = self.landings.iter().filter(|one| one.tree_id == tree.id);
        found.extend(waiting.map(|landing| format!("landing {} has not ended", landing.id)));
        let scratches = self
            .records
            .iter()
            .filter(|other| other.is_live() && other.scratch_for.as_ref() == Some(&tree.name));
        found.extend(scratches.map(|other| format!("worktree {} lands on it", other.name)));
        found
    }

    /// A process that stands in a directory or below.
    pub(crate) fn standing_in(&self, directory: &Path) -> Option<String> {
        let pid = self.places.within(directory)?;
        Some(format!("process {pid} is in it"))
    }

    /// Why it is locked, by weald or by somebody with git.
    fn lock(&self, tree: &Tree) -> Option<String> {
        // The one of its profile is for the time of the work, and clean-ups ask whether that is done.
        if let Some(lock) = tree.locked.as_ref().filter(|_| !has_task_lock(tree)) {
            return Some(format!("locked by {}: {}", lock.owner, lock.reason));
        }
        let reason = self.registration(tree)?.locked.clone()?;
        (!is_own_lock(tree, &reason)).then(|| format!("locked with git: {reason}"))
    }
}

/// Whether one path lies in the other. Bytes first: of a thousand trees each is compared with each.
fn is_nested(one: &Path, other: &Path) -> bool {
    let (text, others) = (one.as_os_str().as_bytes(), other.as_os_str().as_bytes());
    (text.starts_with(others) && one.starts_with(other))
        || (others.starts_with(text) && other.starts_with(one))
}

impl Upkeep<'_> {
    /// Reads everything around the trees. What can't be read is an error: nothing is taken then.
    pub(crate) fn survey(&self) -> Result<Survey, TreeError> {
        let sessions = self.trees.known_sessions()?;
        let main_branch = match self.trees.place.repository().reference("HEAD")? {
            Some(Reference::Symbolic(name)) => Some(name),
            _ => None,
        };
        let registrations = self.trees.registrations();
        let registrations = registrations
            .list()
            .map_err(weald_trees::at(&registrations.directory("")))?;
        let places = Places::now();
        self.trees.engine.look(|tx| {
            let records = tx.trees()?;
            let mut tasks = BTreeMap::new();
            for id in records.iter().filter_map(|tree| tree.task.as_ref()) {
                tasks.extend(tx.task(id)?.map(|task| (id.clone(), task)));
            }
            let agents = tx.agents(&AgentFilter::OPEN)?;
            Ok(Survey {
                now: tx.now(),
                records,
                registrations,
                tasks,
                sessions,
                agents: agents.iter().filter_map(|agent| agent.tree_id).collect(),
                landings: tx.open_landings()?,
                places,
                main_branch,
            })
        })
    }

    /// What can be told of a tree from outside; the rest is unknown.
    pub(crate) fn facts_of(
        &self,
        survey: &Survey,
        tree: &Tree,
    ) -> Result<(CleanFacts, Vec<String>), TreeError> {
        let task = tree.task.as_ref().and_then(|id| survey.tasks.get(id));
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
        let sharers = survey.sharers(tree);
        let mut uses = self.uses(survey, tree);
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
    pub(crate) fn is_at_base(&self, survey: &Survey, tree: &Tree) -> bool {
        let repository = self.trees.place.repository();
        let head = match tree.kind {
            TreeKind::Sealed => self
                .trees
                .opened(tree)
                .ok()
                .and_then(|(_, door)| peek_head(&door)),
            TreeKind::Linked => match survey.registration(tree).and_then(|own| own.head.clone()) {
                Some(Reference::Direct(head)) => Some(head.as_str().to_owned()),
                Some(Reference::Symbolic(name)) => repository
                    .resolve(&name)
                    .ok()
                    .flatten()
                    .map(|head| head.as_str().to_owned()),
                None => None,
            },
        };
        head.as_ref() == Some(&tree.base.commit)
    }

    /// Who uses a tree, or may: all that speaks against taking it, or anything from it.
    pub(crate) fn uses(&self, survey: &Survey, tree: &Tree) -> Uses {
        let task = tree.task.as_ref().and_then(|id| survey.tasks.get(id));
        Uses {
            activity: self.activity(survey, tree, task),
            references: survey.references(tree, task),
            lock: survey.lock(tree),
            standing: survey.standing_in(&tree.path),
        }
    }

    /// What goes on in a tree, or may.
    fn activity(&self, survey: &Survey, tree: &Tree, task: Option<&Task>) -> Vec<String> {
        let running = self.trees.running(tree).into_iter();
        let mut found: Vec<_> = running.map(|what| format!("runs: {what}")).collect();
        if survey.agents.contains(&tree.id) {
            found.push("an agent is at work".to_owned());
        }
        let worker = tree.worker.as_ref().filter(|one| self.trees.may_live(one));
        found.extend(worker.map(|one| format!("process {} is creating or removing it", one.pid)));
        if tree.removing {
            found.push(
                "a removal has not finished; if it was interrupted: weald doctor --fix".to_owned(),
            );
        }
        let lease = task.and_then(|task| task.lease.as_ref());
        if let Some(lease) = lease.filter(|lease| !lease.is_expired(survey.now)) {
            found.push(format!("{} has claimed its task", lease.session));
        }
        found
    }
}
