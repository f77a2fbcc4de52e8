//! What a hook of a conversation needs to know and do: on the host, or inside a tree by its broker.

use std::path::Path;

use weald_app::{Edit, Failure};
use weald_core::claude::Situation;
use weald_core::message::Message;
use weald_core::name::TreeName;

/// The registry, from where the hook is.
pub trait Side {
    /// Where the conversation stands; it is known to be there from now on.
    fn arrive(&self) -> Result<Situation, Failure>;
    /// Messages that nobody took, left where they are.
    fn unread(&self) -> Result<Vec<Message>, Failure>;
    /// The same, taken out: each is told once.
    fn take_messages(&self) -> Result<Vec<Message>, Failure>;
    /// Whether an edit stays in the tree of the conversation; `None` if it has none.
    fn judge(&self, path: &Path) -> Result<Option<(TreeName, Edit)>, Failure>;
    /// Trees besides that change this file, too, as far as that is known and was not told.
    fn beside(&self, path: &Path) -> Result<Vec<TreeName>, Failure>;
    /// Takes the work out of the tree, and leaves what was said last for whoever comes next.
    fn keep(&self, said: Option<&str>) -> Result<(), Failure>;
}

/// How a note begins that a hook left; any other is somebody's own and stays.
const LAST_SAID: &str = "last said: ";

/// The longest such note, in characters.
const NOTE: usize = 2_000;

/// The note that says what was said last, unless somebody left a better one.
pub fn note_of(said: Option<&str>, before: Option<&str>) -> Option<String> {
    let said = said.map(str::trim).filter(|said| !said.is_empty())?;
    let said: String = said.chars().take(NOTE).collect();
    let note = format!("{LAST_SAID}{said}");
    match before {
        Some(before) if !before.starts_with(LAST_SAID) => None,
        Some(before) if before == note => None,
        _ => Some(note),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_of_somebodys_own_stays() {
        for (said, before, note) in [
            (Some("done"), None, Some("last said: done")),
            (
                Some("done"),
                Some("last said: half"),
                Some("last said: done"),
            ),
            (Some("done"), Some("last said: done"), None),
            (Some("done"), Some("half way"), None),
            (Some("  "), None, None),
            (None, None, None),
        ] {
            assert_eq!(
                note_of(said, before).as_deref(),
                note,
                "{said:?} {before:?}"
            );
        }
    }
}
