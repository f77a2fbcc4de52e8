//! Errors of `weald install`.

use crate::{EditError, InstallError};
use serde_json::json;

use super::{ACCEPT, Failure};
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
                        "the plugin comes from another marketplace (`claude plugin marketplace add`): keep that one, or run `claude plugin marketplace remove weald` and try again",
                    ),
                    EditError::Taken(_) => ("name_taken", "rename or remove that entry, then run this again"),
                    EditError::Twice(_) => (
                        "file_invalid",
                        "merge the two: programs differ on which one they use",
                    ),
                    EditError::Marks => {
                        ("file_invalid", "remove the rest of weald's block by hand")
                    }
                    EditError::Shape(_) | EditError::Unsafe => (
                        "file_invalid",
                        "add the entry by hand (see docs/install.md)",
                    ),
                };
                refused(code).hint(hint).details(json!({"path": path}))
            }
            InstallError::File { path, .. } => refused("file")
                .hint("check its owner and permissions")
                .details(json!({"path": path})),
            InstallError::Raced { path } => Self::new("changed_meanwhile", exit::BUSY, message)
                .hint("run this again")
                .details(json!({"path": path})),
            InstallError::ReadOnly { path } => refused("file_read_only")
                .hint(format!(
                    "if it is yours to change: chmod u+w {}",
                    path.display()
                ))
                .details(json!({"path": path})),
            InstallError::HardLinked { path } => refused("hard_linked")
                .hint("replace it with a copy, or with a symbolic link (weald writes to its target)")
                .details(json!({"path": path})),
            InstallError::Name { program } => refused("program_name")
                .hint("rename the program to weald or weald-VERSION, then run this again")
                .details(json!({"program": program})),
            InstallError::LeadsOut { path, to } => refused("leads_out")
                .hint(
                    "weald does not follow a project's link to outside the project; replace the link",
                )
                .details(json!({"path": path, "to": to})),
            InstallError::Taken { path } => refused("name_taken")
                .hint("move it out of the way, then run this again")
                .details(json!({"path": path})),
            InstallError::AppArmor { .. } => refused("apparmor")
                .hint(format!("the profile needs AppArmor 4.0; or accept a weaker sandbox: {ACCEPT}")),
            InstallError::OddPath { path } => refused("program_name")
                .hint("install weald as /usr/bin/weald, or in another directory, then run this again")
                .details(json!({"path": path})),
        }
    }
}
