//! What follows from the end of a landing: the tree goes, its task is done, its owner is told.
//!
//! The landing itself is over by then. Whatever can't be cleaned up is kept, and the landing says why.

use weald_core::config::AfterLanding;
use weald_core::id::{TaskId, Token};
use weald_core::landing::{Cleanup, Landing, LandingInput, LandingStatus};
use weald_core::message::{Draft, MessageType, Urgency};
use weald_core::name::SessionName;
use weald_core::needs::to_land_again;
use weald_core::store::{AgentFilter, Durability, Write};
use weald_core::task::{Task, TaskStatus};
use weald_core::task_rules::{TaskEdit, TaskInput};
use weald_core::tree::{Tree, TreeStatus};
use weald_core::tree_rules::TreeInput;

use weald_git::{MergeRequest, Merged, merge_trees};

use super::LandError;
use super::candidate::tree_of;
use crate::Landings;
use weald_control::steps::step;
use weald_control::tasks::{TaskError, move_in, require_task};
use weald_trees::{BranchOutcome, RemoveRequest, decided, has_task_lock};

/// Who writes messages about landings.
const SENDER: &str = weald_core::name::WEALD;

/// How much of a log a message shows.
const LOG_TAIL: usize = 2000;

impl Landings<'_> {
    /// After a landing: the vault knows the new tip, the task is done, the tree goes as configured.
    pub(crate) fn settle_landed(&self, landing: &Landing) -> Result<(), LandError> {
        if let Some(tip) = &landing.new_tip {
            self.trees.vault().pin_made(tip, &self.trees.workshop())?;
        }
        step("land.recorded");
        self.tell_gitlinks(landing);
        if let Some(of) = landing.reverts {
            return self.settle_revert(landing, of);
        }
        self.tell_parent(landing)?;
        let cleanup = self.clean_up(landing)?;
        // A process that is killed in the check leaves it to the next one.
        self.check_landed(landing)?;
        self.trees
            .engine
            .change(self.trees.actor(), Durability::Power, |tx| {
                self.step_landing(tx, landing.id, LandingInput::CleanedUp(cleanup))
            })?;
        Ok(())
    }

    fn clean_up(&self, landing: &Landing) -> Result<Cleanup, LandError> {
        let task = self.finish_task(landing)?;
        let tree = self
            .trees
            .engine
            .look(|tx| tx.tree_by_id(landing.tree_id))?;
        let kept = |why: Option<String>| Cleanup {
            directory: "kept".to_owned(),
            branch: "kept".to_owned(),
            record: "kept".to_owned(),
            task: task.clone(),
            why,
            ignored: 0,
            restore: None,
        };
        if landing.interim {
            return Ok(kept(None));
        }
        if let Err(LandError::Refused(refusal)) = self.require_claim(landing) {
            // It is the tree of whoever has the task now.
            return Ok(kept(Some(refusal.to_string())));
        }
        let Some(tree) = tree.filter(Tree::is_live) else {
            return Ok(Cleanup {
                directory: "absent".to_owned(),
                branch: "absent".to_owned(),
                record: "removed".to_owned(),
                ..kept(None)
            });
        };
        let tree = match (landing.status, tree.status) {
            (LandingStatus::Landed, TreeStatus::Active | TreeStatus::Kept) => {
                self.trees
                    .decide(&tree, Durability::Process, TreeInput::Landed)?
            }
            _ => tree,
        };
        let has_nothing = landing.status == LandingStatus::NothingToLand;
        let is_unused = has_nothing
            && (landing.head == tree.base.commit
                || self.trees.cancels_out(&tree, &landing.head)?);
        if is_unused && landing.by_agent && task != "completed" {
            // Its agent did nothing yet, and somebody may go on in it.
            return Ok(kept(Some("its commits change nothing".to_owned())));
        }
        let tree = match is_unused || task == "completed" {
            true => self.open_task_lock(tree)?,
            false => tree,
        };
        let stays =
            self.trees.config.landing_after == AfterLanding::Keep && tree.scratch_for.is_none();
        if landing.keep || tree.adopted || (stays && !is_unused) {
            return Ok(kept(None));
        }
        if has_nothing && !is_unused && !self.is_in_target(landing)? {
            let target = &landing.target;
            let why = format!("it landed before, and {target} has different content now");
            return Ok(kept(Some(why)));
        }
        let request = RemoveRequest {
            empty_head: is_unused.then(|| landing.head.clone()),
            ..RemoveRequest::default()
        };
        match self.trees.remove(Some(tree.name.as_str()), &request) {
            Ok(removed) => Ok(Cleanup {
                directory: removed.outcome.to_owned(),
                branch: branch_word(removed.branch).to_owned(),
                record: "removed".to_owned(),
                task,
                why: None,
                ignored: removed.ignored,
                restore: removed.restore,
            }),
            Err(error) => Ok(kept(Some(error.to_string()))),
        }
    }

    /// The lock that a profile puts on the worktree of a task is for the time of the work.
    fn open_task_lock(&self, tree: Tree) -> Result<Tree, LandError> {
        if !has_task_lock(&tree) {
            return Ok(tree);
        }
        let tree = self
            .trees
            .engine
            .change(self.trees.actor(), Durability::Process, |tx| {
                let (tree, change) = decided(tx, &tree, TreeInput::Unlock)?;
                // It follows from the landing: nobody asked for it, and nobody takes it back by itself.
                let change = change.part_of(Some(tx.last_seq()?));
                tx.record(self.trees.actor(), change)?;
                Ok::<_, LandError>(tree)
            })?;
        self.trees.show_lock(&tree)?;
        Ok(tree)
    }

    /// Whether merging a landing's head would change nothing.
    fn is_in_target(&self, landing: &Landing) -> Result<bool, LandError> {
        let tip = self.landing_tip(&landing.target)?;
        self.trees
            .vault()
            .require(&self.trees.main_refs()?, &[&tip])?;
        if self.trees.contains(&tip, &landing.head)? {
            return Ok(true);
        }
        let request = MergeRequest {
            ours: &tip,
            theirs: &landing.head,
            base: None,
            attributes: &tip,
        };
        let vault = self.trees.vault();
        let tree = tree_of(vault.path(), &tip)?;
        Ok(merge_trees(vault.path(), request)? == Merged::Clean { tree })
    }

    /// Completes the task of a landing; says what became of it.
    fn finish_task(&self, landing: &Landing) -> Result<String, LandError> {
        let Some(id) = &landing.task else {
            return Ok("none".to_owned());
        };
        let Some(task) = self.trees.engine.look(|tx| tx.task(id))? else {
            return Ok("none".to_owned());
        };
        if task.status == TaskStatus::Completed {
            self.report_late(&task, landing)?;
            return Ok("completed".to_owned());
        }
        // Work that was done and only had to land is on its target by now.
        let parked = task.parked.as_deref();
        let waited = parked == Some(to_land_again(&landing.target).as_str());
        let has_nothing = landing.status == LandingStatus::NothingToLand;
        if landing.interim || (has_nothing && !waited) {
            return Ok("kept".to_owned());
        }
        let report = match &landing.report {
            Some(words) => Some(words.clone()),
            None => self.reported(landing, id)?,
        };
        match self.complete_landed(id, landing.task_token, report) {
            Ok(()) => Ok("completed".to_owned()),
            Err(error) => {
                self.trees
                    .engine
                    .notice(format!("task {id} stays {}: {error}", task.status));
                Ok("kept".to_owned())
            }
        }
    }

    /// A report that comes with the landing of a completed task reaches the task.
    fn report_late(&self, task: &Task, landing: &Landing) -> Result<(), LandError> {
        if landing.report.is_none() || landing.report == task.report {
            return Ok(());
        }
        let edit = TaskEdit {
            report: landing.report.clone(),
            ..TaskEdit::default()
        };
        let input = TaskInput::Edit(Box::new(edit));
        if let Err(error) = self
            .trees
            .engine
            .move_task(self.trees.actor(), &task.id, input)
        {
            let id = &task.id;
            self.trees.engine.notice(format!(
                "the report could not be saved on task {id}: {error}"
            ));
        }
        Ok(())
    }

    /// What the newest agent in a landing's tree that said what it did said.
    fn reported(&self, landing: &Landing, task: &TaskId) -> Result<Option<String>, LandError> {
        let agents = self.trees.engine.look(|tx| {
            tx.agents(&AgentFilter {
                open: false,
                task: Some(task.clone()),
            })
        })?;
        let here = agents
            .iter()
            .rev()
            .filter(|agent| agent.tree_id == Some(landing.tree_id));
        let mut words = here.filter_map(|agent| agent.report.as_ref());
        let words = words.find(|report| report.success && !report.report.trim().is_empty());
        Ok(words.map(|report| report.report.trim().to_owned()))
    }

    /// Completes a task whose work landed. What landed is still its work if its claim was given back meanwhile, if its agent
    /// had failed, or if it waited for a person, as long as nobody has claimed it since.
    fn complete_landed(
        &self,
        id: &TaskId,
        token: Option<Token>,
        report: Option<String>,
    ) -> Result<(), TaskError> {
        self.trees
            .engine
            .change(self.trees.actor(), Durability::Power, |tx| {
                let task = require_task(tx, id)?;
                let is_own = token == Some(task.token) && task.lease.is_none();
                let complete = TaskInput::Complete {
                    token: token.filter(|_| !is_own),
                    report,
                };
                let is_free = task.lease.is_none() && token.is_none_or(|token| token == task.token);
                let is_closed = matches!(task.status, TaskStatus::Blocked | TaskStatus::Failed);
                let reopen = is_free && is_closed;
                let opening = reopen.then_some(TaskInput::Reopen);
                move_started(tx, self.trees.actor(), task, opening, complete)
            })
    }

    /// After a landing that did not happen.
    pub(crate) fn settle_unlanded(&self, landing: &Landing) -> Result<(), LandError> {
        match landing.status {
            LandingStatus::NothingToLand => {
                let cleanup = self.clean_up(landing)?;
                self.trees
                    .engine
                    .change(self.trees.actor(), Durability::Power, |tx| {
                        self.step_landing(tx, landing.id, LandingInput::CleanedUp(cleanup))
                    })?;
                Ok(())
            }
            LandingStatus::Conflict => {
                self.tell_parent(landing)?;
                self.tell_owner(landing, &conflict_text(landing))
            }
            LandingStatus::Red => self.tell_owner(landing, &red_text(landing)),
            LandingStatus::Refused => self.tell_parent(landing),
            _ => Ok(()),
        }
    }

    /// What a landing that did not happen means for its task, in the step that records its end. A conflict needs a merge.
    /// A task that was completed is not done after all: it waits, and so does everything that depends on it.
    pub(crate) fn unland_task(
        &self,
        tx: &mut dyn Write,
        landing: &Landing,
    ) -> Result<(), LandError> {
        let task = match &landing.task {
            Some(id) if !landing.interim && landing.reverts.is_none() => tx.task(id)?,
            _ => None,
        };
        let Some(task) = task else {
            return Ok(());
        };
        let is_completed = task.status == TaskStatus::Completed;
        let input = match landing.status {
            LandingStatus::Conflict if task.status != TaskStatus::NeedsMerge => {
                TaskInput::NeedMerge
            }
            LandingStatus::Red if is_completed => TaskInput::Park {
                token: None,
                reason: format!("its tests failed (landing {})", landing.id),
            },
            _ => return Ok(()),
        };
        let holder = task.lease.as_ref().map(|lease| lease.token);
        if holder.is_some() && (holder != landing.task_token || landing.supervised) {
            // Somebody works on it, and is told: the claim is not taken away for that.
            return Ok(());
        }
        let (id, status) = (task.id.clone(), task.status);
        let opening = is_completed.then_some(TaskInput::Reopen);
        match move_started(tx, self.trees.actor(), task, opening, input) {
            Err(TaskError::Store(error)) => Err(error.into()),
            Err(error) => {
                let notice = format!("task {id} stays {status}: {error}");
                self.trees.engine.notice(notice);
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Tells whoever owns the work, if that is somebody else.
    pub(crate) fn tell_owner(&self, landing: &Landing, text: &str) -> Result<(), LandError> {
        if landing.supervised {
            // The agent has ended; the one that continues finds it in its prompt.
            return Ok(());
        }
        let task = match &landing.task {
            Some(id) => self.trees.engine.look(|tx| tx.task(id))?,
            None => None,
        };
        let owner = task
            .and_then(|task| task.owner)
            .or(landing.queued_by.clone());
        let (Some(to), Ok(from)) = (owner, SENDER.parse::<SessionName>()) else {
            return Ok(());
        };
        let draft = Draft {
            from,
            to,
            kind: MessageType::Message,
            priority: Urgency::Steer,
            text: text.to_owned(),
            task: landing.task.clone(),
        };
        if let Err(error) = self.trees.engine.send(draft) {
            self.trees
                .engine
                .notice(format!("could not notify the owner: {error}"));
        }
        Ok(())
    }

    /// A new task, for what has to be done after a landing.
    pub(crate) fn follow_up(&self, subject: String, after: &TaskId) -> Result<(), LandError> {
        let new = weald_control::tasks::NewTask {
            subject,
            description: format!("Comes from task {after}."),
            ..weald_control::tasks::NewTask::default()
        };
        if let Err(error) = self.trees.engine.add_task(self.trees.actor(), new) {
            self.trees
                .engine
                .notice(format!("no follow-up task: {error}"));
        }
        Ok(())
    }
}

/// Moves a task in one step, so that a kill leaves it as it was or as it should be; one that nobody started is started
/// first.
pub(super) fn move_started(
    tx: &mut dyn Write,
    actor: Option<&SessionName>,
    mut task: Task,
    opening: Option<TaskInput>,
    input: TaskInput,
) -> Result<(), TaskError> {
    let is_open = opening.is_some() || task.status == TaskStatus::Pending;
    let start = is_open.then(|| TaskInput::Start {
        owner: task.owner.clone(),
    });
    for step in opening.into_iter().chain(start).chain([input]) {
        task = move_in(tx, actor, &task, step)?;
    }
    Ok(())
}

fn branch_word(outcome: BranchOutcome) -> &'static str {
    match outcome {
        BranchOutcome::Deleted => "deleted",
        BranchOutcome::KeptUnmerged => "kept_unmerged",
        BranchOutcome::KeptByPolicy => "kept_by_policy",
        BranchOutcome::Absent => "absent",
    }
}

fn conflict_text(landing: &Landing) -> String {
    let (tree, target) = (&landing.tree, &landing.target);
    format!(
        "{tree} conflicts with {target} in {}. Merge {target} in, resolve, then land again: weald sync {tree}; weald land {tree}",
        landing.conflicts.join(", ")
    )
}

fn red_text(landing: &Landing) -> String {
    let log = landing.log.as_deref();
    let text = log
        .and_then(|path| std::fs::read(path).ok())
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .unwrap_or_default();
    let start = text
        .char_indices()
        .rev()
        .nth(LOG_TAIL)
        .map_or(0, |(at, _)| at);
    format!(
        "the tests failed for {} on {} (landing {}; all of the output: weald queue log {}):\n{}",
        landing.tree,
        landing.target,
        landing.id,
        landing.id,
        &text[start..]
    )
}
