//! Issues of beads, as `bd export`, `bd list --json` and `bd show ID --json` print them.
//!
//! Ids stay as they are. What blocks an issue there blocks the task here; an issue with children waits for them, and is
//! their plan. Priority 4 is P3. Whoever works on it there does not do so here, so that comes in as pending; what is
//! deferred, pinned or blocked by hand comes in as blocked.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::entries::{each, fields_of, labels, text, title};
use super::jsonl::read_fields;
use super::{Incoming, Parsed, Problem};
use crate::Timestamp;
use crate::id::TaskId;
use crate::source::{SOURCE, Tracker};

/// Kinds of dependencies that keep an issue from being worked on.
const BLOCKING: [&str; 3] = ["blocks", "conditional-blocks", "waits-for"];

/// Fields of theirs that come along as they are.
const KEPT: [&str; 6] = [
    "issue_type",
    "assignee",
    "external_ref",
    "created_at",
    "closed_at",
    "estimated_minutes",
];

pub fn parse_beads(input: &[u8], now: Timestamp) -> Parsed {
    let mut parents = Vec::new();
    let mut parsed = each(input, |issue| {
        let read = read(&issue, now)?;
        if let Some((incoming, parent)) = &read
            && let (Some(child), Some(parent)) = (&incoming.id, parent)
        {
            parents.push((child.clone(), parent.clone()));
        }
        Ok(read.map(|(incoming, _)| incoming))
    });
    wait_for_children(&mut parsed, &parents);
    parsed
}

/// An issue with children is done when they are.
fn wait_for_children(parsed: &mut Parsed, parents: &[(TaskId, TaskId)]) {
    let ids = (0..).zip(&parsed.tasks);
    let ids = ids.filter_map(|(place, task)| Some((task.id.clone()?, place)));
    let places: BTreeMap<TaskId, usize> = ids.collect();
    for (child, parent) in parents {
        if let (Some(child), Some(parent)) = (places.get(child), places.get(parent)) {
            parsed.tasks[*parent].waits_for.push(*child);
        }
    }
}

/// A task, and the issue it is a part of. None for the trace of one that was deleted.
fn read(
    issue: &Map<String, Value>,
    now: Timestamp,
) -> Result<Option<(Incoming, Option<TaskId>)>, Problem> {
    let status = match text(issue, "status")?.as_str() {
        "closed" => "completed",
        "tombstone" => return Ok(None),
        "blocked" | "deferred" | "pinned" | "hooked" => "blocked",
        _ => "pending",
    };
    let id = issue.get("id").filter(|id| id.is_string());
    let id = id.ok_or(("bad_id", "an issue needs an id".to_owned()))?;
    let (blocked_by, parent) = dependencies(issue)?;
    let mut fields = fields_of(json!({
        "id": id,
        "subject": title(issue)?,
        "description": described(issue)?,
        "acceptance": text(issue, "acceptance_criteria")?,
        "status": status,
        "priority": issue.get("priority").filter(|rank| rank.is_u64()),
        "labels": labels(issue),
        "blocked_by": blocked_by,
        "plan": parent.as_ref().map(TaskId::to_string),
    }));
    for name in KEPT {
        if let Some(value) = issue.get(name).filter(|value| !value.is_null()) {
            fields.insert(name.into(), value.clone());
        }
    }
    fields.insert(SOURCE.into(), Tracker::Beads.as_str().into());
    Ok(Some((read_fields(fields, now)?, parent)))
}

/// What is to be done, with the design and the notes below it.
fn described(issue: &Map<String, Value>) -> Result<String, Problem> {
    let mut parts = vec![text(issue, "description")?];
    for (name, title) in [("design", "Design"), ("notes", "Notes")] {
        let part = text(issue, name)?;
        if !part.is_empty() {
            parts.push(format!("{title}:\n{part}"));
        }
    }
    parts.retain(|part| !part.is_empty());
    Ok(parts.join("\n\n"))
}

/// What blocks it and is not known to be closed, and the issue it is a part of. An export names dependencies by
/// `depends_on_id`, a single issue shows them as issues.
fn dependencies(issue: &Map<String, Value>) -> Result<(Vec<TaskId>, Option<TaskId>), Problem> {
    let given = issue.get("dependencies").and_then(Value::as_array);
    let (mut blocked_by, mut parent) = (Vec::new(), None);
    for dependency in given.into_iter().flatten() {
        let field = |names: [&str; 2]| {
            names
                .iter()
                .find_map(|name| dependency.get(*name)?.as_str())
        };
        let Some(id) = field(["depends_on_id", "id"]) else {
            continue;
        };
        let kind = field(["dependency_type", "type"]).unwrap_or("blocks");
        let is_closed = field(["status", "status"]) == Some("closed");
        let id: TaskId = id
            .parse()
            .map_err(|error| ("bad_id", format!("a dependency: {error}")))?;
        if kind == "parent-child" {
            parent = Some(id);
        } else if BLOCKING.contains(&kind) && !is_closed {
            blocked_by.push(id);
        }
    }
    Ok((blocked_by, parent))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::LineError;
    use crate::task::{Priority, TaskStatus};

    #[test]
    fn p12_an_export_of_beads_becomes_tasks() {
        let lines = [
            json!({"id": "bd-1", "title": "Epic", "status": "open", "priority": 4, "issue_type": "epic"}),
            json!({"id": "bd-1.1", "title": "Part", "status": "in_progress", "priority": 0, "design": "d",
                "description": "what", "acceptance_criteria": "green", "labels": ["ui"], "future": {"x": 1},
                "dependencies": [
                    {"issue_id": "bd-1.1", "depends_on_id": "bd-1", "type": "parent-child"},
                    {"issue_id": "bd-1.1", "depends_on_id": "bd-2", "type": "blocks"},
                    {"issue_id": "bd-1.1", "depends_on_id": "bd-9", "type": "related"}]}),
            json!({"id": "bd-2", "title": "Done", "status": "closed", "closed_at": "2025-12-20T10:00:00Z"}),
            json!({"id": "bd-3", "title": "Later", "status": "deferred"}),
            json!({"id": "bd-4", "title": "Gone", "status": "tombstone"}),
            json!({"id": "../x", "title": "Bad", "status": "open"}),
            json!({"title": "Bad", "status": "open"}),
            json!({"id": "bd-5", "title": "Bad", "dependencies": [{"depends_on_id": "a b"}]}),
        ];
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let parsed = parse_beads(text.as_bytes(), "2026-01-01T00:00:00Z".parse().unwrap());
        let statuses: Vec<_> = parsed.tasks.iter().map(|task| task.task.status).collect();
        use TaskStatus::*;
        assert_eq!(statuses, [Pending, Pending, Completed, Blocked]);
        let (epic, part) = (&parsed.tasks[0], &parsed.tasks[1].task);
        assert_eq!(
            (epic.task.priority, &epic.waits_for),
            (Priority::P3, &vec![1])
        );
        assert_eq!(part.priority, Priority::P0);
        assert_eq!(part.description, "what\n\nDesign:\nd");
        assert_eq!(
            (part.acceptance.as_str(), part.plan.as_deref()),
            ("green", Some("bd-1"))
        );
        assert_eq!(part.blocked_by, ["bd-2".parse().unwrap()]);
        assert_eq!(part.extra[SOURCE], "beads");
        assert_eq!(
            parsed.codes(),
            [(6, "bad_id"), (7, "bad_id"), (8, "bad_id")]
        );
        let places: Vec<_> = parsed.errors.iter().map(LineError::place).collect();
        assert_eq!(places, ["../x (Bad)", "line 7 (Bad)", "bd-5 (Bad)"]);
    }

    #[test]
    fn p12_one_issue_shows_what_it_depends_on() {
        let shown = json!([{"id": "bd-1", "title": "A", "status": "open", "dependencies": [
            {"id": "bd-2", "title": "B", "status": "closed", "dependency_type": "blocks"},
            {"id": "bd-3", "title": "C", "status": "open", "dependency_type": "blocks"}]}]);
        let parsed = parse_beads(shown.to_string().as_bytes(), Timestamp::UNIX_EPOCH);
        assert_eq!(parsed.tasks[0].task.blocked_by, ["bd-3".parse().unwrap()]);
    }
}
