//! Checks of records against each other: tasks and trees, sessions and trees, agents and processes, branches, ports.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use weald_core::binding::agree;
use weald_core::id::TaskId;
use weald_core::name::TreeName;
use weald_core::tree::{Tree, TreeStatus};

use crate::Code;
use crate::finding::{Finding, Found};
use crate::repair::{OfTree, Repair};
use crate::survey::Survey;
use weald_trees::TreeError;

/// Tasks and trees that don't agree on each other.
pub(super) fn bindings(survey: &Survey<'_>) -> Found {
    let tasks = survey.tasks()?;
    // An older tree of the name may have come back from the trash, so every one of them counts.
    let bound: HashSet<(&TreeName, &TaskId)> = survey
        .live()?
        .filter_map(|tree| Some((&tree.name, tree.task.as_ref()?)))
        .collect();
    let dangling =
        |what, repair| Finding::new(Code::BindingDangling, what, "unbind it").repair(repair);
    let mut found = Vec::new();
    for task in tasks.values() {
        let named = task.worktree.as_ref();
        if named.is_some_and(|name| !bound.contains(&(name, &task.id))) {
            let what = format!("task {} names a worktree that is not bound to it", task.id);
            found.push(dangling(what, Repair::Unbind(task.id.clone())));
        }
    }
    for tree in survey.live()? {
        let named = tree.task.as_ref();
        let is_bound = |id| tasks.get(id).is_some_and(|task| agree(task, tree));
        if named.is_some_and(|id| !is_bound(id)) {
            let what = format!(
                "worktree {} names a task that has another worktree",
                tree.name
            );
            found.push(dangling(what, Repair::of(tree, OfTree::Unbind)));
        }
    }
    Ok(found)
}

/// Trees that are there and that nobody is about to remove.
fn settled<'s>(survey: &'s Survey<'_>) -> Result<impl Iterator<Item = &'s Tree>, TreeError> {
    let is_settled = |tree: &&Tree| !tree.removing && survey.trees.site(tree).is_ok();
    Ok(survey.live()?.filter(is_settled))
}

/// Live trees whose branch in main is gone, or holds nothing after a power cut.
pub(super) fn branches(survey: &Survey<'_>) -> Found {
    let repository = survey.trees.place.repository();
    let mut found = Vec::new();
    for tree in settled(survey)? {
        let full = format!("refs/heads/{}", tree.branch);
        if repository.resolve(&full)?.is_some() {
            continue;
        }
        let file = repository.common_dir().join(&full);
        let is_there = file.symlink_metadata().is_ok() && !repository.has_reftable();
        let state = if is_there {
            "names no commit"
        } else {
            "is gone"
        };
        let what = format!("branch {} of worktree {} {state}", tree.branch, tree.name);
        let would = "recreate it where it was when the worktree was last inspected";
        let finding = Finding::new(Code::BranchLost, what, would).of(tree);
        found.push(finding.repair(Repair::of(tree, OfTree::WriteBranch)));
    }
    Ok(found)
}

/// Two records of one directory: whatever is done to one is done to the other.
pub(super) fn paths(survey: &Survey<'_>) -> Found {
    let mut holders: HashMap<&Path, &Tree> = HashMap::new();
    let mut found = Vec::new();
    for tree in survey.live()? {
        let Some(other) = holders.insert(&tree.path, tree) else {
            continue;
        };
        let what = format!(
            "{} is the directory of worktree {} ({}) and of worktree {} ({})",
            tree.path.display(),
            other.name,
            other.id,
            tree.name,
            tree.id
        );
        let would = "copy weald's private folder, then: weald doctor --rebuild --fix";
        found.push(Finding::new(Code::PathTwice, what, would).of(tree));
    }
    Ok(found)
}

/// Sessions in trees that are gone, and agents that nobody watches over.
pub(super) fn sessions(survey: &Survey<'_>) -> Found {
    let mut found = Vec::new();
    let known = survey.records()?;
    let is_here = |tree: &&Tree| tree.is_live() || tree.status == TreeStatus::Creating;
    let here: HashSet<_> = known
        .iter()
        .filter(is_here)
        .map(|tree| &tree.name)
        .collect();
    let sessions = survey.sessions()?.iter().map(|view| &view.session);
    for session in sessions.filter(|session| session.ended_at.is_none()) {
        let gone = session.tree.as_ref().filter(|tree| !here.contains(tree));
        found.extend(gone.map(|tree| {
            let name = &session.name;
            let what = format!("session {name} is in worktree {tree}, which is gone");
            let would = format!("when it has ended: weald session end {name}");
            Finding::new(Code::SessionDangling, what, would)
        }));
    }
    for agent in survey.agents()? {
        if survey.trees.engine.is_orphaned(agent) {
            let what = format!(
                "agent {} of task {} is recorded as {}, but its supervisor is gone",
                agent.id, agent.task, agent.status
            );
            let would = "record the crash and release its task";
            let finding = Finding::new(Code::AgentOrphaned, what, would);
            found.push(finding.repair(Repair::ReapAgents));
        }
    }
    Ok(found)
}

/// A tree that is there has its ports to itself.
pub(super) fn ports(survey: &Survey<'_>) -> Found {
    let mut found = Vec::new();
    for tree in settled(survey)? {
        let lost = tree.ports.filter(|_| !survey.trees.holds_ports(tree));
        found.extend(lost.map(|block| {
            let what = format!(
                "ports {} of worktree {} are not reserved for it",
                block.to_text(),
                tree.name
            );
            Finding::new(Code::PortsLost, what, "reserve them again, or others")
                .repair(Repair::of(tree, OfTree::HoldPorts))
        }));
    }
    Ok(found)
}
