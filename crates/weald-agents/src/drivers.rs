//! Drivers: how one kind of agent is started, and what its output says.
//!
//! A driver decides on a command, its environment and its input; the supervisor starts it in the tree's sandbox. What
//! comes back is untrusted: lines are bounded, checked and never acted on. A new kind of agent is a file here, its
//! `mod` and its line in [`BUILT_IN`].

mod claude;
mod codex;
mod command;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod limits;
mod program;
mod seeding;
mod text;
mod transcripts;
mod typed;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use weald_core::Timestamp;
use weald_core::agent::{Barrier, Usage};
use weald_core::config::Config;

use self::claude::Claude;
use self::codex::Codex;
use self::command::{Command, Prompt};
pub use self::program::{Meant, meant_by, plain_words};
pub(crate) use self::program::{keep_trusted, require_trusted};

/// How a person meets an agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Form {
    /// It works alone; its output is a stream that weald reads.
    #[default]
    Headless,
    /// Its own full-screen interface, on a terminal.
    Interactive,
    /// As its user typed it, on whatever they have: nothing is read of it, and nobody but them gives it a prompt.
    Typed,
}

/// What a driver is told.
pub struct Brief<'a> {
    pub form: Form,
    /// What an interactive agent gets as its first message, unless it continues a conversation.
    pub prompt: &'a str,
    /// The same in a file that the agent can read.
    pub prompt_file: &'a Path,
    pub tree: &'a Path,
    /// The checkout under whose path the user's settings know the project.
    pub project: &'a Path,
    /// Whether the hooks of the user's own settings run, too.
    pub user_hooks: bool,
    /// Private state of this tree for this driver: there, written by the agent, kept for the next start.
    pub home: &'a Path,
    /// Whose settings and credentials are copied.
    pub user_home: Option<&'a Path>,
    /// What its sandbox hides: none of it is copied, but for its own login.
    pub hidden: &'a [PathBuf],
    /// Which model, if somebody said.
    pub model: Option<&'a str>,
    /// The conversation to go on with.
    pub conversation: Option<&'a str>,
    /// Whether it gets weald's own tools, if it can have such.
    pub with_tools: bool,
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
    /// A tool that it uses.
    Called(Called),
    /// What came of one.
    Returned(Returned),
    /// What it says to its user.
    Said(String),
    /// What a subagent says, whom the call `within` started.
    Within { within: String, said: String },
    /// A complaint about its own surroundings.
    Complained(String),
    /// What it used so far, in all.
    Usage(Usage),
    /// The tokens that one message of a model used. A stream may repeat a message.
    Message {
        id: String,
        model: String,
        usage: Usage,
    },
    /// What its conversation used of a model so far; without a name, of the one that it was started with.
    Model { model: String, usage: Usage },
    /// Its provider does not serve it. What comes next says whether it tries again by itself.
    Barred(Barrier),
    /// It is done with what it was asked.
    Finished {
        /// Whether it says that it went well.
        ok: bool,
        /// Its last words, or why it did not go well.
        text: String,
    },
    /// It can't do, or did not do, what it was asked, whatever it says itself: why, and what to do.
    Unfit(String),
    /// Nothing that is known; kept in the log.
    Raw,
}

/// A tool that an agent uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Called {
    /// By which its result is found. Any text.
    pub id: String,
    pub tool: String,
    /// The part of its input that describes it best: a command, a path.
    pub detail: String,
    /// The call that started the subagent that does it.
    pub within: Option<String>,
}

impl Called {
    /// In one line: `Bash: cargo test`.
    pub fn line(&self) -> String {
        text::action(&self.tool, &self.detail)
    }
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Returned {
    /// Of the call.
    pub id: String,
    pub ok: bool,
    /// The exit code of a command, where it is known.
    pub code: Option<i64>,
    pub text: String,
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
    /// Errors when the user's login has expired, so that no task is begun with it.
    fn require_login(
        &self,
        user_home: Option<&Path>,
        variable: &Variable<'_>,
        now: Timestamp,
    ) -> Result<(), DriverError> {
        let _ = (user_home, variable, now);
        Ok(())
    }
    /// How its user logs in again, as a command for a terminal.
    fn login_command(&self) -> Option<&'static str> {
        None
    }
    /// The user's own file with the login, if the driver copies one.
    fn login_file(&self, user_home: Option<&Path>, variable: &Variable<'_>) -> Option<PathBuf> {
        let _ = (user_home, variable);
        None
    }
    /// Copies the user's login into the agent's private state again, after the user logged in again.
    fn renew_login(&self, brief: &Brief<'_>) -> Result<(), DriverError> {
        let _ = brief;
        Ok(())
    }
    /// The program that it starts, where a path names it.
    fn program(&self) -> Option<&Path> {
        None
    }
    /// The program that gets its user's login, if it gets that.
    fn trusted_program(&self) -> Option<&OsStr> {
        None
    }
    /// Files of its private state that hold what its user logs in with. They go when a run ends, and come with the next.
    fn secrets(&self) -> &'static [&'static str] {
        &[]
    }
    /// Takes what its user logs in with out of its private state; answers what could not be removed.
    fn forget(&self, home: &Path) -> Vec<String> {
        seeding::forget_files(home, self.secrets())
    }
    /// Whether it has an interface of its own for a terminal.
    fn is_interactive(&self) -> bool {
        false
    }
    /// Whether it is a conversation, and not another use of its program: `claude mcp list`.
    fn converses(&self) -> bool {
        true
    }
    /// The model in the arguments that the user typed.
    fn typed_model(&self) -> Option<&str> {
        None
    }
    /// The conversation that it had last, by its private state: one that a person can open and an agent can resume.
    fn conversation_in(&self, home: &Path) -> Option<String> {
        let _ = home;
        None
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
    #[error(
        "driver `{driver}` starts `{program}`, which {}",
        if program.contains('/') { "does not exist or is not executable" } else { "is not on the search path" }
    )]
    NotInstalled { driver: String, program: String },
    /// Its program is on the host, where a run does not see it.
    #[error("{} is not visible to an agent: a sandboxed run has its own /tmp", .program.display())]
    Hidden { program: PathBuf },
    /// A repository or a run could have put its program there.
    #[error("{} gets no login: {why}", program.display())]
    NotTrusted { program: PathBuf, why: String },
    /// It is a script for a program that is not there.
    #[error("{} can't be run: its first line names {interpreter}, which does not exist", .program.display())]
    NoInterpreter {
        program: PathBuf,
        interpreter: String,
    },
    /// It has no interface of its own.
    #[error(
        "driver `{driver}` has no interface for a terminal; run it without -i, or use claude or codex"
    )]
    NotInteractive { driver: String },
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
    /// The user's login is good no more.
    #[error("{driver} is not logged in: the login has expired")]
    LoggedOut {
        driver: String,
        /// What to run.
        command: &'static str,
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

/// Makes a driver for the words after `--`.
type Make = fn(&[OsString]) -> Box<dyn Driver>;

/// The drivers that weald has, by their names, which are those of their programs.
const BUILT_IN: [(&str, Make); 2] = [
    (claude::NAME, |words| Box::new(Claude::new(words))),
    (codex::NAME, |words| Box::new(Codex::new(words))),
];

fn make(name: &str, words: &[OsString]) -> Option<Box<dyn Driver>> {
    let known = BUILT_IN.iter().find(|(known, _)| *known == name);
    known.map(|(_, make)| make(words))
}

/// Whether weald has a driver for agents of this name.
pub fn has_driver(agent: &str) -> bool {
    BUILT_IN.iter().any(|(known, _)| *known == agent)
}

/// Files of a driver's private state that hold what its user logs in with; none for a driver that weald has not.
pub fn secrets_of(driver: &str) -> &'static [&'static str] {
    make(driver, &[]).map_or(&[], |one| one.secrets())
}

/// The words after `--` as a program and what follows it: they may begin with the driver's own program, by any path.
fn program_of(name: &str, words: &[OsString]) -> (OsString, Vec<OsString>) {
    match words.split_first() {
        Some((first, rest)) if Path::new(first).file_name() == Some(OsStr::new(name)) => {
            (first.clone(), rest.to_vec())
        }
        _ => (name.into(), words.to_vec()),
    }
}

/// How the user logs in again for this driver; nothing for a driver that weald has not.
pub fn login_command_of(driver: &str) -> Option<&'static str> {
    make(driver, &[])?.login_command()
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
    if let Some(built_in) = make(name, command) {
        return Ok(built_in);
    }
    let prompt = Prompt::of(config.agent_prompt);
    if name == COMMAND {
        return match config.agent_command.as_str() {
            "" => Err(DriverError::NoCommand),
            line => Command::configured("agent.command", COMMAND, (line, command), prompt),
        };
    }
    let mut known: Vec<String> = BUILT_IN.map(|(name, _)| name.to_owned()).into();
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
            return Command::configured("agent.drivers", name, (line, command), prompt);
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
