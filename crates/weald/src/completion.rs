//! Completions that look: task ids and sessions of the repository the shell is in.
//!
//! A completion must never fail or write: without a repository, or without a database, there is nothing to offer.

use std::sync::Arc;

use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use weald_core::agent::Agent;
use weald_core::config::{KEYS, Key};
use weald_core::store::{AgentFilter, SessionSet, Store, TaskClass, TaskFilter};
use weald_core::task::TaskStatus;
use weald_core::tree::Tree;
use weald_engine::{Place, SystemClock};
use weald_store::{DATABASE_FILE, SqliteStore};

use crate::environment::Environment;

/// How many candidates a shell is given at most.
const LIMIT: u64 = 200;

/// Ids of tasks, with their subjects.
pub fn tasks() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let open = TaskStatus::ALL
            .into_iter()
            .filter(|status| !status.is_closed());
        let filter = TaskFilter {
            classes: open.map(TaskClass::Status).collect(),
            limit: Some(LIMIT),
            ..TaskFilter::default()
        };
        let found = store()
            .and_then(|store| store.read().ok()?.tasks(&filter).ok())
            .unwrap_or_default();
        let candidates = found.into_iter().map(|task| {
            CompletionCandidate::new(task.id.to_string()).help(Some(task.subject.into()))
        });
        candidates.collect()
    })
}

/// Names of sessions.
pub fn sessions() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let found = store()
            .and_then(|store| store.read().ok()?.sessions(SessionSet::Open).ok())
            .unwrap_or_default();
        found
            .into_iter()
            .map(|session| CompletionCandidate::new(session.name.to_string()))
            .collect()
    })
}

/// Names of trees, with their tasks.
pub fn trees() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let found = store().and_then(|store| store.read().ok()?.trees().ok());
        let live = found.unwrap_or_default().into_iter().filter(Tree::is_live);
        live.map(|tree| {
            CompletionCandidate::new(tree.name.to_string()).help(Some(tree.branch.into()))
        })
        .collect()
    })
}

/// Agents that are not over, with their tasks.
pub fn agents() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let open = AgentFilter {
            open: true,
            task: None,
        };
        let found = store().and_then(|store| store.read().ok()?.agents(&open).ok());
        let described = |agent: Agent| {
            let about = format!("{} on task {}", agent.status, agent.task);
            CompletionCandidate::new(agent.id.to_string()).help(Some(about.into()))
        };
        let found = found.unwrap_or_default().into_iter();
        found.map(described).collect()
    })
}

/// Configuration keys, with what they are for.
pub fn keys() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let described = |key: &Key| CompletionCandidate::new(key.name).help(Some(key.about.into()));
        KEYS.iter().map(described).collect()
    })
}

fn store() -> Option<SqliteStore> {
    let here = std::env::current_dir().ok()?;
    let environment = Environment::read();
    let (home, state) = (environment.home(), environment.state());
    let place = Place::find(&here, home.as_deref(), state.as_deref()).ok()?;
    let known = place.private().join(DATABASE_FILE).exists();
    known
        .then(|| SqliteStore::open(place.private(), Arc::new(SystemClock)).ok())
        .flatten()
}
