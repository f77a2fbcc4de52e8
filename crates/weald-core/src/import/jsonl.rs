//! One JSON object a line, as `weald task export` writes them.

use serde_json::{Map, Value};

use super::{Incoming, LineError, Parsed, Problem, require_short};
use crate::Timestamp;
use crate::task::{Priority, Task};
use crate::task_rules;

/// Fields that belong to the place a task was exported from: who held it there, and what it waited for, means nothing here.
const LEFT_BEHIND: [&str; 10] = [
    "worktree_state",
    "owner",
    "token",
    "lease",
    "updated_at",
    "plan_approval",
    "plan_message",
    "ready",
    "waiting_for",
    "blocks",
];

/// Reads JSON lines. Empty lines are skipped.
pub fn parse_jsonl(input: &[u8], now: Timestamp) -> Parsed {
    let mut parsed = Parsed::default();
    for (index, bytes) in input.split(|byte| *byte == b'\n').enumerate() {
        if bytes.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let line = index + 1;
        match parse_line(bytes, now) {
            Ok(incoming) => parsed.tasks.push(Incoming { line, ..incoming }),
            Err(problem) => parsed.errors.push(LineError::new(line, problem)),
        }
    }
    parsed
}

fn parse_line(bytes: &[u8], now: Timestamp) -> Result<Incoming, Problem> {
    require_short("a line", bytes)?;
    let fields = serde_json::from_slice(bytes);
    read_fields(
        fields.map_err(|error| ("bad_json", error.to_string()))?,
        now,
    )
}

/// A task from the fields of one object.
pub(super) fn read_fields(
    mut fields: Map<String, Value>,
    now: Timestamp,
) -> Result<Incoming, Problem> {
    let id = match fields.remove("id") {
        None | Some(Value::Null) => None,
        Some(id) => {
            Some(serde_json::from_value(id).map_err(|error| ("bad_id", error.to_string()))?)
        }
    };
    for field in LEFT_BEHIND {
        fields.remove(field);
    }
    rename(&mut fields, "title", "subject");
    rename(&mut fields, "blockedBy", "blocked_by");
    let named = |tree: &Value| tree.as_str().is_some_and(|name| !name.is_empty());
    if let Some(tree) = fields.remove("worktree").filter(named) {
        fields.entry("last_worktree").or_insert(tree);
    }
    for empty in [
        "description",
        "blocked_by",
        "labels",
        "acceptance",
        "priority",
    ] {
        if fields.get(empty).is_some_and(Value::is_null) {
            fields.remove(empty);
        }
    }
    if let Some(Value::Number(rank)) = fields.get("priority") {
        let rank = rank.as_u64().unwrap_or(2).min(3) as usize;
        fields.insert("priority".into(), Priority::ALL[rank].as_str().into());
    }
    if let Some(seconds) = fields.get("created_at").and_then(Value::as_f64) {
        let time = Timestamp::from_millisecond((seconds * 1e3) as i64).unwrap_or(now);
        fields.insert("created_at".into(), time.to_string().into());
    }
    rename(&mut fields, "closedAt", "closed_at");
    // Whoever worked on it did so elsewhere; here nobody does.
    if fields
        .get("status")
        .is_some_and(|status| status == "in_progress")
    {
        fields.insert("status".into(), "pending".into());
    }
    fields.insert("id".into(), 1.into());
    fields.entry("subject").or_insert_with(|| "".into());
    fields.entry("status").or_insert_with(|| "pending".into());
    fields
        .entry("created_at")
        .or_insert_with(|| now.to_string().into());
    fields.insert("updated_at".into(), now.to_string().into());
    let closed_at = fields.remove("closed_at");
    let mut task: Task = serde_json::from_value(Value::Object(fields))
        .map_err(|error| ("bad_field", error.to_string()))?;
    if task.status.is_closed() {
        task.closed_at = Some(closing_time(closed_at, now)?);
    }
    task_rules::check_new(&task).map_err(|refusal| ("bad_field", refusal.to_string()))?;
    Ok(Incoming::new(0, id, task))
}

/// When the tracker closed it, as text or in seconds; now if it does not say, and never later than now.
fn closing_time(given: Option<Value>, now: Timestamp) -> Result<Timestamp, Problem> {
    let odd = |why: String| ("bad_field", format!("closed_at: {why}"));
    let time = match given {
        None | Some(Value::Null) => now,
        Some(Value::Number(seconds)) => {
            let millis = seconds.as_f64().unwrap_or(f64::NAN) * 1e3;
            Timestamp::from_millisecond(millis as i64).map_err(|error| odd(error.to_string()))?
        }
        Some(text) => serde_json::from_value(text).map_err(|error| odd(error.to_string()))?,
    };
    Ok(time.min(now))
}

fn rename(fields: &mut Map<String, Value>, from: &str, to: &str) {
    if !fields.contains_key(to)
        && let Some(value) = fields.remove(from)
    {
        fields.insert(to.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::TaskStatus;

    #[test]
    fn l9_a_closed_task_keeps_the_trackers_closing_time() {
        let now = Timestamp::from_second(10_000).unwrap();
        for (fields, expected) in [
            ("\"status\":\"completed\"", Some(10_000)),
            ("\"status\":\"completed\",\"closed_at\":null", Some(10_000)),
            ("\"status\":\"completed\",\"closed_at\":7000", Some(7_000)),
            (
                "\"status\":\"cancelled\",\"closedAt\":\"1970-01-01T00:01:00Z\"",
                Some(60),
            ),
            ("\"status\":\"completed\",\"closed_at\":99999", Some(10_000)),
            ("\"status\":\"pending\",\"closed_at\":7000", None),
            ("\"status\":\"in_progress\",\"closed_at\":7000", None),
        ] {
            let line = format!("{{\"subject\":\"A\",{fields}}}");
            let parsed = parse_jsonl(line.as_bytes(), now);
            let closed_at = parsed.tasks[0].task.closed_at;
            assert_eq!(closed_at.map(Timestamp::as_second), expected, "{fields}");
        }
        let odd = b"{\"subject\":\"A\",\"status\":\"completed\",\"closed_at\":\"soon\"}";
        assert_eq!(parse_jsonl(odd, now).errors[0].code, "bad_field");
    }

    #[test]
    fn lines_are_read_one_by_one() {
        let input = b"{\"id\":\"gh-1\",\"title\":\"A\",\"priority\":0,\"zz\":[1]}\n\nnot json\n\
            {\"subject\":\"\"}\n{\"id\":\"../x\",\"subject\":\"B\"}\n{\"subject\":\"C\",\"status\":\"odd\"}\n\
            {\"subject\":\"D\",\"blocked_by\":[1,\"gh-1\"],\"status\":\"completed\"}\n\xff\xfe\n";
        let parsed = parse_jsonl(input, Timestamp::UNIX_EPOCH);
        assert_eq!(parsed.tasks.len(), 2);
        assert_eq!(parsed.tasks[0].task.priority, Priority::P0);
        assert_eq!(parsed.tasks[0].task.extra["zz"], serde_json::json!([1]));
        assert_eq!(parsed.tasks[1].line, 7);
        assert_eq!(parsed.tasks[1].task.status, TaskStatus::Completed);
        assert_eq!(
            parsed.codes(),
            [
                (3, "bad_json"),
                (4, "bad_field"),
                (5, "bad_id"),
                (6, "bad_field"),
                (8, "bad_json")
            ]
        );
    }
}
