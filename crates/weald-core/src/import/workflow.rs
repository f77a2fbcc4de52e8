//! The `state.json` of a jean-claude workflow: one object, one task.
//!
//! The task goes on where the phase says. Older files name no worktree: nothing is lost by that, but it is said.

use serde_json::{Map, Value};

use super::jsonl::read_fields;
use super::{Incoming, LineError, Parsed, Problem, require_short};
use crate::Timestamp;
use crate::file_view::MARK;
use crate::name::TreeName;
use crate::source::{SOURCE, Tracker};

pub fn parse_workflow(input: &[u8], now: Timestamp) -> Parsed {
    let mut parsed = Parsed::default();
    match parse(input, now, &mut parsed.warnings) {
        Ok(task) => parsed.tasks.push(task),
        Err(problem) => parsed.errors.push(LineError::new(1, problem)),
    }
    parsed
}

fn parse(input: &[u8], now: Timestamp, warnings: &mut Vec<String>) -> Result<Incoming, Problem> {
    require_short("a state", input)?;
    let mut fields: Map<String, Value> =
        serde_json::from_slice(input).map_err(|error| ("bad_json", error.to_string()))?;
    fields.remove(MARK);
    let text = |fields: &Map<String, Value>, names: [&str; 3]| {
        let found = names.iter().find_map(|name| fields.get(*name)?.as_str());
        found.filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let id = fields.get("beads_task_id").filter(|id| !id.is_null());
    let source = id.map(|_| Tracker::Beads.as_str());
    if let Some(id) = id.or(fields.get("workflow_id")).cloned() {
        fields.insert("id".into(), id);
    }
    let names = ["beads_task_title", "workflow_name", "workflow_id"];
    let Some(subject) = text(&fields, names) else {
        return Err(("bad_field", format!("none of {} exists", names.join(", "))));
    };
    let status = match fields.get("phase").and_then(Value::as_str) {
        Some("complete") => "completed",
        Some("needs_merge") => "needs_merge",
        _ => "pending",
    };
    fields.insert("status".into(), status.into());
    if let Some(source) = source {
        fields.insert(SOURCE.into(), source.into());
    }
    let path = text(&fields, ["worktree_path"; 3]);
    let name = path.as_deref().and_then(|path| path.rsplit('/').next());
    match name.and_then(|name| name.parse::<TreeName>().ok()) {
        Some(name) => drop(fields.insert("last_worktree".into(), name.as_str().into())),
        None => warnings.push(format!(
            "\"{subject}\" names no worktree; to create one from the target: weald ensure --task ID"
        )),
    }
    fields.insert("subject".into(), subject.into());
    // Times without a zone, as Python writes them, say nothing here.
    let is_time = |time: &Value| {
        time.as_str()
            .is_none_or(|time| time.parse::<Timestamp>().is_ok())
    };
    if fields.get("created_at").is_some_and(|time| !is_time(time)) {
        fields.remove("created_at");
    }
    let incoming = read_fields(fields, now)?;
    Ok(Incoming {
        line: 1,
        ..incoming
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::TaskStatus;

    fn read(text: &str) -> Parsed {
        parse_workflow(text.as_bytes(), Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn p16_an_old_state_is_read_with_a_warning() {
        let old = read(
            r#"{"workflow_id": "beads-jc-1", "workflow_name": "n", "workflow_type": "beads",
            "beads_task_id": "jc-1", "beads_task_title": "Fix it", "phase": "implementing", "iteration": 3,
            "created_at": "2025-12-20T10:00:00.1"}"#,
        );
        assert_eq!(old.errors, []);
        assert_eq!(old.warnings.len(), 1);
        let incoming = &old.tasks[0];
        assert_eq!(incoming.id, Some("jc-1".parse().unwrap()));
        assert_eq!(incoming.task.subject, "Fix it");
        assert_eq!(incoming.task.status, TaskStatus::Pending);
        assert_eq!(incoming.task.extra["iteration"], 3);
        assert_eq!(incoming.task.extra["phase"], "implementing");
        let new = read(
            r#"{"workflow_id": "w", "phase": "complete", "worktree_path": "/r/trees/beads-jc-1",
            "worktree_branch": "beads/jc-1", "beads_task_id": null, "_view": "x"}"#,
        );
        assert_eq!(new.warnings, [""; 0]);
        let task = &new.tasks[0].task;
        assert_eq!(
            (task.subject.as_str(), task.status),
            ("w", TaskStatus::Completed)
        );
        assert_eq!(task.last_worktree, Some("beads-jc-1".parse().unwrap()));
        assert!(!task.extra.contains_key(MARK));
        for (bad, code) in [
            ("[]", "bad_json"),
            ("{}", "bad_field"),
            (r#"{"workflow_id": "../x"}"#, "bad_id"),
        ] {
            assert_eq!(read(bad).errors[0].code, code, "{bad}");
        }
    }
}
