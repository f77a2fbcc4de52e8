//! What is asked to land, and whether a tree is ready for it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use weald_core::id::{LandingId, TaskId, Token};
use weald_core::landing::{Landing, LandingInput, LandingStatus, Strategy};
use weald_core::landing_rules;
use weald_core::store::{Counter, Durability, Write};
use weald_core::tree::{Tree, TreeKind};

use super::LandError;
use super::approval::Submodules;
use super::beginning::Ahead;
use super::candidate::Made;
use super::commit::{CommitScope, Committed};
use super::error::target_gone;
use super::moving::MoveRequest;
use crate::Landings;
use crate::refusal::Refusal;
use weald_trees::Found;

/// What to do with a landing that does not merge.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnConflict {
    #[default]
    Abort,
    /// The conflict is left in the target's checkout for a person.
    Leave,
}

/// What to land, and how.
#[derive(Debug, Clone, Default)]
pub struct LandRequest {
    /// Worktrees by their own names; none: the one that the caller is in.
    pub names: Vec<String>,
    /// How; `None` as configured.
    pub strategy: Option<Strategy>,
    /// Leave the rest in the queue's hands.
    pub no_wait: bool,
    /// The tree stays whatever the configuration says.
    pub keep: bool,
    /// The work goes on after it: the task is not done.
    pub interim: bool,
    /// After a conflict the rest is taken out again.
    pub stop_on_conflict: bool,
    /// What to do with a conflict.
    pub on_conflict: OnConflict,
    /// The token of the claim, for the completion of its task.
    pub token: Option<(TaskId, Token)>,
    /// What to report when its task is completed by it.
    pub report: Option<String>,
    /// Land it though its agents say that it is not ready; that is recorded.
    pub force: bool,
    /// An agent asks, or what it did lands.
    pub by_agent: bool,
    /// The supervisor of an agent asks, and settles the task itself if the work does not land.
    pub supervised: bool,
    /// The message of the commit that lands, instead of one made from its commits and its task.
    pub message: Option<String>,
    /// Commit what is not committed first, with these words.
    pub commit: Option<(CommitScope, String)>,
    /// What a look found just now, if one worktree is named.
    pub found: Option<Found>,
}

impl Landings<'_> {
    /// The trees that are meant, those that others depend on first. Fails before anything is queued.
    pub(crate) fn landing_trees(&self, request: &LandRequest) -> Result<Vec<Tree>, LandError> {
        let strategy = self.strategy(request);
        let names_nothing = !strategy.makes_one_commit() && request.commit.is_none();
        if request.message.is_some() && names_nothing {
            return Err(Refusal::MessageUnused(strategy.as_str()).into());
        }
        let mut found: Vec<Tree> = Vec::new();
        if request.names.is_empty() {
            found.push(self.trees.named(None)?);
        }
        for name in &request.names {
            let tree = self.trees.named(Some(name))?;
            if found.iter().all(|known| known.id != tree.id) {
                found.push(tree);
            }
        }
        for tree in &found {
            self.refuse_entry(tree, request.report.as_deref())?;
        }
        self.warn_of_dependencies(&found)?;
        self.in_order(found)
    }

    /// What a task depends on lands before it.
    fn in_order(&self, trees: Vec<Tree>) -> Result<Vec<Tree>, LandError> {
        let mut blocked: BTreeMap<TaskId, Vec<TaskId>> = BTreeMap::new();
        for id in trees.iter().filter_map(|tree| tree.task.as_ref()) {
            if let Some(task) = self.trees.engine.look(|tx| tx.task(id))? {
                blocked.insert(id.clone(), task.blocked_by);
            }
        }
        let mut waiting = trees;
        let mut ordered: Vec<Tree> = Vec::new();
        while !waiting.is_empty() {
            let waits = |tree: &Tree| {
                let on = tree.task.as_ref().and_then(|id| blocked.get(id));
                on.is_some_and(|on| {
                    waiting.iter().any(|other| {
                        other.id != tree.id && other.task.as_ref().is_some_and(|id| on.contains(id))
                    })
                })
            };
            // Circles are refused where dependencies are made; if there is one, the given order holds.
            let next = waiting.iter().position(|tree| !waits(tree)).unwrap_or(0);
            ordered.push(waiting.remove(next));
        }
        Ok(ordered)
    }

    /// Puts a tree's head into the queue, or records why it can't go there.
    pub(crate) fn enqueue(&self, tree: &Tree, request: &LandRequest) -> Result<Landing, LandError> {
        // Who lost the claim commits nothing of whoever has it now.
        let held = match &request.token {
            Some((task, token)) if tree.task.as_ref() == Some(task) => {
                self.require_newest(task, *token)
            }
            _ => Ok(()),
        };
        let wish = request.commit.as_ref();
        let wish = wish.map(|(scope, message)| (*scope, message.as_str()));
        let committed = held.and_then(|()| self.commit_first(tree, wish, request.found.as_ref()));
        let ready = committed.and_then(|committed| self.ready_head(tree, committed));
        let (tree, ready) = match ready {
            Ok((tree, head)) => (tree, Ok(head)),
            Err(LandError::Refused(refusal)) => (tree.clone(), Err(refusal)),
            Err(error) => return Err(error),
        };
        let (ready, forced) = match (ready, self.unready(&tree, request)?) {
            (Ok(_), Some(refusal)) if !request.force => (Err(Box::new(refusal)), None),
            (ready, refusal) => (ready, refusal.map(|refusal| refusal.to_string())),
        };
        if let Some(why) = &forced {
            self.trees
                .engine
                .notice(format!("landing {} with --force: {why}", tree.name));
        }
        let strategy = self.strategy(request);
        let message = request.message.clone();
        let message = message.filter(|_| strategy.makes_one_commit());
        let waiter = match request.no_wait {
            true => None,
            false => self.trees.me(),
        };
        self.trees
            .engine
            .change(self.trees.actor(), Durability::Process, |tx| {
                if let Ok(head) = &ready
                    && let Some(same) = waiting_for(tx, &tree, head, strategy)?
                {
                    // It waits already: asking twice lands it once, for both. It lands under the newer claim: who asked first
                    // may have died, and somebody goes on.
                    let task_token = same.task_token.max(self.claim_of(tx, &tree, request)?);
                    let same = Landing {
                        waiter,
                        task_token,
                        message: message.or(same.message),
                        report: request.report.clone().or(same.report),
                        keep: same.keep && request.keep,
                        by_agent: same.by_agent && request.by_agent,
                        supervised: same.supervised && request.supervised,
                        interim: same.interim && request.interim,
                        ..same
                    };
                    tx.record(self.trees.actor(), landing_rules::queue(same.clone()).1)?;
                    return Ok(same);
                }
                let id = LandingId(tx.next_number(Counter::Landing)?);
                let head = match &ready {
                    Ok(head) => head.clone(),
                    Err(_) => tree
                        .head
                        .clone()
                        .unwrap_or_else(|| tree.base.commit.clone()),
                };
                let wanted = Landing {
                    strategy,
                    waiter,
                    message,
                    report: request.report.clone(),
                    keep: request.keep,
                    interim: request.interim,
                    by_agent: request.by_agent,
                    supervised: request.supervised,
                    forced,
                    queued_by: self.trees.actor().cloned(),
                    task_token: self.claim_of(tx, &tree, request)?,
                    ..Landing::new(id, &tree, head, tx.now())
                };
                let (landing, change) = landing_rules::queue(wanted);
                tx.record(self.trees.actor(), change)?;
                match ready {
                    Ok(_) => Ok(landing),
                    Err(refusal) => {
                        self.step_landing(tx, id, LandingInput::Refuse((*refusal).into()))
                    }
                }
            })
    }

    /// The claim that a landing is made under: the one that was given, or the caller's own.
    fn claim_of(
        &self,
        tx: &dyn Write,
        tree: &Tree,
        request: &LandRequest,
    ) -> Result<Option<Token>, LandError> {
        let Some(id) = &tree.task else {
            return Ok(None);
        };
        if let Some((_, token)) = request.token.as_ref().filter(|(task, _)| task == id) {
            return Ok(Some(*token));
        }
        let lease = tx.task(id)?.and_then(|task| task.lease);
        let own = lease.filter(|lease| Some(&lease.session) == self.trees.actor());
        Ok(own.map(|lease| lease.token))
    }

    /// Refuses a landing under a claim that somebody took over since.
    pub(super) fn require_claim(&self, landing: &Landing) -> Result<(), LandError> {
        match (&landing.task, landing.task_token) {
            (Some(id), Some(token)) => self.require_newest(id, token),
            _ => Ok(()),
        }
    }

    fn require_newest(&self, id: &TaskId, token: Token) -> Result<(), LandError> {
        let newest = self
            .trees
            .engine
            .look(|tx| tx.task(id))?
            .map(|task| task.token);
        match newest {
            Some(newest) if newest != token => {
                Err(Refusal::StaleToken(id.clone(), token, newest).into())
            }
            _ => Ok(()),
        }
    }

    /// The head that would land: imported, and all of the tree's own work but what a commit left out.
    pub(crate) fn ready_head(
        &self,
        tree: &Tree,
        committed: Committed,
    ) -> Result<(Tree, String), LandError> {
        let (tree, look) = match committed.found {
            Some(found) => found,
            None => {
                let site = self.trees.site(tree)?;
                self.trees.import_and_follow(tree, &site)?
            }
        };
        self.trees.remember_changed(&tree, &look);
        if let Some(operation) = look.operation {
            return Err(Refusal::TreeInOperation(tree.name, operation).into());
        }
        let changes = look.staged + look.unstaged + look.conflicted;
        if changes > 0 {
            return Err(Refusal::TreeDirty(tree.name, changes).into());
        }
        if tree.diverged {
            return Err(Refusal::TreeDiverged(tree.name, tree.branch).into());
        }
        let tree = self.trees.with_target(tree).map_err(target_gone)?;
        self.trees.require_local_target(&tree.target)?;
        let head = look
            .head
            .ok_or_else(|| Refusal::NoCommit(tree.name.clone()))?;
        if tree.kind == TreeKind::Linked {
            self.trees
                .vault()
                .require(&self.trees.main_refs()?, &[&head])?;
        }
        if look.untracked > 0 {
            self.mind_untracked(&tree, &head, look.untracked, &committed.left_out)?;
        }
        Ok((tree, head))
    }

    /// Files that git does not know don't land. Where there is nothing else, they were meant.
    fn mind_untracked(
        &self,
        tree: &Tree,
        head: &str,
        count: u64,
        left_out: &[String],
    ) -> Result<(), LandError> {
        let name = &tree.name;
        if self.trees.landed(tree, head)?.is_some() {
            return Err(Refusal::OnlyUntracked(name.clone(), count, left_out.to_vec()).into());
        }
        if !left_out.is_empty() {
            // That was said by the commit.
            return Ok(());
        }
        let files = if count == 1 { "file" } else { "files" };
        self.trees.engine.notice(format!(
            "left out {count} untracked {files} in {name}; to land them, too: weald land {name} --commit=all -m MESSAGE"
        ));
        Ok(())
    }

    /// What would happen; nothing is recorded and no gate runs.
    pub fn dry_run(&self, request: &LandRequest) -> Result<Vec<Landing>, LandError> {
        let mut found = Vec::new();
        let mut ahead: Vec<Ahead> = Vec::new();
        let mut tips: BTreeMap<String, String> = BTreeMap::new();
        for tree in self.landing_trees(request)? {
            let now = self.trees.now()?;
            let tip = tips.get(&tree.target).cloned();
            let mut landing = Landing {
                strategy: self.strategy(request),
                ..Landing::new(LandingId(0), &tree, String::new(), now)
            };
            let input = match self.would_land(&mut landing, tree, tip, &ahead, request) {
                Ok(input) => input,
                Err(LandError::Refused(refusal)) => LandingInput::Refuse((*refusal).into()),
                Err(error) => return Err(error),
            };
            if let LandingInput::Test { new_tip, .. } = &input {
                ahead.push(Ahead {
                    tree: landing.tree_id,
                    head: landing.head.clone(),
                    tip: new_tip.clone(),
                });
                tips.insert(landing.target.clone(), new_tip.clone());
            }
            found.push(landing_rules::decide(&landing, input, now)?.0);
        }
        Ok(found)
    }

    fn would_land(
        &self,
        landing: &mut Landing,
        tree: Tree,
        tip: Option<String>,
        ahead: &[Ahead],
        request: &LandRequest,
    ) -> Result<LandingInput, LandError> {
        let (tree, head) = self.ready_head(&tree, Committed::default())?;
        if let Some(refusal) = self.unready(&tree, request)?.filter(|_| !request.force) {
            return Err(refusal.into());
        }
        landing.head = head;
        let old_tip = self.landing_tip(&tree.target)?;
        let tip = tip.unwrap_or_else(|| old_tip.clone());
        self.trees
            .vault()
            .require(&self.trees.main_refs()?, &[&old_tip])?;
        let candidate = match self.make_candidate(landing, &tree, &tip, ahead)? {
            Made::Candidate(candidate) => candidate,
            Made::Nothing => return Ok(LandingInput::NothingToLand),
            Made::Conflict(paths) => return Ok(LandingInput::Conflict { paths }),
        };
        let (onto, commit) = (&candidate.onto, &candidate.commit);
        self.require_approval(&tree, &landing.head, onto, commit, Submodules::MayCome)?;
        self.gate_command()?;
        self.precheck_move(&MoveRequest {
            landing: landing.id,
            target: &tree.target,
            old: &old_tip,
            new: &candidate.commit,
            fence: "",
        })?;
        Ok(LandingInput::Test {
            old_tip,
            onto: candidate.onto,
            new_tip: candidate.commit,
        })
    }

    fn strategy(&self, request: &LandRequest) -> Strategy {
        request
            .strategy
            .unwrap_or(self.trees.config.landing_strategy)
    }

    /// What is queued again under a new number: the tree's head of now.
    pub fn retry_landing(&self, id: LandingId) -> Result<Landing, LandError> {
        let old = self.landing(id)?;
        if old.status.is_open() {
            return Err(Refusal::LandingOpen(id).into());
        }
        if old.status == LandingStatus::Landed {
            return Err(Refusal::LandedAlready(id, old.tree).into());
        }
        let tree = self.trees.named(Some(old.tree.as_str()))?;
        let request = LandRequest {
            strategy: Some(old.strategy),
            keep: old.keep,
            message: old.message,
            ..LandRequest::default()
        };
        self.enqueue(&tree, &request)
    }
}

/// The landing of the same head that waits in the queue.
fn waiting_for(
    tx: &dyn Write,
    tree: &Tree,
    head: &str,
    strategy: Strategy,
) -> Result<Option<Landing>, LandError> {
    let open = tx.open_landings()?.into_iter();
    let mut same = open.filter(|one| {
        one.status == LandingStatus::Queued
            && one.reverts.is_none()
            && (one.tree_id, one.head.as_str(), one.strategy) == (tree.id, head, strategy)
    });
    Ok(same.next())
}
