//! Who is calling: flag, `WEALD_SESSION`, the variables of known agents, an ancestor that registered, or nobody.

use weald_core::name::{NameError, SessionName};
use weald_core::session::ProcessTable;

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

/// How the caller was recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdentitySource {
    /// `--session`.
    Flag,
    /// `WEALD_SESSION`.
    Variable,
    /// A variable of a known agent.
    Agent,
    /// A registered session's process is an ancestor.
    Ancestor,
    /// Not at all; the name comes from the calling process.
    Anonymous,
}

/// Who is calling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The session's name.
    pub name: SessionName,
    /// How it was found.
    pub source: IdentitySource,
}

/// Finds out who is calling. `variable` looks an environment variable up.
pub fn identify(
    engine: &Engine,
    flag: Option<&SessionName>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Identity, IdentityError> {
    let found = |name, source| Ok(Identity { name, source });
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
    found(
        anonymous(engine.processes.as_ref(), &ancestors),
        IdentitySource::Anonymous,
    )
}

/// Why nobody can be named.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// `WEALD_SESSION` is no name.
    #[error("WEALD_SESSION is {text:?}: {source}")]
    BadVariable {
        /// What it holds.
        text: String,
        /// What is wrong with it.
        source: NameError,
    },
    /// The registry did not answer.
    #[error(transparent)]
    Registry(#[from] SessionError),
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
