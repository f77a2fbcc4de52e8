//! `info/exclude`: git's own list of what it must not see, so that no tracked file has to say it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

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
}
