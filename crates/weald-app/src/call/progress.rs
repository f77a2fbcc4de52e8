//! What a face shows of an operation before its answer is there.

use std::sync::Arc;

use weald_core::agent::AgentId;

use crate::{Failure, Ground};

/// Something that takes its time, shown until it is dropped.
pub trait Stage: Send + Sync {
    /// The newest line of what is done in it.
    fn line(&self, text: &str) {
        let _ = text;
    }
}

/// Shown to nobody.
impl Stage for () {}

/// Shows what an agent wrote since the last call.
pub type Shown = Box<dyn FnMut() -> Result<(), Failure>>;

/// Hears of an operation while it runs: a terminal, a log, a client of MCP, or nobody.
pub trait Progress: Sync {
    /// Something beside the answer.
    fn note(&self, text: &str);

    /// Something that the caller may not expect.
    fn warn(&self, text: &str);

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
}

/// Passes on what is said, and shows no stages: the terminal is somebody else's.
pub struct WordsAlone<'a>(pub &'a dyn Progress);

impl Progress for WordsAlone<'_> {
    fn note(&self, text: &str) {
        self.0.note(text);
    }

    fn warn(&self, text: &str) {
        self.0.warn(text);
    }
}
