//! `weald install`: weald's entries in the files of the programs that agents live in, and out of them again.
//!
//! Invariants: everything is worked out before anything is written; a file that can't be parsed, that can't be written or
//! that changed meanwhile stays as it is; what is not weald's stays as it is, byte for byte. `clients` says what belongs
//! where, `edit` and the `in_…` modules change texts, `applying` changes files, `records` remembers what was there.

mod apparmor;
mod applying;
mod clients;
mod edit;
mod git_link;
mod in_json;
mod in_markdown;
mod in_toml;
mod lines;
mod records;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use apparmor::AppArmorProfile;
pub use edit::EditError;
pub use git_link::GitLink;

use self::records::Records;

/// A program that people meet weald in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
    Claude,
    Codex,
    Gemini,
    Opencode,
}

/// Where the user's files are.
#[derive(Debug, Clone)]
pub struct Homes {
    pub home: PathBuf,
    pub claude: PathBuf,
    pub codex: PathBuf,
    /// Where programs keep their settings.
    pub config: PathBuf,
    /// Where weald keeps files for other programs.
    pub data: PathBuf,
    /// Where weald remembers what it changed.
    pub state: PathBuf,
}

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Installation<'a> {
    pub client: Client,
    /// Where the user's files are.
    pub homes: &'a Homes,
    /// The project whose files are meant, instead of the user's own.
    pub project: Option<&'a Path>,
    /// How weald is called there.
    pub weald: &'a str,
    /// Folders of worktrees that an agent's own sandbox is to leave writable.
    pub worktrees: &'a [PathBuf],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Put weald's entries in, or bring them up to date.
    In,
    Out,
}

/// A file that is touched, or would be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedConfig {
    pub path: PathBuf,
    /// What happens to it.
    pub outcome: FileOutcome,
    /// The change as `diff -u` shows it.
    pub diff: String,
    /// What stays there under weald's name when weald's entries go.
    pub kept: Vec<Kept>,
}

/// An entry that `--remove` leaves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    pub entry: String,
    pub why: KeptBecause,
}

/// Why an entry stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeptBecause {
    /// It was there before weald was installed.
    ThereBefore,
    /// It has weald's name, or something of weald's in it, but starts something else.
    NotWealds,
}

impl KeptBecause {
    /// Only what was there before is left of what starts weald.
    fn of(starts_weald: bool) -> Self {
        match starts_weald {
            true => Self::ThereBefore,
            false => Self::NotWealds,
        }
    }
}

/// What happens to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileOutcome {
    /// It was not there.
    Created,
    Changed,
    Unchanged,
    /// weald had made it, and nothing else is in it.
    Deleted,
}

/// Why nothing was installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// A file can't be edited.
    #[error("{}: {source}", .path.display())]
    Edit { path: PathBuf, source: EditError },
    /// A file can't be read or written.
    #[error("{}: {source}", .path.display())]
    File { path: PathBuf, source: io::Error },
    /// Somebody wrote a file meanwhile.
    #[error("{} was changed in the meantime", .path.display())]
    Raced { path: PathBuf },
    /// A file is marked as one that nobody writes.
    #[error("{} is read-only", .path.display())]
    ReadOnly { path: PathBuf },
    /// A file has other names, which would keep the old text.
    #[error("{} is a hard link, one of several names of a file", .path.display())]
    HardLinked { path: PathBuf },
    /// The program is called something by which its entries could not be found again.
    #[error("this program is called {program}; its entries could not be distinguished from others")]
    Name {
        /// How it is called.
        program: String,
    },
    /// A link in the project leads out of it.
    #[error("{} points outside the project, to {}", .path.display(), .to.display())]
    LeadsOut { path: PathBuf, to: PathBuf },
    /// Something else is where a link should be.
    #[error("{} already exists and was not written by weald", .path.display())]
    Taken { path: PathBuf },
    /// AppArmor's parser did not take the profile.
    #[error("{why}")]
    AppArmor { why: String },
    /// A profile can't name the program.
    #[error("an AppArmor profile can't name {}: the path has characters that mean something else there", .path.display())]
    OddPath { path: PathBuf },
}

impl Installation<'_> {
    /// What would be done; writes nothing.
    pub fn look(&self, direction: Direction) -> Result<Vec<ChangedConfig>, InstallError> {
        let plan = self.plan(direction)?;
        Ok(plan.iter().map(applying::Planned::change).collect())
    }

    /// Does it: all of it, or nothing.
    pub fn perform(&self, direction: Direction) -> Result<Vec<ChangedConfig>, InstallError> {
        let records = self.records();
        let worked = records.alone(|| {
            let plan = self.plan(direction)?;
            applying::apply(&plan, &records)?;
            Ok(plan.iter().map(applying::Planned::change).collect())
        });
        worked.map_err(|source| InstallError::File {
            path: self.homes.state.clone(),
            source,
        })?
    }

    fn plan(&self, direction: Direction) -> Result<Vec<applying::Planned>, InstallError> {
        if direction == Direction::In && !edit::is_weald(self.weald) {
            return Err(InstallError::Name {
                program: self.weald.to_owned(),
            });
        }
        let records = self.records();
        let wanted = match self.project {
            Some(root) => clients::for_project(self.client, root, self.weald),
            None => clients::for_user(self.client, self.homes, self.weald, self.worktrees),
        };
        let planned = wanted.iter();
        let planned = planned.map(|file| applying::plan(file, direction, self.project, &records));
        let mut planned: Vec<_> = planned.collect::<Result<_, _>>()?;
        let own = clients::own_folder(self.client, self.homes).filter(|_| self.project.is_none());
        for path in own.iter().flat_map(|folder| records.below(folder)) {
            if planned.iter().all(|known| known.place() != path) {
                // An older weald wrote it.
                let dropped = clients::Wanted::dropped(path);
                planned.push(applying::plan(&dropped, Direction::Out, None, &records)?);
            }
        }
        Ok(planned)
    }

    fn records(&self) -> Records {
        Records::in_folder(self.homes.state.join("install"))
    }
}
