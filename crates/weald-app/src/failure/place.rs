//! Errors of finding the repository.

use crate::PlaceError;
use serde_json::json;

use super::Failure;
use crate::exit;

impl From<PlaceError> for Failure {
    fn from(error: PlaceError) -> Self {
        let message = error.to_string();
        match error {
            PlaceError::Discover(error) => error.into(),
            PlaceError::LinkedState { path } => Self::new("state_linked", exit::REFUSED, message)
                .hint(format!(
                    "find out what created the link, then: rm {}",
                    path.display()
                )),
            PlaceError::ForeignState { .. } => Self::new("state_foreign", exit::REFUSED, message)
                .hint(
                    "run weald as that user, or in a clone of your own: its state belongs to one user",
                ),
            PlaceError::LostTree { tree, main, .. } => {
                let failure = Self::new("tree_lost", exit::REFUSED, message)
                    .details(json!({"tree": tree, "main": main}));
                match main.filter(|main| main.is_dir()) {
                    Some(main) => failure.hint(format!(
                        "weald -C {} doctor --fix {}",
                        main.parent().unwrap_or(&main).display(),
                        tree.display()
                    )),
                    None => failure.hint(format!(
                        "run in the repository it belongs to: weald doctor --fix {}",
                        tree.display()
                    )),
                }
            }
        }
    }
}
