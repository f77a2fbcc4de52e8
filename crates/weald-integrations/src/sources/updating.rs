//! Updates a tracker with what became of its tasks, from the log.
//!
//! Up to which event that was done is in a place of its own (`places`), so it happens after the commit, once, by whichever
//! process comes next. One process updates at a time, and nobody waits for it: another process that finds it at work leaves, and it looks
//! again before it ends. What was reported, or failed, is recorded; a failure is not tried again by itself.
//!
//! Not where a task changes: there are a dozen such places, some hold leases, and a process may end right after its
//! commit.

use std::path::Path;
use std::time::{Duration, Instant};

use weald_core::event::{Change, Event, EventKind};
use weald_core::id::{Seq, TaskId};
use weald_core::landed::has_unlanded;
use weald_core::source::{Tracker, TrackerUpdate, TrackerUpdates, is_owed, source_of};
use weald_core::store::{Durability, EventFilter, StoreError};
use weald_core::task::{Task, TaskStatus};

use super::{Source, SourceError, places, process};
use weald_control::engine::Engine;
use weald_control::tree_records::called;

const BATCH: u64 = 1_000;

/// How far back is looked for the landing of a task.
const STORY: u64 = 100;

/// How long one process updates; what is left is reported after the next change.
const PATIENCE: Duration = Duration::from_secs(600);

/// How many failures are shown one by one.
const SHOWN: usize = 3;

/// Why nothing more was reported.
#[derive(Debug, thiserror::Error)]
pub enum UpdateError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The place in the log could not be read or written down.
    #[error("its place in the log: {0}")]
    Place(#[from] std::io::Error),
}

/// Begins to follow the log for a tracker that nothing is known of: what was before is not reported.
pub fn follow_for_tracker(engine: &Engine, private: &Path, tracker: Tracker) {
    let newest = engine.last_seq().map_err(UpdateError::from);
    let begun = newest.and_then(|newest| Ok(places::begin(private, tracker, newest)?));
    if let Err(error) = begun {
        let tracker = tracker.as_str();
        engine.notice(format!("{tracker} is not being updated: {error}"));
    }
}

/// Whether an update failed that nobody was shown yet. Costs one small file.
pub fn has_failed_updates(private: &Path, tracker: Tracker) -> bool {
    places::place(private, tracker).is_some_and(places::Place::has_unshown)
}

impl Source {
    /// Whether something has to be reported to the tracker.
    pub fn wants_update(&self, engine: &Engine, private: &Path) -> Result<bool, UpdateError> {
        if !self.updates {
            return Ok(false);
        }
        let Some(place) = places::place(private, self.tracker) else {
            return Ok(false);
        };
        let (updates, newest) = self.pending(engine, place.told)?;
        if updates.is_empty() {
            self.remember(private, newest)?;
        }
        Ok(!updates.is_empty())
    }

    /// Tells the tracker what it does not know yet, unless another process does. What went wrong is recorded, and can be
    /// asked for by [`Source::failed_updates`].
    pub fn update(&self, engine: &Engine, private: &Path) -> Result<(), UpdateError> {
        let deadline = Instant::now() + PATIENCE;
        while self.wants_update(engine, private)? && Instant::now() < deadline {
            let Some(lock) = places::alone(private)? else {
                return Ok(());
            };
            self.send_all(engine, private, deadline)?;
            // What was recorded until now was left to us; only what comes after finds nobody at work.
            drop(lock);
        }
        Ok(())
    }

    fn send_all(
        &self,
        engine: &Engine,
        private: &Path,
        deadline: Instant,
    ) -> Result<(), UpdateError> {
        let Some(place) = places::place(private, self.tracker) else {
            return Ok(());
        };
        let (updates, _) = self.pending(engine, place.told)?;
        for update in updates {
            if Instant::now() >= deadline {
                return Ok(());
            }
            if let Some(failed) = self.send_one(engine, &update)? {
                places::change(private, self.tracker, |place| {
                    if !place.has_unshown() {
                        place.shown = Seq(failed.0 - 1);
                    }
                    place.failed = failed;
                })?;
            }
            self.remember(private, update.seq)?;
        }
        Ok(())
    }

    /// Updates that failed, in words, for the first who asks.
    pub fn failed_updates(
        &self,
        engine: &Engine,
        private: &Path,
    ) -> Result<Vec<String>, UpdateError> {
        let taken = places::change(private, self.tracker, |place| {
            place.shown = place.shown.max(place.failed);
        })?;
        let Some(place) = taken.filter(|place| place.has_unshown()) else {
            return Ok(Vec::new());
        };
        let (mut failures, mut newest) = (Vec::new(), place.shown);
        while newest < place.failed {
            let events = batch(engine, newest)?;
            let Some(last) = events.last() else { break };
            newest = last.seq;
            let is_failure = |event: &Event| event.kind == EventKind::SOURCE_FAILED;
            failures.extend(
                events
                    .into_iter()
                    .filter(|event| event.seq <= place.failed && is_failure(event)),
            );
        }
        let more = failures.len().saturating_sub(SHOWN);
        let told = failures.into_iter().rev().take(SHOWN).rev();
        let mut told: Vec<_> = told.map(|event| self.in_words(event)).collect();
        if more > 0 {
            told.push(format!("{more} more of these: weald events --json"));
        }
        Ok(told)
    }

    fn in_words(&self, failed: Event) -> String {
        let tracker = self.tracker.as_str();
        let task = failed.task.map_or(String::new(), |task| task.to_string());
        let what = failed.note.unwrap_or_default();
        let why = failed.error.unwrap_or_default();
        format!(
            "could not update {tracker} about task {task} ({what}); the task itself is unaffected: {why}"
        )
    }

    /// Tells one thing, and records how that went; gives the event of a failure.
    fn send_one(&self, engine: &Engine, update: &TrackerUpdate) -> Result<Option<Seq>, StoreError> {
        let (task, order) = (&update.task, update.order);
        let words = match self.words(order, task, &update.message) {
            Ok(None) => return Ok(None),
            Ok(Some(words)) => Ok(words),
            Err(error) => Err(error),
        };
        let done = words.and_then(|words| {
            process::run(&words, self).map_err(|error| match &error {
                // Whoever reads this can do it by hand; the others name the command.
                SourceError::NotInstalled { .. } => SourceError::NotRun {
                    command: words.shown.clone(),
                    why: error.to_string(),
                },
                _ => error,
            })
        });
        let kind = match done {
            Ok(_) => EventKind::SOURCE_TOLD,
            Err(_) => EventKind::SOURCE_FAILED,
        };
        let change = Change {
            task: Some(task.clone()),
            note: Some(order.as_str().to_owned()),
            error: done.as_ref().err().map(ToString::to_string),
            ..Change::fact(kind)
        };
        let recorded: Result<Seq, StoreError> =
            engine.change(None, Durability::Process, |tx| tx.record(None, change));
        Ok(Some(recorded?).filter(|_| done.is_err()))
    }

    /// What has to be reported, and the newest event there is.
    fn pending(
        &self,
        engine: &Engine,
        since: Seq,
    ) -> Result<(Vec<TrackerUpdate>, Seq), StoreError> {
        let (mut updates, mut newest) = (TrackerUpdates::default(), since);
        loop {
            let events = batch(engine, newest)?;
            let Some(last) = events.last().map(|event| event.seq) else {
                break;
            };
            for event in &events {
                updates.take(event, self.tracker);
            }
            newest = last;
        }
        // A landing is recorded before its task is done: the place may be between the two.
        for task in updates.unexplained() {
            let mut story = TrackerUpdates::default();
            for event in story_of(engine, &task)? {
                story.take(&event, self.tracker);
            }
            updates.explain(&task, story);
        }
        // The target does not have it yet. Where nothing lands by itself, the end of the task is the end of it.
        for task in updates.unexplained() {
            if self.lands && has_unlanded_work(engine, &task)? {
                updates.hold_back(&task);
            }
        }
        for id in updates.settled() {
            let task = engine.look(|tx| tx.task(&id))?;
            let is_theirs = |task: &Task| source_of(task) == Some(self.tracker.as_str());
            let done = task.filter(|task| task.status == TaskStatus::Completed && is_theirs(task));
            if done.is_some() && is_owed(&story_of(engine, &id)?) {
                updates.close(&id);
            }
        }
        Ok((updates.finish(), newest))
    }

    /// Never back: somebody else may have gone further.
    fn remember(&self, private: &Path, sequence: Seq) -> std::io::Result<()> {
        if places::place(private, self.tracker).is_some_and(|place| place.told >= sequence) {
            return Ok(());
        }
        places::change(private, self.tracker, |place| {
            place.told = place.told.max(sequence);
        })
        .map(drop)
    }
}

/// Whether a tree holds commits for a task that did not land, as far as records say.
fn has_unlanded_work(engine: &Engine, id: &TaskId) -> Result<bool, StoreError> {
    engine.look(|tx| {
        let Some(name) = tx.task(id)?.and_then(|task| task.worktree) else {
            return Ok(false);
        };
        let landings = tx.landings_of(&name)?;
        let tree = called(tx, &name)?;
        Ok(tree.is_some_and(|tree| has_unlanded(&tree, &landings)))
    })
}

fn batch(engine: &Engine, since: Seq) -> Result<Vec<Event>, StoreError> {
    let filter = EventFilter::after(since, BATCH);
    engine.store().read()?.events(&filter)
}

/// The last that happened to a task.
fn story_of(engine: &Engine, task: &TaskId) -> Result<Vec<Event>, StoreError> {
    let filter = EventFilter {
        task: Some(task.clone()),
        limit: Some(STORY),
        ..EventFilter::default()
    };
    engine.store().read()?.events(&filter)
}
