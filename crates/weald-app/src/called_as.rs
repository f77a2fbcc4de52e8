//! How this program can be called by others: by its name, if the search path leads to it, else by its path.

use std::path::PathBuf;

use crate::{Call, Failure, is_program};

/// This program, as others call it.
pub struct CalledAs {
    /// The word to call it by: `weald` if that is this program, else its path.
    pub word: String,
    /// Where it is, as the search path has it.
    pub program: PathBuf,
    /// Whether `weald` in the search path is this program.
    pub is_on_path: bool,
}

impl CalledAs {
    /// Looks into the search path.
    pub fn find(call: &Call<'_>) -> Result<Self, Failure> {
        let own = call.helper()?;
        let path = call.environment.get("PATH").unwrap_or_default();
        let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
        let mut found = folders
            .map(|folder| folder.join("weald"))
            .filter(|program| is_program(program));
        let is_own = |program: &PathBuf| {
            let (there, here) = (program.canonicalize(), own.canonicalize());
            matches!((there, here), (Ok(there), Ok(here)) if there == here)
        };
        Ok(match found.next().filter(is_own) {
            Some(program) => Self {
                word: "weald".to_owned(),
                program,
                is_on_path: true,
            },
            None => Self {
                word: own.display().to_string(),
                program: own,
                is_on_path: false,
            },
        })
    }
}
