//! Text of an agent's stream: bounded, and without anything that a terminal acts on.

use std::ffi::OsString;

use serde_json::{Map, Value};

use super::{Brief, DriverError, Observed};

/// The longest line that is looked into.
const LINE_LIMIT: usize = 8 << 20;

/// The longest action, in characters.
const ACTION_LIMIT: usize = 200;

/// The longest thing that an agent says, in characters.
const SAID_LIMIT: usize = 16 * 1024;

/// The longest name of a conversation.
const CONVERSATION_LIMIT: usize = 64;

/// A line as an object, if it is one.
pub(super) fn object(line: &[u8]) -> Option<Map<String, Value>> {
    if line.len() > LINE_LIMIT {
        return None;
    }
    match serde_json::from_slice(line) {
        Ok(Value::Object(object)) => Some(object),
        _ => None,
    }
}

/// A field that is text; empty where there is none.
pub(super) fn word<'a>(object: &'a Map<String, Value>, field: &str) -> &'a str {
    let found = object.get(field).and_then(Value::as_str);
    found.unwrap_or_default()
}

/// The conversation that a field names, if it can be one.
pub(super) fn conversation(object: &Map<String, Value>, field: &str) -> Vec<Observed> {
    match word(object, field) {
        id if is_conversation(id) => vec![Observed::Conversation(id.to_owned())],
        _ => Vec::new(),
    }
}

/// A line that says nothing is still one.
pub(super) fn or_raw(observed: Vec<Observed>) -> Vec<Observed> {
    match observed.is_empty() {
        true => vec![Observed::Raw],
        false => observed,
    }
}

/// What an agent does, as one line: `Bash: cargo test`.
pub(super) fn action(what: &str, detail: &str) -> String {
    let whole = match detail.trim() {
        "" => what.to_owned(),
        // Nothing beyond the limit is looked at, however long it is.
        detail => format!("{what}: {}", bounded(detail, ACTION_LIMIT * 4)),
    };
    let words: Vec<&str> = whole
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .collect();
    bounded(&words.join(" "), ACTION_LIMIT)
}

/// What an agent says: lines and tabs stay, other control characters go.
pub(super) fn said(text: &str) -> String {
    let plain: String = bounded(text, SAID_LIMIT)
        .chars()
        .filter(|c| !c.is_control() || matches!(c, '\n' | '\t'))
        .collect();
    plain.trim().to_owned()
}

/// The text of a tool's answer: a string, or text in blocks.
pub(super) fn content(answer: Option<&Value>) -> String {
    match answer {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(blocks)) => {
            let texts = blocks.iter().map(|block| {
                let text = block.get("text").and_then(Value::as_str);
                text.unwrap_or("[no text]")
            });
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

/// A short text that stands for something: the id of a call, the name of a tool.
pub(super) fn id(text: &str) -> String {
    let plain = text
        .chars()
        .filter(|c| !c.is_control() && !c.is_whitespace());
    plain.take(CONVERSATION_LIMIT).collect()
}

/// Whether this can name a conversation: nothing that an option or a path could be made of.
pub(super) fn is_conversation(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    (1..=CONVERSATION_LIMIT).contains(&name.len())
        && !name.starts_with('-')
        && name.chars().all(is_plain)
}

/// Errors when it can't.
pub(super) fn require_conversation(driver: &str, name: &str) -> Result<(), DriverError> {
    match is_conversation(name) {
        true => Ok(()),
        false => Err(DriverError::BadConversation {
            driver: driver.to_owned(),
            conversation: action(name, ""),
        }),
    }
}

/// The longest prompt that is an argument; Linux takes 128 KiB.
const ARGUMENT_LIMIT: usize = 96 * 1024;

/// A prompt as an argument: itself, or where to read it.
pub(super) fn as_argument(prompt: &str, brief: &Brief<'_>) -> OsString {
    match prompt.len() <= ARGUMENT_LIMIT && !prompt.contains('\0') {
        true => prompt.into(),
        false => {
            let file = brief.prompt_file.display();
            format!("Your task is in the file {file}: read all of it first.").into()
        }
    }
}

fn bounded(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_is_one_short_line() {
        for (what, detail, told) in [
            ("Bash", "cargo test", "Bash: cargo test"),
            ("Bash", "a\n\tb\r\u{1b}[31mc", "Bash: a b [31mc"),
            ("Task", "  ", "Task"),
        ] {
            assert_eq!(action(what, detail), told);
        }
        assert_eq!(action("Bash", &"ü ".repeat(1 << 20)).chars().count(), 201);
        assert_eq!(action(&"x".repeat(1 << 20), "").chars().count(), 201);
    }

    #[test]
    fn what_is_said_keeps_its_lines_and_no_escape() {
        assert_eq!(said(" a\n\tb\u{1b}[2J\u{9b}\0 \n"), "a\n\tb[2J");
        assert_eq!(said(&"x".repeat(1 << 20)).chars().count(), SAID_LIMIT + 1);
    }

    #[test]
    fn a_conversation_can_stand_in_an_argv() {
        for name in ["1fb49229-5067-4831-94c0-b8c874fc78b2", "a", "A_9"] {
            assert!(is_conversation(name), "{name}");
        }
        let long = "a".repeat(CONVERSATION_LIMIT + 1);
        for name in ["", "-p", "--last", "a b", "../a", "a/b", "ä", "a\n", &long] {
            assert!(!is_conversation(name), "{name}");
        }
    }

    #[test]
    fn only_objects_of_a_bounded_line_are_read() {
        assert!(object(b"{\"a\": 1}").is_some());
        let deep = [b"{\"a\":".repeat(1 << 17), b"1".to_vec()].concat();
        let long = [
            b"{\"a\":\"".to_vec(),
            vec![b'x'; LINE_LIMIT],
            b"\"}".to_vec(),
        ]
        .concat();
        for odd in [&b"[]"[..], b"", b"{", b"\xff{}", b"null", &deep, &long] {
            assert!(object(odd).is_none());
        }
    }
}
