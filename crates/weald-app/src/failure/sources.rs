//! What a tracker did not give, and imports that were to be taken whole.

use crate::{SourceError, UpdateError};
use serde_json::json;
use weald_core::id::TaskId;
use weald_core::import::LineError;

use super::Failure;
use crate::exit;

impl Failure {
    /// Nobody here knows the task, and the tracker did not give it.
    pub fn not_in_tracker(id: &TaskId, tracker: &str, why: &str) -> Self {
        let message = format!("there is no task {id} here, and {tracker} did not return it: {why}");
        Self::new("task_not_found", exit::NOT_FOUND, message)
            .hint("weald task list")
            .details(json!({"task": id, "tracker": tracker}))
    }

    /// The tracker says that it is done.
    pub fn closed_in_tracker(id: &TaskId, tracker: &str) -> Self {
        let message = format!("task {id} is closed in {tracker}");
        Self::new("task_closed", exit::REFUSED, message)
            .hint(format!("reopen it in {tracker}, then try again"))
            .details(json!({"task": id, "tracker": tracker}))
    }

    /// Lines that can't be taken, where all or nothing was asked for.
    pub(super) fn bad_lines(message: String, errors: &[LineError]) -> Self {
        Self::new("bad_lines", exit::REFUSED, message)
            .hint("fix them, or import the others without --strict")
            .details(json!({"errors": errors}))
    }
}

impl From<UpdateError> for Failure {
    fn from(error: UpdateError) -> Self {
        match error {
            UpdateError::Store(error) => error.into(),
            UpdateError::Place(_) => Self::new("source_failed", exit::REFUSED, error.to_string()),
        }
    }
}

impl From<SourceError> for Failure {
    fn from(error: SourceError) -> Self {
        let hint = match &error {
            SourceError::NotInstalled { .. } => {
                "install it, or import its output from a file: weald task import --from … FILE"
            }
            SourceError::TimedOut { .. } => "weald --set source.timeout=60s …",
            _ => "run the command yourself to see what it says",
        };
        Self::new("source_failed", exit::REFUSED, error.to_string()).hint(hint)
    }
}
