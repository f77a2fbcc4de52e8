//! The board: everything at a glance, from one snapshot. Nothing is looked into and nothing is merged for it.

use std::collections::BTreeMap;
use std::fs;

use serde::{Deserialize, Serialize};
use weald_core::TimeZone;
use weald_core::agent::Usage;
use weald_core::id::LandingId;
use weald_core::kept_change::KeptChange;
use weald_core::landed::has_unlanded;
use weald_core::landing::{Landing, LandingStatus};
use weald_core::message::{Message, MessageType};
use weald_core::name::{SessionName, TreeName};
use weald_core::needs::{Need, Stuck, needs, of_kept_change, of_missing, of_unlanded, of_unsigned};
use weald_core::queue::QueuePause;
use weald_core::session::ProcessState;
use weald_core::store::{MessageFilter, Read, StoreError, TaskClass, TaskFilter, TaskOrder};
use weald_core::task::{Task, TaskStatus};
use weald_core::tree::Tree;
use weald_git::Git;

use crate::agents::{AgentQuery, AgentView, RecordError};
use crate::engine::Engine;
use crate::place::Place;
use crate::refusals::{allowing, refusals_told};
use crate::sessions::SessionView;
use crate::stashes::stash_entries;

/// How many of the tasks that are ready the board names.
const NAMED: u64 = 8;

/// How many landings are looked at for their signatures.
const NEWEST: u64 = 20;

/// How many waiting tasks are looked at for what they wait for.
const WAITING: u64 = 200;

/// What a person sees first.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Board {
    /// How many tasks have each status; statuses without any are left out.
    pub counts: BTreeMap<TaskStatus, u64>,
    /// How many are ready.
    pub ready_count: u64,
    /// The next ones to claim.
    pub ready: Vec<Task>,
    /// What is being worked on: all of it.
    pub in_progress: Vec<Task>,
    /// Trees that are there or should be.
    pub trees: Vec<Tree>,
    /// Agents that are not over.
    pub agents: Vec<AgentView>,
    /// What waits to land, in order.
    pub queue: Vec<Landing>,
    /// Set while nothing lands.
    pub queue_paused: Option<QueuePause>,
    /// Work that did not merge when it was last tried.
    pub conflicts: Vec<KnownConflict>,
    /// What needs a person.
    pub needs: Vec<Need>,
    /// Who has not said goodbye.
    pub sessions: Vec<SessionView>,
    /// What agents used today, in the time zone of this machine, if they used anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_today: Option<Usage>,
}

/// Work that did not merge when it was last tried.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KnownConflict {
    pub tree: TreeName,
    pub target: String,
    pub paths: Vec<String>,
    /// Which landing found out.
    pub landing: LandingId,
}

/// Hosts that an agent at work was kept from, and that can be allowed.
fn refused(view: &AgentView) -> Option<Need> {
    Some(Need {
        kind: "refused".to_owned(),
        about: view.agent.id.to_string(),
        what: refusals_told(&view.refused, view.refusals)?,
        command: allowing(&view.refused)?,
    })
}

impl Engine {
    /// Looks at everything, for somebody.
    pub fn board(&self, place: &Place, me: Option<&SessionName>) -> Result<Board, RecordError> {
        let agents = self.agent_list(place, &AgentQuery::default())?;
        let mut board = self.look(|tx| {
            let stuck = stuck_tasks(tx)?;
            let conflicts = stuck
                .iter()
                .filter_map(|(_, landing)| conflict(landing.as_ref()?));
            let pairs: Vec<_> = stuck
                .iter()
                .map(|(task, landing)| Stuck {
                    task,
                    landing: landing.as_ref(),
                })
                .collect();
            let questions = questions_for(tx, me)?;
            Ok::<_, RecordError>(Board {
                counts: counts(tx)?,
                ready_count: tx.count_tasks(&some(TaskClass::Ready))?,
                ready: tx.tasks(&some(TaskClass::Ready))?,
                in_progress: tx.tasks(&all(TaskClass::Status(TaskStatus::InProgress)))?,
                trees: tx.trees()?.into_iter().filter(Tree::is_live).collect(),
                queue: tx.open_landings()?,
                queue_paused: tx.queue()?.paused,
                conflicts: conflicts.collect(),
                needs: needs(&questions, &agents.alerts, &pairs),
                agents: Vec::new(),
                sessions: Vec::new(),
                used_today: None,
            })
        })?;
        board.needs.extend(agents.agents.iter().filter_map(refused));
        board.agents = agents.agents;
        board.needs.extend(self.look(missing_dependencies)?);
        for tree in &mut board.trees {
            // What is proven dead does not run.
            tree.runs
                .retain(|run| self.processes.state(&run.process) != ProcessState::Gone);
        }
        board.needs.extend(self.unlanded(place, &board.trees)?);
        board.needs.extend(self.kept_changes(place)?);
        let newest = self.look(|tx| tx.newest_landings(NEWEST))?;
        board.needs.extend(of_unsigned(&newest));
        let open = self
            .sessions()?
            .into_iter()
            .filter(|view| view.session.ended_at.is_none());
        board.sessions = open.collect();
        let today = self.used_today(&TimeZone::system())?;
        board.used_today = Some(today).filter(|used| used.tokens() > 0);
        Ok(board)
    }
}

impl Engine {
    /// Completed tasks whose work is not on the target.
    fn unlanded(&self, place: &Place, trees: &[Tree]) -> Result<Vec<Need>, StoreError> {
        // Most trees hold nothing that was imported, and cost nothing here.
        let has_work = |tree: &&Tree| tree.task.is_some() && tree.head.is_some();
        let found = self.look(|tx| {
            let mut found = Vec::new();
            for tree in trees.iter().filter(has_work) {
                let Some(id) = &tree.task else { continue };
                let task = tx.task(id)?;
                let is_done = task.is_some_and(|task| task.status == TaskStatus::Completed);
                if is_done && has_unlanded(tree, &tx.landings_of(&tree.name)?) {
                    found.push((id, tree));
                }
            }
            Ok::<_, StoreError>(found)
        })?;
        let missing = found
            .into_iter()
            .filter(|(_, tree)| !is_merged(place, tree));
        Ok(missing.map(|(id, tree)| of_unlanded(id, tree)).collect())
    }

    /// Changes of the user's that landings took out of a checkout, until they are out of the stash or deleted.
    fn kept_changes(&self, place: &Place) -> Result<Vec<Need>, StoreError> {
        let entries = stash_entries(place.repository()).unwrap_or_else(|error| {
            self.notice(format!("the stash can't be read: {error}"));
            Vec::new()
        });
        let mut needs = Vec::new();
        for entry in entries {
            let Some(id) = entry.landing else { continue };
            let landing = self.look(|tx| tx.landing(id))?;
            let known = landing.iter().flat_map(|landing| &landing.kept_changes);
            let known = known
                .into_iter()
                .find(|known| known.commit.as_ref() == Some(&entry.commit));
            let (checkout, why) = match (known, &landing) {
                (Some(known), _) => (known.checkout.clone(), known.why.as_str()),
                // It may be put back in a moment.
                (None, Some(landing)) if landing.status.is_open() => continue,
                (None, _) => (place.root(), "the landing did not put them back"),
            };
            let kept = KeptChange::stash(checkout, &entry.name, &entry.commit, why);
            needs.push(of_kept_change(id, &kept));
        }
        Ok(needs.into_iter().chain(rescued(place)).collect())
    }
}

/// Whether somebody brought a tree's commits to the target by hand.
fn is_merged(place: &Place, tree: &Tree) -> bool {
    let head = tree.head.as_deref().unwrap_or_default();
    let target = format!("refs/heads/{}", tree.target);
    let asked = Git::new(place.repository().common_dir(), "merge-base")
        .args(["--is-ancestor", head, &target])
        .output();
    asked.is_ok_and(|answer| answer.status.success())
}

/// Files that were written while a landing replaced them; somebody deletes the folder when they are not wanted any more.
fn rescued(place: &Place) -> Vec<Need> {
    let folder = place.private().join("rescued");
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let of = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let path = entry.path().display().to_string();
        Some(Need {
            kind: "kept_changes".to_owned(),
            about: name
                .strip_prefix("landing-")
                .map(|id| format!("landing {id}"))?,
            what: "files that changed while the landing replaced them are kept; delete the folder once you have them".to_owned(),
            command: format!("ls {path}"),
        })
    };
    entries.filter_map(of).collect()
}

fn some(class: TaskClass) -> TaskFilter {
    TaskFilter {
        classes: vec![class],
        order: TaskOrder::Claim,
        limit: Some(NAMED),
        ..TaskFilter::default()
    }
}

fn all(class: TaskClass) -> TaskFilter {
    TaskFilter {
        limit: None,
        ..some(class)
    }
}

fn counts(tx: &dyn Read) -> Result<BTreeMap<TaskStatus, u64>, StoreError> {
    let mut counts = BTreeMap::new();
    for status in TaskStatus::ALL {
        match tx.count_tasks(&some(TaskClass::Status(status)))? {
            0 => {}
            count => drop(counts.insert(status, count)),
        }
    }
    Ok(counts)
}

/// Tasks that somebody may have to decide on, each with the newest landing from its tree.
fn stuck_tasks(tx: &dyn Read) -> Result<Vec<(Task, Option<Landing>)>, StoreError> {
    let mut stuck = Vec::new();
    for status in [
        TaskStatus::NeedsMerge,
        TaskStatus::InProgress,
        TaskStatus::Failed,
        TaskStatus::Blocked,
    ] {
        let tasks = tx.tasks(&all(TaskClass::Status(status)))?.into_iter();
        let waits = |task: &Task| status != TaskStatus::InProgress || task.parked.is_some();
        for task in tasks.filter(waits) {
            let landing = match &task.worktree {
                Some(tree) => tx.landings_of(tree)?.pop(),
                None => None,
            };
            stuck.push((task, landing));
        }
    }
    Ok(stuck)
}

/// Tasks that wait for one that does not exist, of those that would be claimed first.
fn missing_dependencies(tx: &dyn Read) -> Result<Vec<Need>, StoreError> {
    let waiting = TaskFilter {
        limit: Some(WAITING),
        ..some(TaskClass::Waiting)
    };
    let mut needs = Vec::new();
    for task in tx.tasks(&waiting)? {
        for id in &task.blocked_by {
            if tx.task(id)?.is_none() {
                needs.push(of_missing(&task.id, id));
            }
        }
    }
    Ok(needs)
}

fn conflict(landing: &Landing) -> Option<KnownConflict> {
    (landing.status == LandingStatus::Conflict).then(|| KnownConflict {
        tree: landing.tree.clone(),
        target: landing.target.clone(),
        paths: landing.conflicts.clone(),
        landing: landing.id,
    })
}

/// Questions and plans that wait for somebody.
fn questions_for(tx: &dyn Read, me: Option<&SessionName>) -> Result<Vec<Message>, StoreError> {
    let Some(me) = me else {
        return Ok(Vec::new());
    };
    let pending = tx.messages(&MessageFilter {
        to: Some(me.clone()),
        pending: true,
        ..MessageFilter::default()
    })?;
    let asks =
        |message: &Message| matches!(message.kind, MessageType::Question | MessageType::Plan);
    Ok(pending.into_iter().filter(asks).collect())
}
