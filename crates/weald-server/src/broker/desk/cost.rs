//! What requests cost: a run may not use up what belongs to all.

use weald_app::Ask;
use weald_app::operations::sessions::NoteSession;

/// What an answer costs the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::broker) enum Cost {
    Read,
    /// Time, and room in the store.
    Write,
    /// Room in the store; its time is its own.
    Landing,
}

impl Cost {
    pub(in crate::broker) fn of(ask: &Ask) -> Self {
        match ask {
            Ask::Overview {}
            | Ask::TaskList(_)
            | Ask::TaskReady(_)
            | Ask::TaskShow(_)
            | Ask::TaskClaim { .. }
            | Ask::MsgAnswer { .. }
            | Ask::MsgInbox { consume: false, .. }
            | Ask::SessionList(_)
            | Ask::SessionNote(NoteSession { text: None })
            | Ask::Events(_)
            | Ask::Path { .. }
            | Ask::Beside { .. }
            | Ask::Diff(_)
            | Ask::SnapshotList(_) => Self::Read,
            Ask::TaskRenew { .. }
            | Ask::TaskDone { .. }
            | Ask::TaskFail { .. }
            | Ask::MsgSend(_)
            | Ask::MsgReply(_)
            | Ask::MsgInbox { .. }
            | Ask::SessionNote(_)
            | Ask::Status(_)
            | Ask::Sync(_)
            | Ask::SnapshotCreate(_) => Self::Write,
            Ask::Land(_) => Self::Landing,
        }
    }
}
