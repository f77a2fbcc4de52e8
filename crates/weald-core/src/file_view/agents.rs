//! The file of jean-claude: where the work in a tree stands.

use serde_json::json;

use super::pretty;
use crate::landing::LandingStatus;
use crate::task::{Task, TaskStatus};
use crate::tree::{Tree, TreeStatus};

/// What `state.json` says of a tree, its task and its newest landing.
pub fn state_text(tree: &Tree, task: Option<&Task>, landing: Option<LandingStatus>) -> String {
    let there = tree.is_live();
    pretty(json!({
        "workflow_id": tree.name,
        "workflow_name": task.map_or(tree.name.as_str(), |task| &task.subject),
        "workflow_type": if task.is_some() { "beads-task" } else { "adhoc" },
        "beads_task_id": task.map(|task| &task.id),
        "beads_task_title": task.map(|task| &task.subject),
        "phase": phase(tree, task, landing),
        "worktree_path": there.then_some(&tree.path),
        "worktree_branch": there.then_some(&tree.branch),
    }))
}

/// Where the work in a tree stands. The task says; where there is none, the tree does.
pub fn phase(tree: &Tree, task: Option<&Task>, landing: Option<LandingStatus>) -> &'static str {
    let being_tested = matches!(
        landing,
        Some(LandingStatus::Queued | LandingStatus::Testing)
    );
    if being_tested {
        return "verifying";
    }
    match task.map(|task| task.status) {
        Some(TaskStatus::Pending) => "planning",
        // What failed or waits for a person can be gone on with.
        Some(TaskStatus::InProgress | TaskStatus::Failed | TaskStatus::Blocked) => "implementing",
        Some(TaskStatus::NeedsMerge) => "needs_merge",
        Some(TaskStatus::Completed | TaskStatus::Cancelled) => "complete",
        None => match tree.status {
            TreeStatus::Landed | TreeStatus::Trashed | TreeStatus::Removed => "complete",
            _ => "implementing",
        },
    }
}
