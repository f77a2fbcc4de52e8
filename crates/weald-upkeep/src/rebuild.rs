//! Making the registry again from what is left: the old database, the journal, git, and the trees themselves.
//!
//! Everything is written into a new store beside the old one. Nothing outside of it is touched: what git and the disk
//! need beyond that, `doctor` does afterwards, by the records that came back.

mod comparing;
mod counters;

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weald_core::event::{After, Change, Event, EventKind};
use weald_core::id::{Seq, TreeId};
use weald_core::rebuild::{Pieced, fenced_queue, fenced_task, piece_together, recovered_record};
use weald_core::session::ProcessIdentity;
use weald_core::store::{
    AgentFilter, Counter, Durability, Store, StoreError, Succession, TaskFilter, Write,
};
use weald_core::tree::{Tree, TreeStatus};

use crate::Upkeep;
use weald_control::events::{JournalLine, read_journal};
use weald_control::journal::JOURNAL_FILE;
use weald_control::steps::step;
use weald_landing::LandError;

pub use comparing::Compared;

/// The database in place, as far as it can be read.
pub struct Present<'s> {
    /// The store, if nothing is wrong with it.
    pub store: Option<&'s dyn Store>,
    /// Events of its log.
    pub events: Vec<Event>,
    /// What is wrong with it.
    pub problem: Option<String>,
}

/// A tree that no event speaks of.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RecoveredTree {
    pub id: TreeId,
    pub name: String,
    pub path: PathBuf,
    pub status: TreeStatus,
    /// What speaks of it: `registration`, `folder` or `trash`.
    pub found_by: Cow<'static, str>,
}

/// A registry that was made again.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Rebuilt {
    /// What is wrong with the database in place.
    pub problem: Option<String>,
    /// How many events were replayed.
    pub events: u64,
    /// How many have no copy any more.
    pub lost_events: u64,
    /// Lines of the journal that are no events.
    pub torn_lines: u64,
    /// Records that only a journal set aside has.
    pub forked: u64,
    /// The records now and as they would be.
    pub records: Vec<Compared>,
    /// Trees that git or the disk has, and no event.
    pub recovered: Vec<RecoveredTree>,
    /// What a person should know.
    pub notes: Vec<String>,
    /// Who is at work, and must end first.
    pub at_work: Vec<String>,
    /// Whether the database in place says the same.
    pub agrees: bool,
}

impl Upkeep<'_> {
    /// Fills the empty store of this engine.
    pub fn rebuild(&self, present: Present<'_>) -> Result<Rebuilt, LandError> {
        let journals = Journals::read(self.trees.place.private());
        let mut told = Rebuilt {
            problem: present.problem.clone(),
            torn_lines: journals.torn,
            ..Rebuilt::default()
        };
        let mut copies = vec![present.events.clone()];
        copies.extend(journals.copies);
        let pieced = piece_together(copies);
        told.events = pieced.events.len() as u64 - pieced.lost;
        told.lost_events = pieced.lost;
        let known = Seq(pieced.events.len() as u64);
        let lost = pieced.lost;
        let fence = self.landings.fence_token()?;
        let begun = self.trees.engine.change(None, Durability::Power, |tx| {
            Ok::<_, LandError>(replay(tx, pieced, &mut told)?)
        })?;
        step("rebuild.replayed");
        self.raise_counters(known, lost)?;
        told.recovered = self.recover_trees(begun)?;
        self.trees.engine.change(None, Durability::Power, |tx| {
            let tasks = tx.tasks(&TaskFilter::default())?;
            let tasks = tasks.iter().filter_map(|task| fenced_task(task, lost));
            for change in tasks.chain(fenced_queue(&tx.queue()?, fence)) {
                tx.record(None, change.part_of(Some(begun)))?;
            }
            Ok::<_, LandError>(())
        })?;
        step("rebuild.recovered");
        told.at_work = self.at_work()?;
        self.compare_registries(&mut told, present.store)?;
        Ok(told)
    }

    /// Processes that would go on in the old database.
    fn at_work(&self) -> Result<Vec<String>, LandError> {
        let me = self.trees.me();
        let lives = |process: &ProcessIdentity| {
            me.as_ref() != Some(process) && self.trees.may_live(process)
        };
        let (agents, queue, trees) = self.trees.engine.look(|tx| {
            Ok::<_, StoreError>((tx.agents(&AgentFilter::OPEN)?, tx.queue()?, tx.trees()?))
        })?;
        let mut found = Vec::new();
        for agent in &agents {
            let process = agent.supervisor.as_ref();
            if let Some(process) = process.filter(|process| lives(process)) {
                found.push(format!("agent {} (process {})", agent.id, process.pid));
            }
        }
        if let Some(holder) = queue.holder.filter(|holder| lives(&holder.process)) {
            found.push(format!("the queue (process {})", holder.process.pid));
        }
        for tree in &trees {
            let runs = tree.runs.iter().map(|run| &run.process);
            for process in tree.worker.iter().chain(runs).filter(|one| lives(one)) {
                found.push(format!("worktree {} (process {})", tree.name, process.pid));
            }
        }
        Ok(found)
    }
}

/// Puts a new database in the place of the old one; answers where that is kept.
pub fn succeed(new: Box<dyn Succession>) -> Result<Option<PathBuf>, StoreError> {
    step("rebuild.built");
    new.seal()?;
    step("rebuild.sealed");
    let kept = new.set_aside()?;
    step("rebuild.set_aside");
    new.put_in_place()?;
    step("rebuild.in_place");
    Ok(kept)
}

/// Writes the log down again, and behind it what only a fork has. Answers the event that begins what was found.
fn replay(tx: &mut dyn Write, pieced: Pieced, told: &mut Rebuilt) -> Result<Seq, StoreError> {
    for event in pieced.events {
        tx.replay(event)?;
    }
    let begun = tx.record(None, Change::fact(EventKind::REGISTRY_REBUILT))?;
    for image in pieced.forked {
        let Some(image) = fitting(tx, image, told)? else {
            continue;
        };
        for (counter, number) in Counter::seen_in(&image) {
            tx.raise(counter, number)?;
        }
        if let Some(change) = recovered_record(image) {
            tx.record(None, change.part_of(Some(begun)))?;
            told.forked += 1;
        }
    }
    Ok(begun)
}

/// A record of a fork, without what leads nowhere here; nothing if it can't stand beside what is here.
fn fitting(
    tx: &mut dyn Write,
    mut image: After,
    told: &mut Rebuilt,
) -> Result<Option<After>, StoreError> {
    if let Some(tree) = &mut image.tree {
        let holds = |tree: &Tree| !matches!(tree.status, TreeStatus::Removed | TreeStatus::Trashed);
        let same_name = |other: &Tree| other.name == tree.name && other.id != tree.id;
        let taken = tx
            .trees()?
            .iter()
            .any(|other| same_name(other) && holds(other));
        if holds(tree) && taken {
            told.notes.push(format!(
                "worktree {} (number {}) of a journal set aside has a name that another worktree has now",
                tree.name, tree.id
            ));
            return Ok(None);
        }
        if let Some(task) = &tree.task
            && tx.task(task)?.is_none()
        {
            tree.task = None;
        }
    }
    if let Some(message) = &mut image.message
        && let Some(request) = message.reply_to
        && tx.message(request)?.is_none()
    {
        message.reply_to = None;
    }
    Ok(Some(image))
}

/// The journal, and those that were set aside.
struct Journals {
    copies: Vec<Vec<Event>>,
    torn: u64,
}

impl Journals {
    /// Reads all of them; what counts most comes first.
    fn read(private: &Path) -> Self {
        let mut aside: Vec<(u64, PathBuf)> = Vec::new();
        for entry in fs::read_dir(private).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| {
                let rest = name.strip_prefix(JOURNAL_FILE)?;
                rest.strip_prefix('.')?.parse().ok()
            });
            aside.extend(number.map(|number| (number, entry.path())));
        }
        aside.sort_by(|one, other| other.cmp(one));
        let paths = std::iter::once(private.join(JOURNAL_FILE));
        let paths = paths.chain(aside.into_iter().map(|(_, path)| path));
        let mut journals = Self {
            copies: Vec::new(),
            torn: 0,
        };
        for path in paths {
            let copy = journals.copy(&path);
            journals.copies.push(copy);
        }
        journals
    }

    fn copy(&mut self, path: &Path) -> Vec<Event> {
        let mut events = Vec::new();
        // Neither a link nor a FIFO was written by weald.
        let is_file = path.symlink_metadata().is_ok_and(|found| found.is_file());
        let Some(lines) = is_file.then(|| read_journal(path).ok()).flatten() else {
            return events;
        };
        for line in lines.map_while(Result::ok) {
            match line {
                JournalLine::Event(event) => events.extend(event.unwrap()),
                JournalLine::Torn { .. } => self.torn += 1,
            }
        }
        events
    }
}
