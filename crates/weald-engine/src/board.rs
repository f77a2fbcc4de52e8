//! The board: everything at a glance, from one snapshot.

use serde::Serialize;
use weald_core::store::{StoreError, TaskClass, TaskFilter, TaskOrder};
use weald_core::task::{Task, TaskStatus};
use weald_core::tree::Tree;

use crate::engine::Engine;
use crate::sessions::{SessionError, SessionView};

/// How many tasks of a kind the board names.
const NAMED: u64 = 8;

/// What a person sees first.
#[derive(Debug, Clone, Serialize)]
pub struct Board {
    /// How many tasks have each status; statuses without any are left out.
    pub counts: Vec<(TaskStatus, u64)>,
    /// How many are ready.
    pub ready_count: u64,
    /// The next ones to claim.
    pub ready: Vec<Task>,
    /// What is being worked on.
    pub in_progress: Vec<Task>,
    /// Trees that are there or should be.
    pub trees: Vec<Tree>,
    /// Who has not said goodbye.
    pub sessions: Vec<SessionView>,
}

impl Engine {
    /// Looks at everything.
    pub fn board(&self) -> Result<Board, SessionError> {
        let filter = |class| TaskFilter {
            classes: vec![class],
            order: TaskOrder::Claim,
            limit: Some(NAMED),
            ..TaskFilter::default()
        };
        let mut board = self.look(|tx| {
            let mut counts = Vec::new();
            for status in TaskStatus::ALL {
                match tx.count_tasks(&filter(TaskClass::Status(status)))? {
                    0 => {}
                    count => counts.push((status, count)),
                }
            }
            Ok::<_, StoreError>(Board {
                counts,
                ready_count: tx.count_tasks(&filter(TaskClass::Ready))?,
                ready: tx.tasks(&filter(TaskClass::Ready))?,
                in_progress: tx.tasks(&filter(TaskClass::Status(TaskStatus::InProgress)))?,
                trees: tx.trees()?.into_iter().filter(Tree::is_live).collect(),
                sessions: Vec::new(),
            })
        })?;
        let open = self
            .sessions()?
            .into_iter()
            .filter(|view| view.session.ended_at.is_none());
        board.sessions = open.collect();
        Ok(board)
    }
}
