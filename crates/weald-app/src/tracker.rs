//! The tracker that tasks come from, as commands meet it: asked for a task that nobody here knows, told by a
//! process of its own after a command that changed something. Never from inside a sandbox: there is no ground there.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::{BadLines, Source, SystemClock, has_failed_updates};
use weald_core::Timestamp;
use weald_core::id::TaskId;
use weald_core::import::{Incoming, Parsed, parse_beads, parse_gh, parse_jsonl};
use weald_core::source::{SOURCE, Tracker};
use weald_store::SqliteStore;

use crate::Failure;
use crate::{Call, Ground};

/// How many issues are asked for because one waits for them.
const MOST: usize = 32;

fn configured(call: &Call<'_>, ground: &Ground) -> Option<Source> {
    let environment = call.environment.for_commands();
    Source::configured(ground.config(), ground.place.root(), environment)
}

/// One that somebody names.
pub fn named(call: &Call<'_>, ground: &Ground, tracker: Tracker) -> Source {
    let environment = call.environment.for_commands();
    Source::of(tracker, ground.config(), ground.place.root(), environment)
}

/// Reads what a tracker prints.
pub fn parse(tracker: Tracker, input: &[u8], now: Timestamp) -> Parsed {
    match tracker {
        Tracker::Beads => parse_beads(input, now),
        Tracker::Gh => parse_gh(input, now),
        Tracker::Command => {
            let mut parsed = parse_jsonl(input, now);
            for incoming in &mut parsed.tasks {
                let source = tracker.as_str().into();
                incoming.task.extra.insert(SOURCE.into(), source);
            }
            parsed
        }
    }
}

/// Starts a process that tells the tracker what happened, if it has to be told. Nobody waits for it.
pub fn start_telling(call: &Call<'_>, ground: &Ground) {
    let Some(source) = configured(call, ground) else {
        return;
    };
    let tracker = source.tracker.as_str();
    match source.wants_update(&ground.engine, ground.place.private()) {
        Ok(false) => {}
        Ok(true) => {
            let words = [call.settings(), vec!["tell-tracker".to_owned()]].concat();
            call.start_behind(&ground.place.root(), &words);
        }
        Err(error) => call.warn(&format!(
            "could not update {tracker} (the next change tries again): {error}"
        )),
    }
}

/// Tells the tracker what it does not know, unless another process does.
pub fn tell(call: &Call<'_>) -> Result<(), Failure> {
    let place = call.place()?;
    let loaded = call.config(&place)?;
    call.require_original(&place)?;
    // Nothing else is looked at: what there is to say of it, somebody has to hear.
    let store = SqliteStore::open(place.private(), Arc::new(SystemClock))?;
    let ground = Ground::of_store(place, loaded, store)?;
    let Some(source) = configured(call, &ground) else {
        return Ok(());
    };
    Ok(source.update(&ground.engine, ground.place.private())?)
}

/// At the end of a command, which has answered already: starts the telling of what it changed, and shows a person what
/// could not be told before.
pub fn at_end(call: &Call<'_>) {
    let shown = call.news.shown();
    let has_failed_updates =
        shown.is_some_and(|(tracker, private)| has_failed_updates(private, tracker));
    if !has_failed_updates && !call.news.has_changes() {
        return;
    }
    let Ok(ground) = call.ground() else { return };
    if has_failed_updates {
        show_untold(call, &ground);
    }
    if call.news.has_changes() {
        start_telling(call, &ground);
    }
}

/// An agent can do nothing about it, and would keep a person from hearing of it.
fn show_untold(call: &Call<'_>, ground: &Ground) {
    if !matches!(call.agent_above(&ground.engine), Ok(None)) {
        return;
    }
    let Some(source) = configured(call, ground) else {
        return;
    };
    let untold = source.failed_updates(&ground.engine, ground.place.private());
    for told in untold.unwrap_or_default() {
        call.warn(&told);
    }
}

/// The task that an id stands for: of weald, or of the tracker, whose issues have numbers of their own.
pub fn known(call: &Call<'_>, ground: &Ground, id: &TaskId) -> TaskId {
    if ground.engine.task(id).is_ok() {
        return id.clone();
    }
    let issue = configured(call, ground).map(|source| source.tracker.task_of(id));
    let issue = issue.filter(|issue| ground.engine.task(issue).is_ok());
    issue.unwrap_or_else(|| id.clone())
}

/// Takes in a task that nobody here knows, with what it waits for. `None` without a tracker.
pub fn fetch(call: &Call<'_>, ground: &Ground, id: &TaskId) -> Result<Option<TaskId>, Failure> {
    let Some(source) = configured(call, ground) else {
        return Ok(None);
    };
    let id = source.tracker.task_of(id);
    if ground.engine.task(&id).is_ok() {
        return Ok(Some(id));
    }
    let tracker = source.tracker.as_str();
    let not_given = |why: String| Failure::not_in_tracker(&id, tracker, &why);
    let first = one(call, &source, &id).map_err(not_given)?;
    if first.task.status.is_closed() {
        return Err(Failure::closed_in_tracker(&id, tracker));
    }
    let subject = first.task.subject.clone();
    let parsed = Parsed {
        tasks: with_dependencies(call, ground, &source, first),
        ..Parsed::default()
    };
    let actor = call.actor(&ground.engine)?;
    ground
        .engine
        .import_tasks(actor.as_ref(), parsed, BadLines::Report)?;
    call.note(&format!("Task {id} from {tracker}: {subject}"));
    Ok(Some(id))
}

fn one(call: &Call<'_>, source: &Source, id: &TaskId) -> Result<Incoming, String> {
    let printed = source.fetch(id).map_err(|error| error.to_string())?;
    let parsed = parse(source.tracker, &printed, call.now());
    let mut tasks = parsed.tasks.into_iter();
    let found = tasks.find(|task| task.id.as_ref() == Some(id));
    found.ok_or_else(|| match parsed.errors.first() {
        Some(error) => format!("its output can't be read: {}", error.message),
        None => "its output is another task, or none".to_owned(),
    })
}

/// What it waits for and nobody here knows comes along: a dependency that is missing would block it for ever.
fn with_dependencies(
    call: &Call<'_>,
    ground: &Ground,
    source: &Source,
    first: Incoming,
) -> Vec<Incoming> {
    let mut asked: BTreeSet<TaskId> = first.id.iter().cloned().collect();
    let mut tasks = vec![first];
    let mut next = 0;
    while next < tasks.len() {
        for id in tasks[next].task.blocked_by.clone() {
            let is_known = ground.engine.task(&id).is_ok();
            if is_known || asked.len() > MOST || !asked.insert(id.clone()) {
                continue;
            }
            match one(call, source, &id) {
                Ok(incoming) => tasks.push(Incoming {
                    line: asked.len(),
                    ..incoming
                }),
                Err(why) => call.warn(&format!(
                    "it did not return {id}, which the task depends on: {why}"
                )),
            }
        }
        next += 1;
    }
    tasks
}
