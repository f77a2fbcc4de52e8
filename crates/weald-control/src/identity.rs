//! Who is calling: flag, `WEALD_SESSION`, the variables of known agents, an ancestor that registered, the person at the
//! terminal, or nobody.

use serde::{Deserialize, Serialize};
use weald_core::name::{NameError, SessionName, WEALD};
use weald_core::session::{ProcessState, ProcessTable};
use weald_core::store::{AgentFilter, StoreError};
use weald_git::GitUser;

use crate::engine::Engine;
use crate::sessions::SessionError;

/// Variables in which agents name their session, and what to put before it.
const AGENT_VARIABLES: [(&str, &str); 6] = [
    ("CLAUDE_CODE_SESSION_ID", "claude"),
    ("CLAUDE_SESSION_ID", "claude"),
    ("CODEX_THREAD_ID", "codex"),
    ("CODEX_SESSION_ID", "codex"),
    ("GEMINI_SESSION_ID", "gemini"),
    ("OPENCODE_SESSION_ID", "opencode"),
];

/// Variables that agents set for the commands they run, no matter who started them.
const AGENT_MARKS: [&str; 14] = [
    "CLAUDECODE",
    "CLAUDE_CODE_ENTRYPOINT",
    "CODEX_SANDBOX",
    "CODEX_SANDBOX_NETWORK_DISABLED",
    "GEMINI_CLI",
    "CURSOR_AGENT",
    "OPENCODE",
    "CLINE_ACTIVE",
    "AUGMENT_AGENT",
    "GOOSE_TERMINAL",
    "AI_AGENT",
    "WEALD_AGENT",
    "WEALD_TOKEN",
    // Of a tool of `weald mcp`: its caller is an agent.
    "WEALD_MCP",
];

/// By what commands in a run know who and where they are, and reach the host. An agent that clears the environment of what
/// it starts has to pass these on.
pub const KNOWN_BY: [&str; 10] = [
    "WEALD_AGENT",
    "WEALD_BROKER",
    "WEALD_BROKER_SECRET",
    "WEALD_MAIN",
    "WEALD_SANDBOX",
    "WEALD_SESSION",
    "WEALD_TASK",
    "WEALD_TOKEN",
    "WEALD_TREE",
    "WEALD_TREE_PATH",
];

/// What agents' programs are called.
const AGENT_PROGRAMS: [&str; 10] = [
    "claude",
    "codex",
    "gemini",
    "opencode",
    "cursor-agent",
    "aider",
    "goose",
    "amp",
    "crush",
    "copilot",
];

/// Why the caller is taken for an agent, if it is: a variable that agents set, a program of an agent above it, or a run in
/// a tree above it. `variable` looks an environment variable up.
pub fn agent_above(
    engine: &Engine,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Option<String>, StoreError> {
    if let Some(why) = agent_around(engine.processes.as_ref(), variable) {
        return Ok(Some(why));
    }
    let ancestors = engine.processes.ancestors();
    let trees = engine.look(|tx| tx.trees())?;
    let runs = trees
        .iter()
        .flat_map(|tree| tree.runs.iter().map(move |run| (tree, run)));
    let mut above = runs.filter(|(_, run)| {
        let is_above = ancestors.contains(&run.process.pid);
        is_above && engine.processes.state(&run.process) != ProcessState::Gone
    });
    Ok(above
        .next()
        .map(|(tree, run)| format!("it runs in worktree {} ({})", tree.name, run.program)))
}

/// The same by variables and programs alone, where no repository is.
pub fn agent_around(
    processes: &dyn ProcessTable,
    variable: impl Fn(&str) -> Option<String>,
) -> Option<String> {
    let named = AGENT_VARIABLES.iter().map(|(name, _)| *name);
    let is_set = |name: &&str| variable(name).is_some_and(|value| !value.is_empty());
    if let Some(name) = named.chain(AGENT_MARKS).find(is_set) {
        return Some(format!("{name} is set"));
    }
    processes.ancestors().into_iter().find_map(|pid| {
        let names = processes.names(pid);
        let mut agents = names
            .iter()
            .filter(|name| AGENT_PROGRAMS.contains(&name.as_str()));
        let name = agents.next()?;
        Some(format!("its parent process {pid} is {name}"))
    })
}

/// The nearest process above the caller that is this program.
pub fn program_above(processes: &dyn ProcessTable, program: &str) -> Option<u32> {
    let mut above = processes.ancestors().into_iter();
    above.find(|pid| processes.names(*pid).iter().any(|name| name == program))
}

/// How the caller was recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdentitySource {
    Flag,
    Variable,
    /// A variable of a known agent.
    Agent,
    /// A registered session's process is an ancestor.
    Ancestor,
    /// A person at a terminal, with no agent in between.
    Person,
    /// Not at all; the name comes from the calling process.
    #[serde(rename = "nobody")]
    Anonymous,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub name: SessionName,
    /// How it was found.
    pub source: IdentitySource,
}

/// Finds out who is calling. `variable` looks an environment variable up; `person` says who sits at the terminal, if the
/// caller is at one. That counts only where no agent stands between the two.
pub fn identify(
    engine: &Engine,
    flag: Option<&SessionName>,
    variable: impl Fn(&str) -> Option<String>,
    person: Option<impl FnOnce() -> Option<SessionName>>,
) -> Result<Identity, IdentityError> {
    let found = |name: SessionName, source| match name.as_str().eq_ignore_ascii_case(WEALD) {
        true => Err(IdentityError::Weald),
        false => Ok(Identity { name, source }),
    };
    if let Some(name) = flag {
        return found(name.clone(), IdentitySource::Flag);
    }
    if let Some(text) = variable("WEALD_SESSION").filter(|text| !text.is_empty()) {
        let name = text
            .parse()
            .map_err(|source| IdentityError::BadVariable { text, source })?;
        return found(name, IdentitySource::Variable);
    }
    for (name, agent) in AGENT_VARIABLES {
        if let Some(name) = variable(name).and_then(|id| agent_name(agent, &id)) {
            return found(name, IdentitySource::Agent);
        }
    }
    let ancestors = engine.processes.ancestors();
    if let Some(name) = engine.session_of(&ancestors)? {
        return found(name, IdentitySource::Ancestor);
    }
    if let Some(person) = person
        && agent_above(engine, &variable)?.is_none()
        && let Some(name) = person()
    {
        let name = match is_an_agents(engine, &name)? {
            true => name.for_a_person(),
            false => name,
        };
        return found(name, IdentitySource::Person);
    }
    found(
        anonymous(engine.processes.as_ref(), &ancestors),
        IdentitySource::Anonymous,
    )
}

/// Whether an agent or a program works under this name: nobody becomes it by being called so.
fn is_an_agents(engine: &Engine, name: &SessionName) -> Result<bool, StoreError> {
    engine.look(|tx| {
        let session = tx.session(name)?.filter(|known| known.ended_at.is_none());
        let process = session.and_then(|session| session.process);
        let is_there = |process| engine.processes.state(process) != ProcessState::Gone;
        let agents = tx.agents(&AgentFilter::default())?;
        let mut of_name = agents.iter().filter(|agent| agent.session == *name);
        Ok(process.as_ref().is_some_and(is_there) || of_name.any(|agent| !agent.status.is_over()))
    })
}

/// How somebody is called who has an account and may have a name in git: by that name, else by the first part of the
/// address there, else by the account.
pub fn person_of(user: &GitUser, account: Option<&str>) -> Option<SessionName> {
    let mailbox = user.mail.as_deref().and_then(|mail| mail.split('@').next());
    let known = [user.name.as_deref(), mailbox, account];
    known.into_iter().flatten().find_map(SessionName::of_person)
}

/// Why nobody can be named.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// `WEALD_SESSION` is no name.
    #[error("WEALD_SESSION is {text:?}: {source}")]
    BadVariable {
        text: String,
        /// What is wrong with it.
        source: NameError,
    },
    /// Nobody else speaks for weald.
    #[error("the name weald is reserved for weald itself")]
    Weald,
    /// The registry did not answer.
    #[error(transparent)]
    Registry(#[from] SessionError),
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The name of a conversation of Claude Code's, by its id: the one its own variable gives it, too.
pub fn claude_session(id: &str) -> Option<SessionName> {
    agent_name("claude", id)
}

/// The session of a conversation of Codex.
pub fn codex_session(id: &str) -> Option<SessionName> {
    agent_name("codex", id)
}

fn agent_name(agent: &str, id: &str) -> Option<SessionName> {
    let usable = id
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || *c == '-')
        .take(40)
        .collect::<String>();
    format!("{agent}-{usable}")
        .parse()
        .ok()
        .filter(|_| !usable.is_empty())
}

/// A name for the calling shell: the same for all its commands, another one for another shell.
fn anonymous(processes: &dyn ProcessTable, ancestors: &[u32]) -> SessionName {
    let parent = ancestors.first().copied().unwrap_or(0);
    let started = processes
        .identify(parent)
        .map_or(0, |process| process.start_time);
    format!("anon-{parent}-{started}")
        .parse()
        .expect("digits make a name")
}
