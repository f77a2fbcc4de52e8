//! Dependencies: what blocks a task, and why a new edge would close a circle.
//!
//! A dependency that does not exist blocks, like one that is not completed: somebody meant something by it.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::TaskId;
use crate::task::TaskStatus;

/// What a task still waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blockers {
    /// Dependencies that exist and are not completed.
    pub open: Vec<TaskId>,
    /// Dependencies that nobody knows.
    pub missing: Vec<TaskId>,
}

impl Blockers {
    /// Sorts dependencies by what is known of each.
    pub fn of(dependencies: impl IntoIterator<Item = (TaskId, Option<TaskStatus>)>) -> Self {
        let mut blockers = Self::default();
        for (id, status) in dependencies {
            match status {
                Some(TaskStatus::Completed) => {}
                Some(_) => blockers.open.push(id),
                None => blockers.missing.push(id),
            }
        }
        blockers
    }

    /// True when nothing blocks.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty() && self.missing.is_empty()
    }
}

impl fmt::Display for Blockers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |ids: &[TaskId]| {
            ids.iter()
                .map(TaskId::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        };
        match (self.open.is_empty(), self.missing.is_empty()) {
            (false, true) => write!(f, "{}", list(&self.open)),
            (true, false) => write!(f, "{} (missing)", list(&self.missing)),
            _ => write!(
                f,
                "{} and {} (missing)",
                list(&self.open),
                list(&self.missing)
            ),
        }
    }
}

/// Looks for a circle that can be reached from `starts`, following `blocked_by` of each task. Returns the way round,
/// its first task also last. Each task is asked for its edges once.
///
/// `blocked_by` answers with the edges as they *would* be after the change; of a task that does not exist, nothing.
pub fn find_cycle<E>(
    starts: impl IntoIterator<Item = TaskId>,
    mut blocked_by: impl FnMut(&TaskId) -> Result<Vec<TaskId>, E>,
) -> Result<Option<Vec<TaskId>>, E> {
    let mut seen = BTreeSet::new();
    for start in starts {
        if !seen.insert(start.clone()) {
            continue;
        }
        let mut open = vec![blocked_by(&start)?];
        let mut path = vec![start];
        while let Some(edges) = open.last_mut() {
            let Some(next) = edges.pop() else {
                open.pop();
                path.pop();
                continue;
            };
            if seen.insert(next.clone()) {
                open.push(blocked_by(&next)?);
                path.push(next);
            } else if let Some(from) = path.iter().position(|id| *id == next) {
                let mut round = path.split_off(from);
                round.push(next);
                return Ok(Some(round));
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::convert::Infallible;

    fn cycle(edges: &[(u64, &[u64])], start: u64) -> Option<Vec<u64>> {
        let edges: BTreeMap<u64, &[u64]> = edges.iter().copied().collect();
        let found = find_cycle::<Infallible>([TaskId::Number(start)], |id| {
            let TaskId::Number(number) = id else {
                unreachable!()
            };
            let after = edges.get(number).copied().unwrap_or_default();
            Ok(after.iter().map(|n| TaskId::Number(*n)).collect())
        });
        let path = found.unwrap()?;
        Some(
            path.into_iter()
                .map(|id| id.to_string().parse().unwrap())
                .collect(),
        )
    }

    #[test]
    fn t9_cycles_are_found_with_the_way_round() {
        assert_eq!(cycle(&[(1, &[1])], 1), Some(vec![1, 1]));
        assert_eq!(
            cycle(&[(1, &[2]), (2, &[3]), (3, &[1])], 1),
            Some(vec![1, 2, 3, 1])
        );
        assert_eq!(
            cycle(&[(1, &[2, 3]), (2, &[4]), (3, &[4]), (4, &[])], 1),
            None
        );
        // A circle further on is found as well, without the way there.
        assert_eq!(
            cycle(&[(1, &[2]), (2, &[3]), (3, &[2])], 1),
            Some(vec![2, 3, 2])
        );
        assert_eq!(
            cycle(&[(1, &[9])], 1),
            None,
            "a missing dependency has no edges"
        );
    }
}
