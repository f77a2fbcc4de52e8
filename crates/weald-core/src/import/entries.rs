//! The objects in what a tracker prints: a list, one object, or one object a line.
//!
//! What strangers wrote into a tracker comes to terminals and into prompts, so texts with control characters and very
//! long ones are refused here, entry by entry.

use serde_json::{Map, Value};

use super::{Incoming, LineError, Parsed, Problem, require_short};
use crate::reading::misleads;

/// The longest text of an entry.
pub const MAX_TEXT: usize = 256 * 1024;

/// How much of a title is said where an entry is named.
const MAX_NAME: usize = 60;

/// Reads every entry with `read`; one that is refused is reported as people call it, with its place in the list, or its line.
pub(super) fn each(
    input: &[u8],
    mut read: impl FnMut(Map<String, Value>) -> Result<Option<Incoming>, Problem>,
) -> Parsed {
    let mut parsed = Parsed::default();
    for RawEntry { line, name, fields } in split(input) {
        match fields.and_then(&mut read) {
            Ok(Some(incoming)) => parsed.tasks.push(Incoming { line, ..incoming }),
            Ok(None) => {}
            Err(problem) => parsed.errors.push(LineError {
                entry: Some(name),
                ..LineError::new(line, problem)
            }),
        }
    }
    parsed
}

type Fields = Result<Map<String, Value>, Problem>;

struct RawEntry {
    line: usize,
    /// As people call it.
    name: String,
    fields: Fields,
}

impl RawEntry {
    fn numbered(line: usize, fields: Fields) -> Self {
        let name = name(&fields, format!("entry {line}"));
        Self { line, name, fields }
    }

    fn on_line(line: usize, fields: Fields) -> Self {
        let name = name(&fields, format!("line {line}"));
        Self { line, name, fields }
    }
}

fn split(input: &[u8]) -> Vec<RawEntry> {
    let text = input.trim_ascii();
    if text.is_empty() {
        return Vec::new();
    }
    if text.starts_with(b"[") {
        return match serde_json::from_slice::<Vec<Value>>(input) {
            Ok(values) => (1..)
                .zip(values)
                .map(|(number, value)| RawEntry::numbered(number, object(value)))
                .collect(),
            Err(error) => vec![RawEntry::on_line(error.line(), Err(bad_json(&error)))],
        };
    }
    if let Ok(one) = serde_json::from_slice(text) {
        return vec![RawEntry::on_line(1, object(one))];
    }
    let lines = (1..).zip(input.split(|byte| *byte == b'\n'));
    let filled = lines.filter(|(_, line)| !line.trim_ascii().is_empty());
    let read = filled.map(|(number, line)| RawEntry::on_line(number, one_line(line)));
    read.collect()
}

/// What people call an entry: its number or its id, else its place; and its title.
fn name(fields: &Fields, place: String) -> String {
    let Ok(fields) = fields else {
        return place;
    };
    let number = fields.get("number").and_then(Value::as_u64);
    let number = number.filter(|number| *number > 0);
    let number = number.map(|number| format!("issue {number}"));
    let text = |name: &str| readable(fields.get(name)?.as_str()?);
    let id = number.or_else(|| text("id")).unwrap_or(place);
    match text("title") {
        Some(title) => format!("{id} ({title})"),
        None => id,
    }
}

/// So much of a stranger's text as can be shown in a line.
fn readable(text: &str) -> Option<String> {
    let shown = text.chars().filter(|c| !c.is_control() && !misleads(*c));
    let shown: String = shown.take(MAX_NAME).collect();
    Some(shown.trim().to_owned()).filter(|shown| !shown.is_empty())
}

fn one_line(line: &[u8]) -> Fields {
    require_short("a line", line)?;
    object(serde_json::from_slice(line).map_err(|error| bad_json(&error))?)
}

fn object(value: Value) -> Fields {
    match value {
        Value::Object(fields) => Ok(fields),
        _ => Err(("bad_json", "an entry must be a JSON object".to_owned())),
    }
}

/// The fields of an object that an importer made.
pub(super) fn fields_of(object: Value) -> Map<String, Value> {
    match object {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

fn bad_json(error: &serde_json::Error) -> Problem {
    ("bad_json", error.to_string())
}

/// A text of an entry, with line ends as they are here; absent is empty.
pub(super) fn text(fields: &Map<String, Value>, name: &str) -> Result<String, Problem> {
    let text = match fields.get(name) {
        None | Some(Value::Null) => return Ok(String::new()),
        Some(Value::String(text)) => text.replace("\r\n", "\n"),
        Some(_) => return Err(("bad_field", format!("{name} is not a string"))),
    };
    if text.len() > MAX_TEXT {
        return Err((
            "bad_field",
            format!("{name} is longer than {MAX_TEXT} bytes"),
        ));
    }
    let is_odd = |c: &char| c.is_control() && !matches!(c, '\n' | '\t');
    match text.chars().find(is_odd) {
        None => Ok(text),
        Some(odd) => Err(("bad_field", format!("{name} contains {odd:?}"))),
    }
}

/// The title of an issue: anybody may have written it, so what would make it read as another one is left out.
pub(super) fn title(fields: &Map<String, Value>) -> Result<String, Problem> {
    let mut title = text(fields, "title")?;
    title.retain(|c| !misleads(c));
    Ok(title)
}

/// Labels, by their names: texts, or objects with a name.
pub(super) fn labels(fields: &Map<String, Value>) -> Vec<String> {
    let given = fields.get("labels").and_then(Value::as_array);
    let name = |label: &Value| match label {
        Value::String(name) => Some(name.clone()),
        other => other.get("name")?.as_str().map(str::to_owned),
    };
    let names = given.into_iter().flatten().filter_map(name);
    names.map(|name| name.replace(misleads, "")).collect()
}
