//! Codex: `codex exec` with JSON lines out and the prompt in, or its own interface on a terminal.
//!
//! Its own sandbox and questions are off, because ours is on. Its state is private to the tree; what it gets of the
//! user's is a copy, without the refresh token, which is good for one use. It takes no message while it works.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use jiff::Zoned;
use serde_json::{Map, Value, json};
use weald_core::agent::Usage;

use super::seeding::Seed;
use super::text::word;
use super::typed::{Flags, Typed};
use super::{
    Brief, Called, Driver, DriverError, Form, Input, Observed, Returned, Start, TOOLS, Variable,
    limits, program, program_of, text, transcripts, typed,
};
use weald_control::identity::KNOWN_BY;

pub(super) const NAME: &str = "codex";

/// Where it keeps its state.
const STATE: &str = "CODEX_HOME";

/// What is copied of the user's folder at each start.
const FILES: [&str; 2] = ["AGENTS.md", "AGENTS.override.md"];

const CONFIG: &str = "config.toml";

/// What of that starts programs of the user's at events.
const HOOKS: [&str; 2] = ["hooks", "notify"];

/// The file of its hooks.
const HOOKS_FILE: &str = "hooks.json";

/// What is copied of it once.
const FOLDERS: [&str; 5] = ["agents", "plugins", "prompts", "rules", "skills"];

const CREDENTIALS: &str = "auth.json";

/// Its transcripts: `sessions/2026/11/03/rollout-<time>-<conversation>.jsonl`.
const TRANSCRIPTS: &str = "sessions";

/// Its flags, as `codex --help` and `codex exec --help` list them.
const FLAGS: Flags = Flags {
    one: "add-dir ask-for-approval cd color config cyber-access-program disable enable local-provider model output-last-message output-schema profile remote remote-auth-token-env sandbox thread-source",
    perhaps: "",
    many: "image",
    short: "a=ask-for-approval C=cd c=config h=help i=image m=model o=output-last-message p=profile s=sandbox V=version",
};

/// Its subcommands that are no conversation of this worktree's.
const SUBCOMMANDS: [&str; 29] = [
    "a",
    "agents",
    "app-server",
    "apply",
    "archive",
    "cloud",
    "completion",
    "debug",
    "delete",
    "doctor",
    "exec-server",
    "execpolicy",
    "features",
    "fork",
    "help",
    "login",
    "logout",
    "mcp",
    "mcp-server",
    "migrate-nfs-db",
    "migrate-rollouts",
    "plugin",
    "queue",
    "remote-control",
    "review",
    "sandbox",
    "unarchive",
    "update",
    "upgrade",
];

/// Flags that say how its own sandbox holds it, and what it asks.
const GUARDS: [&str; 6] = [
    "sandbox",
    "ask-for-approval",
    "approve-for-me",
    "full-auto",
    "dangerously-bypass-approvals-and-sandbox",
    "yolo",
];

/// Flags of `codex exec` that its own interface does not have.
const HEADLESS: [&str; 9] = [
    "json",
    "skip-git-repo-check",
    "ephemeral",
    "ignore-user-config",
    "ignore-rules",
    "output-schema",
    "color",
    "output-last-message",
    "thread-source",
];

/// What was typed.
struct Shape {
    /// Flags before the subcommand.
    before: Typed,
    /// Whether that is `exec`, and what follows.
    exec: Option<Typed>,
    /// What follows `resume`.
    resume: Option<Typed>,
}

impl Shape {
    /// Nothing where it is no conversation.
    fn of(typed: &Typed) -> Option<Self> {
        let (before, behind) = typed.split();
        let is_exec = matches!(typed.first_plain(), Some("exec" | "e"));
        let inner = if is_exec { &behind } else { typed };
        let resume = (inner.first_plain() == Some("resume")).then(|| inner.split());
        let is_other = inner
            .first_plain()
            .is_some_and(|word| SUBCOMMANDS.contains(&word));
        if is_other {
            return None;
        }
        let (flags, resume) = match resume {
            Some((flags, resume)) => (flags, Some(resume)),
            None => (inner.clone(), None),
        };
        Some(match is_exec {
            true => Self {
                before,
                exec: Some(flags),
                resume,
            },
            false => Self {
                before: flags,
                exec: None,
                resume,
            },
        })
    }

    fn parts(&mut self) -> impl Iterator<Item = &mut Typed> {
        let all = [
            Some(&mut self.before),
            self.exec.as_mut(),
            self.resume.as_mut(),
        ];
        all.into_iter().flatten()
    }

    /// Takes out what is no flag: which conversation is resumed, and the prompt.
    fn take_words(&mut self) -> (Vec<OsString>, Option<String>) {
        let mut chosen = Vec::new();
        let mut prompts = Vec::new();
        if let Some(resume) = &mut self.resume {
            let is_named = !resume.has(&["last"]);
            let at = resume.parts.iter().position(|part| part.name.is_empty());
            if let Some(at) = at.filter(|_| is_named) {
                chosen = resume.parts.remove(at).words;
            }
        }
        for part in self.parts() {
            // `-` is where the prompt comes from.
            prompts.extend(part.take_prompt().filter(|prompt| prompt != "-"));
        }
        (
            chosen,
            Some(prompts.join(" ")).filter(|prompt| !prompt.is_empty()),
        )
    }
}

pub(super) struct Codex {
    program: OsString,
    typed: Typed,
    /// Its last words: the line that ends a turn does not repeat them.
    last: Mutex<String>,
}

impl Codex {
    /// For the words after `--`.
    pub(super) fn new(words: &[OsString]) -> Self {
        let (program, words) = program_of(NAME, words);
        Self {
            program,
            typed: Typed::parse(&words, &FLAGS),
            last: Mutex::default(),
        }
    }

    /// What weald adds in every form, unless it was typed.
    fn added(&self, brief: &Brief<'_>) -> Vec<OsString> {
        let mut added: Vec<OsString> = Vec::new();
        if !self.typed.has(&GUARDS) {
            added.push("--dangerously-bypass-approvals-and-sandbox".into());
        }
        if brief.with_tools {
            added.extend(tools());
        }
        if let Some(model) = brief.model.filter(|_| !self.typed.has(&["model"])) {
            added.extend(["--model", model].map(OsString::from));
        }
        added
    }

    /// As its user typed it, with what weald adds behind the subcommand, whose flags these are.
    fn as_typed(&self, brief: &Brief<'_>) -> Vec<OsString> {
        let first = self.typed.first_plain();
        let added = self.added(brief);
        let mut words = Vec::new();
        let rest = match first {
            Some(sub @ ("exec" | "e" | "resume")) => {
                let (before, rest) = self.typed.split();
                words.extend(before.into_words());
                words.push(sub.into());
                rest
            }
            _ => self.typed.clone(),
        };
        if !matches!(first, Some("exec" | "e")) {
            words.extend(quiet_start(brief.tree));
        }
        words.extend(added);
        words.extend(rest.into_words());
        words
    }
}

impl Driver for Codex {
    fn name(&self) -> &str {
        NAME
    }

    fn require(&self, variable: &Variable<'_>) -> Result<(), DriverError> {
        program::require(NAME, &self.program.to_string_lossy(), variable)
    }

    fn program(&self) -> Option<&Path> {
        Some(Path::new(&self.program)).filter(|program| program.is_absolute())
    }

    fn trusted_program(&self) -> Option<&OsStr> {
        Some(&self.program)
    }

    fn converses(&self) -> bool {
        Shape::of(&self.typed).is_some()
    }

    fn typed_model(&self) -> Option<&str> {
        self.typed.value("model")
    }

    fn start(&self, brief: &Brief<'_>) -> Result<Start, DriverError> {
        let mut command = vec![self.program.clone()];
        let mut input = Input::Nothing;
        let mut shape = match (brief.form, Shape::of(&self.typed)) {
            (Form::Headless | Form::Interactive, Some(shape)) => shape,
            _ => {
                command.extend(self.as_typed(brief));
                return self.begun(brief, command, input);
            }
        };
        if let Some(conversation) = brief.conversation {
            text::require_conversation(NAME, conversation)?;
        }
        let (chosen, prompt) = shape.take_words();
        let prompt = typed::joined(brief.prompt, prompt.as_deref());
        let is_headless = brief.form == Form::Headless;
        for part in shape.parts() {
            part.drop(if is_headless {
                &HEADLESS[..2]
            } else {
                &HEADLESS
            });
        }
        command.extend(shape.before.into_words());
        match is_headless {
            true => command.extend(["exec", "--json", "--skip-git-repo-check"].map(Into::into)),
            false => command.extend(quiet_start(brief.tree)),
        }
        if !self.typed.has(&["cd"]) {
            command.extend(["-C".into(), brief.tree.into()]);
        }
        command.extend(self.added(brief));
        command.extend(shape.exec.map(Typed::into_words).into_iter().flatten());
        let resume = match (brief.conversation, shape.resume) {
            // What was typed chose how the conversation began.
            (Some(conversation), _) => Some(vec![conversation.into()]),
            (None, Some(resume)) => Some([chosen, resume.into_words()].concat()),
            (None, None) => None,
        };
        let is_new = resume.is_none();
        if let Some(words) = resume {
            command.push("resume".into());
            command.extend(words);
        }
        if is_headless {
            command.push("-".into());
            input = Input::Text(prompt.into_bytes());
        } else if is_new {
            command.extend(["--".into(), text::as_argument(&prompt, brief)]);
        }
        self.begun(brief, command, input)
    }

    fn read(&self, line: &[u8]) -> Vec<Observed> {
        let Some(object) = text::object(line) else {
            return vec![Observed::Raw];
        };
        let item = object.get("item").and_then(Value::as_object);
        text::or_raw(match (word(&object, "type"), item) {
            ("thread.started", _) => text::conversation(&object, "thread_id"),
            ("item.started", Some(item)) => called(item),
            ("item.completed", Some(item)) => self.completed(item),
            ("turn.completed", _) => vec![
                Observed::Model {
                    model: String::new(),
                    usage: usage(&object),
                },
                Observed::Usage(usage(&object)),
                Observed::Finished {
                    ok: true,
                    text: self.last_words(),
                },
            ],
            ("error", _) => limits::codex_retry(word(&object, "message"))
                .map(Observed::Barred)
                .into_iter()
                .collect(),
            ("turn.failed", _) => {
                let why = object
                    .get("error")
                    .and_then(|error| error.get("message")?.as_str());
                let barred = why.and_then(|why| limits::codex_failure(why, &Zoned::now()));
                let finished = Observed::Finished {
                    ok: false,
                    text: text::said(why.unwrap_or("the turn failed")),
                };
                let barred = barred.map(Observed::Barred).into_iter();
                barred.chain([finished]).collect()
            }
            _ => Vec::new(),
        })
    }

    fn login_command(&self) -> Option<&'static str> {
        Some("codex login")
    }

    fn login_file(&self, user_home: Option<&Path>, variable: &Variable<'_>) -> Option<PathBuf> {
        let named = variable(STATE).filter(|folder| !folder.is_empty());
        let folder = named.map(PathBuf::from);
        let folder = folder.or_else(|| Some(user_home?.join(".codex")))?;
        Some(folder.join(CREDENTIALS))
    }

    fn renew_login(&self, brief: &Brief<'_>) -> Result<(), DriverError> {
        bring_login(&mut Seed::open(NAME, brief, STATE, ".codex")?)
    }

    fn secrets(&self) -> &'static [&'static str] {
        &[CREDENTIALS]
    }

    fn say(&self, _text: &str) -> Option<Vec<u8>> {
        None
    }

    fn is_interactive(&self) -> bool {
        true
    }

    fn conversation_in(&self, home: &Path) -> Option<String> {
        transcripts::newest(home, TRANSCRIPTS, 3, |name| {
            let name = name.strip_prefix("rollout-")?.strip_suffix(".jsonl")?;
            name.get(name.len().checked_sub(36)?..)
        })
    }
}

/// What keeps its interface from asking and from leaving: whether to trust the worktree and to update, and a server of its
/// own that would outlive the run. Settings, because an unknown one does no harm to another version.
fn quiet_start(tree: &Path) -> impl Iterator<Item = OsString> {
    let tree = json!(tree.to_string_lossy());
    let settings = [
        "check_for_update_on_startup=false".to_owned(),
        "features.daemon_auto_start=false".to_owned(),
        format!("projects={{{tree}={{trust_level=\"trusted\"}}}}"),
    ];
    let words = settings
        .into_iter()
        .flat_map(|word| ["-c".to_owned(), word]);
    words.map(OsString::from)
}

/// weald's tools, beside the servers of the user's own. It passes a server only the variables that are named.
fn tools() -> impl Iterator<Item = OsString> {
    let (program, arguments) = TOOLS;
    let settings = [
        format!("command={}", json!(program)),
        format!("args={}", json!(arguments)),
        format!("env_vars={}", json!(KNOWN_BY)),
    ];
    let server = settings.map(|setting| format!("mcp_servers.{program}.{setting}"));
    // A login shell has a search path of its own, which need not lead to weald.
    let shell = "allow_login_shell=false".to_owned();
    let words = server
        .into_iter()
        .chain([shell])
        .flat_map(|word| ["-c".to_owned(), word]);
    words.map(OsString::from)
}

impl Codex {
    fn begun(
        &self,
        brief: &Brief<'_>,
        command: Vec<OsString>,
        input: Input,
    ) -> Result<Start, DriverError> {
        let mut notes = seed(brief)?;
        if !self.typed.has(&GUARDS) {
            notes.push(
                "Codex's own sandbox and approvals are off: weald's sandbox confines it to its worktree"
                    .to_owned(),
            );
        }
        Ok(Start {
            command,
            environment: vec![(STATE.into(), brief.home.into())],
            input,
            notes,
        })
    }

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
            "file_change" => [called(item), returned(item)].concat(),
            "web_search" => called(item),
            "command_execution" | "mcp_tool_call" => returned(item),
            "error" => vec![Observed::Complained(text::said(word(item, "message")))],
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

/// A TOML text without some of its top-level keys.
fn without(text: &str, keys: &[&str]) -> Result<String, String> {
    let mut document: toml_edit::DocumentMut = text
        .parse()
        .map_err(|error: toml_edit::TomlError| error.message().to_owned())?;
    for key in keys {
        document.remove(key);
    }
    Ok(document.to_string())
}

/// Copies what it needs of the user's; answers what could not be copied.
fn seed(brief: &Brief<'_>) -> Result<Vec<String>, DriverError> {
    let mut seed = Seed::open(NAME, brief, STATE, ".codex")?;
    for file in FILES {
        seed.file(file)?;
    }
    seed.text(CONFIG, |text| match brief.user_hooks {
        true => Ok(text.to_owned()),
        false => without(text, &HOOKS),
    })?;
    match brief.user_hooks {
        true => seed.file(HOOKS_FILE)?,
        false => seed.remove(HOOKS_FILE)?,
    }
    for folder in FOLDERS {
        seed.folder(folder)?;
    }
    bring_login(&mut seed)?;
    Ok(seed.into_notes())
}

/// Copies the user's login without its refresh token.
fn bring_login(seed: &mut Seed<'_>) -> Result<(), DriverError> {
    seed.login(CREDENTIALS, |credentials| {
        if let Some(Value::Object(tokens)) = credentials.get_mut("tokens") {
            // It can't read the file without the field.
            tokens.insert("refresh_token".to_owned(), "".into());
        }
    })
}

/// What an item does.
fn called(item: &Map<String, Value>) -> Vec<Observed> {
    let (tool, detail) = match word(item, "type") {
        "command_execution" => ("Shell", unwrapped(word(item, "command"))),
        "file_change" => ("Edit", changed(item)),
        "mcp_tool_call" => (word(item, "server"), word(item, "tool").to_owned()),
        "web_search" => ("Search", word(item, "query").to_owned()),
        _ => return Vec::new(),
    };
    vec![Observed::Called(Called {
        id: text::id(word(item, "id")),
        tool: text::id(tool),
        detail: text::said(&detail),
        within: None,
    })]
}

/// What came of it.
fn returned(item: &Map<String, Value>) -> Vec<Observed> {
    let answer = item.get("result").and_then(|result| result.get("content"));
    let why = item
        .get("error")
        .and_then(|error| error.get("message")?.as_str());
    let text = match (word(item, "aggregated_output"), why) {
        ("", Some(why)) => why.to_owned(),
        ("", None) => text::content(answer),
        (output, _) => output.to_owned(),
    };
    let code = item.get("exit_code").and_then(Value::as_i64);
    vec![Observed::Returned(Returned {
        id: text::id(word(item, "id")),
        ok: word(item, "status") == "completed",
        code: code.filter(|code| *code != 0),
        text: text::said(&text),
    })]
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
    .believed()
}
