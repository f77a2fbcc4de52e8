//! Checks of records against each other: tasks and trees, sessions and trees, agents and processes, branches.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;

use weald_core::id::TaskId;
use weald_core::name::TreeName;
use weald_core::store::{AgentFilter, Durability, SessionSet, TaskFilter};
use weald_core::tree::{Tree, TreeStatus};
use weald_core::tree_rules::TreeInput;
use weald_git::set_aside;

use super::{Code, Finding, Round};
use weald_trees::{TreeError, at};

impl Round<'_, '_> {
    /// Tasks and trees that don't agree on each other.
    pub(super) fn check_bindings(&mut self) -> Result<(), TreeError> {
        let trees = self.trees;
        let known = trees.records()?;
        let tasks = trees.engine.look(|tx| tx.tasks(&TaskFilter::default()))?;
        // An older tree of the name may have come back from the trash, so every one of them counts.
        let live = || known.iter().filter(|tree| tree.is_live());
        let of_trees: HashSet<(Option<&TreeName>, Option<&TaskId>)> = live()
            .map(|tree| (Some(&tree.name), tree.task.as_ref()))
            .collect();
        let of_tasks: HashSet<(Option<&TreeName>, Option<&TaskId>)> = tasks
            .iter()
            .map(|task| (task.worktree.as_ref(), Some(&task.id)))
            .collect();
        for task in tasks.iter().filter(|task| task.worktree.is_some()) {
            if of_trees.contains(&(task.worktree.as_ref(), Some(&task.id))) {
                continue;
            }
            let what = format!("task {} names a worktree that is not bound to it", task.id);
            let finding = Finding::new(Code::BindingDangling, what, "unbind it");
            self.note(finding.repair(|| trees.unbind(&task.id).map(drop)));
        }
        for tree in live().filter(|tree| tree.task.is_some()) {
            if !of_tasks.contains(&(Some(&tree.name), tree.task.as_ref())) {
                let what = format!(
                    "worktree {} names a task that has another worktree",
                    tree.name
                );
                let unbind = || trees.decide(tree, Durability::Process, TreeInput::Unbind);
                let finding = Finding::new(Code::BindingDangling, what, "unbind it");
                self.note(finding.repair(|| unbind().map(drop)));
            }
        }
        Ok(())
    }

    /// Live trees whose branch in main is gone, or holds nothing after a power cut.
    pub(super) fn check_branches(&mut self) -> Result<(), TreeError> {
        let trees = self.trees;
        let repository = trees.place.repository();
        for tree in trees
            .records()?
            .iter()
            .filter(|tree| tree.is_live() && !tree.removing)
        {
            let full = format!("refs/heads/{}", tree.branch);
            if repository.resolve(&full)?.is_some() || trees.site(tree).is_err() {
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
            let repair = || {
                if file.is_dir() {
                    return Err(at(&file)(io::Error::other("a directory is in the way")));
                }
                if is_there {
                    set_aside(&file, &trees.aside()).map_err(at(&file))?;
                }
                trees.reinstate_missing_branch(tree)
            };
            let finding = Finding::new(Code::BranchLost, what, would).of(tree);
            self.note(finding.repair(repair));
        }
        Ok(())
    }

    /// Two records of one directory: whatever is done to one is done to the other.
    pub(super) fn check_paths(&mut self, known: &[Tree]) {
        let mut holders: HashMap<&Path, &Tree> = HashMap::new();
        for tree in known.iter().filter(|tree| tree.is_live()) {
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
            self.note(Finding::new(Code::PathTwice, what, would).of(tree));
        }
    }

    /// Sessions in trees that are gone, and agents that nobody watches over.
    pub(super) fn check_sessions(&mut self) -> Result<(), TreeError> {
        let trees = self.trees;
        let known = trees.records()?;
        let has_tree = |name: &TreeName| {
            let here = |tree: &&Tree| tree.is_live() || tree.status == TreeStatus::Creating;
            known.iter().filter(here).any(|tree| tree.name == *name)
        };
        let sessions = trees.engine.look(|tx| tx.sessions(SessionSet::Open))?;
        for session in sessions {
            let Some(tree) = session.tree.as_ref().filter(|tree| !has_tree(tree)) else {
                continue;
            };
            let what = format!(
                "session {} is in worktree {tree}, which is gone",
                session.name
            );
            let would = format!("when it has ended: weald session end {}", session.name);
            self.note(Finding::new(Code::SessionDangling, what, would));
        }
        let agents = trees.engine.look(|tx| tx.agents(&AgentFilter::OPEN))?;
        for agent in agents.iter().filter(|one| trees.engine.is_orphaned(one)) {
            let what = format!(
                "agent {} of task {} is recorded as {}, but its supervisor is gone",
                agent.id, agent.task, agent.status
            );
            let would = "record the crash and release its task";
            let finding = Finding::new(Code::AgentOrphaned, what, would);
            self.note(finding.repair(|| {
                let reaped = trees.engine.reap_agents();
                reaped
                    .map(drop)
                    .map_err(|error| at(trees.place.private())(io::Error::other(error.to_string())))
            }));
        }
        Ok(())
    }
}
