//! Completions that look: task ids and sessions of the repository the shell is in.
//!
//! A completion must never fail or write: without a repository, or without a database, there is nothing to offer.

use std::sync::Arc;

use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use weald_app::{Environment, Place, SystemClock};
use weald_core::agent::Agent;
use weald_core::config::{KEYS, Key};
use weald_core::store::{AgentFilter, SessionSet, Store, TaskClass, TaskFilter};
use weald_core::task::TaskStatus;
use weald_core::tree::Tree;
use weald_git::list_refs;
use weald_store::{DATABASE_FILE, SqliteStore};

use crate::ui::clean_line;

/// How many candidates a shell is given at most.
const LIMIT: u64 = 200;

/// Ids of tasks that are open, with their subjects.
pub fn tasks() -> ArgValueCandidates {
    ArgValueCandidates::new(|| tasks_in(|status| !status.is_closed()))
}

/// Ids of tasks that can be opened again.
pub fn ended_tasks() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let stuck = [TaskStatus::Blocked, TaskStatus::NeedsMerge];
        tasks_in(|status| status.is_closed() || stuck.contains(&status))
    })
}

/// Ids of all tasks, the open ones first.
pub fn all_tasks() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let open = tasks_in(|status| !status.is_closed());
        let room = LIMIT as usize - open.len();
        let closed = tasks_in(TaskStatus::is_closed).into_iter().take(room);
        open.into_iter().chain(closed).collect()
    })
}

fn tasks_in(is_meant: impl Fn(TaskStatus) -> bool) -> Vec<CompletionCandidate> {
    let meant = TaskStatus::ALL
        .into_iter()
        .filter(|status| is_meant(*status));
    let filter = TaskFilter {
        classes: meant.map(TaskClass::Status).collect(),
        limit: Some(LIMIT),
        ..TaskFilter::default()
    };
    let found = store().and_then(|store| store.read().ok()?.tasks(&filter).ok());
    let found = found.unwrap_or_default().into_iter();
    found
        .map(|task| candidate(&task.id, &task.subject))
        .collect()
}

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

/// Names of trees, with their branches, where they stand and their tasks.
pub fn trees() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let found = store().and_then(|store| store.read().ok()?.trees().ok());
        let live = found.unwrap_or_default().into_iter().filter(Tree::is_live);
        live.map(|tree| {
            let task = tree.task.as_ref();
            let task = task.map_or_else(String::new, |task| format!(", task {task}"));
            let about = format!("{}, {}{task}", tree.branch, tree.status.as_str());
            candidate(&tree.name, &about)
        })
        .collect()
    })
}

/// Branches that a worktree can be for: those here, and those that only remotes have.
pub fn branches() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let Some(place) = place() else {
            return Vec::new();
        };
        let names = ["refs/heads/", "refs/remotes/"];
        let refs = list_refs(place.repository().common_dir(), &names).unwrap_or_default();
        let of = |start: &str| {
            let names = refs
                .iter()
                .filter_map(|known| known.name.strip_prefix(start));
            names.map(str::to_owned).collect::<Vec<_>>()
        };
        let here = of(names[0]);
        let is_new = |name: &String| {
            let short = name.split_once('/').map_or("HEAD", |(_, short)| short);
            short != "HEAD" && here.iter().all(|known| known != short)
        };
        let there: Vec<_> = of(names[1]).into_iter().filter(is_new).collect();
        let all = here.iter().chain(&there).take(LIMIT as usize);
        all.map(CompletionCandidate::new).collect()
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
            candidate(&agent.id, &about)
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

/// A word and what it means, on one line whatever somebody wrote.
fn candidate(word: &impl ToString, about: &str) -> CompletionCandidate {
    CompletionCandidate::new(word.to_string()).help(Some(clean_line(about).into()))
}

fn place() -> Option<Place> {
    let here = std::env::current_dir().ok()?;
    let environment = Environment::read();
    let (home, state) = (environment.home(), environment.state());
    Place::find(&here, home.as_deref(), state.as_deref()).ok()
}

fn store() -> Option<SqliteStore> {
    let place = place()?;
    let known = place.private().join(DATABASE_FILE).exists();
    known
        .then(|| SqliteStore::open(place.private(), Arc::new(SystemClock)).ok())
        .flatten()
}
