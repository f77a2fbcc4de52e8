//! What a run in a sandbox may ask its broker for. Nothing else can be asked: the list is closed, and unknown words are
//! refused.

use serde::{Deserialize, Serialize};
use weald_core::agent::Verification;
use weald_core::id::MessageId;
use weald_core::meant::Word;

use crate::operations::events::ListEvents;
use crate::operations::looking::{DiffTree, ShowTree};
use crate::operations::making::SyncTree;
use crate::operations::messages::{ReplyToMessage, SendMessage};
use crate::operations::sessions::{ListSessions, NoteSession};
use crate::operations::snapshots::{ListSnapshots, TakeSnapshot};
use crate::operations::tasks::{ListTasks, ReadyTasks, ShowTask};
use crate::wish::LandWish;

/// Everything that can be asked. A task or a tree that is not named is the run's own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum Ask {
    /// Where the run stands, and what it may ask.
    Overview {},
    /// Tasks, at most as many as the broker lists.
    TaskList(ListTasks),
    /// What can be claimed.
    TaskReady(ReadyTasks),
    /// One task in full.
    TaskShow(ShowTask),
    /// The own claim, again.
    TaskClaim {
        /// Refused unless it is the run's own.
        #[serde(default)]
        id: Option<Word>,
    },
    /// Hold the own task for longer.
    TaskRenew {
        /// Refused unless it is the run's own.
        #[serde(default)]
        id: Option<Word>,
    },
    /// The own task is done.
    TaskDone {
        /// Refused unless it is the run's own.
        #[serde(default)]
        id: Option<Word>,
        /// What was done.
        #[serde(default)]
        report: Report,
    },
    /// The own task can't be done.
    TaskFail {
        /// Refused unless it is the run's own.
        #[serde(default)]
        id: Option<Word>,
        /// What is in the way.
        #[serde(default)]
        report: Report,
    },
    /// A message in the name of the run's session.
    MsgSend(SendMessage),
    /// A reply to a request that the run's session received.
    MsgReply(ReplyToMessage),
    /// The reply to a question that the run's session asked.
    MsgAnswer {
        /// The question.
        id: MessageId,
    },
    /// Messages to the run's session.
    MsgInbox {
        /// Take them out.
        #[serde(default)]
        consume: bool,
        /// Those that were taken out before, too.
        #[serde(default)]
        all: bool,
        /// At most so many.
        #[serde(default)]
        limit: Option<u64>,
    },
    /// Everybody's sessions.
    SessionList(ListSessions),
    /// The own note: leave it, or read it.
    SessionNote(NoteSession),
    /// The log; letters between others come without their text.
    Events(ListEvents),
    /// A look into the own tree.
    Status(ShowTree),
    /// Where the own tree is, or where a path is in it.
    Path {
        /// Refused unless it is the run's own.
        #[serde(default)]
        tree: Option<String>,
        /// A path in it; one that leads out is refused.
        #[serde(default)]
        check: Option<String>,
    },
    /// Bring the target into the own tree.
    Sync(SyncTree),
    /// Which other trees change a path of the own tree, as far as that is known.
    Beside {
        /// Below the tree's folder.
        path: String,
    },
    /// What changed in the own tree.
    Diff(DiffTree),
    /// A snapshot of the own tree.
    SnapshotCreate(TakeSnapshot),
    /// The snapshots of the own tree.
    SnapshotList(ListSnapshots),
    /// Bring the own tree's commits to its target.
    Land(LandWish),
}

/// What is said at the end of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// In the agent's words.
    #[serde(default)]
    pub text: Option<String>,
    /// Which files it changed, as it says.
    #[serde(default)]
    pub files_changed: Vec<String>,
    /// Whether it checked its work.
    #[serde(default)]
    pub verification: Verification,
    /// How it was checked.
    #[serde(default)]
    pub verified_by: String,
}

impl Report {
    /// How many bytes it takes in a record, but for escapes.
    pub fn length(&self) -> usize {
        // Quotes and a comma stand around each name: there could be very many empty ones.
        let files = self.files_changed.iter().map(|file| file.len() + 3);
        self.text.as_ref().map_or(0, String::len) + self.verified_by.len() + files.sum::<usize>()
    }

    /// As a task's own text, where there is no other place for what was checked; `None` if nothing was said.
    pub fn as_text(&self) -> Option<String> {
        let checked = match (self.verification, self.verified_by.as_str()) {
            (Verification::None, _) => None,
            (checked, "") => Some(format!("verification {}", checked.as_str())),
            (checked, by) => Some(format!("verification {} ({by})", checked.as_str())),
        };
        let parts: Vec<_> = self.text.clone().into_iter().chain(checked).collect();
        Some(parts.join("\n")).filter(|text| !text.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_names_of_files_count_in_a_report() {
        let report = Report {
            text: Some("done".to_owned()),
            files_changed: vec![String::new(); 1000],
            verified_by: "cargo test".to_owned(),
            ..Report::default()
        };
        assert_eq!(report.length(), 4 + 3000 + 10);
    }
}
