//! Where commits are compared: in a repository, or beside it where nothing may be written.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;
use weald_git::Git;

use crate::inside::quoted;
use crate::{TreeError, at};

/// A repository in which commits are compared.
#[derive(Debug, Clone)]
pub(super) struct Comparing {
    git_dir: PathBuf,
    aside: Option<Aside>,
}

/// Where what a comparison makes goes instead, and every store that it may read.
#[derive(Debug, Clone)]
pub(super) struct Aside {
    made: Arc<TempDir>,
    stores: OsString,
}

impl Aside {
    /// A folder outside of every repository.
    pub(super) fn reading(stores: &[&Path]) -> Result<Self, TreeError> {
        let made = TempDir::with_prefix("weald-compare-").map_err(at(Path::new("/tmp")))?;
        let mut quoted_stores = Vec::new();
        for store in stores {
            if !quoted_stores.is_empty() {
                quoted_stores.push(b':');
            }
            quoted(&mut quoted_stores, OsStr::as_bytes(store.as_os_str()));
        }
        Ok(Self {
            made: Arc::new(made),
            stores: OsString::from_vec(quoted_stores),
        })
    }
}

impl Comparing {
    /// In the repository itself; a merge that is tried there leaves its objects.
    pub(super) fn of(git_dir: PathBuf) -> Self {
        Self {
            git_dir,
            aside: None,
        }
    }

    /// The same, and nothing in it is written.
    pub(super) fn beside(git_dir: PathBuf, aside: &Aside) -> Self {
        Self {
            git_dir,
            aside: Some(aside.clone()),
        }
    }

    /// A git command there.
    pub(super) fn git(&self, name: &str) -> Git {
        let git = Git::new(&self.git_dir, name);
        match &self.aside {
            None => git,
            Some(aside) => git
                .env("GIT_OBJECT_DIRECTORY", aside.made.path())
                .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", &aside.stores),
        }
    }
}
