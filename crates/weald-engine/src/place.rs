//! Where a repository's state lives.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use weald_git::{DiscoverError, Repository};

/// A repository and weald's place in it.
#[derive(Debug, Clone)]
pub struct Place {
    repository: Repository,
    private: PathBuf,
}

impl Place {
    /// Finds the place from a directory inside the repository.
    pub fn find(start: &Path, home: Option<&Path>) -> Result<Self, DiscoverError> {
        let repository = Repository::discover(start, home)?;
        let private = repository.common_dir().join("weald").join("private");
        Ok(Self {
            repository,
            private,
        })
    }

    /// The repository.
    pub fn repository(&self) -> &Repository {
        &self.repository
    }

    /// The directory that is hidden from agents: database, journal, private configuration.
    pub fn private(&self) -> &Path {
        &self.private
    }

    /// The repository as a URI, for events.
    pub fn source(&self) -> String {
        let mut uri = String::from("file://");
        for byte in self.repository.common_dir().as_os_str().as_bytes() {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' | b'~' => {
                    uri.push(char::from(*byte))
                }
                other => uri.push_str(&format!("%{other:02X}")),
            }
        }
        uri
    }
}
