//! The contract that Claude Code's hooks and those of others share. One JSON object comes on stdin; stdout holds what the
//! event wants and nothing else; 0 is done, 2 stops what the agent is about to do, and anything else is an error that it
//! only shows.
//!
//! An error of weald's own must not stop the agent, so it exits with 1. Only `pre-tool-use` can stop an edit, and there
//! `hook.on_error` decides: allow (the default) or block.

use std::io::{self, Write};
use std::path::PathBuf;

use serde_json::{Value, json};
use weald_app::{
    App, Failure, Place, claude_session, codex_session, exit, load_config, load_own_config,
};
use weald_core::claude::HookInput;
use weald_core::config::OnError;
use weald_core::name::SessionName;

use super::conversation::{self, Said};
use super::side::Side;
use crate::context::Context;
use crate::ui::{Fields, Format, Ui};

/// The code with which a hook stops what the agent is about to do.
pub const STOPS: u8 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Client {
    Claude,
    Codex,
}

impl Client {
    /// As `weald install` and `weald hook` call it.
    fn word(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
        }
    }

    /// What its conversation of this id is called.
    fn session(self, id: &str) -> Option<SessionName> {
        match self {
            Self::Claude => claude_session(id),
            Self::Codex => codex_session(id),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    WorktreeCreate,
    WorktreeRemove,
    SessionStart,
    PreToolUse,
    PostToolUse,
    Stop,
}

impl Event {
    /// Whether it is a moment of a conversation, not of a worktree.
    pub(super) fn is_of_conversation(self) -> bool {
        !matches!(self, Self::WorktreeCreate | Self::WorktreeRemove)
    }

    /// Not by clap, whose exit code for a word it does not know would stop the agent.
    fn named(text: &str, client: Client) -> Result<Self, Failure> {
        Ok(match text {
            "worktree-create" => Self::WorktreeCreate,
            "worktree-remove" => Self::WorktreeRemove,
            "session-start" => Self::SessionStart,
            "pre-tool-use" => Self::PreToolUse,
            "post-tool-use" => Self::PostToolUse,
            "stop" => Self::Stop,
            other => return Err(Failure::unknown_hook(other, client.word())),
        })
    }
}

/// Answers one call by the contract.
pub(super) fn perform(
    event: &str,
    client: Client,
    context: &Context<'_>,
    act: impl Fn(Event, &Moment<'_>) -> Result<u8, Failure>,
) -> Result<u8, Failure> {
    // stdout belongs to the contract, whatever flags say.
    let ui = Ui::new(Format::Plain, clap::ColorChoice::Never);
    let event = match Event::named(event, client) {
        Ok(event) => event,
        Err(failure) => return Ok(ui.failure(&failure)),
    };
    let input = HookInput::read(io::stdin().lock()).map_err(Failure::from);
    let mut here = None;
    let done = input.and_then(|input| {
        here = input.cwd.clone();
        let app = app_of(context, &input, client);
        let context = Context::new(&app, &ui);
        act(event, &Moment { context, input })
    });
    done.or_else(|failure| {
        ui.failure(&failure);
        Ok(match event {
            Event::PreToolUse if blocks_on_error(context, here) => STOPS,
            Event::PreToolUse => exit::DONE,
            _ => exit::REFUSED,
        })
    })
}

/// One call of a hook.
pub struct Moment<'a> {
    /// Where the conversation is, and in its name.
    pub context: Context<'a>,
    pub input: HookInput,
}

/// Where the conversation is, and in its name.
fn app_of(context: &Context<'_>, input: &HookInput, client: Client) -> App {
    let directory = input.cwd.clone().filter(|cwd| cwd.is_dir());
    let directory = directory.or_else(|| project(context));
    let directory = directory.unwrap_or_else(|| context.directory().clone());
    let session = input
        .session_id
        .as_deref()
        .and_then(|id| client.session(id));
    context.for_hook(directory, Vec::new(), session)
}

impl Moment<'_> {
    /// Where the conversation began.
    pub fn project(&self) -> Option<PathBuf> {
        project(&self.context)
    }

    /// The user's folder of Claude Code.
    pub fn own_folder(&self) -> Option<PathBuf> {
        let environment = &self.context.environment;
        let named = environment
            .get("CLAUDE_CONFIG_DIR")
            .filter(|text| !text.is_empty());
        let default = || Some(environment.home()?.join(".claude"));
        named.map(PathBuf::from).or_else(default)
    }

    /// Where Claude Code itself keeps plans, memories and scratch files, which are nobody's work.
    pub fn own_folders(&self) -> Vec<PathBuf> {
        let own = self.own_folder();
        let own = own
            .iter()
            .flat_map(|own| [own.join("plans"), own.join("projects")]);
        let user = rustix::process::getuid().as_raw();
        own.chain([PathBuf::from(format!("/tmp/claude-{user}"))])
            .collect()
    }
}

fn project(context: &Context<'_>) -> Option<PathBuf> {
    let named = context.environment.get("CLAUDE_PROJECT_DIR")?;
    Some(PathBuf::from(named)).filter(|folder| folder.is_dir())
}

/// What happens in a conversation, here or inside.
pub(super) fn converse(event: Event, hook: &Moment<'_>, side: &dyn Side) -> Result<u8, Failure> {
    let said = match event {
        Event::SessionStart => conversation::start(side)?,
        Event::PreToolUse => conversation::before_tool(hook, side)?,
        Event::PostToolUse => conversation::after_tool(hook, side)?,
        _ => conversation::stop(hook, side)?,
    };
    match said {
        Said::Nothing => Ok(exit::DONE),
        Said::Context(event, text) => {
            let told = json!({"hookEventName": event, "additionalContext": text});
            print(hook.context.ui, &json!({"hookSpecificOutput": told}))
        }
        Said::GoOn(reason) => print(
            hook.context.ui,
            &json!({"decision": "block", "reason": reason}),
        ),
        Said::Refuse(reason) => {
            hook.context.note(&reason);
            Ok(STOPS)
        }
    }
}

fn print(ui: &Ui, answer: &Value) -> Result<u8, Failure> {
    ui.answer(Fields::new, |out| writeln!(out, "{answer}"))
}

/// What the configuration says of an edit that can't be judged, as far as it can be read.
fn blocks_on_error(context: &Context<'_>, here: Option<PathBuf>) -> bool {
    let (home, state) = (context.environment.home(), context.environment.state());
    let sources = context.sources();
    let starts = [here, project(context), Some(context.directory().clone())];
    let mut places = starts
        .into_iter()
        .flatten()
        .filter_map(|start| Place::find(&start, home.as_deref(), state.as_deref()).ok());
    let place = places.next().filter(|_| !context.is_confined());
    let config = match place.map(|place| load_config(&place, &sources)) {
        Some(Ok(loaded)) => Some(loaded.config),
        _ => load_own_config(&sources).ok(),
    };
    match config {
        Some(config) => config.hook_on_error == OnError::Block,
        None => context.environment.get("WEALD_HOOK_ON_ERROR").as_deref() == Some("block"),
    }
}
