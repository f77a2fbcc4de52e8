//! Refs in files, listed, made and deleted without git, because a process costs more than a warm `weald new` may.
//!
//! Whatever is odd (reftable, a broken ref, a loose tag whose target only git knows) is `None`, and git is asked.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::git_files::{durable, read_text};
use crate::ref_name::RefName;
use crate::reference::{Commit, MainRef, Reference};

/// Refs below `prefixes` (each a directory of refs), sorted by name, as `list_refs` lists them; where nobody `peels`, without
/// what tags lead to.
pub(crate) fn list(common_dir: &Path, prefixes: &[&str], peels: bool) -> Option<Vec<MainRef>> {
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
        let kind = entry.file_type().ok()?;
        if kind.is_dir() {
            collect(common_dir, &name, found)?;
        } else if !kind.is_file() {
            return None;
        } else if !name.ends_with(".lock") {
            let text = match read_text(entry.path()) {
                Ok(text) => text,
                // Packed or deleted just now.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(_) => return None,
            };
            // Git passes over a name that no ref can have, and says so.
            RefName::parse(&name)?;
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
    match read_text(common_dir.join("packed-refs")) {
        Ok(text) => packed_in(&text, prefixes, found),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(()),
        Err(_) => None,
    }
}

/// The same of the file's text.
pub(crate) fn packed_in(
    text: &str,
    prefixes: &[&str],
    found: &mut BTreeMap<String, MainRef>,
) -> Option<()> {
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
            RefName::parse(name)?;
            let id = |text: &str| Commit::parse(text).map(|id| id.as_str().to_owned());
            let peeled = match peeled {
                Some(peeled) => Some(id(peeled)?),
                None => None,
            };
            let known = plain(name.to_owned(), id(commit)?, peeled);
            found.insert(name.to_owned(), known);
        }
    }
    Some(())
}

/// Whether a ref of this name, or one below or above it, is packed.
pub(crate) fn is_packed(common_dir: &Path, name: &str) -> io::Result<bool> {
    let text = match read_text(common_dir.join("packed-refs")) {
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
    name: &RefName,
    commit: &str,
    message: &str,
    seconds: i64,
) -> io::Result<()> {
    let file = name.file_in(common_dir);
    let is_packed = || is_packed(common_dir, name.as_str());
    if common_dir.join("reftable").exists() || is_locked(&file) || is_packed()? {
        return Err(gits_turn());
    }
    fs::create_dir_all(file.parent().unwrap_or(common_dir))?;
    let building = place_in(workshop)?;
    let made = durable(&building, format!("{commit}\n").as_bytes()).and_then(|()| {
        log(common_dir, name, commit, message, seconds)?;
        rename_into_nothing(&building, &file)
    });
    made.inspect_err(|_| {
        let _ = fs::remove_file(&building);
    })
}

/// Deletes a branch that holds `commit`, with its log. A kill leaves no lock file in the way of others. An error leaves the
/// branch as it was, and git can be asked.
///
/// It is taken away by a rename and looked at then, so what somebody moved it to meanwhile comes back. Whoever packs refs
/// and saw it before has the lock of the packed refs, or is done with it, by the time those are looked at.
pub(crate) fn delete(
    common_dir: &Path,
    workshop: &Path,
    name: &RefName,
    commit: &str,
) -> io::Result<()> {
    let file = name.file_in(common_dir);
    let is_current = read_text(common_dir.join("HEAD"))
        .is_ok_and(|head| Reference::parse(&head) == Some(Reference::Symbolic(name.to_string())));
    if common_dir.join("reftable").exists() || is_locked(&file) || is_current {
        return Err(gits_turn());
    }
    let taken = place_in(workshop)?;
    rename_into_nothing(&file, &taken)?;
    let holds = read_text(&taken).ok();
    let is_expected = holds.is_some_and(|text| text.trim_end() == commit);
    let packed = common_dir.join("packed-refs");
    let is_packed = is_packed(common_dir, name.as_str());
    if !is_expected || is_locked(&packed) || !matches!(is_packed, Ok(false)) {
        let back = rename_into_nothing(&taken, &file);
        if back.is_err_and(|error| error.kind() == io::ErrorKind::AlreadyExists) {
            // It was made again already, and that one counts.
            let _ = fs::remove_file(&taken);
        }
        return Err(gits_turn());
    }
    fs::remove_file(&taken)?;
    let log = name.log_in(common_dir);
    let _ = fs::remove_file(&log);
    for (file, top) in [(file, "refs/heads"), (log, "logs/refs/heads")] {
        remove_empty_above(&file, &common_dir.join(top));
    }
    Ok(())
}

/// Folders that a name was the last in, below `top`.
fn remove_empty_above(file: &Path, top: &Path) {
    let above = file.ancestors().skip(1);
    for directory in above.take_while(|above| *above != top && above.starts_with(top)) {
        if fs::remove_dir(directory).is_err() {
            return;
        }
    }
}

fn gits_turn() -> io::Error {
    io::Error::other("git knows more about it")
}

/// Whether a git is at work on a file.
fn is_locked(file: &Path) -> bool {
    let mut lock = file.as_os_str().to_owned();
    lock.push(".lock");
    Path::new(&lock).symlink_metadata().is_ok()
}

/// A place in the workshop that this process has once; threads of it work side by side.
fn place_in(workshop: &Path) -> io::Result<PathBuf> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    fs::create_dir_all(workshop)?;
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    Ok(workshop.join(format!("branch-{}-{number}", std::process::id())))
}

fn rename_into_nothing(from: &Path, to: &Path) -> io::Result<()> {
    Ok(renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)?)
}

/// The first line of the branch's log, where the repository keeps logs.
fn log(
    common_dir: &Path,
    name: &RefName,
    commit: &str,
    message: &str,
    seconds: i64,
) -> io::Result<()> {
    if !common_dir.join("logs/refs/heads").is_dir() {
        return Ok(());
    }
    let file = name.log_in(common_dir);
    if let Some(directory) = file.parent() {
        fs::create_dir_all(directory)?;
    }
    let nothing = "0".repeat(commit.len());
    let mut file: File = OpenOptions::new().append(true).create(true).open(file)?;
    let who = "weald <weald@localhost>";
    file.write_all(format!("{nothing} {commit} {who} {seconds} +0000\t{message}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_ref_can_be_is_left_to_git() {
        let home = tempfile::tempdir().unwrap();
        let listed = || list(home.path(), &["refs/heads/"], false);
        let (id, head) = (
            "1".repeat(40),
            "# pack-refs with: peeled fully-peeled sorted \n",
        );
        let pack = |line: &str| {
            let text = format!("{head}{line}\n");
            fs::write(home.path().join("packed-refs"), text).unwrap();
        };
        pack(&format!("{id} refs/heads/a\n^{id}"));
        assert_eq!(listed().map(|found| found.len()), Some(1));
        for line in [
            format!("{id} refs/heads/../../config"),
            format!("{id} refs/heads/a b"),
            format!("{id} refs/heads/a.lock"),
            "--output=x refs/heads/a".to_owned(),
            format!("{id} refs/heads/a\n^--output=x"),
        ] {
            pack(&line);
            assert_eq!(listed(), None, "{line}");
        }
        pack("");
        fs::create_dir_all(home.path().join("refs/heads")).unwrap();
        for (name, expected) in [("a", Some(1)), ("a b", None)] {
            let file = home.path().join("refs/heads").join(name);
            fs::write(file, format!("{id}\n")).unwrap();
            assert_eq!(listed().map(|found| found.len()), expected, "{name}");
        }
    }

    #[test]
    fn a_file_without_end_is_not_taken_into_memory() {
        let home = tempfile::tempdir().unwrap();
        let file = File::create(home.path().join("packed-refs")).unwrap();
        file.set_len(1 << 40).unwrap();
        assert_eq!(list(home.path(), &["refs/heads/"], false), None);
        assert!(is_packed(home.path(), "refs/heads/a").is_err());
    }
}
