//! Markdown lists, as people write them.
//!
//! Every item is a task: `- [ ] Subject (P1) (id: api) (after: db, 12)`, with `-`, `*`, `+` or `1.` and with or without a
//! box; `[x]` is completed. Indented text under an item is its description. An item inside another is a part of it: the
//! outer one waits for the inner ones. Headings and text between lists are passed over. Without an id an item is known
//! again by its text.

use super::{Incoming, LineError, Parsed, Problem, require_short};
use crate::Timestamp;
use crate::id::TaskId;
use crate::source::{MARKDOWN, SOURCE};
use crate::task::{Task, TaskStatus};
use crate::task_rules;

pub fn parse_markdown(input: &[u8], now: Timestamp) -> Parsed {
    let mut reader = Reader {
        parsed: Parsed::default(),
        open: Vec::new(),
        in_code: false,
        now,
    };
    for (index, bytes) in input.split(|byte| *byte == b'\n').enumerate() {
        if let Err(problem) = reader.line(index + 1, bytes) {
            let error = LineError::new(index + 1, problem);
            reader.parsed.errors.push(error);
        }
    }
    reader.parsed
}

struct Reader {
    parsed: Parsed,
    /// The items that a deeper line would belong to: indent, and place in the list (none for an item with an error).
    open: Vec<(usize, Option<usize>)>,
    /// Inside a block of code nothing is an item.
    in_code: bool,
    now: Timestamp,
}

impl Reader {
    fn line(&mut self, line: usize, bytes: &[u8]) -> Result<(), Problem> {
        require_short("a line", bytes)?;
        let text = std::str::from_utf8(bytes).map_err(|error| ("bad_utf8", error.to_string()))?;
        let text = text.trim_end();
        let indent = text
            .chars()
            .take_while(|c| c.is_whitespace())
            .map(|c| if c == '\t' { 4 } else { 1 })
            .sum();
        let body = text.trim_start();
        if body.starts_with("```") || body.starts_with("~~~") {
            self.in_code = !self.in_code;
            return Ok(());
        }
        let rule = body.len() >= 3 && body.chars().all(|c| matches!(c, '*' | '-' | '+' | ' '));
        match item_of(body).filter(|_| !self.in_code && !rule) {
            Some(item) => self.item(line, indent, item),
            None => {
                self.text(indent, text.trim_start());
                Ok(())
            }
        }
    }

    fn item(&mut self, line: usize, indent: usize, text: &str) -> Result<(), Problem> {
        self.open.retain(|(outer, _)| *outer < indent);
        self.open.push((indent, None));
        let (id, task) = parse_item(text, self.now)?;
        let place = self.parsed.tasks.len();
        self.parsed.tasks.push(Incoming::new(line, id, task));
        if let Some(last) = self.open.last_mut() {
            last.1 = Some(place);
        }
        let outer = self.open.iter().rev().nth(1).and_then(|(_, outer)| *outer);
        if let Some(outer) = outer {
            self.parsed.tasks[outer].waits_for.push(place);
        }
        Ok(())
    }

    fn text(&mut self, indent: usize, text: &str) {
        if text.is_empty() {
            return;
        }
        self.open.retain(|(outer, _)| *outer < indent);
        if let Some((_, Some(place))) = self.open.last() {
            let description = &mut self.parsed.tasks[*place].task.description;
            if !description.is_empty() {
                description.push('\n');
            }
            description.push_str(text);
        }
    }
}

/// The text behind the bullet or number of an item.
fn item_of(text: &str) -> Option<&str> {
    if let Some(rest) = ["- ", "* ", "+ "]
        .iter()
        .find_map(|bullet| text.strip_prefix(bullet))
    {
        return Some(rest.trim());
    }
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let rest = text[digits..]
        .strip_prefix(". ")
        .or_else(|| text[digits..].strip_prefix(") "))?;
    (digits > 0).then(|| rest.trim())
}

fn parse_item(text: &str, now: Timestamp) -> Result<(Option<TaskId>, Task), Problem> {
    let (status, mut text) = match text
        .strip_prefix("[x] ")
        .or_else(|| text.strip_prefix("[X] "))
    {
        Some(rest) => (TaskStatus::Completed, rest),
        None => (
            TaskStatus::Pending,
            text.strip_prefix("[ ]").unwrap_or(text),
        ),
    };
    let mut id = None;
    let mut task = Task::new(TaskId::Number(1), "", now);
    task.status = status;
    task.closed_at = status.is_closed().then_some(now);
    while let Some((rest, mark)) = last_mark(text) {
        if let Ok(priority) = mark.parse() {
            task.priority = priority;
        } else if let Some(given) = mark.strip_prefix("id:") {
            id = Some(parse_id(given)?);
        } else if let Some(list) = mark.strip_prefix("after:") {
            task.blocked_by = list.split(',').map(parse_id).collect::<Result<_, _>>()?;
        } else {
            break;
        }
        text = rest;
    }
    task.subject = text.trim().to_owned();
    task.extra.insert(SOURCE.into(), MARKDOWN.into());
    task_rules::check_new(&task).map_err(|refusal| ("bad_field", refusal.to_string()))?;
    Ok((id, task))
}

/// Splits `text (mark)` at its last bracket.
fn last_mark(text: &str) -> Option<(&str, &str)> {
    let (rest, mark) = text.trim_end().strip_suffix(')')?.rsplit_once('(')?;
    Some((rest, mark.trim()))
}

fn parse_id(text: &str) -> Result<TaskId, Problem> {
    text.trim()
        .parse()
        .map_err(|error: crate::id::TaskIdError| ("bad_id", error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::Priority;

    #[test]
    fn a_list_becomes_tasks() {
        let text = "# Plan\n\nWords.\n\n- [ ] Ship it (P1) (id: ship) (after: 7)\n  With a note.\n    - [x] Build (fast)\n    * Test (id: ../x)\n2. Second\n* * *\n- [ ]\n```\n- no task\n```\n";
        let parsed = parse_markdown(text.as_bytes(), Timestamp::UNIX_EPOCH);
        let subjects: Vec<_> = parsed
            .tasks
            .iter()
            .map(|task| task.task.subject.as_str())
            .collect();
        assert_eq!(subjects, ["Ship it", "Build (fast)", "Second"]);
        let ship = &parsed.tasks[0];
        assert_eq!(ship.id, Some("ship".parse().unwrap()));
        assert_eq!(ship.task.priority, Priority::P1);
        assert_eq!(ship.task.blocked_by, [TaskId::Number(7)]);
        assert_eq!(ship.task.description, "With a note.");
        assert_eq!(
            ship.waits_for,
            [1],
            "the outer item waits for the inner one"
        );
        assert_eq!(parsed.tasks[1].task.status, TaskStatus::Completed);
        assert_eq!(parsed.errors.len(), 2, "{:?}", parsed.errors);
        assert_eq!(parsed.codes()[0], (8, "bad_id"));
    }
}
