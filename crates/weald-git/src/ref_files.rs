//! Refs in files, listed and made without git, because a process costs more than a warm `weald new` may.
//!
//! Whatever is odd (reftable, a broken ref, a loose tag whose target only git can tell) is `None`, and git is asked.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::refs::{MainRef, Reference};

/// Refs below `prefixes` (each a directory of refs), sorted by name, as `list_refs` tells them.
pub(crate) fn list(common_dir: &Path, prefixes: &[&str]) -> Option<Vec<MainRef>> {
    if common_dir.join("reftable").exists() || common_dir.join("gitdir").exists() {
        return None;
    }
    let mut found = BTreeMap::new();
    let mut loose = Vec::new();
    // Loose ones first: a ref that is packed meanwhile is seen twice, not never.
    for prefix in prefixes {
        collect(common_dir, prefix.trim_end_matches('/'), &mut loose)?;
    }
    packed(common_dir, prefixes, &mut found)?;
    let mut symbolic = Vec::new();
    for (name, reference) in loose {
        match reference {
            Reference::Direct(commit) => {
                let commit = commit.as_str().to_owned();
                let known = found.get(&name).filter(|known| known.commit == commit);
                let peeled = known.and_then(|known| known.peeled.clone());
                if known.is_none() && !name.starts_with("refs/remotes/") {
                    return None;
                }
                found.insert(name.clone(), plain(name, commit, peeled));
            }
            Reference::Symbolic(to) => symbolic.push((name, to)),
        }
    }
    for (name, to) in symbolic {
        let commit = found.get(&to)?.commit.clone();
        let alias = MainRef {
            symbolic: Some(to),
            ..plain(name.clone(), commit, None)
        };
        found.insert(name, alias);
    }
    Some(found.into_values().collect())
}

fn plain(name: String, commit: String, peeled: Option<String>) -> MainRef {
    MainRef {
        name,
        commit,
        peeled,
        symbolic: None,
    }
}

/// Loose refs below a directory.
fn collect(common_dir: &Path, directory: &str, found: &mut Vec<(String, Reference)>) -> Option<()> {
    let entries = match fs::read_dir(common_dir.join(directory)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Some(()),
        Err(_) => return None,
    };
    for entry in entries {
        let entry = entry.ok()?;
        let name = format!("{directory}/{}", entry.file_name().to_str()?);
        if entry.file_type().ok()?.is_dir() {
            collect(common_dir, &name, found)?;
        } else if !name.ends_with(".lock") {
            let text = match fs::read_to_string(entry.path()) {
                Ok(text) => text,
                // Packed or deleted just now.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(_) => return None,
            };
            found.push((name, Reference::parse(&text)?));
        }
    }
    Some(())
}

/// Packed refs below `prefixes`.
fn packed(
    common_dir: &Path,
    prefixes: &[&str],
    found: &mut BTreeMap<String, MainRef>,
) -> Option<()> {
    let text = match fs::read_to_string(common_dir.join("packed-refs")) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Some(()),
        Err(_) => return None,
    };
    let mut lines = text.lines().peekable();
    // Without this word a missing line of a tag's target says nothing.
    if !lines.next()?.contains(" fully-peeled") {
        return None;
    }
    while let Some(line) = lines.next() {
        let Some((commit, name)) = line.split_once(' ') else {
            continue;
        };
        let peeled = lines.peek().and_then(|next| next.strip_prefix('^'));
        if prefixes.iter().any(|prefix| name.starts_with(prefix)) {
            let known = plain(
                name.to_owned(),
                commit.to_owned(),
                peeled.map(str::to_owned),
            );
            found.insert(name.to_owned(), known);
        }
    }
    Some(())
}

/// Whether a ref of this name, or one below or above it, is packed.
fn is_packed(common_dir: &Path, name: &str) -> io::Result<bool> {
    let text = match fs::read_to_string(common_dir.join("packed-refs")) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    let above = name.match_indices('/').map(|(slash, _)| &name[..slash]);
    let taken = |name: &str, end: char| text.contains(&format!(" {name}{end}"));
    Ok(taken(name, '/') || above.chain([name]).any(|name| taken(name, '\n')))
}

/// A new ref in the making; dropped unfinished, it leaves nothing.
struct Lock(PathBuf);

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Makes a branch that does not exist yet, by git's own protocol: lock file, check, write, rename. An error leaves
/// nothing, and git can be asked to try: it also knows why not.
pub(crate) fn create(
    common_dir: &Path,
    name: &str,
    commit: &str,
    message: &str,
    seconds: i64,
) -> io::Result<()> {
    if common_dir.join("reftable").exists() {
        return Err(io::Error::other("refs are in tables"));
    }
    let file = common_dir.join(name);
    let directory = file.parent().unwrap_or(common_dir);
    fs::create_dir_all(directory)?;
    let mut path = file.clone().into_os_string();
    path.push(".lock");
    let path = PathBuf::from(path);
    let mut opened = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&path)?;
    let lock = Lock(path);
    if file.symlink_metadata().is_ok() || is_packed(common_dir, name)? {
        return Err(io::Error::from(io::ErrorKind::AlreadyExists));
    }
    opened.write_all(format!("{commit}\n").as_bytes())?;
    opened.sync_all()?;
    log(common_dir, name, commit, message, seconds)?;
    fs::rename(&lock.0, &file)?;
    std::mem::forget(lock);
    Ok(())
}

/// The first line of the branch's log, where the repository keeps logs.
fn log(common_dir: &Path, name: &str, commit: &str, message: &str, seconds: i64) -> io::Result<()> {
    let logs = common_dir.join("logs");
    if !logs.join("refs/heads").is_dir() {
        return Ok(());
    }
    let file = logs.join(name);
    if let Some(directory) = file.parent() {
        fs::create_dir_all(directory)?;
    }
    let nothing = "0".repeat(commit.len());
    let mut file: File = OpenOptions::new().append(true).create(true).open(file)?;
    let who = "weald <weald@localhost>";
    file.write_all(format!("{nothing} {commit} {who} {seconds} +0000\t{message}\n").as_bytes())
}
