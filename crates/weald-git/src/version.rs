//! Which git there is, and numbers in what it answers.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::process::{Git, GitError};

/// The oldest git that works: 2.40 brought `merge-tree --merge-base`, and with it merging without a checkout.
pub const MINIMUM_VERSION: (u32, u32) = (2, 40);

/// The number in the answer of a git that counted.
pub fn counted(command: &str, answer: &[u8]) -> Result<u64, GitError> {
    let text = String::from_utf8_lossy(answer);
    text.trim().parse().map_err(|_| GitError::Unexpected {
        command: command.to_owned(),
        answer: text.chars().take(100).collect(),
    })
}

/// Checks that the git in the search path is new enough. The answer is remembered in `known` for exactly this program, by
/// its place, number, size and times, so that it is started for it once.
pub fn require_known_version(known: &Path) -> Result<(), GitError> {
    let program = program().map(|(path, found)| {
        let times = (
            found.mtime(),
            found.mtime_nsec(),
            found.ctime(),
            found.ctime_nsec(),
        );
        format!(
            "{} {} {} {times:?}\n",
            path.display(),
            found.ino(),
            found.len()
        )
    });
    if program.is_some() && std::fs::read_to_string(known).ok() == program {
        return Ok(());
    }
    require_version()?;
    // Without a memory it is asked again.
    if let (Some(text), Some(folder)) = (program, known.parent()) {
        let building = known.with_extension(std::process::id().to_string());
        let _ = std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(&building, text))
            .and_then(|()| std::fs::rename(&building, known));
    }
    Ok(())
}

/// Which file a git is started from.
fn program() -> Option<(PathBuf, std::fs::Metadata)> {
    #[expect(clippy::disallowed_methods, reason = "git has to be found")]
    let path = std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/bin:/bin"));
    std::env::split_paths(&path).find_map(|folder| {
        let program = folder.join("git");
        let found = program.metadata().ok()?;
        let is_program = found.is_file() && found.mode() & 0o111 != 0;
        is_program.then_some((program, found))
    })
}

/// Checks that a git is installed and new enough; answers its version.
pub fn require_version() -> Result<String, GitError> {
    let output = Git::outside(&PathBuf::from("/"), "--version").run()?;
    let text = String::from_utf8_lossy(&output).trim().to_owned();
    let version = text
        .strip_prefix("git version ")
        .unwrap_or(&text)
        .to_owned();
    let mut parts = version
        .split('.')
        .map(|part| part.parse::<u32>().unwrap_or(0));
    let found = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    match found >= MINIMUM_VERSION {
        true => Ok(version),
        false => Err(GitError::TooOld { found: version }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_installed_git_is_new_enough() {
        assert!(
            require_version()
                .unwrap()
                .starts_with(|c: char| c.is_ascii_digit())
        );
    }
}
