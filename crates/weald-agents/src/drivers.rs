//! Drivers: how one kind of agent is started, and what its output says.
//!
//! A driver decides on a command, its environment and its input; the supervisor starts it in the tree's sandbox. What
//! comes back is untrusted: lines are bounded, checked and never acted on. A new kind of agent is a file here, its
//! `mod` and its line in [`BUILT_IN`].

mod claude;
mod codex;
mod command;
mod program;
mod seeding;
mod text;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use weald_core::agent::Usage;
use weald_core::config::Config;

use self::claude::Claude;
use self::codex::Codex;
use self::command::{Command, Prompt};

/// What a driver is told.
pub struct Brief<'a> {
    pub prompt: &'a str,
    /// The same in a file that the agent can read.
    pub prompt_file: &'a Path,
    pub tree: &'a Path,
    /// Private state of this tree for this driver: there, written by the agent, kept for the next start.
    pub home: &'a Path,
    /// Whose settings and credentials are copied.
    pub user_home: Option<&'a Path>,
    /// Which model, if somebody said.
    pub model: Option<&'a str>,
    /// The conversation to go on with.
    pub conversation: Option<&'a str>,
    /// Whether it gets weald's own tools, if it can have such.
    pub with_tools: bool,
    /// The user's words after `--`.
    pub arguments: &'a [OsString],
    pub variable: &'a Variable<'a>,
}

/// Looks a variable up.
pub type Variable<'a> = dyn Fn(&str) -> Option<OsString> + 'a;

/// What an agent gets on its standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    Nothing,
    /// This, then it is closed.
    Text(Vec<u8>),
    /// This; it stays open for messages until the agent has finished.
    Open(Vec<u8>),
}

/// How an agent is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    pub command: Vec<OsString>,
    /// Variables on top of those of a run.
    pub environment: Vec<(OsString, OsString)>,
    pub input: Input,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// What a line of output says.
#[derive(Debug, Clone, PartialEq)]
pub enum Observed {
    /// Which conversation it is. Checked: it can stand in an argv.
    Conversation(String),
    /// What it does, in one line: `Bash: cargo test`.
    Action(String),
    /// What it says to its user.
    Said(String),
    /// What it used so far, in all.
    Usage(Usage),
    /// It is done with what it was asked.
    Finished {
        /// Whether it says that it went well.
        ok: bool,
        /// Its last words, or why it did not go well.
        text: String,
    },
    /// Nothing that is known; kept in the log.
    Raw,
}

/// One kind of agent. An instance serves one run.
pub trait Driver: Send + Sync {
    /// What it is called.
    fn name(&self) -> &str;
    /// How it is started, in a sandbox and nowhere else: its own guards are switched off. Its private state is prepared.
    fn start(&self, brief: &Brief<'_>) -> Result<Start, DriverError>;
    /// What one line of its standard output says; never panics.
    fn read(&self, line: &[u8]) -> Vec<Observed>;
    /// A message as it goes to the input, if that stays open.
    fn say(&self, text: &str) -> Option<Vec<u8>>;
    /// Errors when it can't be started here: before anything is claimed or made.
    fn require(&self, variable: &Variable<'_>) -> Result<(), DriverError> {
        let _ = variable;
        Ok(())
    }
    /// The program that it starts, where a path names it.
    fn program(&self) -> Option<&Path> {
        None
    }
    /// Files of its private state that hold what its user logs in with. They go when a run ends, and come with the next.
    fn secrets(&self) -> &'static [&'static str] {
        &[]
    }
    /// Whether its lines are for programs: people are told what they say, and don't see them.
    fn has_stream(&self) -> bool {
        true
    }
}

/// Why no agent can be started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DriverError {
    /// No driver is called so.
    #[error("there is no driver `{name}`; the drivers are {}", known.join(", "))]
    Unknown {
        name: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// The driver `command` has no command.
    #[error("driver `command` needs a command: after `--`, or in agent.command")]
    NoCommand,
    /// A line of the configuration is no command.
    #[error("{key}: `{line}` {why}")]
    BadCommandLine {
        key: &'static str,
        line: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Its program is not there.
    #[error("driver `{driver}` starts `{program}`, which is not on the search path")]
    NotInstalled { driver: String, program: String },
    /// Its program is on the host, where a run does not see it.
    #[error("{} is not visible to an agent: a sandboxed run has its own /tmp", .program.display())]
    Hidden { program: PathBuf },
    /// It is a script for a program that is not there.
    #[error("{} can't be run: its first line names {interpreter}, which does not exist", .program.display())]
    NoInterpreter {
        program: PathBuf,
        interpreter: String,
    },
    /// The prompt can't be an argument.
    #[error("the prompt {why}, so it can't be an argument of `{driver}`")]
    BadPrompt {
        driver: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// What was recorded is no conversation.
    #[error("`{conversation}` is not a conversation id of `{driver}`")]
    BadConversation {
        driver: String,
        conversation: String,
    },
    /// Its private state can't be prepared.
    #[error("the private state of `{driver}` can't be prepared: {}: {why}", path.display())]
    Seeding {
        driver: String,
        path: PathBuf,
        why: String,
    },
}

/// weald's own tools as a server that an agent starts: it finds the program where every command in a run does.
const TOOLS: (&str, &[&str]) = ("weald", &["mcp"]);

/// The drivers that weald has.
const BUILT_IN: &[fn() -> Box<dyn Driver>] = &[|| Box::new(Claude), || Box::<Codex>::default()];

/// Whether weald has a driver for agents of this name.
pub fn has_driver(agent: &str) -> bool {
    BUILT_IN.iter().any(|make| make().name() == agent)
}

/// Files of a driver's private state that hold what its user logs in with; none for a driver that weald has not.
pub fn secrets_of(driver: &str) -> &'static [&'static str] {
    let mut known = BUILT_IN.iter().map(|make| make());
    let found = known.find(|one| one.name() == driver);
    found.map_or(&[], |one| one.secrets())
}

/// The name of the driver that runs any command.
const COMMAND: &str = "command";

/// The driver of this name, or, without one, of the command after `--`, or what the configuration says.
pub fn driver_for(
    config: &Config,
    name: Option<&str>,
    command: &[OsString],
) -> Result<Box<dyn Driver>, DriverError> {
    let name = match name {
        None if !command.is_empty() => COMMAND,
        None => &config.agent_driver,
        Some(name) => name,
    };
    if name == COMMAND && !command.is_empty() {
        return Ok(Box::new(Command::typed(command)));
    }
    if let Some(built_in) = BUILT_IN
        .iter()
        .map(|make| make())
        .find(|one| one.name() == name)
    {
        return Ok(built_in);
    }
    let prompt = Prompt::of(config.agent_prompt);
    if name == COMMAND {
        return match config.agent_command.as_str() {
            "" => Err(DriverError::NoCommand),
            line => Command::configured("agent.command", COMMAND, line, prompt),
        };
    }
    let mut known: Vec<String> = BUILT_IN
        .iter()
        .map(|make| make().name().to_owned())
        .collect();
    known.push(COMMAND.to_owned());
    for entry in &config.agent_drivers {
        let Some((called, line)) = entry.split_once(':') else {
            return Err(DriverError::BadCommandLine {
                key: "agent.drivers",
                line: entry.clone(),
                why: "has no name: write it as `name: command line`",
            });
        };
        let called = called.trim();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if called.is_empty() || !called.chars().all(is_plain) {
            return Err(DriverError::BadCommandLine {
                key: "agent.drivers",
                line: entry.clone(),
                why: "has a name with characters other than letters, digits, `-` and `_`",
            });
        }
        if called == name {
            return Command::configured("agent.drivers", name, line, prompt);
        }
        known.push(called.to_owned());
    }
    Err(DriverError::Unknown {
        name: name.to_owned(),
        known,
    })
}

/// The model to tell a driver: the one asked for, else the configured one.
pub fn model_for<'a>(config: &'a Config, asked: Option<&'a str>) -> Option<&'a str> {
    asked
        .or(Some(&config.agent_model))
        .filter(|model| !model.is_empty())
}

#[cfg(test)]
mod tests;
