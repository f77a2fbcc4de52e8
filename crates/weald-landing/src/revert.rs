//! Taking a landing back: a commit that undoes it, through the same queue and gate.

use weald_core::id::LandingId;
use weald_core::landing::{Cleanup, Landing, LandingInput, LandingStatus, RevertCause, Strategy};
use weald_core::landing_rules;
use weald_core::session::ProcessIdentity;
use weald_core::store::{Counter, Durability, Read, Write};
use weald_core::task::TaskStatus;
use weald_core::task_rules::TaskInput;
use weald_git::{MergeRequest, Merged, NewCommit, commit_tree, merge_trees};

use super::LandError;
use super::candidate::{Candidate, Made, tree_of};
use super::settle::move_started;
use crate::Landings;
use crate::refusal::Refusal;
use weald_control::tasks::{TaskError, move_in};

impl Landings<'_> {
    /// Queues the undoing of a landing.
    pub fn queue_revert(&self, id: LandingId, cause: RevertCause) -> Result<Landing, LandError> {
        // Where a person must agree to what lands, an agent does not take it away either.
        let landed = self.landing(id)?;
        if let (Some(onto), Some(tip)) = (&landed.onto, &landed.new_tip)
            && self.needs_approval(onto, tip)?
        {
            self.refuse_agents()?;
        }
        self.queue_undoing(id, self.trees.me(), cause)
    }

    /// A landing that can be undone: it has landed, and nothing undid it or is about to.
    pub fn require_revertible(&self, id: LandingId) -> Result<Landing, LandError> {
        let landed = self.require_standing(id)?;
        self.trees.engine.look(|tx| refuse_second(tx, id))?;
        Ok(landed)
    }

    fn require_standing(&self, id: LandingId) -> Result<Landing, LandError> {
        let landed = self.landing(id)?;
        if landed.status != LandingStatus::Landed {
            return Err(Refusal::NotLanded(id, landed.status).into());
        }
        if let Some(by) = landed.reverted_by {
            // The undoing may have been undone, too.
            let mut by = vec![by];
            while let Some(next) = self.landing(by[by.len() - 1])?.reverted_by {
                by.push(next);
            }
            return Err(Refusal::RevertedAlready(id, by).into());
        }
        Ok(landed)
    }

    pub(super) fn queue_undoing(
        &self,
        id: LandingId,
        waiter: Option<ProcessIdentity>,
        cause: RevertCause,
    ) -> Result<Landing, LandError> {
        let landed = self.require_standing(id)?;
        self.trees
            .engine
            .change(self.trees.actor(), Durability::Process, |tx| {
                refuse_second(tx, id)?;
                let number = LandingId(tx.next_number(Counter::Landing)?);
                let (landing, change) = landing_rules::queue(Landing {
                    id: number,
                    head: landed.new_tip.clone().unwrap_or_default(),
                    strategy: Strategy::Squash,
                    reverts: Some(id),
                    revert_cause: Some(cause),
                    queued_at: tx.now(),
                    updated_at: tx.now(),
                    queued_by: self.trees.actor().cloned(),
                    waiter,
                    old_tip: None,
                    onto: None,
                    new_tip: None,
                    gate: None,
                    signature: None,
                    log: None,
                    cleanup: None,
                    task_token: None,
                    ..landed.clone()
                });
                tx.record(self.trees.actor(), change)?;
                Ok(landing)
            })
    }

    pub(super) fn undoing(&self, landed: &Landing, tip: &str) -> Result<Made, LandError> {
        let (Some(before), Some(after)) = (&landed.onto, &landed.new_tip) else {
            return Err(Refusal::NotRecorded(landed.id).into());
        };
        let vault = self.trees.vault();
        let request = MergeRequest {
            ours: tip,
            theirs: before,
            base: Some(after),
            attributes: tip,
        };
        let tree = match merge_trees(vault.path(), request)? {
            Merged::Clean { tree } => tree,
            Merged::Conflict { paths, .. } => return Ok(Made::Conflict(paths)),
        };
        if tree == tree_of(vault.path(), tip)? {
            return Ok(Made::Nothing);
        }
        let subject = vault.git("log").args(["-1", "--format=%s", after]).run()?;
        let subject = String::from_utf8_lossy(&subject).trim().to_owned();
        let what = match landed.strategy {
            Strategy::Rebase | Strategy::Ff => format!("This reverts {before}..{after}."),
            _ => format!("This reverts commit {after}."),
        };
        let mut message = format!("Revert \"{subject}\"\n\n{what}\n");
        if self.trees.config.landing_trailers {
            let task = landed.task.as_ref();
            let task = task.map_or(String::new(), |task| format!("Weald-Task: {task}\n"));
            message.push_str(&format!("\n{task}Weald-Reverts: {}\n", landed.id));
        }
        let committer = self.committer()?;
        let commit = commit_tree(
            vault.path(),
            &NewCommit {
                tree: &tree,
                parents: &[tip],
                message: &message,
                author: &committer,
                committer: &committer,
            },
        )?;
        Ok(Made::Candidate(Candidate {
            onto: tip.to_owned(),
            commit,
        }))
    }

    /// The landing that was undone says so, and its task is open again; or completed again, where that landing undid another.
    pub(super) fn settle_revert(&self, landing: &Landing, of: LandingId) -> Result<(), LandError> {
        let reverted = LandingInput::Reverted { by: landing.id };
        self.trees
            .engine
            .change(self.trees.actor(), Durability::Power, |tx| {
                self.step_landing(tx, of, reverted)?;
                let settled = LandingInput::CleanedUp(Cleanup {
                    directory: "absent".to_owned(),
                    branch: "absent".to_owned(),
                    record: "kept".to_owned(),
                    task: match self.brings_back(tx, of)? {
                        true => self.complete_again(tx, landing)?.to_owned(),
                        false => self.reopen_task(tx, landing)?.to_owned(),
                    },
                    why: None,
                    ignored: 0,
                    restore: None,
                });
                self.step_landing(tx, landing.id, settled)
            })?;
        Ok(())
    }

    /// Whether undoing a landing brings work back: it undid another one.
    fn brings_back(&self, tx: &dyn Write, of: LandingId) -> Result<bool, LandError> {
        let mut undone = tx.landing(of)?.and_then(|landing| landing.reverts);
        let mut brings_back = false;
        while let Some(id) = undone {
            brings_back = !brings_back;
            undone = tx.landing(id)?.and_then(|landing| landing.reverts);
        }
        Ok(brings_back)
    }

    /// Completes the task whose work is there again, unless somebody began on it since; says what became of it.
    fn complete_again(
        &self,
        tx: &mut dyn Write,
        landing: &Landing,
    ) -> Result<&'static str, LandError> {
        let task = match &landing.task {
            Some(id) => tx.task(id)?,
            None => None,
        };
        let complete = TaskInput::Complete {
            token: None,
            report: None,
        };
        match task {
            None => Ok("none"),
            Some(task) if task.status == TaskStatus::Completed => Ok("completed"),
            Some(task) if task.status == TaskStatus::Pending => {
                match move_started(tx, self.trees.actor(), task, None, complete) {
                    Ok(()) => Ok("completed"),
                    Err(TaskError::Store(error)) => Err(error.into()),
                    Err(_) => Ok("kept"),
                }
            }
            Some(_) => Ok("kept"),
        }
    }

    /// Opens the task of what was undone; says what became of it.
    fn reopen_task(
        &self,
        tx: &mut dyn Write,
        landing: &Landing,
    ) -> Result<&'static str, LandError> {
        let task = match &landing.task {
            Some(id) => tx.task(id)?,
            None => None,
        };
        match task {
            None => Ok("none"),
            Some(task) if task.status == TaskStatus::Completed => {
                match move_in(tx, self.trees.actor(), &task, TaskInput::Reopen) {
                    Ok(_) => Ok("reopened"),
                    Err(TaskError::Store(error)) => Err(error.into()),
                    Err(_) => Ok("kept"),
                }
            }
            Some(_) => Ok("kept"),
        }
    }
}

fn refuse_second(tx: &(impl Read + ?Sized), id: LandingId) -> Result<(), LandError> {
    let open = tx.open_landings()?;
    match open.iter().find(|one| one.reverts == Some(id)) {
        Some(other) => Err(Refusal::RevertQueued(id, other.id).into()),
        None => Ok(()),
    }
}
