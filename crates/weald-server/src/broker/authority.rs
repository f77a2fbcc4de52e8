//! What a run may ask, and for whom it speaks: for the command line, MCP and hooks alike. Nothing in a request counts but
//! as something to be compared.

use weald_app::operations::looking::{DiffTree, ShowTree};
use weald_app::operations::making::SyncTree;
use weald_app::operations::messages::SendMessage;
use weald_app::operations::snapshots::{ListSnapshots, TakeSnapshot};
use weald_app::operations::tasks::ShowTask;
use weald_app::{Ask, Authority, LandWish, NotAllowed};
use weald_core::message::MessageType;

use super::protocol::Request;

/// Whether a request is this run's to make.
pub fn permits(authority: &Authority, request: &Request) -> Result<(), NotAllowed> {
    if let Some(given) = request
        .session
        .as_ref()
        .filter(|given| Some(*given) != authority.session.as_ref())
    {
        return Err(NotAllowed::OtherSession {
            own: authority.session.clone(),
            given: given.clone(),
        });
    }
    if let Some(given) = request
        .token
        .filter(|given| Some(*given) != authority.token)
    {
        return Err(NotAllowed::OtherToken { given });
    }
    if authority.session.is_none() && !reads(&request.ask) {
        return Err(NotAllowed::Nobody);
    }
    match &request.ask {
        Ask::TaskClaim { id }
        | Ask::TaskRenew { id }
        | Ask::TaskDone { id, .. }
        | Ask::TaskFail { id, .. } => authority.permits_task(id.as_ref()),
        Ask::Status(ShowTree { tree })
        | Ask::Path { tree, .. }
        | Ask::Diff(DiffTree { tree, .. })
        | Ask::Sync(SyncTree { tree, .. })
        | Ask::SnapshotCreate(TakeSnapshot { tree, .. })
        | Ask::SnapshotList(ListSnapshots { tree })
        | Ask::Land(LandWish {
            tree,
            dry_run: true,
            ..
        }) => authority.permits_tree(tree.as_deref()),
        Ask::Land(LandWish { tree, .. }) => {
            authority.permits_tree(tree.as_deref())?;
            authority.permits_landing()
        }
        Ask::MsgSend(SendMessage {
            kind: MessageType::Shutdown,
            ..
        }) => Err(NotAllowed::Shutdown),
        Ask::TaskShow(ShowTask { id: None }) if authority.task.is_none() => Err(NotAllowed::NoTask),
        Ask::TaskShow(_)
        | Ask::Overview {}
        | Ask::TaskList(_)
        | Ask::TaskReady(_)
        | Ask::MsgSend(_)
        | Ask::MsgReply(_)
        | Ask::MsgAnswer { .. }
        | Ask::MsgInbox { .. }
        | Ask::SessionList(_)
        | Ask::SessionNote(_)
        | Ask::Beside { .. }
        | Ask::Events(_) => Ok(()),
    }
}

/// Whether something only looks: at the board, or at the own worktree.
fn reads(ask: &Ask) -> bool {
    match ask {
        Ask::Overview {}
        | Ask::TaskList(_)
        | Ask::TaskReady(_)
        | Ask::TaskShow(_)
        | Ask::SessionList(_)
        | Ask::Events(_)
        | Ask::Status(_)
        | Ask::Path { .. }
        | Ask::Beside { .. }
        | Ask::Diff(_)
        | Ask::SnapshotList(_) => true,
        // That it has no mandate says more than that it is nobody's.
        Ask::Land(wish) => !wish.dry_run,
        Ask::TaskClaim { .. }
        | Ask::TaskRenew { .. }
        | Ask::TaskDone { .. }
        | Ask::TaskFail { .. }
        | Ask::MsgSend(_)
        | Ask::MsgReply(_)
        | Ask::MsgAnswer { .. }
        | Ask::MsgInbox { .. }
        | Ask::SessionNote(_)
        | Ask::Sync(_)
        | Ask::SnapshotCreate(_) => false,
    }
}

#[cfg(test)]
mod tests;
