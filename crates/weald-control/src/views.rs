//! File views: the files of other systems in the main checkout, kept behind the log like the journal.
//!
//! Derived: the process that commits writes what changed since the place that was last written (`views.json` in the private
//! directory), under a lock, so a crash between the two is made good by the next change. The file of events is appended
//! to while it is as it was left, else written again from the log, so no line is lost or doubled. Nothing is read back.
//! What somebody else had put at a view's place before is left alone until `doctor` moves it aside; what came there later is
//! moved aside by the next change.

mod events;
mod folder;
mod inspect;
mod round;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weald_core::Timestamp;
use weald_core::agent::AgentId;
use weald_core::event::{Event, EventKind};
use weald_core::file_view::ViewKind;
use weald_core::id::{Seq, TaskId};
use weald_core::name::TreeName;
use weald_core::store::{Read, Store, StoreError, TaskFilter};
use weald_core::task::Task;
use weald_git::{Door, DoorError};

use crate::agent_folder::{LOG_FILE, agents_folder};
use crate::place::Place;
use crate::{excludes, files, journal};
use events::Fingerprint;
pub use inspect::Wrong;
use round::Round;

/// What was written last, in the private directory.
pub const WRITTEN_FILE: &str = "views.json";

/// Held while views are written.
const LOCK_FILE: &str = "views.lock";

const BATCH: u64 = 1_000;

/// The largest file that is looked at before it is replaced.
const LIMIT: u64 = 16 << 20;

/// The views of one repository.
pub struct Views {
    kind: ViewKind,
    root: PathBuf,
    private: PathBuf,
    common_dir: PathBuf,
    /// Where the output of agents is.
    agents: PathBuf,
}

/// Up to where the views are written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Written {
    kind: String,
    seq: Seq,
    time: Option<Timestamp>,
    events: Option<Fingerprint>,
    /// Files of others at a view's place.
    #[serde(default)]
    left_alone: BTreeSet<String>,
}

impl Written {
    fn nothing(kind: ViewKind) -> Self {
        Self {
            kind: kind.as_str().to_owned(),
            seq: Seq(0),
            time: None,
            events: None,
            left_alone: BTreeSet::new(),
        }
    }
}

/// What has to be written again.
#[derive(Default)]
struct Touched {
    /// Tasks, and whether their file is new.
    tasks: BTreeMap<TaskId, (Task, bool)>,
    /// Trees, and whether theirs may be.
    trees: BTreeMap<TreeName, bool>,
}

impl Touched {
    fn all(read: &dyn Read) -> Result<Self, StoreError> {
        let tasks = read.tasks(&TaskFilter::default())?.into_iter();
        let trees = read.trees()?.into_iter();
        Ok(Self {
            tasks: tasks.map(|task| (task.id.clone(), (task, true))).collect(),
            trees: trees.map(|tree| (tree.name, true)).collect(),
        })
    }

    fn take(&mut self, event: Event) {
        let begins = [EventKind::TREE_CREATE_BEFORE, EventKind::TREE_ADOPTED].contains(&event.kind);
        let named = event.after.task.as_ref();
        let named = named.and_then(|task| task.worktree.as_ref().or(task.last_worktree.as_ref()));
        for name in event.tree.iter().chain(named) {
            *self.trees.entry(name.clone()).or_default() |= begins;
        }
        if let Some(task) = event.after.task {
            let new = [EventKind::TASK_CREATED, EventKind::TASK_IMPORTED].contains(&event.kind);
            let known = self.tasks.get(&task.id).is_some_and(|(_, known)| *known);
            self.tasks.insert(task.id.clone(), (task, new || known));
        }
    }
}

/// What becomes of files that somebody else put at a view's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Others {
    LeaveAlone,
    MoveAside,
}

impl Views {
    /// The views of a repository; `None` where there is no checkout to keep them in.
    pub(crate) fn new(place: &Place, kind: ViewKind) -> Option<Self> {
        let root = place.root();
        let common_dir = place.repository().common_dir().to_owned();
        (root != common_dir).then(|| Self {
            kind,
            root,
            private: place.private().to_owned(),
            common_dir,
            agents: agents_folder(place),
        })
    }

    /// Writes what changed since the last time. Answers what should be shown.
    pub(crate) fn catch_up(&self, store: &dyn Store) -> Result<Vec<String>, StoreError> {
        self.alone(|written| self.write(store, written, Others::LeaveAlone))
    }

    /// Writes everything again; files of others at a view's place are moved aside.
    pub fn rebuild(&self, store: &dyn Store) -> Result<Vec<String>, StoreError> {
        self.alone(|_| self.write(store, None, Others::MoveAside))
    }

    /// Runs `work` while no other process writes views.
    fn alone<T>(
        &self,
        work: impl FnOnce(Option<Written>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let path = self.private.join(LOCK_FILE);
        let file = files::open_lock(&path).and_then(|file| journal::lock(&file).map(|()| file));
        let _held = file.map_err(StoreError::file(path))?;
        work(self.written())
    }

    fn written(&self) -> Option<Written> {
        let text = files::read_small(&self.private.join(WRITTEN_FILE), LIMIT).ok()??;
        let written: Written = serde_json::from_str(&text).ok()?;
        Some(written).filter(|written| written.kind == self.kind.as_str())
    }

    fn write(
        &self,
        store: &dyn Store,
        written: Option<Written>,
        others: Others,
    ) -> Result<Vec<String>, StoreError> {
        let read = store.read()?;
        let known = match written {
            Some(written) if is_of(read.as_ref(), &written)? => Some(written),
            _ => None,
        };
        if known.as_ref().map(|known| known.seq) == Some(read.last_seq()?) {
            return Ok(Vec::new());
        }
        let mut round = Round {
            views: self,
            is_first: known.is_none(),
            written: known.unwrap_or_else(|| Written::nothing(self.kind)),
            others,
            problems: Vec::new(),
        };
        if round.is_first {
            let added = excludes::add(&self.common_dir, &self.private, self.kind.excluded());
            round.note("info/exclude", added);
        }
        let touched = round.write_events(read.as_ref())?;
        round.write_files(read.as_ref(), touched)?;
        let file = self.private.join(WRITTEN_FILE);
        let text = serde_json::to_string(&round.written).unwrap_or_default();
        let saved = files::replace(&file, &text);
        round.note(WRITTEN_FILE, saved);
        Ok(round.problems)
    }

    /// Where the output of an agent is, as a link at `path` says it: relative where it can be, so that it holds when the
    /// repository is moved.
    fn log_of(&self, agent: AgentId, path: &str) -> PathBuf {
        let log = self.agents.join(agent.to_string()).join(LOG_FILE);
        match log.strip_prefix(&self.root) {
            Ok(below) => {
                let up = "../".repeat(path.matches('/').count());
                Path::new(&up).join(below)
            }
            Err(_) => log,
        }
    }

    fn existing(&self, path: &str) -> Result<Option<Vec<u8>>, DoorError> {
        let door = Door::open(&self.root).map_err(|error| DoorError::Odd {
            path: self.root.clone(),
            reason: error.to_string(),
        })?;
        match door.read(path, LIMIT) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(DoorError::Absent { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Whether what was written belongs to this store.
fn is_of(read: &dyn Read, written: &Written) -> Result<bool, StoreError> {
    match written.time {
        Some(time) => journal::is_event(read, written.seq, time),
        None => Ok(written.seq == Seq(0)),
    }
}
