//! Errors of `weald install`.

use crate::{EditError, InstallError};
use serde_json::json;

use super::Failure;
use crate::exit;

/// Where Claude Code's settings name weald's marketplace.
const MARKETPLACE: &str = "extraKnownMarketplaces.weald";

impl From<InstallError> for Failure {
    fn from(error: InstallError) -> Self {
        let message = format!("{error}; nothing was changed");
        let refused = |code: &'static str| Self::new(code, exit::REFUSED, message.clone());
        match error {
            InstallError::Edit { path, source } => {
                let (code, hint) = match source {
                    EditError::Syntax(_) => ("file_invalid", "fix it first, then run this again"),
                    EditError::Taken(entry) if entry == MARKETPLACE => (
                        "name_taken",
                        "the plugin is there from another place (`claude plugin marketplace add`): leave it so, or run `claude plugin marketplace remove weald` and call this again",
                    ),
                    EditError::Taken(_) => ("name_taken", "rename that entry, or take it out"),
                    EditError::Twice(_) => (
                        "file_invalid",
                        "put both together: programs differ on which of them counts",
                    ),
                    EditError::Marks => {
                        ("file_invalid", "take what is left of the block out by hand")
                    }
                    EditError::Shape(_) | EditError::Unsafe => (
                        "file_invalid",
                        "add the entry by hand: docs/install.md has it",
                    ),
                };
                refused(code).hint(hint).details(json!({"path": path}))
            }
            InstallError::File { path, .. } => refused("file")
                .hint("see who may write it")
                .details(json!({"path": path})),
            InstallError::Raced { path } => Self::new("changed_meanwhile", exit::BUSY, message)
                .hint("call it again")
                .details(json!({"path": path})),
            InstallError::ReadOnly { path } => refused("file_read_only")
                .hint(format!(
                    "if it is yours to change: chmod u+w {}",
                    path.display()
                ))
                .details(json!({"path": path})),
            InstallError::HardLinked { path } => refused("hard_linked")
                .hint("make it a file of its own, or a symbolic link: its target is written")
                .details(json!({"path": path})),
            InstallError::Name { program } => refused("program_name")
                .hint("call it weald, or weald-VERSION, and call this again")
                .details(json!({"program": program})),
            InstallError::LeadsOut { path, to } => refused("leads_out")
                .hint(
                    "a project's file must not decide what is written elsewhere; replace the link",
                )
                .details(json!({"path": path, "to": to})),
            InstallError::Taken { path } => refused("name_taken")
                .hint("move it away first")
                .details(json!({"path": path})),
        }
    }
}
