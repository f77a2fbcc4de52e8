//! Errors of undoing.

use crate::UndoError;
use weald_core::undo::{NotByItself, Unasked, UndoRefusal};

use super::Failure;
use crate::exit;

impl From<UndoError> for Failure {
    fn from(error: UndoError) -> Self {
        let message = error.to_string();
        let (code, hint) = match error {
            UndoError::Land(error) => return error.into(),
            UndoError::Tree(error) => return error.into(),
            UndoError::Store(error) => return error.into(),
            UndoError::Git(error) => return error.into(),
            UndoError::Refused(refusal) => return of_event(&refusal),
            UndoError::OfQueue(_) => return Self::new("not_reverted", exit::REFUSED, message),
            UndoError::Nothing => (
                "nothing_to_undo",
                "to see what was done: weald events; to see what can be restored: weald restore"
                    .to_owned(),
            ),
            UndoError::Unnamed(refused) => match refused.why {
                Unasked::Gone => ("undo_gone", by_name(&refused)),
                Unasked::Others | Unasked::Older => ("undo_unnamed", by_name(&refused)),
            },
            UndoError::Gone(_) => (
                "undo_gone",
                "weald restore --purged; to see what can be undone: weald undo --list".to_owned(),
            ),
            UndoError::NotInTrash(..) => ("undo_gone", "weald doctor".to_owned()),
            UndoError::BranchMoved(id, ..) | UndoError::TaskTaken(id, ..) => (
                "undo_inexact",
                format!("to restore what is left: weald restore {id}"),
            ),
            UndoError::NameTaken(event, name, _) => (
                "undo_inexact",
                format!("weald rm {name}, then weald undo {event}"),
            ),
            UndoError::HalfRestored(event, ..) => (
                "undo_inexact",
                format!("weald doctor --fix, then weald undo {event}"),
            ),
            UndoError::PathTaken(event, _, path) => {
                let path = path.display();
                let hint = format!("move {path} out of the way, then weald undo {event}");
                ("undo_inexact", hint)
            }
            UndoError::TreeGone(_) => ("undo_inexact", "weald restore".to_owned()),
            UndoError::OtherLock => ("undo_inexact", "weald list".to_owned()),
        };
        Self::new(code, exit::REFUSED, message).hint(hint)
    }
}

fn of_event(refusal: &UndoRefusal) -> Failure {
    let (code, exit) = match refusal {
        UndoRefusal::NoEvent(_) => ("event_not_found", exit::NOT_FOUND),
        UndoRefusal::IsUndone(_) => ("undone_already", exit::REFUSED),
        UndoRefusal::IsUndoing(_) | UndoRefusal::NotUndoable(..) => ("not_undoable", exit::REFUSED),
    };
    Failure::new(code, exit, refusal.to_string()).hint("weald undo --list")
}

fn by_name(refused: &NotByItself) -> String {
    match &refused.next {
        Some(next) if next.event == refused.last.event => {
            format!("to undo it: weald undo {}", next.event)
        }
        Some(next) => format!(
            "to undo {next} instead: weald undo {}; weald restore --purged",
            next.event
        ),
        None => "weald restore --purged".to_owned(),
    }
}
