//! Codex: `codex exec` with JSON lines out and the prompt in.
//!
//! Its own sandbox and questions are off, because ours is on. Its state is private to the tree; what it gets of the
//! user's is a copy, without the refresh token, which is good for one use. It takes no message while it works.

use std::ffi::OsString;
use std::sync::Mutex;

use serde_json::{Map, Value, json};
use weald_core::agent::Usage;

use super::seeding::Seed;
use super::text::word;
use super::{Brief, Driver, DriverError, Input, Observed, Start, TOOLS, Variable, program, text};
use weald_control::identity::KNOWN_BY;

const NAME: &str = "codex";

/// Where it keeps its state.
const STATE: &str = "CODEX_HOME";

/// What is copied of the user's folder at each start.
const FILES: [&str; 2] = ["config.toml", "AGENTS.md"];

/// What is copied of it once.
const FOLDERS: [&str; 2] = ["prompts", "rules"];

const CREDENTIALS: &str = "auth.json";

#[derive(Default)]
pub(super) struct Codex {
    /// Its last words: the line that ends a turn does not repeat them.
    last: Mutex<String>,
}

impl Driver for Codex {
    fn name(&self) -> &str {
        NAME
    }

    fn require(&self, variable: &Variable<'_>) -> Result<(), DriverError> {
        program::require(NAME, NAME, variable)
    }

    fn start(&self, brief: &Brief<'_>) -> Result<Start, DriverError> {
        let mut command: Vec<OsString> = [NAME, "exec", "--json", "-C"].map(OsString::from).into();
        command.push(brief.tree.into());
        command.push("--skip-git-repo-check".into());
        command.push("--dangerously-bypass-approvals-and-sandbox".into());
        if brief.with_tools {
            command.extend(tools());
        }
        if let Some(model) = brief.model {
            command.extend(["--model", model].map(OsString::from));
        }
        command.extend_from_slice(brief.arguments);
        if let Some(conversation) = brief.conversation {
            text::require_conversation(NAME, conversation)?;
            command.extend(["resume", conversation].map(OsString::from));
        }
        command.push("-".into());
        let mut notes = seed(brief)?;
        notes.push(
            "Codex's own sandbox and approvals are off: weald's sandbox confines it to its worktree"
                .to_owned(),
        );
        Ok(Start {
            command,
            environment: vec![(STATE.into(), brief.home.into())],
            input: Input::Text(brief.prompt.as_bytes().to_vec()),
            notes,
        })
    }

    fn read(&self, line: &[u8]) -> Vec<Observed> {
        let Some(object) = text::object(line) else {
            return vec![Observed::Raw];
        };
        let item = object.get("item").and_then(Value::as_object);
        text::or_raw(match (word(&object, "type"), item) {
            ("thread.started", _) => text::conversation(&object, "thread_id"),
            ("item.started", Some(item)) => action(item),
            ("item.completed", Some(item)) => self.completed(item),
            ("turn.completed", _) => vec![
                Observed::Usage(usage(&object)),
                Observed::Finished {
                    ok: true,
                    text: self.last_words(),
                },
            ],
            ("turn.failed", _) => {
                let why = object
                    .get("error")
                    .and_then(|error| error.get("message")?.as_str());
                vec![Observed::Finished {
                    ok: false,
                    text: text::said(why.unwrap_or("the turn failed")),
                }]
            }
            _ => Vec::new(),
        })
    }

    fn secrets(&self) -> &'static [&'static str] {
        &[CREDENTIALS]
    }

    fn say(&self, _text: &str) -> Option<Vec<u8>> {
        None
    }
}

/// weald's tools, beside the servers of the user's own. It passes a server only the variables that are named.
fn tools() -> impl Iterator<Item = OsString> {
    let (program, arguments) = TOOLS;
    let settings = [
        format!("command={}", json!(program)),
        format!("args={}", json!(arguments)),
        format!("env_vars={}", json!(KNOWN_BY)),
    ];
    let words = settings.map(|setting| format!("mcp_servers.{program}.{setting}"));
    let words = words.into_iter().flat_map(|word| ["-c".to_owned(), word]);
    words.map(OsString::from)
}

impl Codex {
    fn completed(&self, item: &Map<String, Value>) -> Vec<Observed> {
        match word(item, "type") {
            "agent_message" => {
                let said = text::said(word(item, "text"));
                if said.is_empty() {
                    return Vec::new();
                }
                if let Ok(mut last) = self.last.lock() {
                    last.clone_from(&said);
                }
                vec![Observed::Said(said)]
            }
            // These are told once, when they are done.
            "file_change" | "web_search" => action(item),
            _ => Vec::new(),
        }
    }

    fn last_words(&self) -> String {
        self.last
            .lock()
            .map(|last| last.clone())
            .unwrap_or_default()
    }
}

/// Copies what it needs of the user's; answers what could not be copied.
fn seed(brief: &Brief<'_>) -> Result<Vec<String>, DriverError> {
    let mut seed = Seed::open(NAME, brief, STATE, ".codex")?;
    for file in FILES {
        seed.file(file)?;
    }
    for folder in FOLDERS {
        seed.folder(folder)?;
    }
    seed.json(CREDENTIALS, |credentials| {
        if let Some(Value::Object(tokens)) = credentials.get_mut("tokens") {
            // It can't read the file without the field.
            tokens.insert("refresh_token".to_owned(), "".into());
        }
    })?;
    Ok(seed.into_notes())
}

/// What an item does.
fn action(item: &Map<String, Value>) -> Vec<Observed> {
    let (what, detail) = match word(item, "type") {
        "command_execution" => ("Shell", unwrapped(word(item, "command"))),
        "file_change" => ("Edit", changed(item)),
        "mcp_tool_call" => (word(item, "server"), word(item, "tool").to_owned()),
        "web_search" => ("Search", word(item, "query").to_owned()),
        _ => return Vec::new(),
    };
    vec![Observed::Action(text::action(what, &detail))]
}

/// A command without the shell that Codex runs it in.
fn unwrapped(command: &str) -> String {
    let inner = shlex::split(command).filter(|words| {
        let shell = words.first().is_some_and(|program| program.ends_with("sh"));
        shell && words.len() == 3 && matches!(words[1].as_str(), "-lc" | "-c")
    });
    inner
        .and_then(|words| words.into_iter().nth(2))
        .unwrap_or_else(|| command.to_owned())
}

fn changed(item: &Map<String, Value>) -> String {
    let changes = item.get("changes").and_then(Value::as_array);
    let paths = changes.into_iter().flatten();
    let paths = paths.filter_map(|change| change.get("path")?.as_str());
    paths.take(8).collect::<Vec<_>>().join(", ")
}

/// Everything of the thread so far.
fn usage(object: &Map<String, Value>) -> Usage {
    let used = object.get("usage").unwrap_or(&Value::Null);
    let number = |field: &str| used.get(field).and_then(Value::as_u64).unwrap_or(0);
    Usage {
        // What was cached is part of it.
        input_tokens: number("input_tokens"),
        output_tokens: number("output_tokens"),
        cost_usd: None,
    }
}
