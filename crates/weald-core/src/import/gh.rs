//! Issues of GitHub, as `gh issue list --json …` and `gh issue view --json …` print them.
//!
//! Issue 12 is task `gh-12`. A label `P0` to `P3` is its priority. An issue says nothing of dependencies.

use serde_json::{Map, Value, json};

use super::entries::{each, fields_of, labels, text, title};
use super::jsonl::read_fields;
use super::{Incoming, Parsed, Problem};
use crate::Timestamp;
use crate::source::{SOURCE, Tracker};
use crate::task::Priority;

pub fn parse_gh(input: &[u8], now: Timestamp) -> Parsed {
    each(input, |issue| read(&issue, now).map(Some))
}

fn read(issue: &Map<String, Value>, now: Timestamp) -> Result<Incoming, Problem> {
    let number = issue.get("number").and_then(Value::as_u64);
    let number = number.filter(|number| *number > 0);
    let number = number.ok_or(("bad_id", "an issue needs a number above zero".to_owned()))?;
    let is_closed = text(issue, "state")?.eq_ignore_ascii_case("closed");
    let labels = labels(issue);
    let priority = labels
        .iter()
        .find_map(|label| label.parse::<Priority>().ok());
    let fields = fields_of(json!({
        "id": format!("gh-{number}"),
        "subject": title(issue)?,
        "description": text(issue, "body")?,
        "status": if is_closed { "completed" } else { "pending" },
        "priority": priority.map(Priority::as_str),
        "labels": labels,
        "url": text(issue, "url")?,
        SOURCE: Tracker::Gh.as_str(),
    }));
    read_fields(fields, now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::LineError;
    use crate::task::TaskStatus;

    #[test]
    fn p12_issues_become_tasks_and_bad_ones_are_told() {
        let input = json!([
            {"number": 12, "title": "Fix\u{202e}\u{200b} it", "body": "a\r\nb", "state": "OPEN", "url": "https://x/12",
             "labels": [{"name": "good first issue"}, {"name": "P1"}], "assignees": [{"login": "a"}], "zz": 1},
            {"number": 13, "title": "Old", "body": null, "state": "CLOSED"},
            {"number": 0, "title": "x"},
            {"number": 14, "title": "x\u{1b}[2J"},
            {"number": 15, "title": "x", "body": "\u{1b}]0;evil\u{7}"},
            {"number": 16, "title": ["x"]},
            {"number": 17, "title": ""},
            7,
        ]);
        let parsed = parse_gh(input.to_string().as_bytes(), Timestamp::UNIX_EPOCH);
        let first = &parsed.tasks[0];
        assert_eq!(first.id, Some("gh-12".parse().unwrap()));
        assert_eq!(first.task.description, "a\nb");
        assert_eq!(first.task.priority, Priority::P1);
        assert_eq!(first.task.labels, ["good first issue", "P1"]);
        assert_eq!(first.task.extra["url"], "https://x/12");
        assert_eq!(first.task.extra[SOURCE], "gh");
        assert_eq!(parsed.tasks[1].task.status, TaskStatus::Completed);
        assert_eq!(parsed.tasks.len(), 2);
        assert_eq!(
            parsed.codes(),
            [
                (3, "bad_id"),
                (4, "bad_field"),
                (5, "bad_field"),
                (6, "bad_field"),
                (7, "bad_field"),
                (8, "bad_json")
            ]
        );
        let places: Vec<_> = parsed.errors.iter().map(LineError::place).collect();
        assert_eq!(
            places,
            [
                "entry 3 (x)",
                "issue 14 (x[2J)",
                "issue 15 (x)",
                "issue 16",
                "issue 17",
                "entry 8"
            ]
        );
        // One issue, nothing, and what is no JSON at all.
        let one = parse_gh(
            b" {\"number\": 1,\n \"title\": \"x\"}\n",
            Timestamp::UNIX_EPOCH,
        );
        assert_eq!((one.tasks.len(), one.errors.len()), (1, 0));
        assert_eq!(parse_gh(b"\n", Timestamp::UNIX_EPOCH), Parsed::default());
        let garbage = parse_gh(b"\n[\n{\"number\": 1,", Timestamp::UNIX_EPOCH);
        assert_eq!(garbage.codes(), [(3, "bad_json")]);
        assert_eq!(garbage.errors[0].place(), "line 3");
    }
}
