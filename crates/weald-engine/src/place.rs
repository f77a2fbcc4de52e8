//! Where a repository's state lives.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use weald_git::{DiscoverError, Repository};

use crate::marker::{self, Found};

/// A repository and weald's place in it.
#[derive(Debug, Clone)]
pub struct Place {
    repository: Repository,
    private: PathBuf,
    inside: Option<PathBuf>,
}

/// Why no place was found.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// No repository.
    #[error(transparent)]
    Discover(#[from] DiscoverError),
    /// weald's own folder in the repository is a link.
    #[error("{} is a link; weald's state is never kept behind one", .path.display())]
    LinkedState {
        /// Which.
        path: PathBuf,
    },
    /// A tree whose repository can't be confirmed; nothing of it is opened.
    #[error("{} is a tree of weald, but {why}", .tree.display())]
    LostTree {
        /// The tree.
        tree: PathBuf,
        /// What does not fit.
        why: String,
        /// Where its repository should be.
        main: Option<PathBuf>,
    },
}

impl Place {
    /// Finds the place from a directory inside the repository, or inside one of its trees. `state` is the user's own
    /// index of trees.
    pub fn find(
        start: &Path,
        home: Option<&Path>,
        state: Option<&Path>,
    ) -> Result<Self, PlaceError> {
        let start = start
            .canonicalize()
            .map_err(|_| DiscoverError::NotARepository {
                from: start.to_owned(),
            })?;
        match marker::find(&start, state)? {
            Found::Tree { main, tree } => {
                Ok(Self::of(Repository::discover(&main, home)?, Some(tree)))
            }
            Found::Nothing => {
                let repository = Repository::discover(&start, home)?;
                marker::refuse_inner(&repository)?;
                marker::refuse_links(&repository)?;
                Ok(Self::of(repository, None))
            }
        }
    }

    fn of(repository: Repository, inside: Option<PathBuf>) -> Self {
        let private = repository.common_dir().join("weald").join("private");
        Self {
            repository,
            private,
            inside,
        }
    }

    /// The repository.
    pub fn repository(&self) -> &Repository {
        &self.repository
    }

    /// The directory that is hidden from agents: database, journal, private configuration.
    pub fn private(&self) -> &Path {
        &self.private
    }

    /// One folder a run, each seen by its run alone: the broker's socket, and what the run may read.
    pub fn runs(&self) -> PathBuf {
        self.private.with_file_name("runs")
    }

    /// One folder a tree and kind of agent, each seen by its tree's agent alone: the agent's own state.
    pub fn homes(&self) -> PathBuf {
        self.private.with_file_name("homes")
    }

    /// What of weald's own no sandbox shows, but for what belongs to its run.
    pub fn hidden(&self) -> Vec<PathBuf> {
        vec![self.private.clone(), self.runs(), self.homes()]
    }

    /// The tree that the search began in.
    pub fn inside(&self) -> Option<&Path> {
        self.inside.as_deref()
    }

    /// The main checkout, or the folder that stands for it where there is none.
    pub fn root(&self) -> PathBuf {
        let common = self.repository.common_dir();
        match common.file_name().and_then(|name| name.to_str()) {
            Some(".git" | ".bare") => common.parent().unwrap_or(common).to_owned(),
            _ => match self.repository.checkout() {
                Some(checkout) if !self.is_linked() => checkout.to_owned(),
                _ => common.to_owned(),
            },
        }
    }

    fn is_linked(&self) -> bool {
        self.repository.git_dir() != self.repository.common_dir()
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
