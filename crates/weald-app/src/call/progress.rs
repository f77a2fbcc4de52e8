//! What a face shows of an operation before its answer is there.

use std::os::unix::net::UnixStream;
use std::sync::Arc;

use weald_core::agent::{Agent, AgentId};
use weald_core::attention::Attention;
use weald_core::config::NotifyBy;
use weald_core::landing::Landing;
use weald_core::name::SessionName;
use weald_core::task::Task;
use weald_terminal::Left;

use crate::{Failure, Ground, ProjectProposal, ProposedSetting, Review, ShownDiff};

/// Something that takes its time, shown until it is dropped.
pub trait Stage: Send + Sync {
    /// Whether somebody sees it, so that it is worth finding out what to show.
    fn is_shown(&self) -> bool {
        false
    }

    /// The next part of it begins.
    fn begins(&self, what: &str) {
        let _ = what;
    }

    /// The newest line of what is done in it.
    fn line(&self, text: &str) {
        let _ = text;
    }
}

/// Shown to nobody.
impl Stage for () {}

/// Shows what an agent wrote since the last call.
pub type Shown = Box<dyn FnMut() -> Result<(), Failure>>;

/// Takes a piece of output; false when nobody reads it any more.
pub type Output = Box<dyn FnMut(&[u8]) -> Result<bool, Failure>>;

/// How much of an agent's log is shown.
#[derive(Debug, Clone, Copy)]
pub enum LogView {
    /// From its last whole lines on, all of them without a number.
    Growing(Option<usize>),
    /// The last lines of all that was kept, as it came or without colours, and then what is added.
    Kept {
        /// How many of the last lines; all of them without a number.
        lines: Option<usize>,
        /// As it came, with colours and as the driver's own format has it.
        raw: bool,
        /// With all lines of results and prompts.
        full: bool,
    },
}

/// Shows an agent's log, and takes what its reader types.
pub trait LogReader {
    /// Shows what came since the last time.
    fn show(&mut self) -> Result<(), Failure>;

    /// The lines that were typed since the last time.
    fn typed(&mut self) -> Vec<String>;

    /// Whether nobody reads any more.
    fn has_left(&self) -> bool;
}

/// A task that a worker finished.
pub struct FinishedTask {
    /// As it is after the agent's end.
    pub task: Task,
    /// How the agent ended; `unknown` if its record does not say.
    pub outcome: &'static str,
    /// The agent that worked on it.
    pub agent: Agent,
    /// What became of the work; `None` if none was queued to land.
    pub landing: Option<Landing>,
}

/// Hears of an operation while it runs: a terminal, a log, a client of MCP, or nobody.
pub trait Progress: Sync {
    /// Reports something in addition to the answer.
    fn note(&self, text: &str);

    /// Something that the caller may not expect.
    fn warn(&self, text: &str);

    /// Something that needs a person: one who looks elsewhere is called.
    fn call_person(&self, attention: &Attention, how: NotifyBy) {
        let _ = (attention, how);
    }

    /// Something that begins. Programs see it from the answer.
    fn begins(&self, text: &str) {
        self.note(text);
    }

    /// Something that may take its time.
    fn stage(&self, what: &'static str) -> Arc<dyn Stage> {
        let _ = what;
        Arc::new(())
    }

    /// The output of an agent that is waited for.
    fn output_of(&self, ground: &Ground, id: AgentId) -> Result<Shown, Failure> {
        let _ = (ground, id);
        Ok(Box::new(|| Ok(())))
    }

    /// Takes the output of others that is the answer, as it comes.
    fn output(&self) -> Output {
        Box::new(|_| Ok(true))
    }

    /// Begins to show the log of an agent.
    fn log_of(&self, _: &Ground, _: AgentId, _: LogView) -> Result<Box<dyn LogReader>, Failure> {
        Err(Failure::bug())
    }

    /// Shows the terminal of an agent until it ends, the reader detaches or `is_stopped`.
    fn terminal(&self, _: AgentId, _: UnixStream, _: &dyn Fn() -> bool) -> Result<Left, Failure> {
        Err(Failure::no_terminal())
    }

    /// What is about to be approved, with its changes if the person is asked. Nothing is approved that could not be shown.
    fn review(&self, _: &Review, _: Option<&ShownDiff>) -> Result<(), Failure> {
        Ok(())
    }

    /// Which of the settings that the files of a project propose to write, perhaps with other values. Nobody chooses none.
    fn choose(&self, _: &ProjectProposal) -> Result<Vec<ProposedSetting>, Failure> {
        Ok(Vec::new())
    }

    /// Asks a person at a terminal. Where nobody can be asked, the call itself is the answer.
    fn confirm(&self, question: &str) -> Result<bool, Failure> {
        let _ = question;
        Ok(true)
    }

    /// A worker has finished a task.
    fn finished(&self, _: &SessionName, _: &FinishedTask) -> Result<(), Failure> {
        Ok(())
    }
}

/// Passes on notes and warnings, and shows no stages: the terminal belongs to the run.
pub struct WordsAlone<'a>(pub &'a dyn Progress);

impl Progress for WordsAlone<'_> {
    fn note(&self, text: &str) {
        self.0.note(text);
    }

    fn warn(&self, text: &str) {
        self.0.warn(text);
    }
}
