//! Claude Code: `claude -p` with JSON lines both ways.
//!
//! Its own questions are off, because the sandbox holds it. Its state is private to the tree; what it gets of the user's
//! is a copy. It gets no refresh token: those are good for one use, and the user's own login would end with it.

use std::ffi::OsString;
use std::path::PathBuf;

use serde_json::{Map, Value, json};
use weald_core::agent::Usage;

use super::seeding::Seed;
use super::text::word;
use super::{Brief, Driver, DriverError, Input, Observed, Start, TOOLS, Variable, program, text};
use weald_control::claude_plugin;

const NAME: &str = "claude";

/// Where it keeps its state.
const STATE: &str = "CLAUDE_CONFIG_DIR";

/// What is copied of the user's folder at each start.
const FILES: [&str; 2] = [SETTINGS, "CLAUDE.md"];

const SETTINGS: &str = "settings.json";

/// What is copied of it once.
const FOLDERS: [&str; 4] = ["agents", "commands", "skills", "output-styles"];

const CREDENTIALS: &str = ".credentials.json";

/// Its file of everything else, and what is brought of that.
const STATE_FILE: &str = ".claude.json";
const STATE_FIELDS: [&str; 5] = [
    "hasCompletedOnboarding",
    "oauthAccount",
    "primaryApiKey",
    "customApiKeyResponses",
    "mcpServers",
];

/// Fields of a tool's input that tell best what it does.
const TELLING: [&str; 11] = [
    "command",
    "file_path",
    "notebook_path",
    "pattern",
    "path",
    "query",
    "url",
    "skill",
    "name",
    "description",
    "prompt",
];

pub(super) struct Claude;

impl Driver for Claude {
    fn name(&self) -> &str {
        NAME
    }

    fn require(&self, variable: &Variable<'_>) -> Result<(), DriverError> {
        program::require(NAME, NAME, variable)
    }

    fn start(&self, brief: &Brief<'_>) -> Result<Start, DriverError> {
        let mut command: Vec<OsString> = vec![NAME.into(), "-p".into()];
        if brief.with_tools {
            // It takes words until the next flag.
            command.extend(["--mcp-config".into(), tools(brief).to_string().into()]);
        }
        command.extend(
            [
                "--output-format",
                "stream-json",
                "--input-format",
                "stream-json",
                "--verbose",
                "--dangerously-skip-permissions",
            ]
            .map(OsString::from),
        );
        if let Some(model) = brief.model {
            command.extend(["--model", model].map(OsString::from));
        }
        if let Some(conversation) = brief.conversation {
            text::require_conversation(NAME, conversation)?;
            command.extend(["--resume", conversation].map(OsString::from));
        }
        command.extend_from_slice(brief.arguments);
        let mut notes = seed(brief)?;
        notes.push(
            "Claude Code runs without permission prompts: the sandbox confines it to its worktree"
                .to_owned(),
        );
        Ok(Start {
            command,
            environment: vec![
                (STATE.into(), brief.home.into()),
                ("DISABLE_AUTOUPDATER".into(), "1".into()),
                // Without it, it would not go without questions as root.
                ("IS_SANDBOX".into(), "1".into()),
            ],
            input: Input::Open(message(brief.prompt)),
            notes,
        })
    }

    fn read(&self, line: &[u8]) -> Vec<Observed> {
        let Some(object) = text::object(line) else {
            return vec![Observed::Raw];
        };
        text::or_raw(match word(&object, "type") {
            "system" if word(&object, "subtype") == "init" => {
                text::conversation(&object, "session_id")
            }
            "assistant" => told(&object),
            "result" => result(&object),
            _ => Vec::new(),
        })
    }

    fn secrets(&self) -> &'static [&'static str] {
        &[CREDENTIALS]
    }

    fn say(&self, text: &str) -> Option<Vec<u8>> {
        Some(message(text))
    }
}

/// weald's tools, beside the servers of the user's own. Claude Code leaves out a plugin's server that is started by the
/// very same words, so it is called as the user's plugin calls it: else its tools would be there twice.
fn tools(brief: &Brief<'_>) -> Value {
    let (name, arguments) = TOOLS;
    let settings = users_folder(brief).map(|folder| folder.join(SETTINGS));
    let named = settings.and_then(|settings| claude_plugin::program_in(&settings));
    let program = named.as_deref().unwrap_or(name);
    // They are few: its model is to see them without a search.
    let server = json!({"command": program, "args": arguments, "alwaysLoad": true});
    json!({"mcpServers": {name: server}})
}

/// The folder that the user named for its state.
fn named_folder(brief: &Brief<'_>) -> Option<PathBuf> {
    let named = (brief.variable)(STATE).filter(|folder| !folder.is_empty());
    named.map(PathBuf::from)
}

/// Where the user's own settings are.
fn users_folder(brief: &Brief<'_>) -> Option<PathBuf> {
    named_folder(brief).or_else(|| Some(brief.user_home?.join(".claude")))
}

/// A message as a line of its input.
fn message(text: &str) -> Vec<u8> {
    let content = [json!({"type": "text", "text": text})];
    let message = json!({"type": "user", "message": {"role": "user", "content": content}});
    format!("{message}\n").into_bytes()
}

/// Copies what it needs of the user's; answers what could not be copied.
fn seed(brief: &Brief<'_>) -> Result<Vec<String>, DriverError> {
    let mut seed = Seed::open(NAME, brief, STATE, ".claude")?;
    for file in FILES {
        seed.file(file)?;
    }
    for folder in FOLDERS {
        seed.folder(folder)?;
    }
    seed.json(CREDENTIALS, |credentials| {
        if let Some(Value::Object(login)) = credentials.get_mut("claudeAiOauth") {
            login.shift_remove("refreshToken");
        }
    })?;
    let beside = named_folder(brief).or_else(|| brief.user_home.map(PathBuf::from));
    if let Some(beside) = beside.filter(|beside| beside != brief.home) {
        seed.fields(&beside.join(STATE_FILE), STATE_FILE, &STATE_FIELDS)?;
    }
    Ok(seed.into_notes())
}

/// What a message of the model says and does. A subagent's words are for the agent, not for the user.
fn told(object: &Map<String, Value>) -> Vec<Observed> {
    let is_subagent = object
        .get("parent_tool_use_id")
        .is_some_and(Value::is_string);
    let blocks = object
        .get("message")
        .and_then(|message| message.get("content")?.as_array());
    let blocks = blocks.into_iter().flatten().filter_map(Value::as_object);
    blocks
        .filter_map(|block| match word(block, "type") {
            "tool_use" => {
                let detail = block.get("input").map(telling).unwrap_or_default();
                Some(Observed::Action(text::action(word(block, "name"), detail)))
            }
            "text" if !is_subagent => {
                let said = text::said(word(block, "text"));
                (!said.is_empty()).then_some(Observed::Said(said))
            }
            _ => None,
        })
        .collect()
}

/// The field of a tool's input that tells what it does.
fn telling(input: &Value) -> &str {
    let mut fields = TELLING
        .iter()
        .filter_map(|field| input.get(field)?.as_str());
    fields.next().unwrap_or_default()
}

fn result(object: &Map<String, Value>) -> Vec<Observed> {
    let is_error = object.get("is_error").and_then(Value::as_bool);
    let ok = word(object, "subtype") == "success" && is_error == Some(false);
    let said = match word(object, "result") {
        "" => {
            let errors = object.get("errors").and_then(Value::as_array);
            let errors = errors.into_iter().flatten().filter_map(Value::as_str);
            let errors = errors.collect::<Vec<_>>().join("; ");
            match errors.as_str() {
                "" if !ok => word(object, "subtype").to_owned(),
                _ => errors,
            }
        }
        said => said.to_owned(),
    };
    vec![
        Observed::Usage(usage(object)),
        Observed::Finished {
            ok,
            text: text::said(&said),
        },
    ]
}

/// Everything of the conversation so far: `usage` is of the last turn alone, `modelUsage` of all of them.
fn usage(object: &Map<String, Value>) -> Usage {
    let number = |of: &Value, field: &str| of.get(field).and_then(Value::as_u64).unwrap_or(0);
    let sum = |of: &Value, fields: [&str; 3]| {
        let parts = fields.map(|field| number(of, field));
        parts.into_iter().fold(0, u64::saturating_add)
    };
    let mut used = Usage {
        cost_usd: object.get("total_cost_usd").and_then(Value::as_f64),
        ..Usage::default()
    };
    match object.get("modelUsage").and_then(Value::as_object) {
        Some(models) if !models.is_empty() => {
            for of in models.values() {
                let read = [
                    "inputTokens",
                    "cacheReadInputTokens",
                    "cacheCreationInputTokens",
                ];
                used.input_tokens = used.input_tokens.saturating_add(sum(of, read));
                let written = number(of, "outputTokens");
                used.output_tokens = used.output_tokens.saturating_add(written);
            }
        }
        _ => {
            let of = object.get("usage").unwrap_or(&Value::Null);
            let read = [
                "input_tokens",
                "cache_read_input_tokens",
                "cache_creation_input_tokens",
            ];
            used.input_tokens = sum(of, read);
            used.output_tokens = number(of, "output_tokens");
        }
    }
    used
}
