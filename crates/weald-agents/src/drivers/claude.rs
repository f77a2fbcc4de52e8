//! Claude Code: `claude -p` with JSON lines both ways, or its own interface on a terminal.
//!
//! Its own questions are off, because the sandbox holds it. Its state is private to the tree; what it gets of the user's
//! is a copy. It gets no refresh token: those are good for one use, and the user's own login would end with it.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use jiff::Zoned;
use serde_json::{Map, Value, json};
use weald_core::Timestamp;
use weald_core::agent::Usage;

use super::seeding::{self, Seed};
use super::text::word;
use super::typed::{Flags, Typed};
use super::{
    Brief, Called, Driver, DriverError, Form, Input, Observed, Returned, Start, TOOLS, Variable,
    limits, program, program_of, text, transcripts, typed,
};
use weald_control::claude_plugin;

mod login;

pub(super) const NAME: &str = "claude";

/// How its user logs in again.
const LOGIN: &str = "claude, then /login";

/// Where it keeps its state.
const STATE: &str = "CLAUDE_CONFIG_DIR";

/// What is copied of the user's folder at each start.
const FILES: [&str; 4] = [
    "CLAUDE.md",
    "keybindings.json",
    // These name folders of the user's, which can be read inside.
    "plugins/installed_plugins.json",
    "plugins/known_marketplaces.json",
];

const SETTINGS: &str = "settings.json";

/// What is copied of it once.
const FOLDERS: [&str; 7] = [
    "agents",
    "commands",
    "output-styles",
    "rules",
    "skills",
    "themes",
    "workflows",
];

/// What it knows of the user's project that the worktree is of: servers that they added for it, and those of the
/// repository's own that they allowed.
const PROJECT_FIELDS: [&str; 3] = [
    "mcpServers",
    "enabledMcpjsonServers",
    "disabledMcpjsonServers",
];

const CREDENTIALS: &str = ".credentials.json";

/// How many characters at the end of an API key it keeps of a key that its user approved.
const KEY_END: usize = 20;

/// Its file of everything else, and what is brought of that.
const STATE_FILE: &str = ".claude.json";
const STATE_FIELDS: [&str; 7] = [
    "hasCompletedOnboarding",
    "oauthAccount",
    "primaryApiKey",
    "customApiKeyResponses",
    "mcpServers",
    "theme",
    "editorMode",
];

/// Its transcripts: `projects/<the worktree's path>/<conversation>.jsonl`.
const TRANSCRIPTS: &str = "projects";

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

/// Its flags, as `claude --help` lists them.
const FLAGS: Flags = Flags {
    one: "agent agents append-system-prompt append-system-prompt-file autocompact debug-file effort environment fallback-model input-format json-schema max-budget-usd max-thinking-tokens max-turns model name output-format permission-mode permission-prompt-tool permission-prompts plugin-dir plugin-url remote-control-session-name-prefix session-id setting-sources settings system-prompt system-prompt-file system-prompt-snapshot",
    perhaps: "cloud debug from-pr prompt-suggestions remote-control resume teleport worktree",
    many: "add-dir allowedTools allowed-tools betas disallowedTools disallowed-tools file mcp-config tools",
    short: "c=continue d=debug h=help n=name p=print r=resume v=version w=worktree",
};

/// Its subcommands: no conversation.
const SUBCOMMANDS: [&str; 20] = [
    "agents",
    "attach",
    "auth",
    "auto-mode",
    "config",
    "doctor",
    "gateway",
    "import",
    "install",
    "logs",
    "mcp",
    "migrate-installer",
    "plugin",
    "plugins",
    "rm",
    "setup-token",
    "stop",
    "ultrareview",
    "update",
    "upgrade",
];

/// Flags that say what it may do without asking.
const PERMISSIONS: [&str; 3] = [
    "permission-mode",
    "dangerously-skip-permissions",
    "restricted",
];

/// Flags that choose a conversation.
const CONVERSATION: [&str; 5] = [
    "resume",
    "continue",
    "session-id",
    "fork-session",
    "from-pr",
];

/// Flags that make no sense in its own interface.
const HEADLESS: [&str; 4] = ["print", "output-format", "input-format", "verbose"];

const STREAM: &str = "stream-json";

/// The mode in which it asks nothing.
const BYPASS: &str = "bypassPermissions";

/// How many denied tools are named.
const DENIALS: usize = 20;

/// What an answer contains if weald's own hook refused the call.
const OWN_HOOK: &str = "[weald hook claude pre-tool-use]";

/// How many of those calls are remembered, and how long their ids may be.
const CALLS: usize = 1_000;

pub(super) struct Claude {
    program: OsString,
    typed: Typed,
    /// When the limit that it ran into is reset: its result does not repeat that.
    reset: Mutex<Option<Timestamp>>,
    /// Calls that weald's own hook refused, with the path to use instead.
    redirected: Mutex<BTreeSet<String>>,
}

impl Claude {
    /// For the words after `--`.
    pub(super) fn new(words: &[OsString]) -> Self {
        let (program, words) = program_of(NAME, words);
        let typed = Typed::parse(&words, &FLAGS);
        Self {
            program,
            typed,
            reset: Mutex::default(),
            redirected: Mutex::default(),
        }
    }

    fn note_redirected(&self, object: &Map<String, Value>) {
        let mut known = self.redirected.lock().expect("nobody panics with it");
        for block in blocks(object) {
            let answer = text::content(block.get("content"));
            let id = word(block, "tool_use_id");
            if answer.contains(OWN_HOOK) && known.len() < CALLS && id.len() < CALLS {
                known.insert(id.to_owned());
            }
        }
    }

    /// What to know if it was denied tools: it went on without what they were for. A call that weald's own hook led to the
    /// right worktree is none of these.
    fn denied(&self, object: &Map<String, Value>) -> Option<Observed> {
        let redirected = self.redirected.lock().expect("nobody panics with it");
        let is_redirected = |denial: &&Value| {
            let id = denial.get("tool_use_id").and_then(Value::as_str);
            id.is_some_and(|id| redirected.contains(id))
        };
        let denials = object.get("permission_denials")?.as_array()?.iter();
        let denials: Vec<_> = denials.filter(|denial| !is_redirected(denial)).collect();
        let names = denials
            .iter()
            .filter_map(|denial| denial.get("tool_name")?.as_str());
        let mut tools: Vec<_> = names
            .take(DENIALS)
            .map(|name| text::action(name, ""))
            .collect();
        tools.sort();
        tools.dedup();
        let count = match denials.len() {
            0 => return None,
            1 => "a tool call".to_owned(),
            count => format!("{count} tool calls"),
        };
        Some(Observed::Unfit(format!(
            "Claude Code was denied {count} ({}), so its work may be incomplete; allow them in `permissions` of your settings of Claude Code, then resume it",
            tools.join(", ")
        )))
    }

    /// What weald adds in every form, unless it was typed.
    fn added(&self, brief: &Brief<'_>, typed: &mut Typed) -> Vec<OsString> {
        let mut added: Vec<OsString> = Vec::new();
        if brief.with_tools {
            let tools = tools(brief).to_string();
            if !typed.add_value("mcp-config", OsStr::new(&tools)) {
                // Written so, it takes no further word.
                added.push(format!("--mcp-config={tools}").into());
            }
        }
        if !typed.has(&PERMISSIONS) {
            added.push("--dangerously-skip-permissions".into());
        }
        if let Some(model) = brief.model.filter(|_| !typed.has(&["model"])) {
            added.extend(["--model", model].map(OsString::from));
        }
        added
    }
}

impl Claude {
    /// What to know if it started in another permission mode than it was asked to.
    fn wrong_mode(&self, mode: &str) -> Option<Observed> {
        let asked = match self.typed.value("permission-mode") {
            // It calls the same by another name.
            Some("manual") => "default",
            Some(asked) => asked,
            None if self.typed.has(&["restricted"]) => return None,
            None => BYPASS,
        };
        if mode.is_empty() || mode == asked {
            return None;
        }
        let cause = match asked {
            BYPASS => {
                "`permissions.disableBypassPermissionsMode` does that, in your or the managed settings of Claude Code: remove it, or choose a mode (weald work TASK -- claude --permission-mode acceptEdits)"
            }
            _ => "check the permissions in your and the managed settings of Claude Code",
        };
        let mode = text::action(mode, "");
        Some(Observed::Unfit(format!(
            "Claude Code started in permission mode `{mode}` instead of `{asked}`, so it would be denied its tools; {cause}"
        )))
    }
}

impl Driver for Claude {
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
        let first = self.typed.first_plain();
        !first.is_some_and(|word| SUBCOMMANDS.contains(&word))
    }

    fn typed_model(&self) -> Option<&str> {
        self.typed.value("model")
    }

    fn start(&self, brief: &Brief<'_>) -> Result<Start, DriverError> {
        let mut typed = self.typed.clone();
        let mut command = vec![self.program.clone()];
        let added = self.added(brief, &mut typed);
        if let Some(conversation) = brief.conversation {
            text::require_conversation(NAME, conversation)?;
            // What was typed chose how the conversation began.
            typed.drop(&CONVERSATION);
        }
        let resumes = brief.conversation.into_iter();
        let resumes = resumes.flat_map(|id| ["--resume", id].map(OsString::from));
        let mut input = Input::Nothing;
        match brief.form {
            Form::Typed => {
                command.extend(added);
                command.extend(typed.into_words());
            }
            Form::Interactive => {
                let prompt = typed::joined(brief.prompt, typed.take_prompt().as_deref());
                typed.drop(&HEADLESS);
                let is_new = brief.conversation.is_none() && !typed.has(&CONVERSATION[..2]);
                command.extend(added);
                command.extend(resumes);
                command.extend(typed.into_words());
                if is_new {
                    command.extend(["--".into(), text::as_argument(&prompt, brief)]);
                }
            }
            Form::Headless => {
                typed.drop(&["print"]);
                let prompt = typed::joined(brief.prompt, typed.take_prompt().as_deref());
                let given = |flag: &str| typed.value(flag).map(str::to_owned);
                let (output, read) = (given("output-format"), given("input-format"));
                command.push("-p".into());
                if output.is_none() {
                    command.extend(["--output-format", STREAM].map(OsString::from));
                }
                // Its other kinds of output don't go with lines in.
                let is_stream = output.is_none_or(|output| output == STREAM);
                if is_stream && read.is_none() {
                    command.extend(["--input-format", STREAM].map(OsString::from));
                }
                if is_stream && !typed.has(&["verbose"]) {
                    command.push("--verbose".into());
                }
                let is_open = read.map_or(is_stream, |read| read == STREAM);
                input = match is_open {
                    true => Input::Open(message(&prompt)),
                    false => Input::Text(prompt.into_bytes()),
                };
                command.extend(added);
                command.extend(resumes);
                command.extend(typed.into_words());
            }
        }
        let mut notes = seed(brief)?;
        if !self.typed.has(&PERMISSIONS) {
            notes.push(
                "Claude Code runs without permission prompts: the sandbox confines it to its worktree"
                    .to_owned(),
            );
        }
        Ok(Start {
            command,
            environment: vec![
                (STATE.into(), brief.home.into()),
                ("DISABLE_AUTOUPDATER".into(), "1".into()),
                // Without it, it would not go without questions as root.
                ("IS_SANDBOX".into(), "1".into()),
            ],
            input,
            notes,
        })
    }

    fn read(&self, line: &[u8]) -> Vec<Observed> {
        let Some(object) = text::object(line) else {
            return vec![Observed::Raw];
        };
        text::or_raw(match word(&object, "type") {
            "system" if word(&object, "subtype") == "init" => {
                let mut observed = text::conversation(&object, "session_id");
                observed.extend(self.wrong_mode(word(&object, "permissionMode")));
                observed
            }
            "assistant" => message_used(&object)
                .into_iter()
                .chain(said_and_called(&object))
                .collect(),
            "user" => {
                self.note_redirected(&object);
                results(&object)
            }
            "system" if word(&object, "subtype") == "api_retry" => limits::claude_retry(&object)
                .map(Observed::Barred)
                .into_iter()
                .collect(),
            "rate_limit_event" => {
                *self.reset.lock().expect("nobody panics with it") = limits::claude_reset(&object);
                Vec::new()
            }
            "result" => {
                let reset = *self.reset.lock().expect("nobody panics with it");
                let barred = limits::claude_result(&object, reset, &Zoned::now());
                let barred = barred.map(Observed::Barred).into_iter();
                barred
                    .chain(result(&object))
                    .chain(self.denied(&object))
                    .collect()
            }
            _ => Vec::new(),
        })
    }

    fn require_login(
        &self,
        user_home: Option<&Path>,
        variable: &Variable<'_>,
        now: Timestamp,
    ) -> Result<(), DriverError> {
        match login::has_expired(user_home, variable, now) {
            true => Err(DriverError::LoggedOut {
                driver: NAME.to_owned(),
                command: LOGIN,
            }),
            false => Ok(()),
        }
    }

    fn login_command(&self) -> Option<&'static str> {
        Some(LOGIN)
    }

    fn login_file(&self, user_home: Option<&Path>, variable: &Variable<'_>) -> Option<PathBuf> {
        login::folder(user_home, variable).map(|folder| folder.join(CREDENTIALS))
    }

    fn renew_login(&self, brief: &Brief<'_>) -> Result<(), DriverError> {
        bring_login(&mut Seed::open(NAME, brief, STATE, ".claude")?)
    }

    fn secrets(&self) -> &'static [&'static str] {
        &[CREDENTIALS]
    }

    fn forget(&self, home: &Path) -> Vec<String> {
        let mut failed = seeding::forget_files(home, &[CREDENTIALS]);
        // What it logs in with, and what its user's servers log in with.
        failed.extend(seeding::forget_in(home, STATE_FILE, |own| {
            own.shift_remove("primaryApiKey");
            own.shift_remove("mcpServers");
            let projects = own.get_mut("projects").and_then(Value::as_object_mut);
            for project in projects.into_iter().flat_map(Map::values_mut) {
                let project = project.as_object_mut();
                project.map(|project| project.shift_remove("mcpServers"));
            }
        }));
        failed
    }

    fn is_interactive(&self) -> bool {
        true
    }

    fn conversation_in(&self, home: &Path) -> Option<String> {
        transcripts::newest(home, TRANSCRIPTS, 1, |name| name.strip_suffix(".jsonl"))
    }

    fn say(&self, text: &str) -> Option<Vec<u8>> {
        Some(message(text))
    }
}

/// weald's tools, in addition to the user's own servers. Claude Code leaves out a plugin's server that is started by the
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

/// Copies the user's login without its refresh token.
fn bring_login(seed: &mut Seed<'_>) -> Result<(), DriverError> {
    seed.login(CREDENTIALS, |credentials| {
        if let Some(Value::Object(login)) = credentials.get_mut("claudeAiOauth") {
            login.shift_remove("refreshToken");
        }
    })
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
    seed.made_json(SETTINGS, |settings| {
        // Claude Code remembers an answer here.
        settings.insert("skipDangerousModePermissionPrompt".to_owned(), true.into());
        if !brief.user_hooks {
            settings.shift_remove("hooks");
        }
    })?;
    bring_login(&mut seed)?;
    let folder = named_folder(brief).or_else(|| brief.user_home.map(PathBuf::from));
    let folder = folder.filter(|folder| folder != brief.home);
    let users = folder.map(|folder| folder.join(STATE_FILE));
    seed.state(users.as_deref(), STATE_FILE, |users, own| {
        for field in STATE_FIELDS {
            match users.get(field) {
                Some(value) => own.insert(field.to_owned(), value.clone()),
                None => own.shift_remove(field),
            };
        }
        answer_questions(brief, own);
        let projects = users.get("projects").and_then(Value::as_object);
        let of_user = projects.and_then(|all| all.get(&*brief.project.to_string_lossy()));
        let project = entry(entry(own, "projects"), &brief.tree.to_string_lossy());
        for field in PROJECT_FIELDS {
            match of_user.and_then(|of_user| of_user.get(field)) {
                Some(value) => project.insert(field.to_owned(), value.clone()),
                None => project.shift_remove(field),
            };
        }
    })?;
    Ok(seed.into_notes())
}

/// Answers what its interface would ask first. None of it is a guard here: `claude -p` asks none of it either, and the
/// sandbox confines what a worktree's own settings start.
fn answer_questions(brief: &Brief<'_>, own: &mut Map<String, Value>) {
    for done in ["hasCompletedOnboarding", "bypassPermissionsModeAccepted"] {
        own.insert(done.to_owned(), true.into());
    }
    let project = entry(entry(own, "projects"), &brief.tree.to_string_lossy());
    for done in ["hasTrustDialogAccepted", "hasCompletedProjectOnboarding"] {
        project.insert(done.to_owned(), true.into());
    }
    let Some(key) = (brief.variable)("ANTHROPIC_API_KEY").and_then(|key| key.into_string().ok())
    else {
        return;
    };
    // It knows a key by its end.
    let start = key.char_indices().rev().nth(KEY_END - 1);
    let known = Value::from(&key[start.map_or(0, |(start, _)| start)..]);
    let answers = entry(own, "customApiKeyResponses");
    let holds = |list: &str| {
        let list = answers.get(list).and_then(Value::as_array);
        list.is_some_and(|list| list.contains(&known))
    };
    if !holds("approved") && !holds("rejected") {
        let approved = answers.get("approved").and_then(Value::as_array);
        let mut approved = approved.cloned().unwrap_or_default();
        approved.push(known);
        answers.insert("approved".to_owned(), approved.into());
    }
}

/// The object in a field; whatever else is there is replaced.
fn entry<'o>(object: &'o mut Map<String, Value>, field: &str) -> &'o mut Map<String, Value> {
    let found = object.entry(field).or_insert(Value::Null);
    if !found.is_object() {
        *found = Value::Object(Map::new());
    }
    found.as_object_mut().expect("it is an object now")
}

/// What a message of the model says and does. A subagent's words are for the agent, not for the user.
fn said_and_called(object: &Map<String, Value>) -> Vec<Observed> {
    let within = object.get("parent_tool_use_id").and_then(Value::as_str);
    let within = within.map(text::id);
    let observed = blocks(object).filter_map(|block| match word(block, "type") {
        "tool_use" => Some(Observed::Called(Called {
            id: text::id(word(block, "id")),
            tool: text::id(word(block, "name")),
            detail: text::said(block.get("input").map(telling).unwrap_or_default()),
            within: within.clone(),
        })),
        "text" => {
            let said = text::said(word(block, "text"));
            let is_empty = said.is_empty();
            let observed = match within.clone() {
                Some(within) => Observed::Within { within, said },
                None => Observed::Said(said),
            };
            (!is_empty).then_some(observed)
        }
        _ => None,
    });
    observed.collect()
}

/// What tools answered.
fn results(object: &Map<String, Value>) -> Vec<Observed> {
    let answers = blocks(object).filter(|block| word(block, "type") == "tool_result");
    let answers = answers.map(|block| {
        let ok = block.get("is_error").and_then(Value::as_bool) != Some(true);
        let whole = text::said(&text::content(block.get("content")));
        let (code, text) = match exit_code(&whole).filter(|_| !ok) {
            Some((code, text)) => (Some(code), text.to_owned()),
            None => (None, whole),
        };
        Observed::Returned(Returned {
            id: text::id(word(block, "tool_use_id")),
            ok,
            code,
            text,
        })
    });
    answers.collect()
}

/// The exit code of a command that failed, and its output, by the words that Claude puts before that.
fn exit_code(text: &str) -> Option<(i64, &str)> {
    let rest = text.strip_prefix("Exit code ")?;
    let (code, text) = rest.split_once('\n').unwrap_or((rest, ""));
    Some((code.trim().parse().ok()?, text))
}

fn blocks(object: &Map<String, Value>) -> impl Iterator<Item = &Map<String, Value>> {
    let blocks = object
        .get("message")
        .and_then(|message| message.get("content")?.as_array());
    blocks.into_iter().flatten().filter_map(Value::as_object)
}

/// What a message used, as far as that is known before its end. Each of its parts says it.
fn message_used(object: &Map<String, Value>) -> Option<Observed> {
    let message = object.get("message")?.as_object()?;
    let (id, model) = (word(message, "id"), word(message, "model"));
    // Claude Code's own words are no model's.
    let is_models = !id.is_empty() && id.len() <= 100 && !model.starts_with('<');
    let usage = message.get("usage").filter(|_| is_models)?;
    Some(Observed::Message {
        id: id.to_owned(),
        model: model.to_owned(),
        usage: used(usage, MESSAGE_FIELDS, "output_tokens", "cost"),
    })
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
    let models = by_model(object);
    let all = Observed::Usage(usage(object, &models));
    let models = models
        .into_iter()
        .map(|(model, usage)| Observed::Model { model, usage });
    let finished = Observed::Finished {
        ok,
        text: text::said(&said),
    };
    models.chain([all, finished]).collect()
}

/// What is read of a message's use, and of a model's in a total.
const MESSAGE_FIELDS: [&str; 3] = [
    "input_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
];
const MODEL_FIELDS: [&str; 3] = [
    "inputTokens",
    "cacheReadInputTokens",
    "cacheCreationInputTokens",
];

fn used(of: &Value, read: [&str; 3], written: &str, cost: &str) -> Usage {
    let number = |field: &str| of.get(field).and_then(Value::as_u64).unwrap_or(0);
    Usage {
        input_tokens: read.map(number).into_iter().fold(0, u64::saturating_add),
        output_tokens: number(written),
        cost_usd: of.get(cost).and_then(Value::as_f64),
    }
    .believed()
}

/// Everything of the conversation so far, by model.
fn by_model(object: &Map<String, Value>) -> Vec<(String, Usage)> {
    let models = object.get("modelUsage").and_then(Value::as_object);
    let models = models.into_iter().flatten().take(32);
    models
        .map(|(model, of)| {
            (
                model.clone(),
                used(of, MODEL_FIELDS, "outputTokens", "costUSD"),
            )
        })
        .collect()
}

/// The same in all. `usage` is of the last turn alone.
fn usage(object: &Map<String, Value>, models: &[(String, Usage)]) -> Usage {
    let all = match models {
        [] => used(
            object.get("usage").unwrap_or(&Value::Null),
            MESSAGE_FIELDS,
            "output_tokens",
            "cost",
        ),
        models => models
            .iter()
            .map(|(_, usage)| *usage)
            .fold(Usage::default(), Usage::plus),
    };
    Usage {
        cost_usd: object.get("total_cost_usd").and_then(Value::as_f64),
        ..all
    }
    .believed()
}
