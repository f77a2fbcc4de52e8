//! Making the registry again from what is left: the old database, the journal, git, and the trees themselves.
//!
//! Everything is written into a new store beside the old one. Nothing outside of it is touched: what git and the disk
//! need beyond that, `doctor` does afterwards, by the records that came back.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use weald_core::event::{After, Change, Event, EventKind};
use weald_core::id::{Seq, TreeId};
use weald_core::rebuild::{Pieced, fenced_queue, fenced_task, piece_together, recovered_record};
use weald_core::session::ProcessIdentity;
use weald_core::store::{
    AgentFilter, Counter, Durability, MessageFilter, Read, SessionSet, Store, StoreError,
    Succession, TaskFilter, Write,
};
use weald_core::tree::{Tree, TreeStatus};

use crate::Upkeep;
use weald_control::events::{JournalLine, read_journal};
use weald_control::journal::JOURNAL_FILE;
use weald_control::steps::step;
use weald_landing::LandError;

/// Where no log tells what was given out, counting goes on this far above what can be seen.
const UNKNOWN: u64 = 1_000;

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

/// One kind of record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compared {
    pub kind: Cow<'static, str>,
    /// How many there are; absent if the database in place can't be read.
    pub present: Option<usize>,
    /// How many there would be.
    pub rebuilt: usize,
    /// How many are not the same.
    pub differ: usize,
}

type Records = Vec<(&'static str, BTreeMap<String, Value>)>;

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

    /// Compares what was made with what is in place.
    fn compare_registries(
        &self,
        told: &mut Rebuilt,
        present: Option<&dyn Store>,
    ) -> Result<(), StoreError> {
        let rebuilt = records(self.trees.engine.store().read()?.as_ref())?;
        // What its log can't explain can't be read either.
        let present = match present.map(|store| records(store.read()?.as_ref())) {
            Some(Ok(records)) => Some(records),
            Some(Err(error)) => {
                told.problem = told.problem.take().or(Some(error.to_string()));
                None
            }
            None => None,
        };
        for (place, (kind, new)) in rebuilt.iter().enumerate() {
            let old = present.as_ref().map(|records| &records[place].1);
            told.records.push(Compared {
                kind: (*kind).into(),
                present: old.map(BTreeMap::len),
                rebuilt: new.len(),
                differ: old.map_or(new.len(), |old| differing(old, new)),
            });
        }
        told.agrees = told.problem.is_none()
            && present.is_some()
            && told.records.iter().all(|records| records.differ == 0);
        Ok(())
    }

    /// Raises every counter above what git and the disk show, and above what `lost` events may have taken.
    fn raise_counters(&self, known: Seq, lost: u64) -> Result<(), LandError> {
        let margin = match known {
            Seq(0) => UNKNOWN,
            _ => lost,
        };
        let seen = [
            (Counter::Tree, self.highest_tree()?),
            (Counter::Task, self.highest_task(known)?),
            (Counter::Landing, self.highest_in("landings")),
            (Counter::Agent, self.highest_in("agents")),
            (Counter::Message, 0),
        ];
        self.trees.engine.change(None, Durability::Process, |tx| {
            for (counter, number) in seen {
                tx.raise(counter, number)?;
                if margin > 0 {
                    // One above whatever is there by now.
                    let next = tx.next_number(counter)?;
                    tx.raise(counter, next - 1 + margin)?;
                }
            }
            Ok(())
        })
    }

    fn highest_tree(&self) -> Result<u64, LandError> {
        let named = self.trees_in_vault()?;
        Ok(named.into_keys().max().unwrap_or(0))
    }

    /// Tasks that landed are named in the target's history. That is asked only where no log knows better.
    fn highest_task(&self, known: Seq) -> Result<u64, LandError> {
        let (Seq(0), Some((_, tip))) = (known, &self.trees.target) else {
            return Ok(0);
        };
        let format = "--format=%(trailers:key=Weald-Task,valueonly)";
        let asked = self
            .trees
            .place
            .repository()
            .git("log")
            .args([format, "--end-of-options", tip])
            .output()?;
        let text = String::from_utf8_lossy(&asked.stdout).into_owned();
        let numbers = text.lines().filter_map(|line| line.trim().parse().ok());
        Ok(numbers
            .filter(|number| *number < 1 << 40)
            .max()
            .unwrap_or(0))
    }

    /// The highest number that a name in one of weald's own folders begins with.
    fn highest_in(&self, folder: &str) -> u64 {
        let entries = fs::read_dir(self.trees.place.private().join(folder));
        let names = entries.into_iter().flatten().flatten();
        let numbers = names.filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let digits: String = name
                .trim_start_matches('a')
                .chars()
                .take_while(char::is_ascii_digit)
                .collect();
            digits.parse::<u64>().ok()
        });
        numbers.max().unwrap_or(0)
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

fn differing(old: &BTreeMap<String, Value>, new: &BTreeMap<String, Value>) -> usize {
    let changed = new
        .iter()
        .filter(|(id, record)| old.get(*id) != Some(record));
    let gone = old.keys().filter(|id| !new.contains_key(*id));
    changed.count() + gone.count()
}

fn records(read: &dyn Read) -> Result<Records, StoreError> {
    let mut sessions = read.sessions(SessionSet::All)?;
    for session in &mut sessions {
        // Heartbeats are no part of the log.
        session.last_seen = session.started_at;
    }
    Ok(vec![
        ("trees", by_id(&read.trees()?, "id")),
        ("tasks", by_id(&read.tasks(&TaskFilter::default())?, "id")),
        ("sessions", by_id(&sessions, "name")),
        (
            "messages",
            by_id(&read.messages(&MessageFilter::default())?, "id"),
        ),
        ("landings", by_id(&read.landings()?, "id")),
        (
            "agents",
            by_id(&read.agents(&AgentFilter::default())?, "id"),
        ),
        ("queue", by_id(&[read.queue()?], "")),
    ])
}

fn by_id(records: &[impl Serialize], id: &str) -> BTreeMap<String, Value> {
    let values = records
        .iter()
        .filter_map(|record| serde_json::to_value(record).ok());
    values
        .map(|record| (record[id].to_string(), record))
        .collect()
}
