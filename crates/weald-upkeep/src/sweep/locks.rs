//! Stale locks: the evidence, gathered in the transaction that acts on it.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use weald_core::SignedDuration;
use weald_core::name::{SessionName, TreeName};
use weald_core::session::{Liveness, ProcessIdentity, ProcessState};
use weald_core::store::{AgentFilter, Durability, Read, SessionSet, StoreError, TaskFilter, Write};
use weald_core::sweep::{AUTOMATIC, LockEvidence, LockVerdict, Witness, judge_lock};
use weald_core::task::Task;
use weald_core::tree::{Tree, TreeLock};
use weald_core::tree_rules::{self, TreeInput};

use super::{SweepError, SweepLease, Sweeper, require_lease};
use weald_trees::TreeError;

/// A tree whose lock stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptTree {
    pub tree: TreeName,
    pub code: Cow<'static, str>,
    pub why: String,
}

/// What became of locks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockSweep {
    /// Trees whose lock went.
    pub unlocked: Vec<TreeName>,
    /// Trees whose lock goes in the next cycle, if nothing changes.
    pub marked: Vec<TreeName>,
    /// Trees whose lock stays.
    pub kept: Vec<KeptTree>,
}

/// What the machine tells of a tree, and the store does not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outside {
    /// A lock that git knows and weald does not.
    pub foreign_lock: Option<String>,
    /// A process that stands in it.
    pub standing: Option<u32>,
}

impl Sweeper<'_> {
    /// Judges every lock; without a lease it only says what it would do.
    pub fn sweep_locks(
        &self,
        cycle: SignedDuration,
        lease: Option<&SweepLease>,
        outside: &dyn Fn(&Tree) -> Outside,
    ) -> Result<LockSweep, SweepError> {
        let locked = |tree: &Tree| tree.is_live() && tree.locked.is_some();
        let names: Vec<_> = self.0.look(|tx| tx.trees())?;
        let mut swept = LockSweep::default();
        // One transaction a tree: nobody waits for a thousand of them.
        for tree in names.iter().filter(|tree| locked(tree)) {
            let seen = outside(tree);
            let verdict = match lease {
                None => self.0.look(|tx| self.verdict_on(tx, tree, seen, cycle))?,
                Some(_) => self.0.change(None, Durability::Process, |tx| {
                    require_lease(tx, lease)?;
                    let Some(tree) = tx.tree_by_id(tree.id)?.filter(|tree| locked(tree)) else {
                        return Ok(None);
                    };
                    let verdict = self.verdict_on(tx, &tree, seen, cycle)?;
                    act(tx, &tree, verdict.as_ref())?;
                    Ok::<_, SweepError>(verdict)
                })?,
            };
            let name = tree.name.clone();
            match verdict {
                None => {}
                Some(LockVerdict::Unlock) => swept.unlocked.push(name),
                Some(LockVerdict::Mark(_)) => swept.marked.push(name),
                Some(LockVerdict::Keep(why)) => swept.kept.push(KeptTree {
                    tree: name,
                    code: why.code().into(),
                    why: why.to_string(),
                }),
            }
        }
        Ok(swept)
    }

    fn verdict_on(
        &self,
        tx: &(impl Read + ?Sized),
        tree: &Tree,
        outside: Outside,
        cycle: SignedDuration,
    ) -> Result<Option<LockVerdict>, SweepError> {
        let Some(lock) = &tree.locked else {
            return Ok(None);
        };
        let mut tasks = tasks_in(tx, tree)?;
        let owner = lock.owner.parse::<SessionName>().ok();
        let owner = match &owner {
            Some(name) => tx.session(name)?,
            None => None,
        };
        if let Some(id) = owner.and_then(|session| session.task)
            && !tasks.iter().any(|task| task.id == id)
        {
            tasks.extend(tx.task(&id)?);
        }
        let mut witnesses = self.witnesses(tx, tree, lock, &tasks)?;
        witnesses.extend(outside.standing.map(|pid| Witness {
            who: format!("process {pid}, which is in it,"),
            liveness: Liveness::Alive,
        }));
        let mut evidence = LockEvidence {
            witnesses,
            tasks,
            foreign_lock: outside.foreign_lock,
        };
        let verdict = judge_lock(tree, &evidence, cycle, tx.now());
        if matches!(verdict, LockVerdict::Keep(_)) {
            return Ok(Some(verdict));
        }
        // Asked last: it means a look at every task.
        evidence.tasks = with_tasks_naming(tx, tree, evidence.tasks, &TaskFilter::default())?;
        Ok(Some(judge_lock(tree, &evidence, cycle, tx.now())))
    }

    /// Everybody who may be at work in a tree.
    fn witnesses(
        &self,
        tx: &(impl Read + ?Sized),
        tree: &Tree,
        lock: &TreeLock,
        tasks: &[Task],
    ) -> Result<Vec<Witness>, StoreError> {
        let mut found = Vec::new();
        let mut seen = |who: String, liveness| found.push(Witness { who, liveness });
        if lock.owner != AUTOMATIC {
            // Somebody who never registered may be a person, who is not to be proven dead.
            let liveness = match lock.owner.parse::<SessionName>() {
                Ok(name) => self.0.liveness_of(tx, &name)?,
                Err(_) => Liveness::Unknown,
            };
            seen(format!("{}, who locked it,", lock.owner), liveness);
        }
        for session in tx.sessions(SessionSet::Open)? {
            let works_on = |task: &Task| session.task.as_ref() == Some(&task.id);
            if session.tree.as_ref() == Some(&tree.name) || tasks.iter().any(works_on) {
                let liveness = self.0.liveness_of(tx, &session.name)?;
                seen(format!("session {}", session.name), liveness);
            }
        }
        for run in &tree.runs {
            let who = format!("{} (process {})", run.program, run.process.pid);
            seen(who, self.life_of(&run.process));
        }
        if let Some(process) = &tree.worker {
            let who = format!("process {}, which works on it,", process.pid);
            seen(who, self.life_of(process));
        }
        for agent in tx.agents(&AgentFilter::OPEN)? {
            if agent.tree_id == Some(tree.id) {
                let supervisor = agent.supervisor.as_ref();
                let liveness = supervisor.map_or(Liveness::Unknown, |one| self.life_of(one));
                seen(format!("agent {}", agent.id), liveness);
            }
        }
        Ok(found)
    }

    fn life_of(&self, process: &ProcessIdentity) -> Liveness {
        match self.0.processes.state(process) {
            ProcessState::Running => Liveness::Alive,
            ProcessState::Gone => Liveness::Dead,
            ProcessState::Unknown => Liveness::Unknown,
        }
    }
}

/// With those of a filter that name a tree as the one that they are worked on in, or were last.
pub(crate) fn with_tasks_naming(
    tx: &(impl Read + ?Sized),
    tree: &Tree,
    mut tasks: Vec<Task>,
    filter: &TaskFilter,
) -> Result<Vec<Task>, StoreError> {
    for task in tx.tasks(filter)? {
        let mut named = task.worktree.iter().chain(&task.last_worktree);
        let is_known = tasks.iter().any(|known| known.id == task.id);
        if !is_known && named.any(|name| *name == tree.name) {
            tasks.push(task);
        }
    }
    Ok(tasks)
}

/// The tasks that were worked on in a tree: the one that is bound to it, and those that landed from it.
pub(crate) fn tasks_in(tx: &(impl Read + ?Sized), tree: &Tree) -> Result<Vec<Task>, StoreError> {
    let mut ids: Vec<_> = tree.task.iter().cloned().collect();
    for landing in tx.landings_of(&tree.name)? {
        ids.extend(landing.task.filter(|_| landing.tree_id == tree.id));
    }
    ids.sort();
    ids.dedup();
    let mut tasks = Vec::new();
    for id in ids {
        tasks.extend(tx.task(&id)?);
    }
    Ok(tasks)
}

fn act(tx: &mut dyn Write, tree: &Tree, verdict: Option<&LockVerdict>) -> Result<(), SweepError> {
    let input = match verdict {
        Some(LockVerdict::Unlock) => TreeInput::UnlockStale,
        Some(LockVerdict::Mark(mark)) => TreeInput::MarkStale(mark.clone()),
        Some(LockVerdict::Keep(_)) | None => return Ok(()),
    };
    let (_, change) = tree_rules::decide(tree, input, tx.now()).map_err(TreeError::from)?;
    // It follows from what is on record, and is no operation that anybody takes back.
    let change = change.part_of(Some(tx.last_seq()?));
    tx.record(None, change)?;
    Ok(())
}
