//! Each shape once, field by field, and what is left out.

use serde_json::{Value, json};

use super::*;
use crate::event::{Change, EventKind};
use crate::id::{Seq, TreeId};
use crate::landing::LandingStatus;
use crate::task::TaskStatus;
use crate::tree::{Base, DirectoryIdentity, Trash, Tree, TreeStatus};

const ALL: [ViewKind; 3] = [
    ViewKind::TwoPlane,
    ViewKind::Classroom,
    ViewKind::JeanClaude,
];

fn time() -> Timestamp {
    Timestamp::from_millisecond(1_500).unwrap()
}

fn task() -> Task {
    Task {
        blocked_by: vec![TaskId::Number(2)],
        ..Task::new("gh-7".parse().unwrap(), "Fix it", time())
    }
}

fn tree(id: u64, name: &str, status: TreeStatus) -> Tree {
    let base = Base {
        reference: "main".into(),
        commit: "0".repeat(40),
    };
    let identity = DirectoryIdentity {
        device: 1,
        inode: id,
        born: None,
    };
    Tree {
        status,
        identity: Some(identity),
        task: Some(TaskId::Number(7)),
        ..Tree::new(
            TreeId(id),
            name.parse().unwrap(),
            format!("/t/{name}").into(),
            base,
            time(),
        )
    }
}

fn event(kind: EventKind, tree: Tree) -> Event {
    Event::stamp(Change::tree(kind, tree), Seq(3), time(), None)
}

fn read(text: &str) -> Value {
    assert!(is_marked(text.as_bytes()), "{text}");
    let mut value: Value = serde_json::from_str(text).unwrap();
    value.as_object_mut().unwrap().remove(MARK);
    value
}

#[test]
fn p16_tasks_have_the_fields_of_their_system() {
    let two_plane = json!({
        "id": "gh-7", "subject": "Fix it", "description": "", "status": "pending", "owner": "", "worktree": "",
        "blockedBy": [2], "created_at": 1.5, "updated_at": 1.5,
    });
    assert_eq!(read(&ViewKind::TwoPlane.task_text(&task())), two_plane);
    let classroom = json!({
        "id": "gh-7", "subject": "Fix it", "description": "", "status": "pending", "owner": null,
        "blockedBy": [2], "worktree": null,
    });
    assert_eq!(read(&ViewKind::Classroom.task_text(&task())), classroom);
}

#[test]
fn p16_the_index_has_each_name_once() {
    let never = Tree {
        identity: None,
        ..tree(4, "never", TreeStatus::Removed)
    };
    let trees = [
        tree(1, "a", TreeStatus::Active),
        tree(2, "b", TreeStatus::Removed),
        tree(3, "b", TreeStatus::Kept),
        never,
        tree(5, "a", TreeStatus::Trashed),
        tree(6, "c", TreeStatus::Creating),
    ];
    let entry = |name: &str, status: &str| {
        json!({"name": name, "path": format!("/t/{name}"), "branch": format!("wt/{name}"), "task_id": 7,
            "status": status, "created_at": 1.5})
    };
    let expected = json!({"worktrees": [entry("a", "active"), entry("b", "kept")]});
    assert_eq!(read(&index_text(&trees)), expected);
}

#[test]
fn p16_events_have_their_parts() {
    let active = tree(1, "a", TreeStatus::Active);
    let made = event(EventKind::TREE_CREATE_AFTER, active.clone());
    let part = json!({"name": "a", "path": "/t/a", "branch": "wt/a", "status": "active"});
    let line =
        json!({"event": "worktree.create.after", "ts": 1.5, "task": {"id": 7}, "worktree": part});
    assert_eq!(read(&ViewKind::TwoPlane.event_line(&made).unwrap()), line);
    let line = json!({"type": "create", "worktree": "a", "task_id": 7, "ts": 1.5});
    assert_eq!(read(&ViewKind::Classroom.event_line(&made).unwrap()), line);
}

/// The name that a view gives to an event.
fn name(kind: EventKind, tree: &Tree, view: ViewKind) -> Option<String> {
    let line = read(&view.event_line(&event(kind, tree.clone()))?);
    let name = line.get("event").or(line.get("type"))?;
    name.as_str().map(str::to_owned)
}

fn trashed() -> Tree {
    let trash = Trash {
        path: "/t/.trash/a".into(),
        at: time(),
        tip: None,
        branch_tip: None,
        snapshot: None,
        task: None,
        head: None,
        ports: None,
        status: None,
    };
    Tree {
        trash: Some(trash),
        ..tree(1, "a", TreeStatus::Trashed)
    }
}

#[test]
fn p16_each_event_has_its_name_or_none() {
    use EventKind as Kind;
    let (active, trashed) = (tree(1, "a", TreeStatus::Active), trashed());
    for (kind, tree, two_plane, classroom) in [
        (Kind::TREE_CREATE_BEFORE, &active, "create.before", ""),
        (Kind::TREE_CREATE_FAILED, &active, "create.failed", ""),
        (Kind::TREE_CREATE_AFTER, &active, "create.after", "create"),
        (Kind::TREE_RESTORED, &active, "create.after", "create"),
        (Kind::TREE_ADOPTED, &active, "create.after", "create"),
        (Kind::TREE_REMOVE_BEFORE, &active, "remove.before", ""),
        (Kind::TREE_REMOVE_FAILED, &active, "remove.failed", ""),
        (Kind::TREE_TRASHED, &trashed, "remove.after", "remove"),
        (Kind::TREE_REMOVE_BEFORE, &trashed, "", ""),
        (Kind::TREE_REMOVE_AFTER, &trashed, "", ""),
        (Kind::TREE_REMOVE_AFTER, &active, "remove.after", "remove"),
        (Kind::TREE_KEPT, &active, "keep", "keep"),
        (Kind::TREE_IMPORTED, &active, "", ""),
    ] {
        let given = |view| name(kind.clone(), tree, view).unwrap_or_default();
        let short = given(ViewKind::TwoPlane).replace("worktree.", "");
        assert_eq!(short, two_plane, "{kind}");
        assert_eq!(given(ViewKind::Classroom), classroom, "{kind}");
        assert_eq!(given(ViewKind::JeanClaude), "", "{kind}");
    }
    let done = Change::task(Kind::TASK_COMPLETED, task());
    let done = Event::stamp(done, Seq(1), time(), None);
    let line = read(&ViewKind::TwoPlane.event_line(&done).unwrap());
    assert_eq!(line["event"], "task.completed");
    assert_eq!(ViewKind::Classroom.event_line(&done), None);
}

#[test]
fn p16_the_state_of_a_workflow_follows_its_task() {
    let active = tree(1, "beads-7", TreeStatus::Active);
    let state = json!({
        "workflow_id": "beads-7", "workflow_name": "Fix it", "workflow_type": "beads-task", "beads_task_id": "gh-7",
        "beads_task_title": "Fix it", "phase": "planning", "worktree_path": "/t/beads-7",
        "worktree_branch": "wt/beads-7",
    });
    assert_eq!(read(&state_text(&active, Some(&task()), None)), state);
    let phase = |status, landing| {
        let task = Task { status, ..task() };
        read(&state_text(&active, Some(&task), landing))["phase"].clone()
    };
    for (status, landing, expected) in [
        (TaskStatus::InProgress, None, "implementing"),
        (
            TaskStatus::InProgress,
            Some(LandingStatus::Testing),
            "verifying",
        ),
        (
            TaskStatus::InProgress,
            Some(LandingStatus::Red),
            "implementing",
        ),
        (
            TaskStatus::NeedsMerge,
            Some(LandingStatus::Conflict),
            "needs_merge",
        ),
        (
            TaskStatus::Completed,
            Some(LandingStatus::Landed),
            "complete",
        ),
    ] {
        assert_eq!(phase(status, landing), expected);
    }
    let gone = state_text(&tree(1, "a", TreeStatus::Trashed), None, None);
    assert_eq!(read(&gone)["worktree_path"], json!(null));
    assert_eq!(read(&gone)["phase"], "complete");
}

#[test]
fn every_kind_is_a_value_of_the_key() {
    for kind in ALL {
        assert_eq!(ViewKind::of(kind.as_str()), Some(kind));
    }
    assert_eq!(ViewKind::of("none"), None);
    assert!(!is_marked(b"{\"id\": 1}"));
    assert!(!is_marked(b"\xff"));
}
