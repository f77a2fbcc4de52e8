//! What Claude Code says to its hooks, what its settings say of worktrees, and what it gets to read.
//!
//! Pure: the engine reads the files, the binary reads stdin and prints. Fields that nobody needs are ignored; a field of
//! another type than expected is an error, never a guess. What a tool gets is looked at only where weald knows the tool.

mod cone;
mod edit;
mod input;
mod settings;
mod words;

pub use cone::{ConeError, cone};
pub use edit::{Bound, Readings, bound, name_in_git, normal};
pub use input::{HookInput, HookInputError};
pub use settings::{BaseRef, WorktreeSettings};
pub use words::{Finish, Situation, briefing, messages_in_words, questions, refusal};
