//! What a storm must not lose: commits, and files with their modes, links and what is staged.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Files by their paths below a directory: mode and content, or where a link leads.
pub(super) type Files = BTreeMap<PathBuf, Vec<u8>>;

/// Work of somebody's in one directory.
#[derive(Debug, Clone, Default)]
pub(super) struct Work {
    /// Where it is, unless it went to the trash.
    pub path: PathBuf,
    /// What is in it besides what was checked out.
    pub files: Files,
    /// What is staged, by name.
    pub staged: Option<String>,
    /// An older state may have been put in its place; then the vault has it.
    pub put_back: bool,
}

/// Everything there is to lose.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// Commits, and whose they are.
    pub commits: BTreeMap<String, String>,
    /// Work by the name of its tree.
    pub works: BTreeMap<String, Work>,
}

/// A file or a link as it is; nothing for a directory or what is not there.
pub(super) fn content(path: &Path) -> Option<Vec<u8>> {
    let found = path.symlink_metadata().ok()?;
    if found.is_symlink() {
        return Some(fs::read_link(path).ok()?.as_os_str().as_bytes().to_vec());
    }
    if !found.is_file() {
        return None;
    }
    let mut content = format!("{:o} ", found.permissions().mode()).into_bytes();
    content.extend(fs::read(path).ok()?);
    Some(content)
}

/// Every file in a directory, but for its repository.
pub(super) fn files_in(root: &Path) -> Files {
    let mut found = Files::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = path.strip_prefix(root).expect("below its root").to_owned();
            if name == Path::new(".git") {
                continue;
            }
            match content(&path) {
                Some(content) => drop(found.insert(name, content)),
                None => open.push(path),
            }
        }
    }
    found
}

/// The files of a work that are not in a directory as they were.
pub(super) fn missing(work: &Work, directory: &Path) -> Vec<PathBuf> {
    let is_there = |(name, wanted): &(&PathBuf, &Vec<u8>)| {
        content(&directory.join(name)).as_ref() == Some(*wanted)
    };
    let lost = work.files.iter().filter(|file| !is_there(file));
    lost.map(|(name, _)| name.clone()).collect()
}
