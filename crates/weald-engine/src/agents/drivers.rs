//! Drivers: how an agent is started, what its output means, how it is spoken to. One file each.

mod command;

use std::ffi::OsString;
use std::path::Path;

use weald_core::agent::Usage;
use weald_core::config::Config;

/// What a driver is told.
pub struct Brief<'a> {
    /// The whole prompt.
    pub prompt: &'a str,
    /// The same in a file that the agent can read.
    pub prompt_file: &'a Path,
    /// Where it works.
    pub tree: &'a Path,
    /// Its private state, kept for the next time.
    pub home: &'a Path,
    /// Whose settings and credentials are copied.
    pub user_home: Option<&'a Path>,
    /// Which model.
    pub model: Option<&'a str>,
    /// The conversation to go on with.
    pub conversation: Option<&'a str>,
    /// The user's words after `--`.
    pub arguments: &'a [OsString],
    /// The caller's environment.
    pub variable: &'a dyn Fn(&str) -> Option<OsString>,
}

/// What an agent reads.
pub enum Input {
    /// Nothing.
    Nothing,
    /// This, and then the end.
    Text(Vec<u8>),
    /// This, and what is said to it later.
    Open(Vec<u8>),
}

/// How to start it.
pub struct Start {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Further variables.
    pub environment: Vec<(OsString, OsString)>,
    /// What it reads.
    pub input: Input,
    /// What its user should know.
    pub notes: Vec<String>,
}

/// What a line of output means.
#[derive(Debug, Clone, PartialEq)]
pub enum Observed {
    /// The agent's own conversation.
    Conversation(String),
    /// It uses a tool.
    Action(String),
    /// It says something.
    Said(String),
    /// What it used so far.
    Usage(Usage),
    /// It is done.
    Finished {
        /// Whether it says so.
        ok: bool,
        /// Its last words.
        text: String,
    },
    /// Something that the driver does not know.
    Raw,
}

/// Why a driver can't start its agent.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// Nobody knows it.
    #[error("there is no driver {0}")]
    Unknown(String),
    /// It has nothing to run.
    #[error("driver {0} has no command")]
    NoCommand(String),
}

/// One kind of agent.
pub trait Driver: Send + Sync {
    /// Its name.
    fn name(&self) -> &str;
    /// How to start it.
    fn start(&self, brief: &Brief<'_>) -> Result<Start, DriverError>;
    /// What a line of its output means. The line is untrusted.
    fn read(&self, line: &[u8]) -> Vec<Observed>;
    /// A message as a line of its input, if that stays open.
    fn say(&self, text: &str) -> Option<Vec<u8>>;
}

/// The driver of this name; a command of its own without one.
pub fn driver_for(
    _config: &Config,
    name: Option<&str>,
    _command: &[OsString],
) -> Result<Box<dyn Driver>, DriverError> {
    match name {
        None | Some("command") => Ok(Box::new(command::Command)),
        Some(name) => Err(DriverError::Unknown(name.to_owned())),
    }
}
