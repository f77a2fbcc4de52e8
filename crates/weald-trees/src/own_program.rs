//! `weald` inside a run, wherever the binary lies: agents are told to use it.
//!
//! A link named `weald` in the run's folder, first on the search path. Where the binary lies in a directory that is private
//! inside (/tmp), it alone is shown there, read-only.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::run::RunRequest;
use super::unseen::is_private_inside;
use super::{TreeError, Trees, at};
use weald_control::files::is_program;

/// How the binary is called.
const NAME: &str = "weald";

/// This binary, as a run finds it.
#[derive(Debug)]
pub struct OwnProgram {
    file: PathBuf,
    folder: PathBuf,
}

impl Trees<'_> {
    /// Makes this binary a program in a run's folder.
    pub fn link_program(&self, run_folder: &Path) -> Result<OwnProgram, TreeError> {
        let folder = run_folder.join("bin");
        let file = self.host.helper.clone();
        let made = || -> io::Result<()> {
            std::fs::create_dir(&folder)?;
            symlink(&file, folder.join(NAME))
        };
        made().map_err(at(&folder))?;
        Ok(OwnProgram { file, folder })
    }
}

impl OwnProgram {
    /// Lets a run find it.
    pub fn grant(&self, request: &mut RunRequest) {
        if let Some(policy) = &mut request.policy
            && is_private_inside(&self.file)
        {
            policy.show.push(self.file.clone());
        }
        let all = &mut request.environment;
        let path = all.iter_mut().find(|(name, _)| name == "PATH");
        match path {
            Some((_, path)) if is_found(&self.file, path) => {}
            Some((_, path)) => *path = in_front(&self.folder, path),
            None => all.push(("PATH".into(), in_front(&self.folder, OsStr::new("")))),
        }
    }
}

/// Whether a search path leads to this very file.
fn is_found(file: &Path, path: &OsStr) -> bool {
    let mut found = std::env::split_paths(path).map(|folder| folder.join(NAME));
    let first = found.find(|found| is_program(found));
    first.is_some_and(|first| first.canonicalize().is_ok_and(|first| first == file))
}

fn in_front(folder: &Path, path: &OsStr) -> OsString {
    let mut all = folder.as_os_str().to_owned();
    if !path.is_empty() {
        all.push(":");
        all.push(path);
    }
    all
}
