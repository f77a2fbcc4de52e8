//! Refs in files, listed and made without git, because a process costs more than a warm `weald new` may.
//!
//! Whatever is odd (reftable, a broken ref, a loose tag whose target only git can tell) is `None`, and git is asked.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::refs::{MainRef, Reference};
use crate::registration::durable;

/// Refs below `prefixes` (each a directory of refs), sorted by name, as `list_refs` tells them; where nobody `peels`, without
/// what tags lead to.
pub(crate) fn list(common_dir: &Path, prefixes: &[&str], peels: bool) -> Option<Vec<MainRef>> {
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
                if peels && known.is_none() && !name.starts_with("refs/remotes/") {
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

/// Makes a branch that does not exist yet: written elsewhere, in `workshop`, and renamed to a place that must be free. A
/// kill leaves no lock file in the way of others. An error leaves nothing, and git can be asked to try: it also knows
/// why not. (A git that makes the same branch in the same instant wins, as if it had moved the branch a moment later.)
pub(crate) fn create(
    common_dir: &Path,
    workshop: &Path,
    name: &str,
    commit: &str,
    message: &str,
    seconds: i64,
) -> io::Result<()> {
    let file = common_dir.join(name);
    let mut lock = file.clone().into_os_string();
    lock.push(".lock");
    let is_locked = Path::new(&lock).symlink_metadata().is_ok();
    if common_dir.join("reftable").exists() || is_locked || is_packed(common_dir, name)? {
        return Err(io::Error::other("git knows more about it"));
    }
    fs::create_dir_all(file.parent().unwrap_or(common_dir))?;
    fs::create_dir_all(workshop)?;
    let building = workshop.join(format!("branch-{}", std::process::id()));
    let made = durable(&building, format!("{commit}\n").as_bytes()).and_then(|()| {
        log(common_dir, name, commit, message, seconds)?;
        Ok(renameat_with(
            CWD,
            &building,
            CWD,
            &file,
            RenameFlags::NOREPLACE,
        )?)
    });
    made.inspect_err(|_| {
        let _ = fs::remove_file(&building);
    })
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
