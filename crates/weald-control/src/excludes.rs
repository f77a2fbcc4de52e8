//! `info/exclude`: git's own list of what it must not see, so that no tracked file has to say it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::files;

/// Adds lines that are not there yet. `private` is where the lock against other processes of weald lies.
///
/// The rest of the file is the user's: any bytes, its mode, and where it really is if it is a link.
pub fn add(common_dir: &Path, private: &Path, lines: &[&str]) -> io::Result<()> {
    files::edit_alone(&private.join("exclude"), || {
        let file = really(&common_dir.join("info/exclude"))?;
        let mut text = files::read_bytes(&file)?.unwrap_or_default();
        let is_known = |line: &str| {
            text.split(|byte| *byte == b'\n')
                .any(|known| known == line.as_bytes())
        };
        let missing: Vec<_> = lines.iter().filter(|line| !is_known(line)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        if let Some(parent) = file.parent() {
            fs::create_dir_all(parent)?;
        }
        // First: a line that is noted and was never added takes nothing with it.
        note(private, &missing, !file.exists())?;
        if !text.is_empty() && !text.ends_with(b"\n") {
            text.push(b'\n');
        }
        for line in missing {
            text.extend_from_slice(format!("{line}\n").as_bytes());
        }
        files::replace_like(&file, &text)
    })
    .and_then(|done| done)
}

/// Which lines weald added, in the private directory.
const ADDED_FILE: &str = "excluded.json";

const LIMIT: u64 = 1 << 20;

#[derive(Default, Serialize, Deserialize)]
struct Added {
    lines: Vec<String>,
    /// Whether there was no such file before.
    made: bool,
}

fn added(private: &Path) -> Added {
    let text = files::read_small(&private.join(ADDED_FILE), LIMIT);
    let text = text.ok().flatten().unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

fn note(private: &Path, missing: &[&&str], made: bool) -> io::Result<()> {
    let mut added = added(private);
    added.made |= made;
    for line in missing {
        if added.lines.iter().all(|known| known != *line) {
            added.lines.push((**line).to_owned());
        }
    }
    let text = serde_json::to_string(&added).unwrap_or_default();
    files::replace(&private.join(ADDED_FILE), &text)
}

/// Takes out the lines that weald added, and the file if weald made it. A line that was the user's before stays.
pub fn take_out(common_dir: &Path, private: &Path) -> io::Result<()> {
    files::edit_alone(&private.join("exclude"), || {
        let added = added(private);
        let file = really(&common_dir.join("info/exclude"))?;
        let Some(text) = files::read_bytes(&file)? else {
            return Ok(());
        };
        let is_added = |line: &[u8]| added.lines.iter().any(|one| one.as_bytes() == line);
        let kept: Vec<&[u8]> = text
            .split_inclusive(|byte| *byte == b'\n')
            .filter(|line| !is_added(line.strip_suffix(b"\n").unwrap_or(line)))
            .collect();
        let kept = kept.concat();
        match kept.is_empty() && added.made {
            true => fs::remove_file(&file),
            false if kept == text => Ok(()),
            false => files::replace_like(&file, &kept),
        }
    })
    .and_then(|done| done)
}

/// Where a file is behind all links; the path itself if nothing is there.
fn really(path: &Path) -> io::Result<PathBuf> {
    match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(path.to_owned()),
        _ => path.canonicalize(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn p16_what_the_user_excludes_stays_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let (git, own) = (directory.path().join("git"), directory.path().join("own"));
        let file = git.join("info/exclude");
        let add = |line: &str| add(&git, &directory.path().join("private"), &[line]);
        add("/one").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"/one\n");
        // No UTF-8, no end of the line, nobody else's to read.
        fs::write(&file, b"caf\xe9").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        add("/one").unwrap();
        add("/one").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"caf\xe9\n/one\n");
        assert_eq!(
            fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            0o600
        );
        // A link stays one.
        fs::rename(&file, &own).unwrap();
        symlink(&own, &file).unwrap();
        add("/two").unwrap();
        assert_eq!(fs::read_link(&file).unwrap(), own);
        assert_eq!(fs::read(&own).unwrap(), b"caf\xe9\n/one\n/two\n");
        // What can't be read is not replaced: a link to nowhere, a directory.
        fs::remove_file(&own).unwrap();
        assert!(add("/three").is_err() && !own.exists());
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        assert!(add("/three").is_err() && file.is_dir());
    }

    #[test]
    fn u14_only_lines_that_weald_added_are_taken_out() {
        for (before, made) in [(Some("# mine\n/own/\n"), false), (None, true)] {
            let home = tempfile::tempdir().unwrap();
            let (git, private) = (home.path().join("git"), home.path().join("private"));
            fs::create_dir_all(git.join("info")).unwrap();
            fs::create_dir_all(&private).unwrap();
            let file = git.join("info/exclude");
            if let Some(text) = before {
                fs::write(&file, text).unwrap();
            }
            add(&git, &private, &["/own/", "/trees/"]).unwrap();
            add(&git, &private, &["/trees/", "/more/"]).unwrap();
            assert!(
                fs::read_to_string(&file)
                    .unwrap()
                    .ends_with("/trees/\n/more/\n")
            );
            for _ in 0..2 {
                take_out(&git, &private).unwrap();
                let left = fs::read_to_string(&file).ok();
                assert_eq!(left.as_deref(), before, "made: {made}");
            }
        }
    }
}
