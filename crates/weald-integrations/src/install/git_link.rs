//! `git weald`: git runs `git-weald` of the search path, so a link of that name next to the program is all it takes.
//!
//! An alias would do, too, but git runs those from the top of the checkout, where relative paths mean something else.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::{ChangedConfig, Direction, FileOutcome, InstallError};

const NAME: &str = "git-weald";

/// The link that makes `git weald` work.
#[derive(Debug, Clone)]
pub struct GitLink {
    link: PathBuf,
    program: PathBuf,
}

impl GitLink {
    /// The one next to a program.
    pub fn next_to(program: &Path) -> Self {
        Self {
            link: program.with_file_name(NAME),
            program: program.to_owned(),
        }
    }

    /// What would be done; writes nothing.
    pub fn look(&self, direction: Direction) -> Result<ChangedConfig, InstallError> {
        let is_there = self.link.is_symlink() || self.link.exists();
        let is_ours = match (self.link.canonicalize(), self.program.canonicalize()) {
            (Ok(link), Ok(program)) => self.link.is_symlink() && link == program,
            _ => false,
        };
        let outcome = match (direction, is_there, is_ours) {
            (Direction::In, false, _) => FileOutcome::Created,
            (Direction::In, true, false) => {
                return Err(InstallError::Taken {
                    path: self.link.clone(),
                });
            }
            (Direction::Out, _, true) => FileOutcome::Deleted,
            _ => FileOutcome::Unchanged,
        };
        let link = self.link.display();
        let diff = match outcome {
            FileOutcome::Created => format!("+{link} -> {}\n", self.target().display()),
            FileOutcome::Deleted => format!("-{link} -> {}\n", self.target().display()),
            _ => String::new(),
        };
        Ok(ChangedConfig {
            path: self.link.clone(),
            outcome,
            diff,
            kept: Vec::new(),
        })
    }

    pub fn perform(&self, direction: Direction) -> Result<ChangedConfig, InstallError> {
        let change = self.look(direction)?;
        let done = match change.outcome {
            FileOutcome::Created => symlink(self.target(), &self.link),
            FileOutcome::Deleted => fs::remove_file(&self.link),
            _ => Ok(()),
        };
        done.map_err(|source| InstallError::File {
            path: self.link.clone(),
            source,
        })?;
        Ok(change)
    }

    /// The program by its name alone: both can be moved together.
    fn target(&self) -> &Path {
        Path::new(self.program.file_name().unwrap_or_default())
    }
}
