//! The files of two-plane and classroom: tasks, the index of worktrees, their events.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{pretty, seconds};
use crate::event::{Event, EventKind};
use crate::name::TreeName;
use crate::task::Task;
use crate::tree::{Tree, TreeStatus};

pub(super) fn two_plane_task(task: &Task) -> Value {
    json!({
        "id": task.id,
        "subject": task.subject,
        "description": task.description,
        "status": task.status,
        "owner": task.owner.as_ref().map_or("", |owner| owner.as_str()),
        "worktree": task.worktree.as_ref().map_or("", |tree| tree.as_str()),
        "blockedBy": task.blocked_by,
        "created_at": seconds(task.created_at),
        "updated_at": seconds(task.updated_at),
    })
}

pub(super) fn classroom_task(task: &Task) -> Value {
    json!({
        "id": task.id,
        "subject": task.subject,
        "description": task.description,
        "status": task.status,
        "owner": task.owner,
        "blockedBy": task.blocked_by,
        "worktree": task.worktree,
    })
}

/// The index of worktrees: each name once, the tree that has it before those that had it.
pub fn index_text(trees: &[Tree]) -> String {
    let mut named: BTreeMap<&TreeName, &Tree> = BTreeMap::new();
    for tree in trees.iter().filter(|tree| standing(tree).is_some()) {
        let replaces = |known: &&Tree| tree.is_live() || !known.is_live();
        if named.get(&tree.name).is_none_or(replaces) {
            named.insert(&tree.name, tree);
        }
    }
    let mut chosen: Vec<_> = named.into_values().collect();
    chosen.sort_by_key(|tree| tree.id);
    let entries: Vec<_> = chosen.into_iter().map(entry).collect();
    pretty(json!({ "worktrees": entries }))
}

fn entry(tree: &Tree) -> Value {
    let trashed = tree.trash.as_ref().and_then(|trash| trash.task.as_ref());
    json!({
        "name": tree.name,
        "path": tree.path,
        "branch": tree.branch,
        "task_id": tree.task.as_ref().or(trashed),
        "status": standing(tree),
        "created_at": seconds(tree.created_at),
    })
}

/// How these systems call a tree's status; `None` for one that never was.
fn standing(tree: &Tree) -> Option<&'static str> {
    match tree.status {
        TreeStatus::Creating => None,
        TreeStatus::Active | TreeStatus::Landed | TreeStatus::Broken => Some("active"),
        TreeStatus::Kept => Some("kept"),
        TreeStatus::Trashed | TreeStatus::Removed => tree.identity.map(|_| "removed"),
    }
}

/// What happened to a worktree, as far as these systems know such things.
enum Step {
    CreateBefore,
    CreateAfter,
    CreateFailed,
    RemoveBefore,
    RemoveAfter,
    RemoveFailed,
    Keep,
    Completed,
}

fn step(event: &Event) -> Option<Step> {
    // What is deleted from the trash was removed before.
    let tree = event.after.tree.as_ref();
    let in_trash = tree.is_some_and(|tree| tree.trash.is_some());
    let known = [
        (EventKind::TREE_CREATE_BEFORE, Step::CreateBefore),
        (EventKind::TREE_CREATE_AFTER, Step::CreateAfter),
        (EventKind::TREE_ADOPTED, Step::CreateAfter),
        (EventKind::TREE_RESTORED, Step::CreateAfter),
        (EventKind::TREE_CREATE_FAILED, Step::CreateFailed),
        (EventKind::TREE_REMOVE_BEFORE, Step::RemoveBefore),
        (EventKind::TREE_TRASHED, Step::RemoveAfter),
        (EventKind::TREE_REMOVE_AFTER, Step::RemoveAfter),
        (EventKind::TREE_REMOVE_FAILED, Step::RemoveFailed),
        (EventKind::TREE_KEPT, Step::Keep),
        (EventKind::TASK_COMPLETED, Step::Completed),
    ];
    let (kind, step) = known.into_iter().find(|(kind, _)| *kind == event.kind)?;
    Some(step).filter(|_| !in_trash || kind == EventKind::TREE_TRASHED)
}

pub(super) fn two_plane_event(event: &Event) -> Option<Value> {
    let step = step(event)?;
    let name = match step {
        Step::CreateBefore => "worktree.create.before",
        Step::CreateAfter => "worktree.create.after",
        Step::CreateFailed => "worktree.create.failed",
        Step::RemoveBefore => "worktree.remove.before",
        Step::RemoveAfter => "worktree.remove.after",
        Step::RemoveFailed => "worktree.remove.failed",
        Step::Keep => "worktree.keep",
        Step::Completed => "task.completed",
    };
    let mut line = json!({
        "event": name,
        "ts": seconds(event.time),
        "task": task_part(event),
        "worktree": worktree_part(event),
    });
    if let Some(error) = &event.error {
        line["error"] = error.as_str().into();
    }
    Some(line)
}

fn task_part(event: &Event) -> Value {
    let mut part = Map::new();
    if let Some(id) = &event.task {
        part.insert("id".into(), json!(id));
    }
    if let Some(task) = &event.after.task {
        part.insert("subject".into(), json!(task.subject));
        part.insert("status".into(), json!(task.status));
    }
    part.into()
}

fn worktree_part(event: &Event) -> Value {
    let mut part = Map::new();
    if let Some(name) = &event.tree {
        part.insert("name".into(), json!(name));
    }
    let Some(tree) = &event.after.tree else {
        return part.into();
    };
    match standing(tree) {
        Some(status) => {
            part.insert("path".into(), json!(tree.path));
            part.insert("branch".into(), json!(tree.branch));
            part.insert("status".into(), status.into());
        }
        None => {
            part.insert("base_ref".into(), json!(tree.base.reference));
        }
    }
    part.into()
}

pub(super) fn classroom_event(event: &Event) -> Option<Value> {
    let name = match step(event)? {
        Step::CreateAfter => "create",
        Step::RemoveAfter => "remove",
        Step::Keep => "keep",
        _ => return None,
    };
    let task = event.task.as_ref().map_or(json!(""), |id| json!(id));
    Some(json!({
        "type": name,
        "worktree": event.tree,
        "task_id": task,
        "ts": seconds(event.time),
    }))
}
