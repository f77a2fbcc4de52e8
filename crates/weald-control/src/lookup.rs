//! Finds what a word means among the records of a repository. The core decides; here they are read.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use weald_core::agent::Agent;
use weald_core::config::Slashes;
use weald_core::id::{LandingId, TaskId};
use weald_core::meant::{Counts, Form, Records, Unclear, Wanted, Word};
use weald_core::store::{AgentFilter, Read, StoreError, TaskFilter};
use weald_core::tree::{Tree, TreeStatus};

use crate::engine::Engine;

/// Why nothing was found.
#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The word means nothing, or several things.
    #[error(transparent)]
    Unclear(#[from] Unclear),
}

/// Where words come from.
#[derive(Clone, Copy)]
pub struct Lookup<'a> {
    pub engine: &'a Engine,
    /// The directory that a relative path starts in.
    pub directory: &'a Path,
    /// What becomes of slashes in the name of a worktree.
    pub slashes: Slashes,
}

impl Lookup<'_> {
    /// A worktree that is there.
    pub fn tree(&self, word: &Word) -> Result<Tree, LookupError> {
        self.found(word, Wanted::Worktree, |all| all.tree(word))
    }

    /// A worktree that is in the trash, or was deleted for good. Nothing near to its name is looked for.
    pub fn removed(&self, word: &Word, status: TreeStatus) -> Result<Tree, LookupError> {
        self.engine.look(|tx| {
            let records = self.records(tx, word, Wanted::Worktree)?;
            Ok(records.removed(word, status)?)
        })
    }

    /// A task that is known.
    pub fn task(&self, word: &Word) -> Result<TaskId, LookupError> {
        self.found(word, Wanted::Task, |all| all.task(word))
    }

    /// The same where the word is said to be a task's: what has that id is not looked for elsewhere.
    pub fn task_before_others(&self, word: &Word) -> Result<TaskId, LookupError> {
        if let Some(id) = word.task_id()
            && self.engine.look(|tx| tx.task(&id))?.is_some()
        {
            return Ok(id);
        }
        self.task(word)
    }

    pub fn agent(&self, word: &Word) -> Result<Agent, LookupError> {
        self.found(word, Wanted::Agent, |all| all.agent(word))
    }

    pub fn landing(&self, word: &Word, counts: Counts) -> Result<LandingId, LookupError> {
        self.found(word, Wanted::Landing, |all| all.landing(word, counts))
    }

    fn found<T>(
        &self,
        word: &Word,
        wanted: Wanted,
        decide: impl Fn(&Records) -> Result<T, Unclear>,
    ) -> Result<T, LookupError> {
        self.engine.look(|tx| {
            let records = self.records(tx, word, wanted)?;
            match decide(&records) {
                Err(unclear @ Unclear::Unknown { .. }) => {
                    let known = names(tx, &records, wanted)?;
                    Err(unclear
                        .with_nearest(known.iter().map(String::as_str))
                        .into())
                }
                found => Ok(found?),
            }
        })
    }

    fn records(
        &self,
        tx: &(impl Read + ?Sized),
        word: &Word,
        wanted: Wanted,
    ) -> Result<Records, StoreError> {
        let name = match self.slashes {
            Slashes::Plus => word.bare().replace('/', "+").parse(),
            Slashes::Refuse => word.bare().parse(),
        };
        let form = word.form();
        let by_name = matches!(wanted, Wanted::Agent | Wanted::Task) || form == Some(Form::Agent);
        let agents = match (by_name, word.agent_id()) {
            (true, _) => tx.agents(&AgentFilter::default())?,
            (false, Some(id)) => tx.agent(id)?.into_iter().collect(),
            (false, None) => Vec::new(),
        };
        let needs_landings = wanted == Wanted::Landing || form == Some(Form::Landing);
        let landings = match (needs_landings, word.landing_id()) {
            (false, _) => Vec::new(),
            (true, Some(id)) => tx.landing(id)?.into_iter().collect(),
            (true, None) => tx.landings()?,
        };
        Ok(Records {
            name: name.ok(),
            places: self.places(word),
            trees: tx.trees()?,
            task: match word.task_id() {
                Some(id) => tx.task(&id)?,
                None => None,
            },
            agents,
            landings,
        })
    }

    /// Where a word leads as a path: as it is written, and with links followed as far as there is something.
    fn places(&self, word: &Word) -> Vec<PathBuf> {
        let Some(written) = word.path(self.directory) else {
            return Vec::new();
        };
        // A repository can have a link under the name of a branch, so a path says that it is one.
        if !word.is_path() {
            return Vec::new();
        }
        let mut rest: Vec<OsString> = Vec::new();
        let mut start = written.as_path();
        let real = loop {
            match (start.canonicalize(), start.parent(), start.file_name()) {
                (Ok(real), ..) => break Some(real),
                (Err(_), Some(parent), Some(name)) => {
                    rest.push(name.to_owned());
                    start = parent;
                }
                (Err(_), ..) => break None,
            }
        };
        let real = real.map(|real| {
            rest.into_iter()
                .rev()
                .fold(real, |path, name| path.join(name))
        });
        let mut places = vec![written];
        places.extend(real);
        places.dedup();
        places
    }
}

/// What can be called instead of a word that nothing has.
fn names(
    tx: &(impl Read + ?Sized),
    records: &Records,
    wanted: Wanted,
) -> Result<Vec<String>, StoreError> {
    let all = records.trees.iter();
    let meant = all.filter(|tree| tree.is_wanted() || wanted == Wanted::Landing);
    let mut names: Vec<String> = Vec::new();
    for tree in meant {
        names.extend([tree.name.to_string(), tree.branch.clone()]);
    }
    match wanted {
        Wanted::Worktree | Wanted::Landing => {}
        Wanted::Task => {
            let tasks = tx.tasks(&TaskFilter::default())?;
            names.extend(tasks.into_iter().map(|task| task.id.to_string()));
        }
        Wanted::Agent => {
            let agents = records.agents.iter();
            names.extend(agents.map(|agent| agent.session.to_string()));
        }
    }
    Ok(names)
}
