//! The JSON object on a hook's standard input.

use std::io::Read;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The most that is read: an edit of a large file comes with the whole file.
const LIMIT: u64 = 16 << 20;

/// Tools of which it is sure that they write the file they name.
const EDITORS: [&str; 4] = ["Edit", "Write", "MultiEdit", "NotebookEdit"];

/// What Claude Code says of an event. Each event has a few of these.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct HookInput {
    pub session_id: Option<String>,
    pub cwd: Option<PathBuf>,
    pub hook_event_name: Option<String>,
    /// The worktree that is wanted.
    pub name: Option<String>,
    /// The same, as some versions call it.
    pub worktree_name: Option<String>,
    /// The worktree that is not wanted any more.
    pub worktree_path: Option<PathBuf>,
    pub tool_name: Option<String>,
    /// What it gets: anything, since anybody may make tools.
    pub tool_input: Option<Value>,
    /// Whether it goes on because a hook wanted so.
    pub stop_hook_active: bool,
    /// What was said last.
    pub last_assistant_message: Option<String>,
}

/// Why it is not understood.
#[derive(Debug, thiserror::Error)]
pub enum HookInputError {
    #[error("there is no JSON object on stdin")]
    Empty,
    /// It is no such object.
    #[error("stdin is not the JSON object of a hook: {0}")]
    Malformed(serde_json::Error),
    /// A field is missing.
    #[error("the JSON object on stdin has no `{0}`")]
    Missing(&'static str),
}

impl HookInput {
    /// Reads one object, and not what follows: nobody has to close the stream.
    pub fn read(stream: impl Read) -> Result<Self, HookInputError> {
        let mut reader = serde_json::Deserializer::from_reader(stream.take(LIMIT));
        // Only an object says by itself where it ends.
        let found = Object::deserialize(&mut reader);
        found.map(|Object(input)| input).map_err(|error| {
            match error.is_eof() && (error.line(), error.column()) <= (1, 0) {
                true => HookInputError::Empty,
                false => HookInputError::Malformed(error),
            }
        })
    }

    /// The name of the wanted worktree.
    pub fn wanted_name(&self) -> Result<&str, HookInputError> {
        let named = [&self.name, &self.worktree_name];
        let mut given = named.into_iter().flatten().filter(|name| !name.is_empty());
        let name = given.next().ok_or(HookInputError::Missing("name"))?;
        Ok(name)
    }

    /// The worktree that is to go.
    pub fn unwanted_path(&self) -> Result<&Path, HookInputError> {
        let path = self.worktree_path.as_deref();
        path.filter(|path| !path.as_os_str().is_empty())
            .ok_or(HookInputError::Missing("worktree_path"))
    }

    /// The file that the tool writes; `None` for tools that write none, or of which nobody knows.
    pub fn edited(&self) -> Result<Option<PathBuf>, HookInputError> {
        let tool = self.tool_name.as_deref();
        let tool = tool.ok_or(HookInputError::Missing("tool_name"))?;
        if !EDITORS.contains(&tool) {
            return Ok(None);
        }
        let input = self.tool_input.as_ref();
        let input = input.ok_or(HookInputError::Missing("tool_input"))?;
        let text = |field: &str| input.get(field)?.as_str();
        let path = text("file_path").or_else(|| text("notebook_path"));
        let path = path.filter(|path| !path.is_empty());
        let path = path.ok_or(HookInputError::Missing("tool_input.file_path"))?;
        Ok(Some(match &self.cwd {
            Some(directory) => directory.join(path),
            None => path.into(),
        }))
    }
}

/// An object and nothing else: a list would be taken for its fields in order.
struct Object(HookInput);

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Object;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Object, A::Error> {
                let map = serde::de::value::MapAccessDeserializer::new(map);
                HookInput::deserialize(map).map(Object)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<HookInput, HookInputError> {
        HookInput::read(text.as_bytes())
    }

    #[test]
    fn one_object_is_read_and_nothing_behind_it() {
        struct Endless<'a>(&'a [u8]);
        impl Read for Endless<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
                assert!(!self.0.is_empty(), "it is read past its end");
                buffer[0] = self.0[0];
                self.0 = &self.0[1..];
                Ok(1)
            }
        }
        let text = r#"{"name":"a","cwd":"/x","unknown":{"deep":[1,{"x":null}]}}"#;
        let input = HookInput::read(Endless(text.as_bytes())).unwrap();
        assert_eq!(input.wanted_name().unwrap(), "a");
        assert_eq!(input.cwd.as_deref(), Some(Path::new("/x")));
    }

    #[test]
    fn what_is_no_object_is_refused() {
        assert!(matches!(read(""), Err(HookInputError::Empty)));
        for text in [
            " ",
            "[]",
            "7",
            "null",
            "{",
            "{\"name\":7}",
            "garbage",
            "[null]",
        ] {
            let found = read(text);
            assert!(
                matches!(found, Err(HookInputError::Malformed(_))),
                "{text:?}: {found:?}"
            );
        }
    }

    #[test]
    fn a_name_comes_under_either_name() {
        for (text, name) in [
            (r#"{"name":"a"}"#, Some("a")),
            (r#"{"worktree_name":"b"}"#, Some("b")),
            (r#"{"name":"a","worktree_name":"b"}"#, Some("a")),
            (r#"{"name":"","worktree_name":"b"}"#, Some("b")),
            (r#"{"name":null}"#, None),
            (r#"{"name":""}"#, None),
            ("{}", None),
        ] {
            assert_eq!(read(text).unwrap().wanted_name().ok(), name, "{text}");
        }
    }

    #[test]
    fn w8_only_tools_that_surely_write_name_a_file() {
        for (text, path) in [
            (
                r#"{"tool_name":"Edit","tool_input":{"file_path":"/a"}}"#,
                Some("/a"),
            ),
            (
                r#"{"tool_name":"Write","tool_input":{"file_path":"b","content":"x"},"cwd":"/d"}"#,
                Some("/d/b"),
            ),
            (
                r#"{"tool_name":"NotebookEdit","tool_input":{"notebook_path":"/n"}}"#,
                Some("/n"),
            ),
            (r#"{"tool_name":"Bash","tool_input":{"command":"x"}}"#, None),
            (
                r#"{"tool_name":"Read","tool_input":{"file_path":"/a"}}"#,
                None,
            ),
            (r#"{"tool_name":"mcp__x__Edit"}"#, None),
            // What others' tools get is nobody's business here.
            (
                r#"{"tool_name":"mcp__x__y","tool_input":{"file_path":["a","b"]}}"#,
                None,
            ),
            (r#"{"tool_name":"mcp__x__y","tool_input":"text"}"#, None),
        ] {
            let found = read(text).unwrap().edited().unwrap();
            assert_eq!(found.as_deref(), path.map(Path::new), "{text}");
        }
        for text in [
            "{}",
            r#"{"tool_name":"Edit"}"#,
            r#"{"tool_name":"Edit","tool_input":{}}"#,
            r#"{"tool_name":"Edit","tool_input":{"file_path":""}}"#,
            r#"{"tool_name":"Edit","tool_input":{"file_path":["a","b"]}}"#,
            r#"{"tool_name":"Edit","tool_input":"text"}"#,
        ] {
            assert!(read(text).unwrap().edited().is_err(), "{text}");
        }
    }
}
