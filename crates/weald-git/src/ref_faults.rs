//! What is wrong with the refs and locks of a repository, found without git.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::git_files::read_small;
use crate::reference::{Commit, Reference};

/// How much of the end of a reflog is read.
const LOG_END: u64 = 4096;

/// How many directories of refs are looked into.
const FOLDERS: usize = 100_000;

/// A ref that names nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenRef {
    pub name: String,
    pub path: PathBuf,
    /// True when its file holds nothing at all, as after a power cut.
    pub is_blank: bool,
    /// What its log says that it held last.
    pub logged: Option<Commit>,
}

/// A lock file of git's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockFile {
    pub path: PathBuf,
    /// How old it is.
    pub age: Duration,
}

/// Loose refs of a repository, with all their lock files.
#[derive(Debug, Default)]
pub struct RefSurvey {
    /// Those that name nothing.
    pub broken: Vec<BrokenRef>,
    pub locks: Vec<LockFile>,
}

/// Looks at every loose ref of a repository whose refs are files.
pub fn survey_refs(git_dir: &Path) -> RefSurvey {
    let mut survey = RefSurvey::default();
    let mut open = vec![String::from("refs")];
    let mut looked = 0;
    while let Some(folder) = open.pop() {
        looked += 1;
        if looked > FOLDERS {
            break;
        }
        let entries = fs::read_dir(git_dir.join(&folder)).into_iter().flatten();
        for entry in entries.flatten() {
            let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push(name),
                _ if name.ends_with(".lock") => survey.locks.extend(lock_at(&entry.path())),
                _ => survey.broken.extend(broken(git_dir, name, entry.path())),
            }
        }
    }
    survey
        .broken
        .sort_by(|one, other| one.name.cmp(&other.name));
    survey
}

fn broken(git_dir: &Path, name: String, path: PathBuf) -> Option<BrokenRef> {
    let bytes = match read_small(&path) {
        Ok(bytes) => bytes,
        // Packed or deleted just now.
        Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => return None,
        Err(_) => Vec::from(*b"?"),
    };
    if Reference::parse(&String::from_utf8_lossy(&bytes)).is_some() {
        return None;
    }
    Some(BrokenRef {
        is_blank: bytes.iter().all(|byte| *byte == 0),
        logged: last_logged(&git_dir.join("logs").join(&name)),
        name,
        path,
    })
}

/// What a reflog says that its ref held last.
pub fn last_logged(log: &Path) -> Option<Commit> {
    use std::io::{Seek, SeekFrom};
    let found = log
        .symlink_metadata()
        .ok()
        .filter(|found| found.is_file())?;
    let mut file = fs::File::open(log).ok()?;
    let start = found.len().saturating_sub(LOG_END);
    file.seek(SeekFrom::Start(start)).ok()?;
    let mut bytes = Vec::new();
    file.take(LOG_END).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let new_id = |line: &str| Commit::parse(line.split(' ').nth(1)?);
    text.lines().rev().find_map(new_id)
}

/// The first line of `packed-refs` that git can't read, and its number.
pub fn packed_refs_fault(git_dir: &Path) -> Option<(usize, String)> {
    let path = git_dir.join("packed-refs");
    let found = path.symlink_metadata().ok()?;
    if !path.metadata().is_ok_and(|found| found.is_file()) {
        let what = match found.is_dir() {
            true => "it is a directory",
            false => "it is no file",
        };
        return Some((0, what.to_owned()));
    }
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) => return Some((0, error.to_string())),
    };
    let is_fine = |line: &[u8]| {
        let text = String::from_utf8_lossy(line);
        match text.as_bytes().first() {
            Some(b'#') => true,
            Some(b'^') => Commit::parse(&text[1..]).is_some(),
            _ => text
                .split_once(' ')
                .is_some_and(|(id, name)| Commit::parse(id).is_some() && name.starts_with("refs/")),
        }
    };
    let body = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    let mut lines = body.split(|byte| *byte == b'\n').enumerate();
    let (number, line) = match bytes.is_empty() {
        true => None,
        false => lines.find(|(_, line)| !is_fine(line)),
    }?;
    let shown: String = String::from_utf8_lossy(line).chars().take(60).collect();
    Some((number + 1, format!("“{}”", shown.escape_debug())))
}

/// What is wrong with the HEAD of a git directory.
pub fn head_fault(git_dir: &Path) -> Option<String> {
    let path = git_dir.join("HEAD");
    let is_old_link = fs::read_link(&path).is_ok_and(|to| to.starts_with("refs"));
    if is_old_link {
        return None;
    }
    match read_small(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some("it is missing".to_owned()),
        Err(error) => Some(error.to_string()),
        Ok(bytes) if bytes.is_empty() => Some("it is empty".to_owned()),
        Ok(bytes) => match Reference::parse(&String::from_utf8_lossy(&bytes)) {
            Some(Reference::Symbolic(name)) if name.is_empty() => {
                Some("it names no branch".to_owned())
            }
            Some(_) => None,
            None => Some("it names neither a branch nor a commit".to_owned()),
        },
    }
}

/// The lock files that lie in a directory itself.
pub fn locks_in(directory: &Path) -> Vec<LockFile> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let is_lock = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "lock");
    let paths = entries.map(|entry| entry.path()).filter(is_lock);
    paths.filter_map(|path| lock_at(&path)).collect()
}

/// One lock file; `None` if there is none.
pub fn lock_at(path: &Path) -> Option<LockFile> {
    let changed = path.symlink_metadata().ok()?.modified().ok()?;
    Some(LockFile {
        path: path.to_owned(),
        age: changed.elapsed().unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn z2_refs_that_name_nothing_are_found_with_what_their_log_says() {
        let home = tempfile::tempdir().unwrap();
        let (refs, logs) = (
            home.path().join("refs/heads"),
            home.path().join("logs/refs/heads"),
        );
        fs::create_dir_all(refs.join("wt")).unwrap();
        fs::create_dir_all(&logs).unwrap();
        let (one, two) = ("1".repeat(40), "2".repeat(40));
        fs::write(refs.join("fine"), format!("{one}\n")).unwrap();
        fs::write(refs.join("blank"), "").unwrap();
        fs::write(refs.join("wt/zeros"), [0; 41]).unwrap();
        fs::write(refs.join("odd"), "what\n").unwrap();
        fs::write(refs.join("odd.lock"), "").unwrap();
        let line = format!("{one} {two} A <a@b> 1 +0000\tcommit: x\n");
        fs::write(logs.join("blank"), line).unwrap();
        let survey = survey_refs(home.path());
        let names: Vec<_> = survey
            .broken
            .iter()
            .map(|found| (found.name.as_str(), found.is_blank))
            .collect();
        let expected = [
            ("refs/heads/blank", true),
            ("refs/heads/odd", false),
            ("refs/heads/wt/zeros", true),
        ];
        assert_eq!(names, expected);
        assert_eq!(survey.broken[0].logged, Commit::parse(&two));
        assert_eq!(survey.broken[1].logged, None);
        assert_eq!(survey.locks.len(), 1);
    }

    #[test]
    fn z2_packed_refs_are_read_line_by_line() {
        let home = tempfile::tempdir().unwrap();
        let id = "1".repeat(40);
        let fine = format!("# pack-refs with: peeled\n{id} refs/heads/a\n^{id}\n");
        let cases = [
            (String::new(), None),
            (fine.clone(), None),
            (format!("{fine}garbage\n"), Some(4)),
            (format!("{fine}{id} \n"), Some(4)),
            ("\0\0\0\0".to_owned(), Some(1)),
        ];
        for (text, line) in cases {
            fs::write(home.path().join("packed-refs"), &text).unwrap();
            let found = packed_refs_fault(home.path()).map(|(line, _)| line);
            assert_eq!(found, line, "{text:?}");
        }
    }
}
